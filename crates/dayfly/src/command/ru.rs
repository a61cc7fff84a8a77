//! `dayfly ru`: what becomes of the throughput of a container, second by second.

use clap::Args;
use serde_json::Value;

use super::show::{date, row, table};
use super::{Container, Server, missing};

/// How long the longest bar is.
const BAR_MAX: f64 = 30.0;

/// The throughput of a container in a running server: what was used of it in each of the
/// last seconds, what was left over, and what the purge did with that.
#[derive(Clone, Debug, Args)]
pub(crate) struct Ru {
    /// The container, as DATABASE/CONTAINER.
    #[arg(value_name = "DB/COLL")]
    container: Container,

    /// How many of the last seconds, at most 3600.
    #[arg(long, default_value_t = 20, value_name = "COUNT")]
    seconds: u32,

    #[command(flatten)]
    server: Server,
}

impl Ru {
    /// Asks, and prints the answer.
    pub(super) fn run(&self) -> Result<(), String> {
        let path = format!("{}?seconds={}", self.container.below("throughput"), self.seconds);
        let client = self.server.client()?;
        let answer = client
            .ask(&path, None)
            .map_err(|failure| missing::told(&client, &self.container, failure))?;
        self.server.print(&answer, |answer| show(&self.container.to_string(), answer))
    }
}

fn show(container: &str, answer: &Value) -> String {
    let mode = answer["mode"].as_str().unwrap_or_default();
    let mut rows = vec![row("container", container), row("mode", mode)];
    if answer["owner"].is_null() {
        rows.push(row("throughput", "none: nothing is metered"));
        return table(&rows, &[]);
    }
    let shared = if answer["owner"] == "database" { ", shared by its database" } else { "" };
    let scales = if answer["autoscale"] == true {
        format!(", scales; the last hour needed {} RU/s", units(&answer["scaledTo"]))
    } else {
        String::new()
    };
    rows.push(row("throughput", format!("{} RU/s{shared}{scales}", units(&answer["provisioned"]))));
    for range in answer["ranges"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let name = range["range"].as_str().map_or("left".to_owned(), |id| format!("left of {id}"));
        rows.push(row(&name, format!("{} of {}", units(&range["level"]), units(&range["rate"]))));
    }
    rows.push(row("for the purge", format!("{} RU", units(&answer["leftOver"]))));
    format!("{}\n{}", table(&rows, &[]), seconds(answer))
}

/// A line for each second, with a bar for what was used of it.
fn seconds(answer: &Value) -> String {
    let head = ["second", "used", "left over", "purge", "refused", ""];
    let mut rows = vec![head.map(String::from).to_vec()];
    let told = answer["seconds"].as_array().map(Vec::as_slice).unwrap_or_default();
    for second in told {
        let (used, provisioned) = (number(&second["used"]), number(&second["provisioned"]));
        rows.push(vec![
            date(&second["second"]),
            units(&second["used"]),
            units(&second["overflow"]),
            units(&second["purge"]),
            second["throttled"].as_u64().unwrap_or_default().to_string(),
            bar(used, provisioned),
        ]);
    }
    table(&rows, &[1, 2, 3, 4])
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

fn units(value: &Value) -> String {
    let units = number(value);
    if units.fract() == 0.0 { format!("{units:.0}") } else { format!("{units:.2}") }
}

/// A bar for a part of what was provisioned. What is more than nothing can be seen, and what
/// is more than all of it has a `+` at its end.
fn bar(used: f64, provisioned: f64) -> String {
    if used <= 0.0 {
        return String::new();
    }
    let length = (used / provisioned.max(1.0) * BAR_MAX).clamp(1.0, BAR_MAX);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is from 1 to 30"
    )]
    let bar = "█".repeat(length.round() as usize);
    if used > provisioned { bar + "+" } else { bar }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn seconds_have_bars() {
        let answer = json!({
            "owner": "container", "mode": "enforced", "provisioned": 400, "autoscale": false,
            "ranges": [{"range": "0", "rate": 400.0, "level": -0.95}], "leftOver": 12.0,
            "seconds": [
                {"second": 0, "provisioned": 400, "used": 0.0, "overflow": 400.0, "purge": 6.95, "throttled": 0},
                {"second": 1, "provisioned": 400, "used": 200.0, "overflow": 200.0, "purge": 0.0, "throttled": 0},
                {"second": 2, "provisioned": 400, "used": 400.95, "overflow": 0.0, "purge": 0.0, "throttled": 3},
            ],
        });
        let shown = show("d/c", &answer);
        assert!(shown.contains("-0.95 of 400"), "{shown}");
        let lines: Vec<&str> = shown.lines().rev().take(3).collect();
        assert!(lines[2].ends_with("6.95        0"), "{shown}");
        assert!(lines[1].ends_with(&format!("0  {}", "█".repeat(15))), "{shown}");
        assert!(lines[0].ends_with(&format!("3  {}+", "█".repeat(30))), "{shown}");
        let none = show("d/c", &json!({"owner": null, "mode": "measured"}));
        assert!(none.contains("none: nothing is metered"), "{none}");
    }
}
