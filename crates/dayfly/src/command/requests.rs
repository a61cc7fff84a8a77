//! `dayfly requests`: the last requests of a server, as a log.

use clap::Args;
use serde_json::Value;

use super::show::{date, table};
use super::{Server, encoded, not_json, plain, print};

/// The last requests that a running server answered, the newest at the end.
#[derive(Clone, Debug, Args)]
pub(crate) struct Requests {
    /// Only those with this status, such as 404, or of this class, such as 4xx.
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,

    /// Only those with this verb, such as POST.
    #[arg(long, value_name = "VERB")]
    verb: Option<String>,

    /// Only those with this in their path, such as /dbs/shop.
    #[arg(long, value_name = "PART")]
    path: Option<String>,

    /// Only those with this activity id: each answer has one, and each error names it.
    #[arg(long, value_name = "ID")]
    activity_id: Option<String>,

    /// How many, at most 1000.
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    limit: u32,

    #[command(flatten)]
    server: Server,
}

impl Requests {
    /// Asks, and prints the answer.
    pub(super) fn run(&self) -> Result<(), String> {
        let answer = self.server.client()?.ask(&self.call(), None)?;
        if self.server.json {
            return print(&format!("{answer}\n")).map(drop);
        }
        let answer: Value = serde_json::from_str(&answer).map_err(|_| not_json())?;
        print(&show(&answer)?).map(drop)
    }

    fn call(&self) -> String {
        let mut call = format!("/_admin/v1/requests?limit={}", self.limit);
        for (name, value) in [
            ("status", &self.status),
            ("verb", &self.verb),
            ("path", &self.path),
            ("activityId", &self.activity_id),
        ] {
            if let Some(value) = value {
                call.push_str(&format!("&{name}={}", encoded(value)));
            }
        }
        call
    }
}

/// The requests, or that there are none.
fn show(answer: &Value) -> Result<String, String> {
    if answer["enabled"] == false {
        let off = "The server keeps no requests: it was started with --request-log off.";
        return Err(off.to_owned());
    }
    let requests = answer["requests"].as_array().map(Vec::as_slice).unwrap_or_default();
    if requests.is_empty() {
        return Ok("There are no such requests.\n".to_owned());
    }
    let head = ["time", "status", "ms", "charge", "verb", "channel", "path", "activity id", ""];
    let mut rows = vec![head.map(String::from).to_vec()];
    rows.extend(requests.iter().rev().map(cells));
    Ok(table(&rows, &[2, 3]))
}

fn cells(request: &Value) -> Vec<String> {
    let text = |name: &str| plain(request[name].as_str().unwrap_or_default());
    let decimal = |name: &str, digits: usize| {
        format!("{:.digits$}", request[name].as_f64().unwrap_or_default())
    };
    let note = match text("missing") {
        feature if feature.is_empty() => text("query"),
        feature => format!("missing: {feature}"),
    };
    vec![
        date(&request["at"]),
        status(request),
        decimal("ms", 3),
        decimal("charge", 2),
        text("verb"),
        text("channel"),
        text("path"),
        text("activityId"),
        note,
    ]
}

/// The status, and behind it the substatus if there is one.
fn status(request: &Value) -> String {
    let number = |name: &str| request[name].as_u64().unwrap_or_default();
    match number("substatus") {
        0 => number("status").to_string(),
        substatus => format!("{}/{substatus}", number("status")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_are_a_log() {
        let id = "00000000-0000-0000-0000-000000000001";
        let request = |status: u16, substatus: u32, path: &str| {
            json!({
                "at": 0, "operation": "x", "verb": "GET", "channel": "http", "path": path, "status": status,
                "substatus": substatus, "charge": 1.0, "ms": 0.1234, "activityId": id,
            })
        };
        let mut newest = request(501, 0, "/b");
        newest["missing"] = "An attachment".into();
        let mut oldest = request(200, 0, "/dbs/\u{1b}");
        oldest["query"] = "SELECT\n1".into();
        let answer = json!({"requests": [newest, request(404, 1002, "/c"), oldest]});
        assert_eq!(
            show(&answer).unwrap(),
            format!(
                "time                  status       ms  charge  verb  channel  path    activity id\n\
                 1970-01-01T00:00:00Z  200       0.123    1.00  GET   http     /dbs/   {id}  SELECT 1\n\
                 1970-01-01T00:00:00Z  404/1002  0.123    1.00  GET   http     /c      {id}\n\
                 1970-01-01T00:00:00Z  501       0.123    1.00  GET   http     /b      {id}  missing: An attachment\n"
            )
        );
        assert_eq!(show(&json!({})).unwrap(), "There are no such requests.\n");
        assert!(show(&json!({"enabled": false})).unwrap_err().ends_with("--request-log off."));
    }
}
