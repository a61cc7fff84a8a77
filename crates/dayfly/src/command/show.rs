//! Answers of the admin API, for people: aligned, with units, with dates.

use dayfly_model::Timestamp;
use serde_json::{Value, json};

use super::plain;

/// How time to live stands in a container.
pub(super) fn status(container: &str, answer: &Value) -> String {
    let backlog = &answer["backlog"];
    let mut rows = vec![
        row("container", container),
        row("time", date(&answer["now"])),
        row("default ttl", ttl(&answer["defaultTtl"])),
    ];
    let pending = &answer["pending"];
    if !pending.is_null() {
        let (default, at) = (ttl(&pending["defaultTtl"]), date(&pending["at"]));
        rows.push(row("pending", format!("{default} from {at} on")));
    }
    rows.push(row("live", count(&answer["live"])));
    rows.push(row("never expire", count(&answer["never"])));
    rows.push(row("ttl unreadable", items(&answer["uninterpretable"])));
    let oldest = match &backlog["oldestExpiredAt"] {
        Value::Null => String::new(),
        at => format!(", the oldest expired at {}", date(at)),
    };
    rows.push(row("to be purged", count(backlog) + &oldest));
    rows.extend(purge_row(&answer["purge"]));
    let mut text = table(&rows, &[]);
    text.push_str(&history(&answer["history"]));
    text
}

fn purge_row(purge: &Value) -> Option<Vec<String>> {
    let mut told = purge["state"].as_str()?.to_owned();
    if let Some(reason) = purge["reason"].as_str() {
        told.push_str(&format!(" ({reason})"));
    }
    let rate = purge["itemsPerSecond"].as_f64().unwrap_or_default();
    told.push_str(&format!(", {} removed, {rate:.1} items/s", items(&purge["purgedItems"])));
    Some(row("purge", told))
}

fn history(changes: &Value) -> String {
    let changes = changes.as_array().map(Vec::as_slice).unwrap_or_default();
    if changes.is_empty() {
        return String::new();
    }
    let mut rows = vec![["changed at", "by", "from", "to", "expired"].map(String::from).to_vec()];
    for change in changes {
        rows.push(vec![
            date(&change["at"]),
            change["by"].as_str().unwrap_or_default().to_owned(),
            ttl(&change["from"]),
            ttl(&change["to"]),
            items(&change["condemnedItems"]),
        ]);
    }
    format!("\n{}", table(&rows, &[2, 3, 4]))
}

/// How long the longest bar of a forecast is.
const BAR_MAX: u64 = 30;

/// What expires when: the stretches of time in which something does, with a bar for
/// how much, and the sums.
pub(super) fn forecast(answer: &Value) -> String {
    let buckets = answer["buckets"].as_array().map(Vec::as_slice).unwrap_or_default();
    let head = ["from", "to", "items", "bytes", "with a ttl", ""];
    let mut rows = vec![head.map(String::from).to_vec()];
    let items_of = |bucket: &Value| bucket["items"].as_u64().unwrap_or_default();
    let most = buckets.iter().map(items_of).max().unwrap_or_default();
    let mut sum = json!({});
    for bucket in buckets {
        for name in ["items", "bytes", "explicitItems"] {
            add(&mut sum, name, bucket);
        }
        if items_of(bucket) > 0 {
            let (from, to) = (date(&bucket["from"]), date(&bucket["to"]));
            rows.push(expiring(from, to, bucket, bar(items_of(bucket), most)));
        }
    }
    let end = buckets.last().map(|bucket| date(&bucket["to"])).unwrap_or_default();
    rows.push(expiring("in all until".to_owned(), end, &sum, String::new()));
    let mut live = sum;
    for name in ["later", "never"] {
        let what = &answer[name];
        for unit in ["items", "bytes"] {
            add(&mut live, unit, what);
        }
        if items_of(what) > 0 {
            rows.push(counted(name, what));
        }
    }
    rows.push(counted("live now", &live));
    table(&rows, &[2, 3, 4])
}

fn expiring(from: String, to: String, what: &Value, bar: String) -> Vec<String> {
    let (items, explicit) = (number(&what["items"]), number(&what["explicitItems"]));
    vec![from, to, items, bytes(&what["bytes"]), explicit, bar]
}

fn counted(name: &str, what: &Value) -> Vec<String> {
    vec![name.to_owned(), String::new(), number(&what["items"]), bytes(&what["bytes"])]
}

/// Adds a figure of `more` to the same of `sum`.
fn add(sum: &mut Value, name: &str, more: &Value) {
    let figure = |of: &Value| of[name].as_u64().unwrap_or_default();
    let together = figure(sum).saturating_add(figure(more));
    if let Value::Object(members) = sum {
        members.insert(name.to_owned(), together.into());
    }
}

/// A bar for a part of `most`. What is more than nothing can be seen.
fn bar(part: u64, most: u64) -> String {
    let length = u128::from(part) * u128::from(BAR_MAX) / u128::from(most.max(1));
    "█".repeat(usize::try_from(length).unwrap_or_default().max(1))
}

/// What another default would expire: each row has what no row above it has, so
/// that they add up to what is alive.
pub(super) fn what_if(default: &str, answer: &Value) -> String {
    let default = match default {
        "off" | "-1" => default.to_owned(),
        seconds => format!("{seconds} s"),
    };
    let (once, hour, day) = (&answer["expired"], &answer["expiredInHour"], &answer["expiredInDay"]);
    let mut rows = vec![
        row("if the default were", default),
        row("expire at once", count(once)),
        row("then in an hour", count(&more(hour, once))),
        row("then in a day", count(&more(day, hour))),
        row("later", count(&answer["later"])),
        row("never expire", count(&answer["never"])),
        row("live now, in all", count(&answer["live"])),
        row("ttl unreadable", items(&answer["uninterpretable"])),
    ];
    if !answer["oldestTs"].is_null() {
        let (oldest, newest) = (date(&answer["oldestTs"]), date(&answer["newestTs"]));
        rows.push(row("without a ttl", format!("written from {oldest} to {newest}")));
    }
    table(&rows, &[])
}

/// Why an item lives, or not.
pub(super) fn explain(answer: &Value) -> String {
    let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
    let mut rows = vec![row("state", text("state"))];
    if answer["class"].is_string() {
        rows.push(row("class", text("class")));
        rows.push(row("written", date(&answer["ts"])));
        rows.push(row("own ttl", own_ttl(&answer["ttl"])));
    }
    rows.push(row("default ttl", ttl(&answer["defaultTtl"])));
    if answer["class"].is_string() {
        let end = match (&answer["expiresAt"], text("state").as_str()) {
            (Value::Null, _) => row("expires", "never"),
            (at, "expired") => row("expired", date(at)),
            (at, _) => row("expires", date(at)),
        };
        rows.push(end);
    }
    rows.push(row("reason", text("reason")));
    table(&rows, &[])
}

/// The items that die next, one in a line.
pub(super) fn next(answer: &Value) -> String {
    let head = ["in", "at", "id", "partition key", "by"].map(String::from).to_vec();
    let mut rows = vec![head];
    let now = answer["now"].as_u64().unwrap_or_default();
    for item in answer["items"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let left = match item["expiresAt"].as_u64() {
            Some(at) => format!("{} s", at.saturating_sub(now)),
            None => "never".to_owned(),
        };
        let by = match item["class"].as_str() {
            Some("inherit" | "uninterpretable") => "default",
            Some("explicit" | "never") => "ttl",
            _ => "",
        };
        let at = if item["expiresAt"].is_null() { String::new() } else { date(&item["expiresAt"]) };
        let text = |name: &str| plain(item[name].as_str().unwrap_or_default());
        rows.push(vec![left, at, text("id"), text("partitionKey"), by.to_owned()]);
    }
    if rows.len() == 1 {
        return "nothing\n".to_owned();
    }
    let mut text = table(&rows, &[0]);
    if !answer["continuation"].is_null() {
        text.push_str("…\n");
    }
    text
}

/// How many items a purge removed.
pub(super) fn purge(answer: &Value) -> String {
    table(&[row("purged", items(&answer["purgedItems"]))], &[])
}

pub(super) fn row(name: &str, value: impl Into<String>) -> Vec<String> {
    vec![name.to_owned(), value.into()]
}

/// A default, as a person says it.
pub(super) fn ttl(value: &Value) -> String {
    match value.as_i64() {
        None => "off".to_owned(),
        Some(-1) => "-1".to_owned(),
        Some(seconds) => format!("{seconds} s"),
    }
}

/// The `ttl` of an item.
fn own_ttl(value: &Value) -> String {
    if value.is_null() { "none".to_owned() } else { ttl(value) }
}

pub(super) fn number(value: &Value) -> String {
    value.as_u64().unwrap_or_default().to_string()
}

pub(super) fn items(value: &Value) -> String {
    let count = value.as_u64().unwrap_or_default();
    if count == 1 { "1 item".to_owned() } else { format!("{count} items") }
}

pub(super) fn count(value: &Value) -> String {
    format!("{}, {}", items(&value["items"]), bytes(&value["bytes"]))
}

/// By how much a count is more than another.
fn more(all: &Value, part: &Value) -> Value {
    let number = |of: &Value, name: &str| of[name].as_u64().unwrap_or_default();
    let more = |name: &str| number(all, name).saturating_sub(number(part, name));
    json!({"items": more("items"), "bytes": more("bytes")})
}

/// Bytes in the unit in which they are a number of few digits.
pub(super) fn bytes(value: &Value) -> String {
    let bytes = value.as_u64().unwrap_or_default();
    let mut unit = 1024;
    for name in ["KB", "MB", "GB", "TB"] {
        if bytes < unit {
            break;
        }
        if bytes < unit * 1024 || name == "TB" {
            let tenths = u128::from(bytes) * 10 / u128::from(unit);
            return format!("{}.{} {name}", tenths / 10, tenths % 10);
        }
        unit *= 1024;
    }
    format!("{bytes} B")
}

pub(super) fn date(value: &Value) -> String {
    value.as_u64().map_or_else(|| "-".to_owned(), |second| Timestamp(second).to_iso_date())
}

/// Rows with their columns below each other; those in `right` end together.
pub(super) fn table(rows: &[Vec<String>], right: &[usize]) -> String {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let gap = if column == 0 { "" } else { "  " };
            let cell: String = cell.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            let width = width(column).unwrap_or_default();
            if right.contains(&column) {
                line.push_str(&format!("{gap}{cell:>width$}"));
            } else {
                line.push_str(&format!("{gap}{cell:<width$}"));
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_the_unit_that_fits() {
        for (number, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KB"),
            (10_240, "10.0 KB"),
            (1_048_575, "1023.9 KB"),
            (1_048_576, "1.0 MB"),
            (5_000_000_000, "4.6 GB"),
            (u64::MAX, "16777215.9 TB"),
        ] {
            assert_eq!(bytes(&json!(number)), expected);
        }
    }

    #[test]
    fn a_status_is_a_table() {
        let answer = json!({
            "now": 1_700_000_000, "defaultTtl": 3600, "pending": {"defaultTtl": null, "at": 1_700_000_060},
            "live": {"items": 10, "bytes": 10_240}, "never": {"items": 1, "bytes": 900},
            "uninterpretable": 0,
            "backlog": {"items": 3, "bytes": 3000, "oldestExpiredAt": 1_699_999_000},
            "purge": {"state": "paused", "reason": "by hand", "itemsPerSecond": 2.5, "purgedItems": 1},
            "history": [
                {"at": 1_699_990_000, "by": "primary key", "from": null, "to": 3600, "condemnedItems": 42},
                {"at": 1_700_000_060, "by": "primary key", "from": 3600, "to": -1, "condemnedItems": 1},
            ],
        });
        assert_eq!(
            status("d/a\u{1b}b", &answer),
            "container       d/a?b\n\
             time            2023-11-14T22:13:20Z\n\
             default ttl     3600 s\n\
             pending         off from 2023-11-14T22:14:20Z on\n\
             live            10 items, 10.0 KB\n\
             never expire    1 item, 900 B\n\
             ttl unreadable  0 items\n\
             to be purged    3 items, 2.9 KB, the oldest expired at 2023-11-14T21:56:40Z\n\
             purge           paused (by hand), 1 item removed, 2.5 items/s\n\
             \n\
             changed at            by             from      to   expired\n\
             2023-11-14T19:26:40Z  primary key     off  3600 s  42 items\n\
             2023-11-14T22:14:20Z  primary key  3600 s      -1    1 item\n"
        );
    }

    #[test]
    fn a_forecast_has_bars_and_sums_and_no_zeros() {
        let bucket = |from: u64, items: u64, explicit: u64| {
            json!({
                "from": from, "to": from + 60, "items": items, "bytes": items * 100,
                "explicitItems": explicit,
            })
        };
        let answer = json!({
            "buckets": [bucket(0, 1, 0), bucket(60, 0, 0), bucket(120, 300, 20), bucket(180, 0, 0)],
            "later": {"items": 0, "bytes": 0}, "never": {"items": 5, "bytes": 500},
        });
        let longest = "█".repeat(30);
        assert_eq!(
            forecast(&answer),
            format!(
                "from                  to                    items    bytes  with a ttl\n\
                 1970-01-01T00:00:00Z  1970-01-01T00:01:00Z      1    100 B           0  █\n\
                 1970-01-01T00:02:00Z  1970-01-01T00:03:00Z    300  29.2 KB          20  {longest}\n\
                 in all until          1970-01-01T00:04:00Z    301  29.3 KB          20\n\
                 never                                           5    500 B\n\
                 live now                                      306  29.8 KB\n"
            )
        );
    }

    #[test]
    fn an_answer_without_anything_is_shown_all_the_same() {
        let nothing = json!({});
        for text in [
            status("d/c", &nothing),
            forecast(&nothing),
            what_if("off", &nothing),
            explain(&nothing),
            purge(&nothing),
        ] {
            assert!(text.ends_with('\n'), "{text}");
        }
    }
}
