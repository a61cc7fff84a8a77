//! Emulator mode: what each tool that starts an emulator waits for, and what it asks then.
//!
//! There is no container here. The server has the environment that the tool would give to
//! one, and a port that is free instead of one that is mapped.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]
#![allow(dead_code, reason = "each test file uses its part of the common one")]

mod common;

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv6Addr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use common::{Client, OWN_KEY, Server, dayfly, network_address, refusal, request, secured, send};

/// The server in an environment with these variables and no others. The ports that it
/// would have beside its own may be taken here.
fn emulator(variables: &[(&str, &str)]) -> Command {
    let mut command = dayfly(&["--memory", "--compute-listen", ":0", "--health-listen", ":0"]);
    command.env_clear().env("DAYFLY_EMULATOR", "1").envs(variables.iter().copied());
    command
}

fn start(variables: &[(&str, &str)]) -> Server {
    Server::spawn(&mut emulator(variables))
}

/// A port that nobody has just now. It is below those that the system hands out, so that it
/// is nobody's a moment later, either.
fn free_port() -> String {
    static COUNT: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + u16::try_from(std::process::id() % 20_000).unwrap();
    loop {
        let port = first + COUNT.fetch_add(1, Ordering::Relaxed);
        if TcpListener::bind(("::", port)).or_else(|_| TcpListener::bind(("0.0.0.0", port))).is_ok()
        {
            return port.to_string();
        }
    }
}

/// The address for health checks, as the banner has it.
fn health(server: &Server) -> u16 {
    let (_, rest) = server.banner.split_once("\nHealth checks: http://localhost:").unwrap();
    rest.split('/').next().unwrap().parse().unwrap()
}

/// The status of a `GET` at a port of this machine, in clear text.
fn status_at(port: u16, path: &str) -> u16 {
    let mut client = Client::over(TcpStream::connect(("127.0.0.1", port)).unwrap());
    client.get(path);
    client.answer().status
}

/// What the server answers over https to a client that trusts nothing but `pem`.
fn ask_securely(server: &Server, pem: &str, request: &str) -> String {
    let mut stream = secured(server, pem);
    let request = request.replacen("\r\n", "\r\nconnection: close\r\n", 1);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")
}

fn is_ok(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 200 ")
}

/// Testcontainers for .NET waits for `Started` anywhere in the log. Then each request goes
/// over http to the port that the container's was mapped to, with that port as its host.
#[test]
fn dotnet_finds_the_server_behind_a_mapped_port() {
    let server =
        start(&[("PORT", "0"), ("ENABLE_EXPLORER", "false"), ("ENABLE_TELEMETRY", "false")]);
    assert!(server.banner.contains("Started"));
    let mut client = server.connect();
    let mapped = "host: localhost:32768";
    client.send(request(&server, "GET", "/", "").replace("host: localhost", mapped));
    let account = client.answer();
    assert_eq!(account.status, 200, "{account:?}");
    assert!(account.body.contains(r#""databaseAccountEndpoint":"http://127.0.0.1:32768/""#));
    assert_eq!(send(&server, "POST", "/dbs", r#"{"id":"d"}"#).status, 201);
}

/// Earlier versions wait for a 2xx of `GET /`, which they do not sign.
#[test]
fn an_older_dotnet_asks_for_the_account_without_a_signature() {
    let server = start(&[("PORT", "0"), ("ENABLE_EXPLORER", "false")]);
    assert_eq!(server.get("/").status, 200);
    // It wants no explorer, so there is none.
    assert!(!server.banner.contains("Portal: "), "{}", server.banner);
    assert_eq!(server.get("/_explorer/index.html").status, 404);
    assert_eq!(server.get("/_explorer/emulator.pem").status, 200);
    assert_eq!(server.get("/dbs").status, 401);
    assert_eq!(server.get_with(OWN_KEY, "/").status, 401, "what is signed is signed well");
    assert_eq!(Server::start(&[]).get("/").status, 401);
}

/// Testcontainers for Java waits for a line that matches `.*Started\r\n$`, loads the
/// certificate, and trusts it alone.
#[test]
fn java_waits_for_a_line_as_on_windows_and_trusts_the_certificate() {
    let server = start(&[("PORT", "0")]);
    assert!(server.banner.ends_with("\nStarted\r\n"), "{:?}", server.banner);
    assert_eq!(server.banner.matches("Started").count(), 1);
    // The tool checks no certificate yet; we check the one that we know by http.
    let pem = server.get("/_explorer/emulator.pem").body;
    let answer = ask_securely(&server, &pem, &get("/_explorer/emulator.pem"));
    assert!(is_ok(&answer), "{answer}");
    let (_, loaded) = answer.split_once("\r\n\r\n").unwrap();
    let account = ask_securely(&server, loaded, &request(&server, "GET", "/", ""));
    assert!(is_ok(&account), "{account}");
    assert!(account.contains(r#""databaseAccountEndpoint":"https://127.0.0.1/""#), "{account}");
}

/// Testcontainers for Node chooses a port that is free, which the container has too, and
/// waits for `Now listening on: `.
#[test]
fn node_chooses_port_and_protocol() {
    for protocol in ["http", "https"] {
        let port = free_port();
        let server = start(&[
            ("PROTOCOL", protocol),
            ("PORT", &port),
            ("ENABLE_TELEMETRY", "false"),
            ("ENABLE_EXPLORER", "false"),
        ]);
        let line = format!("\nNow listening on: {protocol}://localhost:{port}\n");
        assert!(server.banner.contains(&line), "{}", server.banner);
        assert_eq!(server.port.to_string(), port);
        // Whatever it chose, both are served.
        let pem = server.get("/_explorer/emulator.pem").body;
        assert!(is_ok(&ask_securely(&server, &pem, &request(&server, "GET", "/dbs", ""))));
        assert_eq!(send(&server, "GET", "/dbs", "").status, 200);
    }
}

/// Testcontainers for Python waits for `Started\s*$`, asks for the explorer over https, and
/// lists the databases.
#[test]
fn python_asks_for_the_explorer_and_lists_databases() {
    let key =
        "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
    let mut command = emulator(&[
        ("PORT", "0"),
        ("AZURE_COSMOS_EMULATOR_PARTITION_COUNT", "None"),
        ("AZURE_COSMOS_EMULATOR_IP_ADDRESS_OVERRIDE", "172.17.0.2"),
        ("AZURE_COSMOS_EMULATOR_ENABLE_DATA_PERSISTENCE", "False"),
        ("AZURE_COSMOS_EMULATOR_KEY", key),
    ]);
    let server = Server::spawn(command.stderr(Stdio::piped()));
    assert!(server.banner.trim_end().ends_with("Started"));
    assert!(server.banner.contains(key), "{}", server.banner);
    let pem = server.get("/_explorer/emulator.pem").body;
    let page = ask_securely(&server, &pem, &get("/_explorer/index.html"));
    assert!(is_ok(&page) && page.contains("<!doctype html>"), "{page}");
    let databases = ask_securely(&server, &pem, &request(&server, "GET", "/dbs", ""));
    assert!(is_ok(&databases) && databases.contains(r#""Databases":[]"#), "{databases}");
    server.terminate();
    assert_eq!(server.said(), "", "none of it is worth a warning");
}

/// Aspire waits for `/ready` at a port of its own, and sets what dayfly has not.
#[test]
fn aspire_asks_at_the_port_for_health() {
    let mut command = emulator(&[
        ("PORT", "0"),
        ("PROTOCOL", "https"),
        ("EXPLORER_PROTOCOL", "https"),
        ("CERT_PATH", "/cert.pfx"),
        ("CERT_SECRET", "the secret"),
        ("ENABLE_OTLP_EXPORTER", "true"),
    ]);
    let mut server = Server::spawn(command.stderr(Stdio::piped()));
    assert!(server.banner.contains("\nNow listening on: https://"), "{}", server.banner);
    assert_eq!(status_at(health(&server), "/ready"), 200);
    for name in ["EXPLORER_PROTOCOL", "CERT_PATH", "CERT_SECRET", "ENABLE_OTLP_EXPORTER"] {
        server.hear(&format!("{name} has no effect: "));
    }
}

#[test]
fn the_port_for_health_has_nothing_else() {
    let server = start(&[("PORT", "0")]);
    let port = health(&server);
    for path in ["/ready", "/alive", "/status"] {
        assert_eq!(status_at(port, path), 200, "{path}");
    }
    for path in ["/", "/dbs", "/metrics", "/_explorer/index.html", "/_admin/v1/clock"] {
        assert_eq!(status_at(port, path), 404, "{path}");
    }
    assert_eq!(status_at(server.port, "/_explorer/index.html"), 200);
}

#[test]
fn the_port_for_health_takes_clear_text_and_any_name_and_counts_connections() {
    let flags = ["--listen", ":0", "--key", OWN_KEY, "--health-listen", "0"];
    let server = Server::start(&[&flags[..], &["--max-connections", "1"]].concat());
    let port = health(&server);
    let connect = || Client::over(TcpStream::connect(("127.0.0.1", port)).unwrap());
    let mut first = connect();
    first.send("GET /ready HTTP/1.1\r\nhost: pod.test\r\n\r\n");
    assert_eq!(first.answer().status, 200);
    assert!(connect().is_turned_away());
    drop(first);
    // The place is free when the server has seen that.
    let refused = loop {
        let mut client = server.connect();
        if client.try_send(get("/ready")).is_ok() && !client.is_turned_away() {
            break client.answer();
        }
    };
    refused.is_error(400, "BadRequest");
}

#[test]
fn whoever_comes_counts_as_one_of_this_machine() {
    let server = start(&[("PORT", "0")]);
    assert!(server.banner.contains("\nEMULATOR MODE: "), "{}", server.banner);
    let key = server.banner.split("AccountKey=").nth(1).unwrap().split(';').next().unwrap();
    let here = IpAddr::from([127, 0, 0, 1]);
    let here_too = TcpListener::bind("[::1]:0").ok().map(|_| Ipv6Addr::LOCALHOST.into());
    for ip in [Some(here), here_too, network_address()].into_iter().flatten() {
        for (path, key, status) in [
            ("/_admin/v1/clock", key, 200),
            ("/_admin/v1/clock", OWN_KEY, 401),
            ("/metrics", "", 200),
            ("/_explorer/", "", 200),
            ("/dbs", "", 401),
        ] {
            let mut client = Client::over(TcpStream::connect((ip, server.port)).unwrap());
            client.send(format!(
                "GET {path} HTTP/1.1\r\nhost: cosmos.test\r\nauthorization: Bearer {key}\r\n\r\n"
            ));
            assert_eq!(client.answer().status, status, "{ip} {path}");
        }
    }
}

#[test]
fn a_port_that_nobody_asked_for_may_be_taken() {
    // An address of loopback that is ours alone, so that no other test has it.
    let pid = std::process::id().to_be_bytes();
    let ip = IpAddr::from([127, 77, pid[2], pid[3]]);
    let taken = [8080, 8903].map(|port| TcpListener::bind((ip, port)));
    let listen = format!("{ip}:0");
    let mut command = dayfly(&["--emulator", "--memory", "--listen", &listen]);
    let mut server = Server::spawn(command.env_clear().stderr(Stdio::piped()));
    for port in [8903, 8080] {
        server.hear(&format!("{ip}:{port} cannot be listened on"));
    }
    assert!(!server.banner.contains("Health checks"), "{}", server.banner);
    drop((server, taken));

    let holder = TcpListener::bind((ip, 0)).unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    let flags = ["--emulator", "--memory", "--listen", &listen, "--health-listen", &taken];
    let (code, said) = refusal(dayfly(&flags).env_clear());
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("or give another port with --health-listen."), "{said}");
}

#[test]
fn flags_win_over_our_variables_and_those_over_the_emulators() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let port = free_port();
    let start = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command =
            dayfly(&["--emulator", "--compute-listen", ":0", "--health-listen", ":0"]);
        command.env_clear().args(arguments);
        command.envs([("DATA_PATH", place("path")), ("PORT", port.clone())]);
        let server = Server::spawn(command.envs(variables.iter().copied()));
        let (_, rest) = server.banner.split_once("\nData: ").unwrap();
        (server.port.to_string() == port, rest.lines().next().unwrap().to_owned())
    };
    assert_eq!(start(&[], &[]), (true, place("path")));
    let ours = [("DAYFLY_DATA", &*place("ours")), ("DAYFLY_LISTEN", "0")];
    assert_eq!(start(&[], &ours), (false, place("ours")));
    let flags = ["--data", &place("flag"), "--listen", &port];
    assert_eq!(start(&flags, &ours), (true, place("flag")));
    let memory = "in memory, gone when the server stops".to_owned();
    assert_eq!(start(&[], &[("DAYFLY_MEMORY", "1")]), (true, memory));
}

#[test]
fn a_value_that_cannot_be_read_refuses_to_start_in_emulator_mode_only() {
    for (name, value) in [("PORT", "x"), ("PROTOCOL", "ftp"), ("LOG_LEVEL", "loud")] {
        let (code, said) = refusal(&mut emulator(&[(name, value)]));
        assert_eq!(code, Some(2), "{said}");
        let start = format!("dayfly: {name} has '{value}', which cannot be read: give ");
        assert!(said.starts_with(&start) && said.lines().count() == 1, "{said}");
        let mut command = dayfly(&["--memory", "--listen", "0"]);
        let server = Server::spawn(command.env_clear().env(name, value));
        assert!(server.banner.ends_with("\nStarted\n"), "{:?}", server.banner);
    }
}

#[test]
fn a_key_of_the_emulators_variables_is_a_key_of_the_user() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, format!("{OWN_KEY}\n")).unwrap();
    for (name, value) in [
        ("AZURE_COSMOS_EMULATOR_KEY", OWN_KEY),
        ("KEY_FILE", file.to_str().unwrap()),
        ("DAYFLY_KEY", OWN_KEY),
    ] {
        let server = start(&[("PORT", "0"), (name, value)]);
        assert!(server.banner.contains("AccountKey=<your key>;"), "{}", server.banner);
        assert_eq!(server.get_with(OWN_KEY, "/_admin/v1/clock").status, 200, "{name}");
    }
}

#[test]
fn the_account_names_the_public_endpoint() {
    let port = free_port();
    for (given, shown) in
        [("cosmos", format!("cosmos:{port}")), ("cosmos:1", "cosmos:1".to_owned())]
    {
        let server = start(&[("PORT", &port), ("GATEWAY_PUBLIC_ENDPOINT", given)]);
        let account = send(&server, "GET", "/", "").body;
        let endpoint = format!(r#""databaseAccountEndpoint":"http://{shown}/""#);
        assert!(account.contains(&endpoint), "{account}");
    }
}

#[test]
fn the_certificate_is_shown_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("emulator.pem");
    let export = |path: &str| {
        let mut command = emulator(&[("PORT", "0"), ("DAYFLY_TLS_EXPORT", path)]);
        Server::spawn(command.stderr(Stdio::piped()))
    };
    let server = export(file.to_str().unwrap());
    let shown = std::fs::read_to_string(&file).unwrap();
    assert_eq!(shown, server.get("/_explorer/emulator.pem").body);
    assert!(shown.starts_with("-----BEGIN CERTIFICATE-----") && !shown.contains("PRIVATE"));
    let mut server = export(folder.path().join("nothing/emulator.pem").to_str().unwrap());
    server.hear("the certificate is not in ");
}
