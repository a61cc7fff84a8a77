//! The request log, and what is said once and counted at the door, of the real server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]
#![allow(dead_code, reason = "each test file uses its part of the common one")]

mod common;

use std::process::{Command, Stdio};

use common::{Server, dayfly, request, send};

/// A server whose log can be read, with a database.
fn server(log: &str) -> Server {
    let mut command = dayfly(&["--memory", "--listen", "127.0.0.1:0"]);
    if !log.is_empty() {
        command.env("DAYFLY_LOG", log);
    }
    let server = Server::spawn(command.stderr(Stdio::piped()));
    assert_eq!(send(&server, "POST", "/dbs", r#"{"id":"d"}"#).status, 201);
    server
}

fn container(server: &Server, name: &str) {
    let body = format!(r#"{{"id":"{name}","partitionKey":{{"paths":["/pk"]}}}}"#);
    assert_eq!(send(server, "POST", "/dbs/d/colls", &body).status, 201);
}

/// What it has logged when it has ended.
fn log_of(server: Server) -> Vec<String> {
    server.terminate();
    server.said().lines().map(ToOwned::to_owned).collect()
}

#[test]
fn every_request_is_a_line_without_secrets() {
    let server = server("warn,requests");
    container(&server, "c");
    let text = r#"{"query":"SELECT * FROM c"}"#;
    let query = request(&server, "POST", "/dbs/d/colls/c/docs", text);
    let mut client = server.connect();
    client.send(query.replacen(
        "content-length:",
        "x-ms-documentdb-isquery: True\r\ncontent-length:",
        1,
    ));
    assert_eq!(client.answer().status, 200);
    assert_eq!(send(&server, "GET", "/dbs/d/colls/c/docs/1/attachments", "").status, 501);
    server.get("/nothing?key=secret").is_error(404, "NotFound");
    for watches in ["/ready", "/alive", "/metrics"] {
        assert_eq!(server.get(watches).status, 200);
    }
    // Refused by the listener: one with a head, and one without.
    for (bytes, expected) in [("GET /x HTTP/1.1\r\n\r\n", "host"), ("\0\r\n\r\n", "not valid")] {
        let mut client = server.connect();
        client.send(bytes);
        let answer = client.answer();
        assert_eq!(answer.status, 400);
        assert!(answer.body.contains(expected), "{answer:?}");
    }
    let log = log_of(server);
    let said = [
        r#"verb="POST" path="/dbs" channel="http" status=201 substatus=0 charge="#,
        r#"verb="POST" path="/dbs/d/colls" channel="http" status=201 "#,
        r#"verb="POST" path="/dbs/d/colls/c/docs" channel="http" status=200 "#,
        r#"verb="GET" path="/dbs/d/colls/c/docs/1/attachments" channel="http" status=501 "#,
        r#"verb="GET" path="/nothing" channel="http" status=404 "#,
        r#"verb="GET" path="/x" channel="http" status=400 "#,
        r#"verb="-" path="-" channel="http" status=400 "#,
    ];
    assert_eq!(log.len(), said.len(), "{log:#?}");
    for (line, expected) in log.iter().zip(said) {
        assert!(line.contains(&format!(" INFO requests: answered {expected}")), "{line}");
        assert!(line.contains(" ms=") && line.contains(" activity_id="), "{line}");
        assert_eq!(
            line.contains(r#" missing="An attachment""#),
            line.contains("status=501"),
            "{line}"
        );
        for secret in ["sig", "secret", "SELECT", "authorization"] {
            assert!(!line.contains(secret), "{line}");
        }
    }
}

#[test]
fn a_level_alone_asks_for_no_requests() {
    let log = log_of(server("info"));
    assert!(log.iter().all(|line| !line.contains("requests:")), "{log:?}");
}

#[test]
fn a_ttl_that_counts_for_nothing_is_warned_of_once_for_each_container() {
    let server = server("");
    for name in ["c", "e"] {
        container(&server, name);
        for id in 0..3 {
            let item = format!(r#"{{"id":"{id}","pk":"x","ttl":5}}"#);
            let answer = send(&server, "POST", &format!("/dbs/d/colls/{name}/docs"), &item);
            assert_eq!(answer.header("x-dayfly-ttl-ignored"), Some("true"), "{answer:?}");
        }
    }
    let log = log_of(server);
    assert_eq!(log.len(), 2, "{log:#?}");
    for (line, name) in log.iter().zip(["c", "e"]) {
        assert!(
            line.contains(" WARN dayfly_api::warnings: an item was written with a ttl"),
            "{line}"
        );
        assert!(line.contains(&format!(r#"container="dbs/d/colls/{name}""#)), "{line}");
    }
}

fn requests(server: &Server, arguments: &[&str]) -> Command {
    let mut command = dayfly(&["requests", "--endpoint"]);
    command.arg(format!("http://127.0.0.1:{}", server.port)).args(arguments);
    command
}

#[test]
fn the_last_requests_are_a_table() {
    let server = Server::start(&[]);
    assert_eq!(send(&server, "POST", "/dbs", r#"{"id":"d"}"#).status, 201);
    assert_eq!(send(&server, "GET", "/dbs/none", "").status, 404);
    let says = |arguments: &[&str]| {
        let output = requests(&server, arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let cells = |text: &str| -> Vec<Vec<String>> {
        let cells = |line: &str| line.split_whitespace().map(ToOwned::to_owned).collect();
        text.lines().map(cells).collect()
    };
    let table = cells(&says(&[]));
    assert_eq!(
        table[0],
        ["time", "status", "ms", "charge", "verb", "channel", "path", "activity", "id"]
    );
    assert_eq!((&*table[1][1], table[1][4..7].join(" ")), ("201", "POST http /dbs".to_owned()));
    assert_eq!((&*table[2][1], &*table[2][6]), ("404", "/dbs/none"));
    assert_eq!(table.len(), 3, "{table:?}");
    for filter in [
        &["--status", "4xx"][..],
        &["--verb", "get"],
        &["--path", "none"],
        &["--limit", "1"],
        &["--activity-id", &table[2][7]],
    ] {
        assert_eq!(cells(&says(filter))[1..], table[2..], "{filter:?}");
    }
    assert_eq!(says(&["--status", "5xx"]), "There are no such requests.\n");
    let json = says(&["--json"]);
    assert!(json.starts_with(r#"{"enabled":true,"requests":[{"at":"#), "{json}");
    let refused = requests(&server, &["--status", "x"]).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("must be a status such as 404, or a class such as 4xx."), "{said}");
}

#[test]
fn a_log_that_is_off_says_so() {
    let server = Server::start(&["--request-log", "off"]);
    assert_eq!(send(&server, "POST", "/dbs", r#"{"id":"d"}"#).status, 201);
    let output = requests(&server, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        said,
        "dayfly: The server keeps no requests: it was started with --request-log off.\n"
    );
    let output = requests(&server, &["--json"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, "{\"enabled\":false,\"requests\":[]}\n");
}

#[test]
fn connections_are_counted_at_the_door() {
    let server = Server::start(&["--max-connections", "2"]);
    let mut first = server.connect();
    let mut metrics = || {
        first.get("/metrics");
        first.answer().body
    };
    assert!(metrics().contains("dayfly_connections_refused_total 0\n"));
    let mut second = server.connect();
    second.get("/alive");
    assert_eq!(second.answer().status, 200);
    assert!(server.connect().is_closed());
    let page = metrics();
    for line in [
        "dayfly_connections_open{protocol=\"http1\"} 2\n",
        "dayfly_connections_open{protocol=\"unknown\"} 0\n",
        "dayfly_connections_max 2\n",
        "dayfly_connections_accepted_total 2\n",
        "dayfly_connections_refused_total 1\n",
        "\ndayfly_certificate_end_timestamp_seconds ",
    ] {
        assert!(page.contains(line), "{line}: {page}");
    }
}

/// By the server's own clock: what expires in an idle container is told two seconds later at
/// most, and as ended in the second in which it did.
#[test]
#[expect(clippy::disallowed_methods, reason = "this is about the real clock")]
fn an_end_is_told_two_seconds_after_it_at_most() {
    let server = server("");
    let body = r#"{"id":"c","partitionKey":{"paths":["/pk"]},"defaultTtl":-1}"#;
    assert_eq!(send(&server, "POST", "/dbs/d/colls", body).status, 201);
    let mut place = "*".to_owned();
    let mut changes = || {
        let read = request(&server, "GET", "/dbs/d/colls/c/docs", "");
        let headers = format!("a-im: Full-Fidelity Feed\r\nif-none-match: {place}\r\n");
        let mut client = server.connect();
        let read = read.replace("x-ms-documentdb-partitionkey: [\"x\"]\r\n", &headers);
        client.send(read);
        let answer = client.answer();
        place = answer.header("etag").unwrap().to_owned();
        match answer.status {
            304 => Vec::new(),
            200 => {
                let page: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
                page["Documents"].as_array().unwrap().clone()
            }
            status => panic!("{status}: {}", answer.body),
        }
    };
    assert!(changes().is_empty());
    let mut born = std::collections::HashMap::new();
    for id in 0..20 {
        let item = format!(r#"{{"id":"{id}","pk":"x","ttl":1}}"#);
        let made = send(&server, "POST", "/dbs/d/colls/c/docs", &item);
        assert_eq!(made.status, 201);
        let made: serde_json::Value = serde_json::from_str(&made.body).unwrap();
        born.insert(id.to_string(), made["_ts"].as_u64().unwrap());
    }
    let mut ended = 0;
    for _ in 0..300 {
        for change in changes() {
            let metadata = &change["metadata"];
            if metadata["timeToLiveExpired"] == true {
                let born = born[metadata["id"].as_str().unwrap()];
                assert_eq!(metadata["crts"], born + 1);
                ended += 1;
            }
        }
        if ended == 20 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(ended, 20);
    let metrics = server.get("/metrics").body;
    let buried_within = |bound: &str| {
        let name = format!("dayfly_ttl_purge_lag_seconds_bucket{{le=\"{bound}\"}} ");
        let value = metrics.lines().find_map(|line| line.strip_prefix(&name));
        value.expect(&metrics).to_owned()
    };
    assert_eq!((&*buried_within("2"), &*buried_within("+Inf")), ("20", "20"));
}
