//! What `/metrics` says, and that it says it in the form that is asked for.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]
#![allow(dead_code, reason = "this test uses a part of the scenarios' server")]

#[path = "scenarios/server.rs"]
mod server;

use std::collections::{HashMap, HashSet};

use server::{Engine, Mode, Server};

/// A server with the database `d`.
fn server() -> Server {
    let server = Server::new(Engine::Memory { slices: 4 }, Mode::default());
    server.clock(1000);
    send(&server, "POST", "/dbs", r#"{"id":"d"}"#);
    server
}

fn send(server: &Server, method: &str, path: &str, body: &str) -> u16 {
    let upsert = ("x-ms-documentdb-is-upsert".to_owned(), "true".to_owned());
    server.send(method, path, &[upsert], body.into(), "name").status().as_u16()
}

fn container(server: &Server, name: &str, default: &str) {
    let id = serde_json::Value::from(name);
    let body = format!(r#"{{"id":{id},"partitionKey":{{"paths":["/pk"]}}{default}}}"#);
    assert_eq!(send(server, "POST", "/dbs/d/colls", &body), 201, "{name}");
}

fn write(server: &Server, body: &str) {
    let status = send(server, "POST", "/dbs/d/colls/c/docs", body);
    assert!(status == 200 || status == 201, "{body}: {status}");
}

/// The samples, by everything that stands before the number. Panics at what a
/// strict reader would not take.
fn scrape(server: &Server) -> HashMap<String, f64> {
    let response = server.send("GET", "/metrics", &[], Vec::new(), "none");
    let text = String::from_utf8(response.body().to_vec()).unwrap();
    assert!(text.ends_with('\n'), "the last line must end");
    let (mut described, mut samples) = (HashSet::new(), HashMap::new());
    let mut lines = text.lines();
    let (mut name, mut kind) = ("", "");
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            name = help.split(' ').next().unwrap();
            assert!(help.len() > name.len() + 1, "no help: {line}");
            assert!(described.insert(name), "described twice: {name}");
            let kinds = lines.next().unwrap().strip_prefix("# TYPE ").expect("a type");
            kind = kinds.strip_prefix(name).expect("the same name").trim_start();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{kinds}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{name} is a {kind}");
            continue;
        }
        let (sample, number) = line.rsplit_once(' ').expect("a sample");
        let labels = sample.strip_prefix(name).expect("a sample of what was described");
        let labels = match kind {
            "histogram" => ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|part| labels.strip_prefix(part))
                .expect("a part of a histogram"),
            _ => labels,
        };
        check_labels(labels);
        let number: f64 = number.parse().expect("a number");
        assert!(kind == "gauge" || number >= 0.0, "{line}");
        assert!(samples.insert(sample.to_owned(), number).is_none(), "twice: {line}");
    }
    samples
}

/// `{name="value"}`, where quotes, backslashes and ends of lines are escaped.
fn check_labels(labels: &str) {
    if labels.is_empty() {
        return;
    }
    let inside = labels.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap();
    let (name, value) = inside.split_once("=\"").unwrap();
    assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{labels}");
    let mut characters = value.strip_suffix('"').unwrap().chars();
    while let Some(character) = characters.next() {
        match character {
            '"' | '\n' => panic!("not escaped: {labels}"),
            '\\' => assert!(matches!(characters.next(), Some('\\' | '"' | 'n')), "{labels}"),
            _ => {}
        }
    }
}

/// A figure of the container `d/c`.
fn of(server: &Server, metric: &str) -> f64 {
    let sample = format!("dayfly_ttl_{metric}{{container=\"d/c\"}}");
    *scrape(server).get(&sample).unwrap_or_else(|| panic!("no {sample}"))
}

#[track_caller]
fn check(server: &Server, expected: &[(&str, f64)]) {
    for (metric, number) in expected {
        assert!((of(server, metric) - number).abs() < 0.5, "{metric}: {}", of(server, metric));
    }
}

#[test]
fn expiry_is_counted_on_its_second_and_never_uncounted() {
    let server = server();
    container(&server, "c", r#","defaultTtl":10"#);
    for pk in 0..5 {
        write(&server, &format!(r#"{{"id":"a","pk":"{pk}"}}"#));
    }
    write(&server, r#"{"id":"long","pk":"x","ttl":100}"#);
    server.clock(1009);
    check(&server, &[("expired_total", 0.0), ("live_items", 6.0), ("backlog_items", 0.0)]);

    server.clock(1012);
    check(&server, &[("expired_total", 5.0), ("live_items", 1.0), ("backlog_items", 5.0)]);
    check(&server, &[("purged_total", 0.0), ("oldest_unpurged_seconds", 2.0)]);
    assert!(of(&server, "live_bytes") > 200.0 && of(&server, "backlog_bytes") > 1000.0);

    // One of them is written anew: it has expired all the same.
    write(&server, r#"{"id":"a","pk":"3"}"#);
    check(&server, &[("expired_total", 5.0), ("live_items", 2.0), ("backlog_items", 4.0)]);

    server.purge();
    check(&server, &[("expired_total", 5.0), ("purged_total", 4.0), ("backlog_items", 0.0)]);
    check(&server, &[("oldest_unpurged_seconds", 0.0), ("backlog_bytes", 0.0)]);

    server.clock(1022);
    check(&server, &[("expired_total", 6.0), ("purged_total", 4.0), ("live_items", 1.0)]);
}

#[test]
fn an_item_that_a_change_expired_is_not_older_than_the_change() {
    let server = server();
    container(&server, "c", "");
    write(&server, r#"{"id":"a","pk":"x"}"#);
    write(&server, r#"{"id":"b","pk":"x","ttl":"abc"}"#);
    check(&server, &[("uninterpretable_items", 1.0)]);
    server.clock(2000);
    let body = r#"{"id":"c","partitionKey":{"paths":["/pk"]},"defaultTtl":10}"#;
    assert_eq!(send(&server, "PUT", "/dbs/d/colls/c", body), 200);
    server.clock(2003);
    check(&server, &[("oldest_unpurged_seconds", 3.0), ("uninterpretable_items", 0.0)]);
}

#[test]
fn the_lag_of_the_purge_is_a_histogram() {
    let server = server();
    container(&server, "c", r#","defaultTtl":10"#);
    write(&server, r#"{"id":"a","pk":"x"}"#);
    server.clock(1002);
    write(&server, r#"{"id":"b","pk":"x"}"#);
    server.clock(1014);
    server.purge();
    let samples = scrape(&server);
    let lag = |part: &str| samples[&format!("dayfly_ttl_purge_lag_seconds{part}")];
    for (part, expected) in [
        ("_bucket{le=\"1\"}", 0.0),
        ("_bucket{le=\"2\"}", 1.0),
        ("_bucket{le=\"5\"}", 2.0),
        ("_bucket{le=\"86400\"}", 2.0),
        ("_bucket{le=\"+Inf\"}", 2.0),
        ("_sum", 6.0),
        ("_count", 2.0),
    ] {
        assert!((lag(part) - expected).abs() < 0.5, "{part}: {}", lag(part));
    }
    assert!(samples["dayfly_ttl_purge_ru_spent_total"] > 1.0);
}

#[test]
fn a_purge_that_rests_says_why() {
    let server = server();
    container(&server, "c", "");
    let rests = || {
        let samples = scrape(&server);
        ["operator", "clock"]
            .map(|why| samples[&format!("dayfly_ttl_purge_paused{{reason=\"{why}\"}}")] > 0.5)
    };
    assert_eq!(rests(), [false, false]);
    assert_eq!(send(&server, "POST", "/_admin/v1/purge/pause", r#"{"container":"d/c"}"#), 200);
    assert_eq!(rests(), [true, false]);
    assert_eq!(send(&server, "POST", "/_admin/v1/purge/resume", ""), 200);
    assert_eq!(rests(), [false, false]);
}

#[test]
fn names_of_any_kind_can_be_read() {
    let server = server();
    let name = "say \"hi\"\n{a=\"b\"} 1 ä";
    container(&server, name, "");
    let samples = scrape(&server);
    let label = "dayfly_ttl_live_items{container=\"d/say \\\"hi\\\"\\n{a=\\\"b\\\"} 1 ä\"}";
    assert!(samples.contains_key(label), "{samples:?}");
}

#[test]
fn a_container_that_is_gone_is_not_shown() {
    let server = server();
    container(&server, "c", "");
    assert!(scrape(&server).contains_key("dayfly_ttl_live_items{container=\"d/c\"}"));
    assert_eq!(send(&server, "DELETE", "/dbs/d/colls/c", ""), 204);
    let samples = scrape(&server);
    assert!(!samples.keys().any(|sample| sample.contains("container=")), "{samples:?}");
    assert!(samples["dayfly_ttl_containers_left_out"].abs() < 0.5);
}

#[test]
fn a_page_has_an_end() {
    let server = server();
    for number in 0..1003 {
        container(&server, &format!("c{number}"), "");
    }
    let samples = scrape(&server);
    let shown = samples.keys().filter(|sample| sample.starts_with("dayfly_ttl_live_items{"));
    assert_eq!(shown.count(), 1000);
    assert!((samples["dayfly_ttl_containers_left_out"] - 3.0).abs() < 0.5);
}
