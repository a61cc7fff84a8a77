//! What changes while the server runs: its keys and its certificate.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]
#![allow(dead_code, reason = "each test file uses its part of the common one")]

mod common;

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;

use common::{Client, OWN_KEY, Server, dayfly, refusal, secured};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustix::process::Signal;

const OTHER_KEY: &str = "ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";
const AGAIN: &str = "the keys and the certificate were read again";

/// Puts a new certificate that ends with `year` into a folder, and returns it.
fn put_certificate(folder: &Path, year: i32) -> String {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.not_after = date_time_ymd(year, 12, 31);
    let pem = params.self_signed(&key).unwrap().pem();
    fs::write(folder.join("cert.pem"), &pem).unwrap();
    fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
    pem
}

/// A server with its key and its certificate in a folder, of which it is heard what it
/// says.
fn start(folder: &Path) -> Server {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (key, cert, private) = (path("account.key"), path("cert.pem"), path("key.pem"));
    let flags = ["--memory", "--listen", "0", "--key-file", &key, "--tls-cert", &cert];
    let mut command = dayfly(&flags);
    Server::spawn(command.args(["--tls-key", &private]).stderr(Stdio::piped()))
}

/// Whether the server shows this certificate in a handshake.
fn shows(server: &Server, pem: &str) -> bool {
    let mut stream = secured(server, pem);
    let request = b"GET /alive HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let mut answer = String::new();
    stream.write_all(request).is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.starts_with("HTTP/1.1 200")
}

/// The status of a request of the admin API on a connection that stays open.
fn ask(client: &mut Client, key: &str) -> u16 {
    client.send(format!(
        "GET /_admin/v1/clock HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\r\n"
    ));
    client.answer().status
}

#[test]
fn a_hangup_changes_keys_and_certificate_and_drops_no_connection() {
    let folder = tempfile::tempdir().unwrap();
    let first = put_certificate(folder.path(), 2900);
    fs::write(folder.path().join("account.key"), OWN_KEY).unwrap();
    let mut server = start(folder.path());
    let mut client = server.connect();
    assert_eq!((ask(&mut client, OWN_KEY), ask(&mut client, OTHER_KEY)), (200, 401));
    assert!(shows(&server, &first));

    let second = put_certificate(folder.path(), 2900);
    fs::write(folder.path().join("account.key"), OTHER_KEY).unwrap();
    assert_eq!(ask(&mut client, OWN_KEY), 200);
    server.signal(Signal::HUP);
    server.hear(AGAIN);
    assert_eq!((ask(&mut client, OWN_KEY), ask(&mut client, OTHER_KEY)), (401, 200));
    assert!(shows(&server, &second) && !shows(&server, &first));
    assert_eq!(server.get("/_explorer/emulator.pem").body, second);

    // What cannot be used changes nothing, the certificate neither.
    let third = put_certificate(folder.path(), 2900);
    fs::write(folder.path().join("account.key"), "!").unwrap();
    server.signal(Signal::HUP);
    server.hear("stay as they are: The key of --key-file is not base64");
    assert_eq!((ask(&mut client, OWN_KEY), ask(&mut client, OTHER_KEY)), (401, 200));
    assert!(shows(&server, &second) && !shows(&server, &third));
}

#[test]
fn a_certificate_that_has_ended_is_told() {
    let folder = tempfile::tempdir().unwrap();
    put_certificate(folder.path(), 2020);
    fs::write(folder.path().join("account.key"), OWN_KEY).unwrap();
    let mut server = start(folder.path());
    server.hear("the certificate has ended, at Thu, 31 Dec 2020 00:00:00 GMT");
    put_certificate(folder.path(), 2900);
    server.signal(Signal::HUP);
    server.hear(AGAIN);
}

#[test]
fn a_certificate_that_cannot_be_used_refuses_to_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (cert, key) = (path("cert.pem"), path("key.pem"));
    let flags = ["--memory", "--listen", "0", "--tls-cert", &cert, "--tls-key", &key];
    let (code, said) = refusal(&mut dayfly(&flags));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("of --tls-cert cannot be used"), "{said}");
    put_certificate(folder.path(), 2900);
    fs::write(&key, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let (code, said) = refusal(&mut dayfly(&flags));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("The certificate cannot be used"), "{said}");
}
