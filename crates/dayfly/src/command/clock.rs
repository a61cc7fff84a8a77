//! `dayfly clock`: the server's clock, and how tests move it.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::show::{date, row, table};
use super::{Server, typed};

/// The clock of a running server.
#[derive(Clone, Debug, Args)]
pub(crate) struct Clock {
    #[command(subcommand)]
    step: Option<Step>,

    #[command(flatten)]
    server: Server,
}

/// What to do with it.
#[derive(Clone, Copy, Debug, Subcommand)]
enum Step {
    /// Shows it. So does `dayfly clock` alone.
    Show,
    /// Moves it forward. Needs a server with --test-clock.
    Advance {
        /// By how much: seconds, or a span such as 30m, 12h or 90d.
        #[arg(value_name = "TIME", value_parser = typed::seconds)]
        by: u64,
    },
    /// Moves it forward to a second. Needs a server with --test-clock.
    Set {
        /// Which one, in seconds since 1970.
        #[arg(value_name = "UNIX_SECONDS")]
        to: u64,
    },
    /// Stops it. Needs a server with --test-clock.
    Freeze,
    /// Lets it run again. Needs a server with --test-clock.
    Run,
    /// Takes what the machine's clock shows as right, after a jump.
    Accept,
}

impl Step {
    /// What to send; nothing, if the clock is only read.
    fn body(self) -> Option<Value> {
        match self {
            Step::Show => None,
            Step::Advance { by } => Some(json!({"advanceSeconds": by})),
            Step::Set { to } => Some(json!({"now": to})),
            Step::Freeze => Some(json!({"frozen": true})),
            Step::Run => Some(json!({"frozen": false})),
            Step::Accept => Some(json!({"accept": true})),
        }
    }
}

impl Clock {
    /// Asks, and prints the answer.
    pub(super) fn run(&self) -> Result<(), String> {
        let body = self.step.and_then(Step::body);
        let answer = self.server.client()?.ask("/_admin/v1/clock", body.as_ref())?;
        self.server.print(&answer, show)
    }
}

fn show(answer: &Value) -> String {
    let state = match (answer["frozen"] == true, answer["held"] == true) {
        (true, _) => "frozen",
        (_, true) => "holds back a jump of the machine's clock",
        _ => "runs",
    };
    let mut rows = vec![row("time", date(&answer["now"])), row("state", state)];
    for (name, seconds) in [("moved by", "offsetSeconds"), ("machine behind", "behindSeconds")] {
        match answer[seconds].as_i64() {
            None | Some(0) => {}
            Some(seconds) => rows.push(row(name, format!("{seconds} s"))),
        }
    }
    if let Some(reason) = answer["purgeHeld"].as_str() {
        rows.push(row("purge", format!("held: {reason}")));
    }
    table(&rows, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_a_table() {
        let moved = json!({"now": 0, "frozen": true, "offsetSeconds": 60, "behindSeconds": 0});
        let told = "time      1970-01-01T00:00:00Z\nstate     frozen\nmoved by  60 s\n";
        assert_eq!(show(&moved), told);
        let held = json!({"now": 0, "held": true, "purgeHeld": "It jumped."});
        assert!(show(&held).contains("holds back a jump"));
        assert!(show(&held).ends_with("purge  held: It jumped.\n"));
        assert!(show(&json!({})).contains("runs"));
    }
}
