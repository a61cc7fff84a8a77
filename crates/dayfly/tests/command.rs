//! `dayfly ttl` and `dayfly query`, against the real server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]
#![allow(dead_code, reason = "each test file uses its part of the common one")]

mod common;

use std::io::{BufRead as _, Read as _, Write as _};
use std::net::TcpListener;

use common::{OWN_KEY, Server, admin, admin_status, dayfly, send};

/// Where the clock stands.
const NOW: u64 = 4_000_000_000;

/// A server whose clock stands still, with a container `my shop/carts` and two
/// items.
fn server() -> Server {
    let server = Server::start(&["--test-clock", "--ttl-change-guard", "50"]);
    clock(&server, r#"{"frozen":true}"#);
    clock(&server, &format!(r#"{{"now":{NOW}}}"#));
    fill(&server);
    server
}

fn clock(server: &Server, step: &str) {
    admin(server, "clock", step);
}

fn fill(server: &Server) {
    let container = r#"{"id":"carts","partitionKey":{"paths":["/pk"]},"defaultTtl":3600}"#;
    assert_eq!(send(server, "POST", "/dbs", r#"{"id":"my shop"}"#).status, 201);
    assert_eq!(send(server, "POST", "/dbs/my%20shop/colls", container).status, 201);
    for item in [r#"{"id":"a b","pk":"x"}"#, r#"{"id":"b","pk":"x","ttl":30}"#] {
        assert_eq!(send(server, "POST", "/dbs/my%20shop/colls/carts/docs", item).status, 201);
    }
}

fn endpoint(server: &Server) -> String {
    format!("http://127.0.0.1:{}", server.port)
}

/// What `dayfly ttl` prints when it ends well.
fn says(server: &Server, arguments: &[&str]) -> String {
    prints(server, "ttl", arguments)
}

/// What a command prints that ends well.
fn prints(server: &Server, command: &str, arguments: &[&str]) -> String {
    let (printed, said) = prints_and_says(server, command, arguments);
    assert_eq!(said, "", "{arguments:?}");
    printed
}

/// The same, and what it says beside that.
fn prints_and_says(server: &Server, command: &str, arguments: &[&str]) -> (String, String) {
    let mut command = dayfly(&[command]);
    let output = command.args(arguments).args(["--endpoint", &endpoint(server)]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}");
    (String::from_utf8(output.stdout).unwrap(), said)
}

/// The place that `dayfly feed` tells in the end.
fn place_in(said: &str) -> String {
    let place = said.strip_prefix("dayfly: to go on from here: --from ").expect(said);
    place.trim_end().to_owned()
}

/// What a command says that fails: one sentence.
#[track_caller]
fn fails(command: &mut std::process::Command, expected: &str) {
    let said = failure(command);
    assert!(said.starts_with("dayfly: ") && said.contains(expected), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// What a command says that fails.
#[track_caller]
fn failure(command: &mut std::process::Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(output.stdout.is_empty(), "{said}");
    said
}

#[test]
fn every_question_has_a_table() {
    let server = server();
    let status = says(&server, &["status", "my shop/carts"]);
    for line in [
        "container       my shop/carts\n",
        "time            2096-10-02T07:06:40Z\n",
        "default ttl     3600 s\n",
        "live            2 items, ",
        "to be purged    0 items, 0 B\n",
    ] {
        assert!(status.contains(line), "{line}: {status}");
    }

    let forecast = ["forecast", "my shop/carts", "--buckets", "2", "--bucket-seconds", "60"];
    let forecast = says(&server, &forecast);
    let lines: Vec<Vec<&str>> =
        forecast.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["from", "to", "items", "bytes", "with", "a", "ttl"]);
    assert_eq!(lines[1][..3], ["2096-10-02T07:06:40Z", "2096-10-02T07:07:40Z", "1"]);
    assert!(lines[1].last().unwrap().starts_with('█'), "{forecast}");
    assert_eq!(lines[2][..5], ["in", "all", "until", "2096-10-02T07:08:40Z", "1"]);
    assert_eq!(lines[3][..2], ["later", "1"]);
    assert_eq!(lines[4][..3], ["live", "now", "2"]);
    assert_eq!(lines.len(), 5, "{forecast}");

    let what_if = says(&server, &["whatif", "my shop/carts", "-1"]);
    assert!(what_if.starts_with("if the default were  -1\nexpire at once       0 items"));
    for line in [
        "then in an hour      1 item, ",
        "later                0 items",
        "never expire         1 item, ",
    ] {
        assert!(what_if.contains(line), "{line}: {what_if}");
    }
    assert!(what_if.contains("\nlive now, in all     2 items, "), "{what_if}");
    let off = says(&server, &["whatif", "my shop/carts", "off"]);
    assert!(off.contains("\nnever expire         2 items, "), "{off}");
    let container = r#"{"id":"carts","partitionKey":{"paths":["/pk"]}}"#;
    assert_eq!(send(&server, "PUT", "/dbs/my%20shop/colls/carts", container).status, 200);
    let status = says(&server, &["status", "my shop/carts"]);
    assert!(status.contains("\nnever expire    2 items, "), "{status}");
    let container = r#"{"id":"carts","partitionKey":{"paths":["/pk"]},"defaultTtl":3600}"#;
    assert_eq!(send(&server, "PUT", "/dbs/my%20shop/colls/carts", container).status, 200);

    let explain = says(&server, &["explain", "my shop/carts", "a b", r#"["x"]"#]);
    assert!(explain.contains("state        live\n"), "{explain}");
    assert!(explain.contains("expires      2096-10-02T08:06:40Z\n"), "{explain}");
    assert!(explain.contains("the container's default of 3600 applies."), "{explain}");
}

/// 20 creates of 4.95 and their terms, and a look at nothing, in a second that stands still.
#[test]
fn what_became_of_a_throughput_is_drawn() {
    let server = server();
    let drawn = || prints(&server, "ru", &["my shop/carts", "--seconds", "2"]);
    let before = drawn();
    for line in [
        "container      my shop/carts\n",
        "mode           measured\n",
        "throughput     400 RU/s\n",
        "left of 0      ",
    ] {
        assert!(before.contains(line), "{line}: {before}");
    }
    let used = |drawn: &str| {
        let last: Vec<_> = drawn.lines().last().unwrap().split_whitespace().collect();
        assert_eq!((last[0], last[4]), ("2096-10-02T07:06:40Z", "0"), "{drawn}");
        assert!(last[5].starts_with('█'), "{drawn}");
        last[1].parse::<f64>().unwrap()
    };
    let first = used(&before);
    for id in 0..20 {
        let item = format!(r#"{{"id":"n{id}","pk":"x"}}"#);
        assert_eq!(send(&server, "POST", "/dbs/my%20shop/colls/carts/docs", &item).status, 201);
    }
    // An item has one term beside its id: its partition key.
    assert!((used(&drawn()) - first - 20.0 * 5.15).abs() < 0.01, "{}", drawn());
    let json = prints(&server, "ru", &["my shop/carts", "--json"]);
    assert!(json.contains("\"provisioned\""), "{json}");
}

#[test]
fn the_items_that_die_next_are_shown() {
    let server = server();
    let shown = says(&server, &["next", "my shop/carts"]);
    let lines: Vec<Vec<&str>> =
        shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), 3, "{shown}");
    assert_eq!((lines[1][0], *lines[1].last().unwrap()), ("30", "ttl"), "{shown}");
    assert_eq!((lines[2][0], *lines[2].last().unwrap()), ("3600", "default"), "{shown}");
    let soon = says(&server, &["next", "my shop/carts", "--within", "1m", "--limit", "1"]);
    assert!(soon.contains("30 s") && !soon.contains("3600 s"), "{soon}");
    assert_eq!(says(&server, &["next", "my shop/carts", "--within", "5"]), "nothing\n");
}

#[test]
fn times_and_keys_are_typed_as_people_type_them() {
    let server = server();
    let json = |arguments: &[&str]| says(&server, &[arguments, &["--json"]].concat());
    let spans = ["forecast", "my shop/carts", "--buckets", "1", "--bucket", "2h"];
    let seconds = ["forecast", "my shop/carts", "--buckets", "1", "--bucket-seconds", "7200"];
    assert!(json(&spans).contains(&format!("\"to\":{}", NOW + 7200)));
    assert_eq!(json(&spans), json(&seconds));
    let what_if = |default: &str| says(&server, &["whatif", "my shop/carts", default]);
    assert!(what_if("90d").starts_with("if the default were  7776000 s\n"));
    assert_eq!(what_if("90d"), what_if("7776000"));
    let explain = |key: &str| says(&server, &["explain", "my shop/carts", "b", key]);
    assert!(explain("x").contains("state        live\n"));
    assert_eq!(explain("x"), explain(r#"["x"]"#));
    assert!(explain("-x").contains("state        absent\n"));
}

#[test]
fn all_containers_are_listed() {
    let server = server();
    assert_eq!(send(&server, "POST", "/dbs", r#"{"id":"empty"}"#).status, 201);
    let container = r#"{"id":"logs","partitionKey":{"paths":["/pk"]}}"#;
    assert_eq!(send(&server, "POST", "/dbs/my%20shop/colls", container).status, 201);
    let rows = |text: String| -> Vec<Vec<String>> {
        let cells = |line: &str| {
            line.split("  ")
                .filter(|cell| !cell.is_empty())
                .map(|cell| cell.trim().to_owned())
                .collect()
        };
        text.lines().map(cells).collect()
    };

    let listed = rows(prints(&server, "ls", &[]));
    assert_eq!(listed[0], ["database", "container", "live items", "bytes", "ttl"]);
    assert_eq!(listed[1][..3], ["my shop", "carts", "2"]);
    assert_eq!(listed[1][4], "3600 s");
    assert_eq!(listed[2], ["my shop", "logs", "0", "0 B", "off"]);
    assert_eq!(listed[3], ["empty", "-"]);
    assert_eq!(listed.len(), 4);
    assert_eq!(rows(prints(&server, "ls", &["empty"])).len(), 2);
    let json = prints(&server, "ls", &["--json"]);
    assert!(json.contains(r#"{"database":"empty"}"#), "{json}");
    assert_eq!(json.matches(r#""live":{"#).count(), 2, "{json}");

    let status = rows(says(&server, &["status"]));
    assert_eq!(status[1][..2], ["my shop/carts", "3600 s"]);
    assert!(status[1][2].starts_with("2 items, "), "{status:?}");
    assert_eq!(
        status[2],
        ["my shop/logs", "off", "0 items, 0 B", "0 items", "0 items, 0 B", "idle"]
    );
    assert_eq!(status.len(), 3, "{status:?}");

    let mut command = dayfly(&["ls", "shop", "--endpoint", &endpoint(&server)]);
    fails(&mut command, "There is no database 'shop'. The server has: my shop, empty.");
    let none = Server::start(&[]);
    assert_eq!(prints(&none, "ls", &[]), "There is nothing yet.\n");
}

#[test]
fn the_clock_is_shown_and_moved() {
    let server = server();
    let clock = |arguments: &[&str]| prints(&server, "clock", arguments);
    let shown = clock(&[]);
    assert!(shown.starts_with("time      2096-10-02T07:06:40Z\nstate     frozen\nmoved by  "));
    assert_eq!(clock(&["show"]), shown);
    assert!(clock(&["advance", "90d"]).starts_with("time      2096-12-31T07:06:40Z\n"));
    let later = (NOW + 90 * 86_400 + 10).to_string();
    assert!(clock(&["set", &later]).starts_with("time      2096-12-31T07:06:50Z\n"));
    assert!(
        clock(&["freeze", "--json"]).starts_with(&format!("{{\"now\":{later},\"frozen\":true"))
    );
    assert!(clock(&["run"]).contains("\nstate     runs\n"));
    assert!(
        prints(&server, "ls", &[]).contains("  carts               0"),
        "{}",
        prints(&server, "ls", &[])
    );

    let other = Server::start(&[]);
    let mut command = dayfly(&["clock", "advance", "1s", "--endpoint", &endpoint(&other)]);
    fails(&mut command, "only when the server was started with --test-clock.");
}

#[test]
fn who_watches_over_a_server_is_told_how_it_is() {
    let server = Server::start(&["--key", OWN_KEY]);
    assert_eq!(prints(&server, "healthcheck", &[]), "ready\n");
    server.terminate();
    let endpoint = endpoint(&server);
    assert_eq!(server.ended().code(), Some(0));
    let mut command = dayfly(&["healthcheck", "--endpoint", &endpoint]);
    fails(&mut command, &format!("The server at {endpoint} cannot be asked: "));
}

#[test]
fn completions_and_manual_know_every_command() {
    let said = |arguments: &[&str]| {
        let output = dayfly(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for shell in ["bash", "zsh", "fish"] {
        let script = said(&["completions", shell]);
        for word in ["healthcheck", "forecast", "compute-listen"] {
            assert!(script.contains(word), "{shell} {word}");
        }
    }
    assert!(said(&["man"]).contains(".TH dayfly 1"));
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(said(&["man", folder.path().to_str().unwrap()]), "");
    for page in ["dayfly.1", "dayfly-ls.1", "dayfly-ttl.1", "dayfly-ttl-whatif.1"] {
        assert!(folder.path().join(page).exists(), "{page}");
    }
}

#[test]
fn only_a_server_for_tests_is_reset() {
    let memory = Server::spawn(&mut dayfly(&["--memory", "--listen", "127.0.0.1:0"]));
    for for_tests in [memory, Server::start(&["--test-clock"])] {
        fill(&for_tests);
        admin(&for_tests, "reset", "");
        assert_eq!(prints(&for_tests, "ls", &[]), "There is nothing yet.\n");
    }
    let kept = Server::start(&[]);
    fill(&kept);
    assert_eq!(admin_status(&kept, "reset", ""), 403);
    assert!(prints(&kept, "ls", &[]).contains("carts"));
}

#[test]
fn what_has_expired_is_purged_when_asked() {
    let server = server();
    admin(&server, "purge/pause", "");
    clock(&server, r#"{"advanceSeconds":30}"#);
    let status = says(&server, &["status", "my shop/carts"]);
    assert!(status.contains("the oldest expired at 2096-10-02T07:07:10Z\n"), "{status}");
    assert!(
        status.contains("\npurge           paused (An operator paused it.), 0 items"),
        "{status}"
    );
    assert_eq!(says(&server, &["purge", "my shop/carts"]), "purged  1 item\n");
    assert_eq!(says(&server, &["purge", "my shop/carts", "--json"]), "{\"purgedItems\":0}\n");
    let status = says(&server, &["status", "my shop/carts"]);
    assert!(status.contains("to be purged    0 items, 0 B\n"), "{status}");
}

#[test]
fn with_json_the_answer_is_as_it_is() {
    let server = server();
    let status = says(&server, &["--json", "status", "my shop/carts"]);
    assert_eq!(status.lines().count(), 1);
    assert!(status.starts_with(&format!("{{\"now\":{NOW},\"defaultTtl\":3600,")), "{status}");
    let explain = says(&server, &["explain", "my shop/carts", "b", r#"["x"]"#, "--json"]);
    assert!(explain.contains(&format!("\"expiresAt\":{}", NOW + 30)), "{explain}");
}

#[test]
fn rows_are_printed_page_after_page() {
    let server = server();
    let query = |arguments: &[&str]| prints(&server, "query", arguments);
    let ids = "SELECT VALUE c.id FROM c ORDER BY c.id";
    assert_eq!(query(&["my shop/carts", ids]), "\"a b\"\n\"b\"\n");
    let with = ["my shop/carts", "SELECT c.id, c.ttl FROM c WHERE c.ttl = @t"];
    let found = query(&[&with[..], &["--parameter", "@t=30"]].concat());
    assert_eq!(found, "{\"id\":\"b\",\"ttl\":30}\n");
    assert_eq!(query(&[&with[..], &["--parameter", "t=31"]].concat()), "");
    let json = query(&["my shop/carts", ids, "--json"]);
    assert!(json.contains("\"Documents\":[\"a b\",\"b\"],\"_count\":2}\n"), "{json}");

    // More rows than a page has.
    let numbers: Vec<String> = (0..1500).map(|number| number.to_string()).collect();
    let item = format!(r#"{{"id":"many","pk":"x","numbers":[{}]}}"#, numbers.join(","));
    assert_eq!(send(&server, "POST", "/dbs/my%20shop/colls/carts/docs", &item).status, 201);
    let rows = query(&["my shop/carts", "SELECT VALUE n FROM n IN c.numbers"]);
    assert_eq!(rows.lines().collect::<Vec<_>>(), numbers);
    let pages = query(&["my shop/carts", "SELECT VALUE n FROM n IN c.numbers", "--json"]);
    assert_eq!(pages.lines().count(), 2);
}

#[test]
fn changes_are_printed_one_a_line() {
    let server = server();
    let feed = |arguments: &[&str]| prints_and_says(&server, "feed", arguments).0;
    let (all, said) = prints_and_says(&server, "feed", &["my shop/carts"]);
    let ids = |text: &str| -> Vec<String> {
        let change = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
        text.lines().map(|line| change(line)["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&all), ["a b", "b"]);
    let first: serde_json::Value = serde_json::from_str(all.lines().next().unwrap()).unwrap();
    let place = first["_lsn"].to_string();
    assert_eq!(ids(&feed(&["my shop/carts", "--from", &place])), ["b"]);
    assert_eq!(feed(&["my shop/carts", "--from", &place_in(&said)]), "");
    for (since, expected) in [("@4000000000", &["a b", "b"][..]), ("2096-10-02T07:06:41Z", &[])] {
        assert_eq!(ids(&feed(&["my shop/carts", "--from", since])), expected, "{since}");
    }
    assert_eq!(feed(&["my shop/carts", "--from", "now"]), "");
    let json = feed(&["my shop/carts", "--json"]);
    assert!(json.ends_with("\"_count\":2}\n") && json.lines().count() == 1, "{json}");
    let endpoint = endpoint(&server);
    let command = |arguments: &[&str]| {
        let mut command = dayfly(&["feed", "--endpoint", &endpoint]);
        command.args(arguments);
        command
    };
    fails(&mut command(&["my shop/carts", "--from", "999"]), "created anew");
    fails(&mut command(&["my shop/nothing"]), "nothing");

    // What expires comes while it follows.
    assert_eq!(feed(&["my shop/carts", "--all-versions"]), "");
    let item = r#"{"id":"c","pk":"x","ttl":-1}"#;
    assert_eq!(send(&server, "POST", "/dbs/my%20shop/colls/carts/docs", item).status, 201);
    let all = feed(&["my shop/carts"]);
    let last: serde_json::Value = serde_json::from_str(all.lines().last().unwrap()).unwrap();
    let place = last["_lsn"].to_string();
    let mut follows = command(&["my shop/carts", "--all-versions", "--follow", "--from", &place]);
    let mut follows = follows.stdout(std::process::Stdio::piped()).spawn().unwrap();
    clock(&server, r#"{"advanceSeconds":30}"#);
    let mut expired = String::new();
    let mut printed = std::io::BufReader::new(follows.stdout.take().unwrap());
    printed.read_line(&mut expired).unwrap();
    follows.kill().unwrap();
    follows.wait().unwrap();
    let expired: serde_json::Value = serde_json::from_str(&expired).unwrap();
    let (current, metadata) = (&expired["current"], &expired["metadata"]);
    assert_eq!(current, &serde_json::json!({}));
    assert_eq!((&metadata["id"], &metadata["timeToLiveExpired"]), (&"b".into(), &true.into()));
    assert_eq!(metadata["crts"], NOW + 30);
}

/// A container in several buckets has several places, and they are told.
#[test]
fn a_feed_of_many_buckets_goes_on_where_it_ended() {
    let server = server();
    let container = r#"{"id":"wide","partitionKey":{"paths":["/pk"]}}"#;
    let creation = common::request(&server, "POST", "/dbs/my%20shop/colls", container);
    let mut client = server.connect();
    client.send(creation.replacen(
        "content-length:",
        "x-ms-offer-throughput: 30000\r\ncontent-length:",
        1,
    ));
    assert_eq!(client.answer().status, 201);
    let create = |pk: &str| {
        let item = format!(r#"{{"id":"1","pk":"{pk}"}}"#);
        let creation = common::request(&server, "POST", "/dbs/my%20shop/colls/wide/docs", &item);
        let mut client = server.connect();
        client.send(creation.replace(r#"["x"]"#, &format!("[\"{pk}\"]")));
        assert_eq!(client.answer().status, 201);
    };
    ["a", "b", "c", "d", "e"].into_iter().for_each(create);
    let (printed, said) = prints_and_says(&server, "feed", &["my shop/wide"]);
    let place = place_in(&said);
    assert_eq!((printed.lines().count(), place.contains(',')), (5, true), "{place}");
    create("f");
    let (printed, _) = prints_and_says(&server, "feed", &["my shop/wide", "--from", &place]);
    assert!(printed.lines().count() == 1 && printed.contains(r#""pk":"f""#), "{printed}");
}

/// Whoever follows a feed is there again when the server is.
#[test]
fn a_feed_is_followed_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_in(folder.path(), &[]);
    fill(&server);
    let mut follows = dayfly(&["feed", "my shop/carts", "--follow", "--from", "now"]);
    let mut follows = follows
        .args(["--endpoint", &endpoint(&server)])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut printed = std::io::BufReader::new(follows.stdout.take().unwrap());
    let mut said = std::io::BufReader::new(follows.stderr.take().unwrap());
    // It may ask for the first time when some of these are there: so there are more.
    let (sender, seen) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        printed.read_line(&mut line).unwrap();
        let _ = sender.send((printed, line));
    });
    let seen = (0..150).find_map(|id| {
        let item = format!(r#"{{"id":"before{id}","pk":"x"}}"#);
        assert_eq!(send(&server, "POST", "/dbs/my%20shop/colls/carts/docs", &item).status, 201);
        seen.recv_timeout(std::time::Duration::from_millis(200)).ok()
    });
    let (mut printed, mut line) = seen.expect("nothing is printed");
    assert!(line.contains("\"id\":\""), "{line}");
    let port = format!("127.0.0.1:{}", server.port);
    drop(server);
    line.clear();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("It is tried again."), "{line}");
    let server = Server::start_in(folder.path(), &["--listen", &port]);
    let item = r#"{"id":"after","pk":"x"}"#;
    assert_eq!(send(&server, "POST", "/dbs/my%20shop/colls/carts/docs", item).status, 201);
    while !line.contains("\"after\"") {
        line.clear();
        assert!(printed.read_line(&mut line).unwrap() > 0, "it ended");
    }
    follows.kill().unwrap();
    follows.wait().unwrap();
}

#[test]
fn a_query_is_explained() {
    let server = server();
    let ask = ["my shop/carts", "SELECT VALUE c.id FROM c WHERE c.ttl = 30", "--explain"];
    let plan = prints(&server, "query", &ask);
    for line in
        ["way         scan\n", "entries     2, 0 of them dead\n", "answer      1 row, 3 B\n"]
    {
        assert!(plan.contains(line), "{line}: {plan}");
    }
    let json = prints(&server, "query", &[&ask[..], &["--json"]].concat());
    assert!(json.starts_with(&format!("{{\"now\":{NOW},\"access\":{{\"way\":\"scan\",")), "{json}");
}

#[test]
fn a_query_that_is_refused_is_one_sentence() {
    let server = server();
    let endpoint = endpoint(&server);
    for (arguments, expected) in [
        (&["my shop/cart", "SELECT 1"][..], "There is no container 'cart' in 'my shop'."),
        (&["my shop/cart", "SELECT 1", "--explain"], "It has: carts."),
        (&["my shop/carts", "SELECT 1", "--key", OWN_KEY], "The key is wrong: "),
        (&["my shop/carts", "SELECT 1", "--key", "!"], "The key of --key is not base64."),
    ] {
        let mut command = dayfly(&["query", "--endpoint", &endpoint]);
        fails(command.args(arguments), expected);
    }
}

#[test]
fn an_error_in_a_query_is_pointed_at() {
    let server = server();
    let endpoint = endpoint(&server);
    for explain in [&[][..], &["--explain"]] {
        let query = "SELECT *\nFROM c WHER c.a = 1";
        let mut command = dayfly(&["query", "--endpoint", &endpoint, "my shop/carts", query]);
        let said = failure(command.args(explain));
        let (first, place) = said.split_once('\n').unwrap();
        assert!(first.starts_with("dayfly: SC1001: Syntax error"), "{said}");
        assert_eq!(place, "  FROM c WHER c.a = 1\n              ^\n", "{said}");
    }
}

#[test]
fn order_by_is_lenient_when_asked() {
    let order = ["my shop/carts", "SELECT VALUE c.id FROM c ORDER BY c.pk, c.id DESC"];
    let strict = server();
    let mut command = dayfly(&["query", "--endpoint", &endpoint(&strict)]);
    fails(command.args(order), "does not have a corresponding composite index");
    let lenient = Server::start(&["--lenient-order-by"]);
    fill(&lenient);
    assert_eq!(prints(&lenient, "query", &order), "\"b\"\n\"a b\"\n");
}

#[test]
fn what_the_server_refuses_is_one_sentence() {
    let server = server();
    let endpoint = endpoint(&server);
    for (arguments, expected) in [
        (
            &["status", "my shop/cart"][..],
            "dayfly: There is no container 'cart' in 'my shop'. It has: carts.\n",
        ),
        (&["purge", "my shop/cart"], "It has: carts.\n"),
        (
            &["status", "shop/carts"],
            "dayfly: There is no database 'shop'. The server has: my shop.\n",
        ),
        (&["whatif", "my shop/carts", "0"], "The parameter 'defaultTtl' has the value '0'"),
        (&["forecast", "my shop/carts", "--buckets", "1001"], "'buckets'"),
        (&["explain", "my shop/carts", "a", "[x"], "must be a JSON array"),
        (
            &["status", "my shop/carts", "--key", OWN_KEY],
            "The key is wrong: the server at http://127.0.0.1:",
        ),
        (&["status", "my shop/carts", "--key", OWN_KEY], " does not know the one of --key.\n"),
    ] {
        let mut command = dayfly(&["ttl", "--endpoint", &endpoint]);
        fails(command.args(arguments), expected);
    }
}

#[test]
fn a_server_that_is_not_there_is_one_sentence() {
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let endpoint = format!("http://127.0.0.1:{port}");
    let mut command = dayfly(&["ttl", "status", "a/b"]);
    let expected = format!("The server at {endpoint} cannot be asked: ");
    fails(command.env("DAYFLY_ENDPOINT", &endpoint), &expected);
}

#[test]
fn a_hidden_admin_api_names_its_flag() {
    // A server is asked from another machine, or through the network of a container.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let body = format!(r#"{{"code":"NotFound","message":"{}"}}"#, dayfly_api::UNKNOWN_PATH);
        let length = body.len();
        let answer = format!("HTTP/1.1 404 Not Found\r\ncontent-length: {length}\r\n\r\n{body}");
        let mut request = [0; 4096];
        assert!(stream.read(&mut request).unwrap() > 0);
        stream.write_all(answer.as_bytes()).unwrap();
    });
    let flags = ["ttl", "status", "a/b", "--endpoint", &endpoint];
    fails(&mut dayfly(&flags), "or start it with --admin-public.");
    server.join().unwrap();
}

#[test]
fn over_https_the_certificate_is_given() {
    let server = server();
    let endpoint = format!("https://localhost:{}", server.port);
    fails(
        &mut dayfly(&["ttl", "status", "my shop/carts", "--endpoint", &endpoint]),
        &format!("the server has its own at {endpoint}/_explorer/emulator.pem."),
    );
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, server.get("/_explorer/emulator.pem").body).unwrap();
    let mut command = dayfly(&["ttl", "status", "my shop/carts", "--endpoint", &endpoint, "--ca"]);
    let output = command.arg(&ca).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("my shop/carts"));

    // Another server's certificate is not trusted.
    let other = Server::start(&[]);
    std::fs::write(&ca, other.get("/_explorer/emulator.pem").body).unwrap();
    let mut command = dayfly(&["ttl", "status", "my shop/carts", "--endpoint", &endpoint, "--ca"]);
    fails(command.arg(&ca), "cannot be asked: ");
}

#[test]
fn the_environment_serves_the_server_and_the_commands() {
    let mut command = dayfly(&[]);
    command.envs([("DAYFLY_MEMORY", "1"), ("DAYFLY_LISTEN", "127.0.0.1:0")]);
    command.envs([("DAYFLY_TTL_CHANGE_DELAY", "60"), ("DAYFLY_ENDPOINT", "http://127.0.0.1:1")]);
    let server = Server::spawn(command.env("DAYFLY_KEY", OWN_KEY));

    let mut ask = dayfly(&["ttl", "status", "a/b"]);
    ask.envs([("DAYFLY_MEMORY", "1"), ("DAYFLY_LISTEN", "127.0.0.1:0")]);
    ask.env("DAYFLY_ENDPOINT", endpoint(&server));
    // The key is taken from the environment: it is the container that is missing.
    let expected = "There is no database 'a'. The server has none.";
    fails(ask.env("DAYFLY_KEY", OWN_KEY), expected);
    fails(ask.env("DAYFLY_KEY", "YQ=="), " does not know the one of DAYFLY_KEY.");
    fails(ask.env_remove("DAYFLY_KEY"), "has a key of its own, and none was given. Give it with");
}

#[test]
fn unknown_commands_are_refused() {
    for arguments in [
        &["more"][..],
        &["ttl", "more"],
        &["ttl"],
        &["--memory", "ttl", "status", "a/b"],
        &["ttl", "whatif", "a/b", "1y"],
    ] {
        let output = dayfly(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_change_over_the_guard_is_refused() {
    let server = server();
    clock(&server, r#"{"advanceSeconds":10}"#);
    let change = |ttl: u32| {
        let body =
            format!(r#"{{"id":"carts","partitionKey":{{"paths":["/pk"]}},"defaultTtl":{ttl}}}"#);
        send(&server, "PUT", "/dbs/my%20shop/colls/carts", &body)
    };
    assert_eq!(change(10).status, 200, "one of two is half of them");
    assert_eq!(change(3600).status, 200);
    clock(&server, r#"{"advanceSeconds":15}"#);
    assert_eq!(send(&server, "DELETE", "/dbs/my%20shop/colls/carts/docs/b", "").status, 204);
    let item = r#"{"id":"c","pk":"x"}"#;
    assert_eq!(send(&server, "POST", "/dbs/my%20shop/colls/carts/docs", item).status, 201);
    clock(&server, r#"{"advanceSeconds":5}"#);
    change(5).is_error(412, "PreconditionFailed");
    assert_eq!(change(6).status, 200);
}

#[test]
fn a_delayed_change_is_shown() {
    let server = Server::start(&["--ttl-change-delay", "60"]);
    fill(&server);
    let body = r#"{"id":"carts","partitionKey":{"paths":["/pk"]},"defaultTtl":5}"#;
    let replaced = send(&server, "PUT", "/dbs/my%20shop/colls/carts", body);
    assert!(
        replaced.body.contains(r#""_pendingDefaultTtl":{"defaultTtl":5,"at":"#),
        "{replaced:?}"
    );
    let status = says(&server, &["status", "my shop/carts"]);
    assert!(status.contains("default ttl     3600 s\npending         5 s from 20"), "{status}");
}

#[test]
fn a_part_of_the_figures_is_recounted_after_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let first = Server::start_in(folder.path(), &[]);
    fill(&first);
    first.terminate();
    assert_eq!(first.ended().code(), Some(0));

    let second = Server::start_in(folder.path(), &[]);
    let found = |result: &str| format!("dayfly_figures_recounts_total{{result=\"{result}\"}} 1\n");
    let mut metrics = String::new();
    while !metrics.contains(&found("right")) {
        metrics = second.get("/metrics").body;
        assert!(!metrics.contains(&found("wrong")) && !metrics.contains(&found("left_out")));
    }
}
