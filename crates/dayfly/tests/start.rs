//! How the server starts, what it refuses to start with, and how it stops.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]
#![allow(dead_code, reason = "each test file uses its part of the common one")]

mod common;

use std::net::TcpStream;

use rustix::process::Signal;

use common::{Client, OWN_KEY, Server, dayfly, network_address, refusal, send};

const WELL_KNOWN_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

#[test]
fn a_started_server_is_alive_and_ready() {
    let server = Server::start(&[]);
    assert_eq!(server.get("/alive").status, 200);
    assert_eq!(server.get("/ready").status, 200);
    let port = server.port;
    for scheme in ["https", "http"] {
        let line = format!(
            "AccountEndpoint={scheme}://localhost:{port}/;AccountKey={WELL_KNOWN_KEY};\
             DisableServerCertificateValidation=True;\n"
        );
        assert!(server.banner.contains(&line), "{}", server.banner);
    }
}

#[test]
fn a_server_in_memory_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = dayfly(&["--memory", "--listen", "127.0.0.1:0"]);
    let server = Server::spawn(command.current_dir(&folder));
    assert!(server.banner.contains("\nData: in memory"), "{}", server.banner);
    assert_eq!(server.get("/ready").status, 200);
    drop(server);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn a_server_in_memory_keeps_its_certificate_in_the_cache_or_where_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, other) = (folder.path().join("cache"), folder.path().join("other"));
    let certificate = |arguments: &[&str]| {
        let mut command = dayfly(&["--memory", "--listen", "127.0.0.1:0"]);
        let server = Server::spawn(command.args(arguments).env("XDG_CACHE_HOME", &cache));
        server.get("/_explorer/emulator.pem").body
    };
    let first = certificate(&[]);
    assert!(first.starts_with("-----BEGIN CERTIFICATE-----"), "{first}");
    assert_eq!(certificate(&[]), first);
    assert!(cache.join("dayfly/tls.pem").exists());

    let told = ["--tls-dir", other.to_str().unwrap()];
    let second = certificate(&told);
    assert_ne!(second, first);
    assert_eq!(certificate(&told), second);
    assert_eq!(certificate(&[]), first);
}

#[test]
fn settings_come_from_the_environment_too() {
    let mut command = dayfly(&[]);
    command.envs([("DAYFLY_MEMORY", "1"), ("DAYFLY_LISTEN", "127.0.0.1:0")]);
    let server = Server::spawn(command.env("DAYFLY_KEY", OWN_KEY));
    assert!(server.banner.contains("AccountKey=<your key>;"), "{}", server.banner);
}

#[test]
fn a_key_is_made_kept_in_a_file_and_given_with_line_ends() {
    let made = dayfly(&["key"]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let key = String::from_utf8(made.stdout).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    std::fs::write(&path, &key).unwrap();
    let flags = ["--listen", "0", "--memory", "--key-file", path.to_str().unwrap()];
    let server = Server::spawn(&mut dayfly(&flags));
    assert!(server.banner.contains("AccountKey=<your key>;"), "{}", server.banner);
    assert_eq!(server.get_with(key.trim(), "/_admin/v1/clock").status, 200);
    assert_eq!(server.get_with(OWN_KEY, "/_admin/v1/clock").status, 401);

    let mut command = dayfly(&["--listen", "0", "--memory", "--secondary-key", OWN_KEY]);
    let server = Server::spawn(command.env("DAYFLY_KEY", format!(" {key}\r\n")));
    for key in [key.trim(), OWN_KEY] {
        assert_eq!(server.get_with(key, "/_admin/v1/clock").status, 200);
    }
}

#[test]
fn unsafe_or_senseless_settings_refuse_to_start() {
    for (arguments, expected) in [
        (&["--listen", "0.0.0.0:0"][..], "give a key of your own with --key"),
        (&["--listen", "0.0.0.0:0", "--key", WELL_KNOWN_KEY], "give a key of your own"),
        (&["--key", "x"], "The key of --key is not base64"),
        (&["--key", OWN_KEY, "--read-only-key", OWN_KEY], "The read-only key is the same"),
        (&["--memory", "--data", "x"], "leave out one of the two"),
        (&["--tls-san", "a b"], "give a host name or an IP address"),
    ] {
        let (code, said) = refusal(&mut dayfly(arguments));
        assert_eq!(code, Some(2), "{arguments:?}: {said}");
        assert!(said.starts_with("dayfly: ") && said.contains(expected), "{arguments:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn what_is_not_a_setting_refuses_to_start() {
    for arguments in [
        &["--port", "1"][..],
        &["--durability", "none"],
        &["--listen", "nowhere"],
        &["--max-connections", "0"],
        &["more"],
    ] {
        let (code, said) = refusal(&mut dayfly(arguments));
        assert_eq!(code, Some(2), "{arguments:?}");
        assert!(said.starts_with("error: "), "{arguments:?}: {said}");
    }
    for (name, value, expected) in [
        ("DAYFLY_PORT", "1", "dayfly: The environment variable DAYFLY_PORT is not"),
        ("DAYFLY_LOG", "a=b=c", "dayfly: DAYFLY_LOG has 'a=b=c', which is nothing that"),
        ("DAYFLY_LOG", "warn,inof", "dayfly: DAYFLY_LOG has 'inof', which is nothing that"),
    ] {
        let (code, said) = refusal(dayfly(&[]).env(name, value));
        assert_eq!(code, Some(2));
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn a_folder_that_is_open_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let _server = Server::start_in(folder.path(), &[]);
    let mut second = dayfly(&["--listen", "127.0.0.1:0", "--data"]);
    let (code, said) = refusal(second.arg(folder.path()));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.starts_with("dayfly: ") && said.contains("in use by another dayfly"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn a_folder_without_its_journal_is_refused() {
    for stops in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start_in(folder.path(), &[]);
        assert_eq!(send(&server, "POST", "/dbs", r#"{"id":"d"}"#).status, 201);
        if stops {
            server.terminate();
            assert!(server.ended().success());
        } else {
            // This kills it.
            drop(server);
        }
        let journal = if stops { "fjall/1.jnl" } else { "fjall/0.jnl" };
        std::fs::remove_file(folder.path().join(journal)).unwrap();
        let (code, said) =
            refusal(dayfly(&["--listen", "127.0.0.1:0", "--data"]).arg(folder.path()));
        assert_eq!(code, Some(1));
        assert!(said.contains(&format!("'{journal}' is missing")), "{said}");
    }
}

#[test]
fn an_address_that_is_taken_is_refused() {
    let server = Server::start(&[]);
    let (code, said) =
        refusal(&mut dayfly(&["--memory", "--listen", &server.address().to_string()]));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("cannot be listened on"), "{said}");
    let taken = server.address().to_string();
    let twice = ["--memory", "--listen", "127.0.0.1:0", "--compute-listen", &taken];
    let (code, said) = refusal(&mut dayfly(&twice));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&format!("{taken} cannot be listened on")), "{said}");
}

#[test]
fn a_taken_port_leaves_no_folder_behind() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let port = server.port.to_string();
    let (code, said) = refusal(dayfly(&["--listen", &port, "--data"]).arg(&data));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("or give another port with --listen."), "{said}");
    assert!(!data.exists());
}

#[test]
fn a_server_of_this_machine_is_at_both_its_addresses() {
    let has_version_6 = std::net::TcpListener::bind("[::1]:0").is_ok();
    for place in ["0", "localhost:0", "127.0.0.1:0", "[::1]:0"] {
        let server = Server::start(&["--listen", place]);
        assert!(server.banner.contains("//localhost:"), "{}", server.banner);
        assert_eq!(server.get("/alive").status, 200);
        if has_version_6 {
            let mut client = Client::over(TcpStream::connect(("::1", server.port)).unwrap());
            client.get("/alive");
            assert_eq!(client.answer().status, 200, "{place}");
        }
    }
}

#[test]
fn a_server_of_every_address_is_at_each() {
    let flags = ["--listen", ":0", "--key", OWN_KEY, "--allow-clear-text"];
    let server = Server::start(&flags);
    assert_eq!(server.get("/alive").status, 200);
    let (code, said) = refusal(&mut dayfly(&["--memory", "--listen", ":0"]));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("give a key of your own"), "{said}");
}

#[test]
fn a_server_of_this_machine_answers_to_its_own_names_only() {
    let server = Server::start(&["--tls-san", "san.test", "--allow-host", "a.test,b.test"]);
    let ask = |server: &Server, host: &str, path: &str| {
        let mut client = server.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n"));
        client.answer()
    };
    for host in ["localhost", "x.localhost:1", "127.0.0.1:8081", "[::1]:1", "san.test", "b.test:1"]
    {
        assert_eq!(ask(&server, host, "/alive").status, 200, "{host}");
    }
    for path in ["/alive", "/ready", "/metrics", "/", "/dbs", "/_admin/v1/clock", "/nothing"] {
        let answer = ask(&server, "evil.test:8081", path);
        answer.is_error(421, "MisdirectedRequest");
        assert!(answer.body.contains("--allow-host"), "{answer:?}");
        assert!(answer.body.contains("'evil.test'"), "{answer:?}");
    }
    let mut nameless = server.connect();
    nameless.send("GET /alive HTTP/1.1\r\n\r\n");
    nameless.answer().is_error(400, "BadRequest");

    // Names on a network are the affair of its users.
    let server = Server::start(&["--listen", ":0", "--key", OWN_KEY, "--allow-clear-text"]);
    assert_eq!(ask(&server, "evil.test", "/alive").status, 200);
}

#[test]
fn the_admin_api_of_a_server_on_a_network_is_for_its_own_machine() {
    let server = Server::start(&["--listen", ":0", "--key", OWN_KEY, "--allow-clear-text"]);
    assert_eq!(server.get_with(OWN_KEY, "/_admin/v1/clock").status, 200);
    assert_eq!(server.get("/_admin/v1/clock").status, 401);
    if let Some(ip) = network_address() {
        let mut client = Client::over(TcpStream::connect((ip, server.port)).unwrap());
        client.send(format!(
            "GET /_admin/v1/clock HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {OWN_KEY}\r\n\r\n"
        ));
        client.answer().is_error(404, "NotFound");
    }
}

#[test]
fn a_stopped_server_ends_well_and_starts_again_in_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let first = Server::start_in(folder.path(), &[]);
    let certificate = first.get("/_explorer/emulator.pem").body;
    first.terminate();
    assert_eq!(first.ended().code(), Some(0));

    let second = Server::start_in(folder.path(), &[]);
    assert_eq!(second.get("/ready").status, 200);
    assert_eq!(second.get("/_explorer/emulator.pem").body, certificate);
}

#[test]
fn a_closed_terminal_does_not_end_the_server() {
    let server = Server::start(&[]);
    server.signal(Signal::HUP);
    assert_eq!(server.get("/alive").status, 200);
    server.terminate();
    // `Stopped` is the last that it says.
    assert_eq!(server.ended().code(), Some(0));
}

#[test]
fn a_request_that_runs_is_answered_before_the_server_ends() {
    let server = Server::start(&[]);
    let mut idle = server.connect();
    idle.get("/alive");
    idle.answer();
    let mut running = server.connect();
    running.get("/alive");
    running.answer();
    running.send(
        "POST /alive HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n\
         expect: 100-continue\r\n\r\n",
    );
    assert_eq!(running.answer().status, 100);
    running.send("{}");

    server.terminate();
    assert!(idle.is_closed());
    while TcpStream::connect(server.address()).is_ok() {}
    running.send("  ");
    running.answer().is_error(405, "MethodNotAllowed");
    assert!(running.is_closed());
    assert_eq!(server.ended().code(), Some(0));
}

#[test]
fn a_request_that_does_not_end_does_not_hold_the_server() {
    for (timeout_ms, signals) in [("100", 1), ("60000", 2)] {
        let server = Server::start(&["--stop-timeout-ms", timeout_ms]);
        let mut stuck = server.connect();
        stuck.send("POST /alive HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n\r\n{}");
        assert_eq!(server.get("/alive").status, 200);
        for _ in 0..signals {
            server.terminate();
            while TcpStream::connect(server.address()).is_ok() {}
        }
        assert_eq!(server.ended().code(), Some(0));
        assert!(stuck.is_closed());
    }
}
