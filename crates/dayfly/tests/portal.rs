//! The portal of the real binary: who may open it, by which name, and how one gets in.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]
#![allow(dead_code, reason = "each test file uses its part of the common one")]

mod common;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use common::{Answer, Client, OWN_KEY, Server, dayfly, network_address};
use serde_json::{Value, json};

/// What is said of the page word for word.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src \
                      'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'";

fn ask(server: &Server, verb: &str, path: &str, headers: &[&str], body: &str) -> Answer {
    let mut client = server.connect();
    let headers: Vec<String> = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let headers = headers.concat();
    client.send(format!(
        "{verb} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    ));
    client.answer()
}

/// A token for a session with `key`.
fn log_in(server: &Server, proof: &Value) -> String {
    let answer = ask(server, "POST", "/_admin/v1/session", &[], &proof.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer: Value = serde_json::from_str(&answer.body).unwrap();
    answer["token"].as_str().unwrap().to_owned()
}

fn bearer(token: &str) -> String {
    format!("authorization: Bearer {token}")
}

#[test]
fn the_page_is_there_without_a_key_and_its_place_is_printed() {
    let server = Server::start(&[]);
    let line = format!("\nPortal: http://localhost:{}/_explorer/\n", server.port);
    assert!(server.banner.contains(&line), "{}", server.banner);
    for path in ["/_explorer/", "/_explorer", "/_explorer/index.html"] {
        let answer = server.get(path);
        assert_eq!(answer.status, 200);
        assert!(answer.body.to_lowercase().starts_with("<!doctype html>"), "{answer:?}");
        // In lower case, as all of a head is here.
        assert_eq!(answer.header("content-security-policy").unwrap(), POLICY.to_lowercase());
        assert_eq!(answer.header("cache-control"), Some("no-cache"));
        assert_eq!(answer.header("access-control-allow-origin"), None);
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name), Some(value));
        }
    }
    let browser = ask(&server, "GET", "/", &["accept: text/html,*/*;q=0.8"], "");
    assert_eq!((browser.status, browser.header("location")), (302, Some("/_explorer/")));
    assert_eq!(server.get("/").status, 401);
}

/// Whatever file the page names is there, may be kept for ever, and is the same unpacked.
#[test]
fn all_that_the_page_names_is_there() {
    let server = Server::start(&[]);
    let page = server.get("/_explorer/").body;
    let named = page.split('"').filter_map(|part| part.strip_prefix("/_explorer/"));
    for name in named.filter(|name| !name.is_empty() && *name != "emulator.pem") {
        let answer = server.get(&format!("/_explorer/{name}"));
        assert_eq!(answer.status, 200, "{name}");
        assert_eq!(
            answer.header("cache-control"),
            Some("public, max-age=31536000, immutable"),
            "{name}"
        );
        assert!(answer.header("content-encoding").is_none());
    }
}

#[test]
fn a_server_without_the_portal_has_none() {
    let server = Server::start(&["--no-portal"]);
    assert!(!server.banner.contains("Portal"), "{}", server.banner);
    for path in ["/_explorer/", "/_explorer/index.html"] {
        assert_eq!(server.get(path).status, 404);
    }
    assert_eq!(server.get("/_explorer/emulator.pem").status, 200);
    assert_eq!(ask(&server, "GET", "/", &["accept: text/html"], "").status, 401);
}

#[test]
fn on_a_network_the_portal_follows_the_admin_api() {
    let Some(ip) = network_address() else { return };
    let from_there = |server: &Server, verb: &str, path: &str, body: &str| {
        let mut client = Client::over(TcpStream::connect((ip, server.port)).unwrap());
        client.send(format!(
            "{verb} {path} HTTP/1.1\r\nhost: a\r\naccept: text/html\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ));
        client.answer().status
    };
    let flags = ["--listen", ":0", "--key", OWN_KEY, "--allow-clear-text"];
    let server = Server::start(&flags);
    let proof = json!({"key": OWN_KEY}).to_string();
    for path in ["/_explorer/", "/_explorer/index.html"] {
        assert_eq!(from_there(&server, "GET", path, ""), 404);
    }
    assert_eq!(from_there(&server, "POST", "/_admin/v1/session", &proof), 404);
    assert_eq!(from_there(&server, "GET", "/", ""), 401);
    assert!(!server.banner.contains("Portal: "), "{}", server.banner);
    // From the machine itself, as ever.
    assert_eq!(server.get("/_explorer/").status, 200);
    // A session of this machine is none for another.
    let token = log_in(&server, &json!({"key": OWN_KEY}));
    let mut client = Client::over(TcpStream::connect((ip, server.port)).unwrap());
    client.send(format!("GET /dbs HTTP/1.1\r\nhost: a\r\n{}\r\n\r\n", bearer(&token)));
    client.answer().is_error(403, "Forbidden");
}

#[test]
fn a_foreign_name_is_refused_on_every_route() {
    let own_name = ["--emulator", "--listen", "127.0.0.1:0", "--key", OWN_KEY];
    for server in [Server::start(&[]), Server::start(&own_name[1..])] {
        for (verb, path) in [
            ("GET", "/"),
            ("GET", "/_explorer/"),
            ("GET", "/_explorer/index.html"),
            ("GET", "/_explorer/emulator.pem"),
            ("POST", "/_admin/v1/session"),
            ("GET", "/_admin/v1/server"),
            ("GET", "/_admin/v1/containers"),
            ("GET", "/dbs"),
            ("POST", "/dbs"),
            ("GET", "/dbs/d/colls/c/docs"),
            ("PUT", "/dbs/d/colls/c/docs/a"),
            ("GET", "/offers"),
            ("GET", "/addresses/"),
            ("GET", "/metrics"),
            ("GET", "/ready"),
            ("GET", "/nothing"),
        ] {
            let mut client = server.connect();
            client
                .send(format!("{verb} {path} HTTP/1.1\r\nhost: evil.test:{}\r\n\r\n", server.port));
            let answer = client.answer();
            answer.is_error(421, "MisdirectedRequest");
            assert!(answer.body.contains("--allow-host"), "{answer:?}");
        }
    }
}

#[test]
fn the_command_prints_an_address_that_opens_the_portal_once() {
    let server = Server::start(&["--key", OWN_KEY]);
    let endpoint = format!("http://localhost:{}", server.port);
    let output = dayfly(&["portal", "--endpoint", &endpoint, "--key", OWN_KEY]).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed}");
    assert!(!printed.contains(OWN_KEY));
    let code = printed.trim().strip_prefix(&format!("{endpoint}/_explorer/#code=")).unwrap();
    let token = log_in(&server, &json!({"code": code}));
    assert_eq!(ask(&server, "GET", "/dbs", &[&bearer(&token)], "").status, 200);
    let again = json!({"code": code}).to_string();
    ask(&server, "POST", "/_admin/v1/session", &[], &again).is_error(401, "Unauthorized");
}

#[test]
fn what_the_portal_shows_of_the_server() {
    let flags = ["--durability", "relaxed", "--test-clock", "--no-direct", "--key", OWN_KEY];
    let server = Server::start(&flags);
    let token = log_in(&server, &json!({"key": OWN_KEY}));
    let shown = |server: &Server, token: &str| -> Value {
        let answer = ask(server, "GET", "/_admin/v1/server", &[&bearer(token)], "");
        assert_eq!(answer.status, 200, "{answer:?}");
        serde_json::from_str(&answer.body).unwrap()
    };
    let about = shown(&server, &token);
    let expected = json!({
        "version": env!("CARGO_PKG_VERSION"), "durability": "relaxed", "place": "folder",
        "emulator": false, "readOnly": false, "by": "primary key", "wellKnownKey": false,
        "requestLog": true, "direct": false, "ttlChangeDelaySeconds": 0,
        "ttlChangeGuardPercent": null,
        "endpoints": [
            {"scheme": "https", "url": "https://localhost/"},
            {"scheme": "http", "url": "http://localhost/"},
        ],
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(about[name], *value, "{name}");
    }
    assert_eq!(about["clock"]["canMove"], true);
    assert_eq!(about["certificate"]["sha256"].as_str().unwrap().len(), 95);
    assert!(about["certificate"]["endsAt"].as_u64() > about["now"].as_u64());

    let server = Server::start(&["--read-only-key", OWN_KEY]);
    let about = shown(&server, &log_in(&server, &json!({"key": OWN_KEY})));
    assert_eq!(about["wellKnownKey"], true);
    assert_eq!((&about["readOnly"], &about["by"]), (&json!(true), &json!("read-only key")));
}

/// Neither a key nor a token stands in a log, and what was changed stands there as it does
/// for any other.
#[test]
fn what_is_done_in_the_portal_is_audited_without_secrets() {
    let mut command = dayfly(&["--memory", "--listen", "127.0.0.1:0"]);
    command.env("DAYFLY_LOG", "debug,requests").stderr(std::process::Stdio::piped());
    let server = Server::spawn(&mut command);
    let key = server.banner.split("AccountKey=").nth(1).unwrap().split(';').next().unwrap();
    let key = key.to_owned();
    let token = log_in(&server, &json!({"key": key}));
    let headers = [bearer(&token)];
    let headers = headers.each_ref().map(String::as_str);
    assert_eq!(ask(&server, "POST", "/dbs", &headers, r#"{"id":"d"}"#).status, 201);
    let container = r#"{"id":"c","partitionKey":{"paths":["/pk"]},"defaultTtl":10}"#;
    assert_eq!(ask(&server, "POST", "/dbs/d/colls", &headers, container).status, 201);
    let changed = container.replace("10", "20");
    assert_eq!(ask(&server, "PUT", "/dbs/d/colls/c", &headers, &changed).status, 200);
    let log = ask(&server, "GET", "/_admin/v1/requests", &headers, "").body;
    server.terminate();
    let said = server.said();
    assert!(said.contains("a session was opened"), "{said}");
    let audited =
        said.lines().filter(|line| line.contains("audit") && line.contains("primary key"));
    assert!(audited.count() >= 2, "{said}");
    for text in [&said, &log] {
        assert!(!text.contains(&token) && !text.contains(&key), "{text}");
    }
}

/// A client that listens to what the server does, with the head of the answer read.
fn listen(server: &Server, token: &str) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
    let mut reader = BufReader::new(stream);
    let request =
        format!("GET /_admin/v1/events HTTP/1.1\r\nhost: localhost\r\n{}\r\n\r\n", bearer(token));
    reader.get_mut().write_all(request.as_bytes()).unwrap();
    let mut line = String::new();
    let mut head = String::new();
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).unwrap();
        head.push_str(&line);
    }
    let head = head.to_lowercase();
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert!(head.contains("content-type: application/x-ndjson\r\n"), "{head}");
    assert!(head.contains("transfer-encoding: chunked\r\n"), "{head}");
    reader
}

/// The next event; none at the end.
fn event(reader: &mut BufReader<TcpStream>) -> Option<Value> {
    let mut line = String::new();
    while !line.starts_with('{') {
        line.clear();
        if reader.read_line(&mut line).unwrap() == 0 || line == "0\r\n" {
            return None;
        }
    }
    Some(serde_json::from_str(&line).unwrap())
}

#[test]
fn who_listens_gets_a_line_a_second_until_the_session_ends() {
    let server = Server::start(&["--test-clock", "--key", OWN_KEY]);
    let token = log_in(&server, &json!({"key": OWN_KEY}));
    let headers = [bearer(&token)];
    let headers = headers.each_ref().map(String::as_str);
    let mut reader = listen(&server, &token);
    assert_eq!(event(&mut reader).unwrap()["frozen"], false);
    let moved = r#"{"now":4000000000}"#;
    ask(&server, "POST", "/_admin/v1/clock", &headers, r#"{"frozen":true}"#);
    ask(&server, "POST", "/_admin/v1/clock", &headers, moved);
    let follows = |event: &Value| event["now"] == 4_000_000_000_u64 && event["frozen"] == true;
    while !follows(&event(&mut reader).unwrap()) {}
    // What was done shows in the second after it.
    ask(&server, "POST", "/dbs", &headers, r#"{"id":"d"}"#);
    ask(&server, "GET", "/dbs/none", &headers, "").is_error(404, "NotFound");
    let (mut requests, mut errors) = (0, 0);
    while requests < 2 || errors < 1 {
        let event = event(&mut reader).unwrap();
        requests += event["requests"].as_u64().unwrap();
        errors += event["errors"].as_u64().unwrap();
    }
    let series = ask(&server, "GET", "/_admin/v1/series", &headers, "");
    let series: Value = serde_json::from_str(&series.body).unwrap();
    let sum = |name: &str| {
        series[name].as_array().unwrap().iter().map(|one| one.as_f64().unwrap()).sum::<f64>()
    };
    assert!(sum("requests") >= 2.0 && sum("errors") >= 1.0 && sum("charge") > 0.0, "{series}");
    assert_eq!(series["seconds"], 900);

    ask(&server, "DELETE", "/_admin/v1/session", &headers, "");
    while event(&mut reader).is_some() {}
}

#[test]
fn a_server_that_stops_does_not_wait_for_those_who_listen() {
    let server = Server::start(&["--key", OWN_KEY, "--stop-timeout-ms", "600000"]);
    let token = log_in(&server, &json!({"key": OWN_KEY}));
    let mut reader = listen(&server, &token);
    event(&mut reader).unwrap();
    server.terminate();
    while event(&mut reader).is_some() {}
    assert!(server.ended().success());
}
