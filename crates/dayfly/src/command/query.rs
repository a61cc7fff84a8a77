//! `dayfly query`: the rows of a query, one a line, or how it finds them.

use std::str::FromStr;

use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::client::{Client, Failure};
use super::show::{bytes, items, row, table};
use super::{Container, Server, missing, not_json, plain, print};

/// A query of a container.
#[derive(Clone, Debug, Args)]
pub(crate) struct Query {
    /// The container, as DATABASE/CONTAINER.
    #[arg(value_name = "DB/COLL")]
    container: Container,

    /// The query, such as 'SELECT * FROM c WHERE c.a = @a'.
    #[arg(value_name = "QUERY")]
    text: String,

    /// The value of a parameter, such as '@a=1' or '@a="x"'; may be repeated.
    #[arg(long, value_name = "NAME=JSON")]
    parameter: Vec<Parameter>,

    /// Shows how the first page is found, instead of its rows.
    #[arg(long)]
    explain: bool,

    #[command(flatten)]
    server: Server,
}

/// A parameter, and its value.
#[derive(Clone, Debug, PartialEq)]
struct Parameter(String, Value);

impl FromStr for Parameter {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Parameter, &'static str> {
        let (name, value) = text.split_once('=').ok_or("it must be NAME=JSON, such as @a=1")?;
        let value = serde_json::from_str(value)
            .map_err(|_| "the value must be JSON: 1, true, or \"x\" with its quotes")?;
        Ok(Parameter(format!("@{}", name.strip_prefix('@').unwrap_or(name)), value))
    }
}

/// A page of rows.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow, rename = "Documents")]
    rows: Vec<&'a RawValue>,
}

impl Query {
    /// Asks, and prints the answer.
    pub(super) fn run(&self) -> Result<(), String> {
        if self.explain { self.print_plan() } else { self.print_rows() }
    }

    fn parameters(&self) -> Value {
        let parameter = |Parameter(name, value): &Parameter| json!({"name": name, "value": value});
        self.parameter.iter().map(parameter).collect()
    }

    fn refused(&self, client: &Client, failure: Failure) -> String {
        let pointed = pointed(&self.text, &failure.sentence);
        pointed.unwrap_or_else(|| missing::told(client, &self.container, failure))
    }

    fn print_plan(&self) -> Result<(), String> {
        let body = json!({
            "container": self.container.to_string(),
            "query": self.text,
            "parameters": self.parameters(),
        });
        let client = self.server.client()?;
        let answer = client
            .ask("/_admin/v1/query/explain", Some(&body))
            .map_err(|failure| self.refused(&client, failure))?;
        self.server.print(&answer, plan)
    }

    /// Prints page after page, until there is none or nobody reads any more.
    fn print_rows(&self) -> Result<(), String> {
        let client = self.server.client()?;
        let Container(database, container) = &self.container;
        let query = json!({"query": self.text, "parameters": self.parameters()}).to_string();
        let mut continuation = None;
        loop {
            let answer = client
                .query((database, container), &query, continuation.as_deref())
                .map_err(|failure| self.refused(&client, failure))?;
            let text =
                if self.server.json { format!("{}\n", answer.body) } else { lines(&answer.body)? };
            continuation = answer.continuation;
            if !print(&text)? || continuation.is_none() {
                return Ok(());
            }
        }
    }
}

/// The rows of a page, one a line, as the server wrote them.
fn lines(body: &str) -> Result<String, String> {
    let page: Page<'_> = serde_json::from_str(body).map_err(|_| not_json())?;
    Ok(page.rows.iter().flat_map(|row| [row.get(), "\n"]).collect())
}

/// The first error that the server found in a query, and where it stands, if this
/// is what it says.
fn pointed(query: &str, sentence: &str) -> Option<String> {
    let found: Value = serde_json::from_str(sentence.strip_prefix("Message: ")?).ok()?;
    if let Some(sentence) = found.pointer("/Errors/0").and_then(Value::as_str) {
        return Some(plain(sentence));
    }
    let error = found.pointer("/errors/0")?;
    let message = plain(error["message"].as_str()?);
    let code = match &error["code"] {
        Value::String(code) => plain(code),
        code => code.to_string(),
    };
    let place = &error["location"];
    let (start, end) = (place["start"].as_u64()?, place["end"].as_u64()?);
    Some(format!("{code}: {message}\n{}", marked(query, start, end)))
}

/// The line of a query in which a place begins, with carets below the place. It
/// is counted in UTF-16 units.
fn marked(query: &str, start: u64, end: u64) -> String {
    let place = start..end.max(start + 1);
    let (mut unit, mut line, mut marks) = (0, String::new(), String::new());
    for c in query.chars() {
        if c == '\n' && unit >= start {
            break;
        }
        if c == '\n' {
            (line, marks) = (String::new(), String::new());
        } else {
            line.push(if c.is_control() { ' ' } else { c });
            marks.push(if place.contains(&unit) { '^' } else { ' ' });
        }
        unit += c.len_utf16() as u64;
    }
    // What is missing at the end stands behind it.
    if !marks.contains('^') {
        marks.push('^');
    }
    format!("  {line}\n  {}", marks.trim_end())
}

/// How a query finds its rows.
fn plan(answer: &Value) -> String {
    let (access, read, memory) = (&answer["access"], &answer["read"], &answer["memory"]);
    let mut rows = vec![row("way", text(&access["way"])), row("reason", text(&access["reason"]))];
    for (name, value) in [("condition", &access["condition"]), ("direction", &access["direction"])]
    {
        if value.is_string() {
            rows.push(row(name, text(value)));
        }
    }
    let partitions = access["partitions"].as_u64();
    rows.push(row("partitions", partitions.map_or("all".to_owned(), |count| count.to_string())));
    let (entries, dead) = (&read["entries"], &read["dead"]);
    rows.push(row("entries", format!("{}, {} of them dead", count(entries), count(dead))));
    rows.push(row("items", format!("{}, {}", items(&read["items"]), bytes(&read["bytes"]))));
    rows.push(row("in memory", in_memory(memory)));
    rows.push(row("stored", stored(&answer["storage"])));
    rows.push(row("answer", rows_told(&answer["answer"])));
    rows.push(row("charge", format!("{} RU", answer["charge"].as_f64().unwrap_or_default())));
    rows.push(row("made of", charged(&answer["chargeParts"])));
    table(&rows, &[]) + &indexes(access)
}

fn in_memory(memory: &Value) -> String {
    match memory["holds"].as_str() {
        None | Some("nothing") => "nothing".to_owned(),
        Some(what) => format!("{} {what}, {}", count(&memory["count"]), bytes(&memory["bytes"])),
    }
}

/// Deleted rows are in the way of a scan until they are compacted.
fn stored(storage: &Value) -> String {
    let (rows, deleted) = (count(&storage["rows"]), count(&storage["deletedRows"]));
    format!("{rows} rows in all, {deleted} of them deleted")
}

/// What the charge of a query is made of.
fn charged(parts: &Value) -> String {
    let ru = |name: &str| parts[name].as_f64().unwrap_or_default();
    let mut told = vec![format!("{}", ru("base"))];
    if parts["loaded"].is_number() {
        told.push(format!("{} for {}", ru("loaded"), items(&parts["loadedItems"])));
    }
    if parts["rows"].is_number() {
        told.push(format!("{} for {} of rows", ru("rows"), bytes(&parts["rowBytes"])));
    }
    told.join(" + ")
}

fn rows_told(answer: &Value) -> String {
    let more = if answer["more"] == true { ", and more on other pages" } else { "" };
    let rows = match count(&answer["rows"]) {
        1 => "1 row".to_owned(),
        rows => format!("{rows} rows"),
    };
    format!("{rows}, {}{more}", bytes(&answer["bytes"]))
}

fn indexes(access: &Value) -> String {
    let indexes = access["indexes"].as_array().map(Vec::as_slice).unwrap_or_default();
    if indexes.is_empty() {
        return String::new();
    }
    let mut rows = vec![row("index", "range")];
    for index in indexes {
        let range = index["range"].as_str().unwrap_or("all of it");
        rows.push(row(&text(&index["index"]), range));
    }
    let left_out = access["indexesLeftOut"].as_u64().unwrap_or_default();
    if left_out > 0 {
        rows.push(row("…", format!("and {left_out} more")));
    }
    format!("\n{}", table(&rows, &[]))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("-").to_owned()
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_names_and_json() {
        for (text, name, value) in [
            ("@a=1", "@a", json!(1)),
            ("a=\"x=y\"", "@a", json!("x=y")),
            ("@b={\"c\":[null]}", "@b", json!({"c": [null]})),
        ] {
            assert_eq!(text.parse(), Ok(Parameter(name.to_owned(), value)));
        }
        for wrong in ["@a", "@a=x", "@a="] {
            assert!(wrong.parse::<Parameter>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn rows_are_lines_as_they_are() {
        let body = r#"{"_rid":"x","Documents":[{"b": 1e+300,"a":[1, 2]},"x",3],"_count":3}"#;
        assert_eq!(lines(body).unwrap(), "{\"b\": 1e+300,\"a\":[1, 2]}\n\"x\"\n3\n");
        assert_eq!(lines(r#"{"Documents":[]}"#).unwrap(), "");
        assert!(lines("<html>").is_err());
    }

    #[test]
    fn an_error_has_carets_below_it() {
        for (query, start, end, expected) in [
            ("SELEC 1", 0, 5, "  SELEC 1\n  ^^^^^"),
            ("SELECT *\nFROM c WHER\nx", 16, 20, "  FROM c WHER\n         ^^^^"),
            ("SELECT", 6, 6, "  SELECT\n        ^"),
            ("SELECT\n1", 6, 6, "  SELECT\n        ^"),
            ("\u{1F600}\tx", 3, 4, "  \u{1F600} x\n    ^"),
            ("", 0, 0, "  \n  ^"),
        ] {
            assert_eq!(marked(query, start, end), expected, "{query}");
        }
        assert_eq!(pointed("", "Owner resource does not exist"), None);
        assert_eq!(pointed("", r#"Message: {"Errors":["No."]}"#).as_deref(), Some("No."));
    }

    #[test]
    fn a_plan_is_a_table() {
        let answer = json!({
            "now": 1, "charge": 3.81,
            "chargeParts": {"base": 2.0, "loaded": 1.8, "loadedItems": 6, "rows": 0.0085,
                "rowBytes": 35, "total": 3.81},
            "access": {
                "way": "values", "reason": "R.", "partitions": 1, "direction": null,
                "condition": "/a = 1", "indexesLeftOut": 2,
                "indexes": [{"index": "/a", "range": "/a = 1"}, {"index": "/b", "range": null}],
            },
            "read": {"entries": 7, "dead": 1, "items": 6, "bytes": 1536},
            "memory": {"holds": "sorted rows", "count": 6, "bytes": 480},
            "storage": {"rows": 90, "deletedRows": 9},
            "answer": {"rows": 6, "bytes": 35, "more": true},
        });
        assert_eq!(
            plan(&answer),
            "way         values\n\
             reason      R.\n\
             condition   /a = 1\n\
             partitions  1\n\
             entries     7, 1 of them dead\n\
             items       6 items, 1.5 KB\n\
             in memory   6 sorted rows, 480 B\n\
             stored      90 rows in all, 9 of them deleted\n\
             answer      6 rows, 35 B, and more on other pages\n\
             charge      3.81 RU\n\
             made of     2 + 1.8 for 6 items + 0.0085 for 35 B of rows\n\
             \n\
             index  range\n\
             /a     /a = 1\n\
             /b     all of it\n\
             …      and 2 more\n"
        );
        assert!(plan(&json!({})).ends_with('\n'));
    }
}
