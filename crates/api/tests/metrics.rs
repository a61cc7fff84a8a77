//! What `/metrics` says, and that it says it in the form that is asked for; and that the
//! documents, the alerts and the dashboard speak of what is there.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]
#![allow(dead_code, reason = "this test uses a part of the scenarios' server")]

#[allow(dead_code, reason = "only scripts are played in frames")]
#[path = "scenarios/frames.rs"]
mod frames;
#[path = "scenarios/server.rs"]
mod server;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::Ordering;

use dayfly_engine::{EngineSettings, ThroughputMode};
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

/// A metric, as the page describes it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Metric {
    kind: String,
    /// The names of its labels, without those that make a histogram.
    labels: BTreeSet<String>,
}

/// The samples, by everything that stands before the number.
fn scrape(server: &Server) -> HashMap<String, f64> {
    read(server).1
}

/// The metrics by name, and the samples. Panics at what a strict reader would not take.
fn read(server: &Server) -> (BTreeMap<String, Metric>, HashMap<String, f64>) {
    let response = server.send("GET", "/metrics", &[], Vec::new(), "none");
    let text = String::from_utf8(response.body().to_vec()).unwrap();
    assert!(text.ends_with('\n'), "the last line must end");
    let (mut metrics, mut samples) = (BTreeMap::<String, Metric>::new(), HashMap::new());
    let mut last_bucket = None;
    let mut lines = text.lines();
    let (mut name, mut kind) = ("", "");
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            name = help.split(' ').next().unwrap();
            assert!(help.len() > name.len() + 1, "no help: {line}");
            let kinds = lines.next().unwrap().strip_prefix("# TYPE ").expect("a type");
            kind = kinds.strip_prefix(name).expect("the same name").trim_start();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{kinds}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{name} is a {kind}");
            let metric = Metric { kind: kind.to_owned(), ..Metric::default() };
            assert!(metrics.insert(name.to_owned(), metric).is_none(), "described twice: {name}");
            continue;
        }
        let (sample, number) = line.rsplit_once(' ').expect("a sample");
        let labels = sample.strip_prefix(name).expect("a sample of what was described");
        let (part, labels) = match kind {
            "histogram" => ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|part| Some((*part, labels.strip_prefix(part)?)))
                .expect("a part of a histogram"),
            _ => ("", labels),
        };
        let mut labels = labels_of(labels);
        let number: f64 = number.parse().expect("a number");
        assert!(kind == "gauge" || number >= 0.0, "{line}");
        let end = labels.remove("le");
        assert_eq!(end.is_some(), part == "_bucket", "{line}");
        match part {
            // Each class holds those before it, and the last all there are.
            "_bucket" => {
                let before = last_bucket.replace((end, number));
                assert!(before.is_none_or(|(_, before)| before <= number), "{line}");
            }
            "_count" => {
                let last = last_bucket.take();
                assert_eq!(last, Some((Some("+Inf".to_owned()), number)), "{line}");
            }
            _ => {}
        }
        let names = &mut metrics.get_mut(name).unwrap().labels;
        let first = names.is_empty();
        names.extend(labels.keys().cloned());
        assert!(first || names.len() == labels.len(), "not the labels of the others: {line}");
        assert!(samples.insert(sample.to_owned(), number).is_none(), "twice: {line}");
    }
    (metrics, samples)
}

/// `{name="value",other="value"}`, where quotes, backslashes and ends of lines are escaped.
fn labels_of(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    if text.is_empty() {
        return found;
    }
    let mut rest = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap();
    loop {
        let (name, after) = rest.split_once("=\"").unwrap();
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{text}");
        let end = end_of_value(after).unwrap_or_else(|| panic!("not escaped: {text}"));
        let value = after[..end].to_owned();
        assert!(found.insert(name.to_owned(), value).is_none(), "a label twice: {text}");
        let after = &after[end + 1..];
        let Some(more) = after.strip_prefix(',') else {
            assert_eq!(after, "", "{text}");
            return found;
        };
        rest = more;
    }
}

/// Where the quote is that ends a value.
fn end_of_value(text: &str) -> Option<usize> {
    let mut characters = text.char_indices();
    while let Some((place, character)) = characters.next() {
        match character {
            '"' => return Some(place),
            '\n' => return None,
            '\\' if !matches!(characters.next(), Some((_, '\\' | '"' | 'n'))) => return None,
            _ => {}
        }
    }
    None
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

#[test]
fn requests_are_counted_by_what_they_were() {
    let server = server();
    container(&server, "c", "");
    write(&server, r#"{"id":"a","pk":"x"}"#);
    write(&server, r#"{"id":"a","pk":"x"}"#);
    let key = ("x-ms-documentdb-partitionkey".to_owned(), r#"["x"]"#.to_owned());
    for (id, sign, status) in [("a", "name", 200), ("b", "name", 404), ("a", "wrong", 401)] {
        let path = format!("/dbs/d/colls/c/docs/{id}");
        let answer = server.send("GET", &path, std::slice::from_ref(&key), Vec::new(), sign);
        assert_eq!(answer.status(), status, "{id} {sign}");
    }
    assert_eq!(send(&server, "GET", "/dbs/d/colls/c/docs/a/attachments", ""), 501);
    let samples = scrape(&server);
    for (sample, expected) in [
        (r#"dayfly_requests_total{status="201",substatus="0"}"#, 3.0),
        (r#"dayfly_requests_total{status="200",substatus="0"}"#, 2.0),
        (r#"dayfly_requests_total{status="404",substatus="0"}"#, 1.0),
        (r#"dayfly_requests_total{status="404",substatus="1003"}"#, 0.0),
        (r#"dayfly_requests_total{status="401",substatus="0"}"#, 1.0),
        (r#"dayfly_requests_total{status="501",substatus="0"}"#, 1.0),
        (r#"dayfly_request_seconds_count{operation="upsert_item",status="2xx"}"#, 2.0),
        (r#"dayfly_request_seconds_count{operation="read_item",status="2xx"}"#, 1.0),
        (r#"dayfly_request_seconds_count{operation="read_item",status="4xx"}"#, 1.0),
        (r#"dayfly_request_seconds_count{operation="refused",status="4xx"}"#, 1.0),
        (r#"dayfly_request_seconds_count{operation="refused",status="5xx"}"#, 1.0),
        (r#"dayfly_request_charge_total{operation="read_item"}"#, 2.0),
        (r#"dayfly_request_charge_total{operation="list_items"}"#, 0.0),
    ] {
        let number = samples.get(sample).unwrap_or_else(|| panic!("no {sample}: {samples:?}"));
        assert!((number - expected).abs() < 1e-9, "{sample}: {number}");
    }
    // What did not happen has no histogram; that page is the first.
    assert!(!samples.keys().any(|sample| sample.contains(r#"operation="page",status"#)));
    let again = scrape(&server);
    assert!((again[r#"dayfly_request_seconds_count{operation="page",status="2xx"}"#] - 1.0) < 0.5);
}

/// A page with everything on it: a server with a folder, a certificate, a container and
/// requests.
fn whole() -> BTreeMap<String, Metric> {
    let server = Server::new(Engine::Disk, Mode::default());
    server.clock(1000);
    server.edge().certificate_end.store(1_700_000_000, Ordering::Relaxed);
    send(&server, "POST", "/dbs", r#"{"id":"d"}"#);
    container(&server, "c", "");
    write(&server, r#"{"id":"a","pk":"x"}"#);
    read(&server).0
}

fn file(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap()
}

/// Whether this is the name of a metric of ours. Those of the process are told on Linux.
fn is_metric(name: &str) -> bool {
    name.starts_with("dayfly_") || (cfg!(target_os = "linux") && name.starts_with("process_"))
}

#[test]
fn every_metric_is_documented_and_every_documented_one_is_there() {
    let text = file("docs/operations.md");
    let rows = text.lines().filter_map(|line| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        let name = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
        let kind = cells.next().filter(|_| is_metric(name))?.to_owned();
        let labels = cells.next()?.split(", ").map(|label| label.trim_matches('`'));
        let labels = labels.filter(|label| !label.is_empty()).map(ToOwned::to_owned).collect();
        assert!(cells.next()?.len() > 3, "nothing is said of {name}");
        Some((name.to_owned(), Metric { kind, labels }))
    });
    let (documented, there) = (rows.collect::<BTreeMap<_, _>>(), whole());
    assert!(there.len() > 50, "{there:?}");
    assert_eq!(documented, there);
}

/// The metrics that a text names, each with the labels that it picks some by.
fn named(text: &str) -> Vec<(String, Vec<String>)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_name) {
        rest = &rest[start..];
        let (name, after) = rest.split_at(rest.find(|c| !is_name(c)).unwrap_or(rest.len()));
        rest = after;
        if is_metric(name) {
            let inside = after.strip_prefix('{').and_then(|after| after.split_once('}'));
            let picked = inside.map_or("", |(inside, _)| inside);
            let labels = picked.split(',').filter_map(|pick| pick.split(['=', '!']).next());
            let labels = labels.filter(|label| !label.is_empty()).map(ToOwned::to_owned);
            found.push((name.to_owned(), labels.collect()));
        }
    }
    found
}

#[test]
fn alerts_and_dashboard_speak_of_what_is_there() {
    let there = whole();
    let dashboard: serde_json::Value = serde_json::from_str(&file("ops/dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let shown: String = targets.map(|target| target["expr"].as_str().unwrap()).collect();
    for text in [&shown, &file("ops/alerts.yml"), &file("ops/alerts_test.yml")] {
        let names = named(text);
        assert!(names.len() > 15, "{names:?}");
        for (name, labels) in names {
            let histogram = ["_bucket", "_sum", "_count"].iter().find_map(|part| {
                let name = name.strip_suffix(part)?;
                there.get(name).filter(|metric| metric.kind == "histogram")
            });
            let metric = there.get(&name).filter(|metric| metric.kind != "histogram");
            let metric = metric.or(histogram).unwrap_or_else(|| panic!("there is no {name}"));
            for label in labels {
                let is_known = metric.labels.contains(&label)
                    || ["job", "instance"].contains(&&*label)
                    || (label == "le" && metric.kind == "histogram");
                assert!(is_known, "{name} has no label {label}");
            }
        }
    }
}

#[test]
fn every_alert_is_tried_and_explained() {
    let (alerts, tests) = (file("ops/alerts.yml"), file("ops/alerts_test.yml"));
    let explained = file("docs/operations.md");
    let names: Vec<&str> =
        alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        let goes_off = format!("alertname: {name}\n        exp_alerts:");
        assert!(tests.contains(&goes_off), "nothing makes {name} go off");
        assert!(tests.contains(&format!("alertname: {name} }}")), "nothing leaves {name} alone");
        assert!(explained.contains(&format!("`{name}`")), "nobody says what to do about {name}");
    }
}

/// What became of each throughput is told of whose it is: a container's own, or a database's for
/// those that share it.
#[test]
fn a_throughput_is_told_of_its_owner() {
    let throughput = ThroughputMode::Enforced;
    let engine = EngineSettings { throughput, ..EngineSettings::default() };
    let server = Server::new(Engine::Memory { slices: 1 }, Mode { engine, ..Mode::default() });
    server.clock(1000);
    let make = |path: &str, body: &str, offer: Option<&str>| {
        let offer = offer.map(|given| ("x-ms-offer-throughput".to_owned(), given.to_owned()));
        let headers: Vec<_> = offer.into_iter().collect();
        let status = server.send("POST", path, &headers, body.into(), "name").status();
        assert_eq!(status, 201, "{path}");
    };
    make("/dbs", r#"{"id":"d"}"#, Some("500"));
    let container = |id: &str| format!(r#"{{"id":"{id}","partitionKey":{{"paths":["/pk"]}}}}"#);
    make("/dbs/d/colls", &container("a"), None);
    make("/dbs/d/colls", &container("b"), None);
    make("/dbs/d/colls", &container("own"), Some("700"));
    let miss = |container: &str| {
        let path = format!("/dbs/d/colls/{container}/docs/x");
        let key = ("x-ms-documentdb-partitionkey".to_owned(), "[\"x\"]".to_owned());
        server.send("GET", &path, &[key], Vec::new(), "name").status().as_u16()
    };
    for container in ["a", "b", "b", "own"] {
        assert_eq!(miss(container), 404);
    }
    let of = |name: &str, owner: &str| {
        let name = format!("{name}{{owner=\"{owner}\"}}");
        scrape(&server).get(&name).unwrap_or_else(|| panic!("{name}")).to_string()
    };
    for (owner, provisioned, used) in [("d", "500", "3"), ("d/own", "700", "1")] {
        assert_eq!(of("dayfly_throughput_provisioned", owner), provisioned);
        assert_eq!(of("dayfly_throughput_used_total", owner), used);
        assert_eq!(of("dayfly_throughput_overflow_total", owner), "0");
        assert_eq!(of("dayfly_throughput_purge_spent_total", owner), "0");
        assert_eq!(of("dayfly_throttled_total", owner), "0");
    }
    server.wall.pass_milliseconds(1_000);
    // All of it was given, but for what filled it up again.
    assert_eq!(of("dayfly_throughput_overflow_total", "d"), "497");
    assert_eq!(of("dayfly_throughput_overflow_total", "d/own"), "699");
    let refused = (0..710).filter(|_| miss("own") == 429).count();
    assert_eq!(refused, 10);
    assert_eq!(of("dayfly_throttled_total", "d/own"), "10");
    assert_eq!(of("dayfly_throttled_total", "d"), "0");
    assert_eq!(of("dayfly_throughput_used_total", "d/own"), "701");
    assert_eq!(scrape(&server).get("dayfly_throughput_used_total{owner=\"d/a\"}"), None);
}
