//! What the one port speaks: http and https, HTTP/1.1 and HTTP/2, and what it
//! says to those who speak nonsense.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]
#![allow(dead_code, reason = "each test file uses its part of the common one")]

mod common;

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use common::{Client, OWN_KEY, Server, request, send};
use http::{Request, Version};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// What came back: the version it was spoken in, the status and the body.
type Said = (Version, u16, String);

async fn ask<S>(stream: S, version: Version, path: &str) -> Said
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut request = Request::get(format!("http://localhost{path}"));
    if version == Version::HTTP_11 {
        request = request.header("host", "localhost");
    }
    let request = request.version(version).body(Full::<Bytes>::default()).unwrap();
    let io = TokioIo::new(stream);
    let response = if version == Version::HTTP_2 {
        let (mut client, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        client.send_request(request).await.unwrap()
    } else {
        let (mut client, connection) = http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        client.send_request(request).await.unwrap()
    };
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (head.version, head.status.as_u16(), String::from_utf8(body.to_vec()).unwrap())
}

/// A TLS connection that trusts nothing but `pem`.
async fn secure(
    server: &Server,
    pem: &str,
    name: &str,
    protocols: &[&str],
) -> std::io::Result<TlsStream<TcpStream>> {
    secure_at(server.address(), pem, name, protocols).await
}

async fn secure_at(
    address: SocketAddr,
    pem: &str,
    name: &str,
    protocols: &[&str],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from(name.to_owned()).unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

fn certificate(server: &Server) -> String {
    server.get("/_explorer/emulator.pem").body
}

#[tokio::test]
async fn clear_text_is_http_1_or_http_2_by_its_first_bytes() {
    let server = Server::start(&[]);
    for version in [Version::HTTP_11, Version::HTTP_2] {
        let stream = TcpStream::connect(server.address()).await.unwrap();
        let (spoken, status, _) = ask(stream, version, "/ready").await;
        assert_eq!((spoken, status), (version, 200));
    }
}

#[tokio::test]
async fn tls_is_http_1_or_http_2_by_its_alpn() {
    let server = Server::start(&[]);
    let pem = certificate(&server);
    for (protocols, version) in [
        (&["h2"][..], Version::HTTP_2),
        (&["h2", "http/1.1"], Version::HTTP_2),
        (&["http/1.1"], Version::HTTP_11),
        (&[], Version::HTTP_11),
    ] {
        let stream = secure(&server, &pem, "localhost", protocols).await.unwrap();
        let (spoken, status, _) = ask(stream, version, "/ready").await;
        assert_eq!((spoken, status), (version, 200), "{protocols:?}");
    }
}

#[tokio::test]
async fn the_certificate_is_good_for_its_names_only() {
    let server = Server::start(&["--tls-san", "extra.test,10.1.2.3"]);
    let pem = certificate(&server);
    for name in ["localhost", "127.0.0.1", "::1", "extra.test", "10.1.2.3"] {
        secure(&server, &pem, name, &[]).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    assert!(secure(&server, &pem, "other.test", &[]).await.is_err());
}

#[tokio::test]
async fn several_requests_share_an_http_2_connection() {
    let server = Server::start(&[]);
    let stream = TokioIo::new(TcpStream::connect(server.address()).await.unwrap());
    let (mut client, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let post = |body: &'static str| {
        let request = Request::post("http://localhost/dbs");
        client.send_request(request.body(Full::<Bytes>::from(body)).unwrap())
    };
    let answers: Vec<_> = ["{}", "{", ""].map(post).into_iter().collect();
    for answer in answers {
        assert_eq!(answer.await.unwrap().status(), 401);
    }
}

#[tokio::test]
async fn an_http_2_request_has_largest_sizes_too() {
    let server = Server::start(&[]);
    let stream = TokioIo::new(TcpStream::connect(server.address()).await.unwrap());
    let (mut client, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let body = Full::<Bytes>::from(vec![b' '; 4 * 1024 * 1024 + 1]);
    let request = Request::post("http://localhost/dbs").body(body).unwrap();
    assert_eq!(client.send_request(request).await.unwrap().status(), 413);

    // That ended a stream, not the connection.
    let request = Request::get("http://localhost/alive").body(Full::default()).unwrap();
    assert_eq!(client.send_request(request).await.unwrap().status(), 200);
    let request = Request::get("http://localhost/alive").header("a", "x".repeat(70_000));
    let response = client.send_request(request.body(Full::default()).unwrap()).await.unwrap();
    // This one h2 answers itself, without our headers and body.
    assert_eq!(response.status(), 431);
}

#[tokio::test]
async fn clear_text_on_a_network_address_is_refused_and_closed() {
    let server = Server::start(&["--listen", "0.0.0.0:0", "--key", OWN_KEY]);
    assert!(!server.banner.contains("http://"), "{}", server.banner);
    let mut client = server.connect();
    client.send("POST /dbs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}");
    let refused = client.answer();
    refused.is_error(400, "BadRequest");
    assert_eq!(refused.header("connection"), Some("close"));
    client.end();
    assert!(client.is_closed());

    let stream = TcpStream::connect(server.address()).await.unwrap();
    let (_, status, body) = ask(stream, Version::HTTP_2, "/ready").await;
    assert_eq!(status, 400);
    assert!(body.starts_with(r#"{"code":"BadRequest","#), "{body}");
}

#[tokio::test]
async fn an_http_2_client_that_is_refused_is_closed() {
    let server = Server::start(&["--listen", "0.0.0.0:0", "--key", OWN_KEY]);
    let stream = TokioIo::new(TcpStream::connect(server.address()).await.unwrap());
    let (mut client, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::get("http://localhost/ready").body(Full::<Bytes>::default()).unwrap();
    let response = client.send_request(request).await.unwrap();
    assert_eq!(response.status(), 400);
    drop(response);
    // It ends although the client would go on.
    connection.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_network_address_serves_https_and_clear_text_only_if_told() {
    let folder = tempfile::tempdir().unwrap();
    let network = ["--listen", "0.0.0.0:0", "--key", OWN_KEY];
    let open = Server::start_in(folder.path(), &[&network[..], &["--allow-clear-text"]].concat());
    assert_eq!(open.get("/ready").status, 200);
    let pem = certificate(&open);
    open.terminate();
    open.ended();

    let closed = Server::start_in(folder.path(), &network);
    let stream = secure(&closed, &pem, "localhost", &[]).await.unwrap();
    assert_eq!(ask(stream, Version::HTTP_11, "/ready").await.1, 200);
}

/// The server, as who comes to its compute gateway knows it.
fn compute_gateway(server: &Server) -> SocketAddr {
    let endpoint = server.banner.split("Compute gateway: https://").nth(1).unwrap();
    let port = endpoint.split('/').next().unwrap().rsplit(':').next().unwrap();
    ([127, 0, 0, 1], port.parse().unwrap()).into()
}

#[tokio::test]
async fn the_compute_gateway_is_the_same_server_at_another_address() {
    let server = Server::start(&["--compute-listen", "127.0.0.1:0"]);
    let compute = compute_gateway(&server);
    assert_ne!(compute, server.address());
    for (address, version) in [
        (compute, Version::HTTP_11),
        (compute, Version::HTTP_2),
        (server.address(), Version::HTTP_11),
    ] {
        let stream = TcpStream::connect(address).await.unwrap();
        assert_eq!(ask(stream, version, "/ready").await.1, 200);
    }
    let stream = secure_at(compute, &certificate(&server), "localhost", &[]).await.unwrap();
    assert_eq!(ask(stream, Version::HTTP_11, "/ready").await.1, 200);

    // What is written at one address is read at the other.
    assert_eq!(send(&server, "POST", "/dbs", r#"{"id":"d"}"#).status, 201);
    let mut client = Client::over(std::net::TcpStream::connect(compute).unwrap());
    client.send(request(&server, "GET", "/dbs/d", ""));
    assert_eq!(client.answer().status, 200);
    // The account names the address that its reader came by.
    let account = request(&server, "GET", "/", "");
    client.send(account.replace("host: localhost", &format!("host: localhost:{}", compute.port())));
    let account = client.answer().body;
    assert!(account.contains(&format!("http://127.0.0.1:{}/", compute.port())), "{account}");

    server.terminate();
    assert!(client.is_closed());
    assert_eq!(server.ended().code(), Some(0));
    assert!(std::net::TcpStream::connect(compute).is_err());
}

#[tokio::test]
async fn a_compute_gateway_on_a_network_puts_both_addresses_under_its_rules() {
    let server = Server::start(&["--compute-listen", "0.0.0.0:0", "--key", OWN_KEY]);
    for address in [server.address(), compute_gateway(&server)] {
        let stream = TcpStream::connect(address).await.unwrap();
        assert_eq!(ask(stream, Version::HTTP_11, "/ready").await.1, 400, "{address}");
    }
}

#[test]
fn a_connection_serves_request_after_request() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    for _ in 0..3 {
        client.get("/alive");
        assert_eq!(client.answer().status, 200);
    }
    client.send("GET /alive HTTP/1.1\r\nhost: localhost\r\n\r\nGET /alive HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    assert_eq!(client.answer().status, 200);
    assert_eq!(client.answer().header("connection"), Some("close"));
    assert!(client.is_closed());
}

#[test]
fn a_head_request_has_no_body() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    client.send("HEAD /dbs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    client.end();
    let mut head = String::new();
    client.rest(&mut head);
    assert!(head.starts_with("HTTP/1.1 4") && head.ends_with("\r\n\r\n"), "{head}");
}

#[tokio::test]
async fn a_head_request_has_no_body_in_http_2_either() {
    let server = Server::start(&[]);
    let stream = TokioIo::new(TcpStream::connect(server.address()).await.unwrap());
    let (mut client, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let request = Request::head("http://localhost/alive").body(Full::<Bytes>::default()).unwrap();
    let response = client.send_request(request).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-length"], "6");
    assert!(response.into_body().collect().await.unwrap().to_bytes().is_empty());
}

#[test]
fn nonsense_gets_an_error_of_ours() {
    let server = Server::start(&[]);
    for nonsense in [
        "nonsense\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: localhost\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: localhost\r\na\u{0}b: c\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: localhost\r\na: \u{0}\r\n\r\n",
        "G\u{e4}T / HTTP/1.1\r\n\r\n",
        "GET  HTTP/1.1\r\nhost: localhost\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: x\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: gzip\r\n\r\n",
        "POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nx\r\n",
    ] {
        let mut client = server.connect();
        client.send(nonsense);
        client.answer().is_error(400, "BadRequest");
        client.end();
        assert!(client.is_closed(), "{nonsense:?}");
    }
    assert_eq!(server.get("/ready").status, 200);
}

#[test]
fn a_request_has_one_host() {
    let server = Server::start(&[]);
    for (head, status) in [
        ("GET /alive HTTP/1.1\r\nhost: localhost\r\n\r\n", 200),
        ("GET /alive HTTP/1.1\r\nhost:\r\n\r\n", 200),
        ("GET /alive HTTP/1.1\r\nhost: localhost\r\nHost: localhost\r\n\r\n", 200),
        ("GET /alive HTTP/1.0\r\n\r\n", 200),
        ("GET /alive HTTP/1.1\r\na: b\r\n\r\n", 400),
        ("GET /alive HTTP/1.1\r\nhost: localhost\r\nHost: b\r\n\r\n", 400),
        ("GET /alive HTTP/1.0\r\nhost: localhost\r\nhost: b\r\n\r\n", 400),
    ] {
        let mut client = server.connect();
        client.send(head);
        let answer = client.answer();
        assert_eq!(answer.status, status, "{head}");
        if status == 400 {
            answer.is_error(400, "BadRequest");
            client.end();
            assert!(client.is_closed(), "{head}");
        }
    }
}

#[test]
fn a_body_is_chunked_or_not_coded_at_all() {
    let server = Server::start(&[]);
    let post = |codings: &str| {
        let mut client = server.connect();
        let head = format!("POST /alive HTTP/1.1\r\nhost: localhost\r\n{codings}\r\n");
        client.send(format!("{head}2\r\n{{}}\r\n0\r\n\r\n"));
        (client.answer(), client)
    };
    for codings in ["transfer-encoding: chunked\r\n", "Transfer-Encoding:  Chunked \r\n"] {
        post(codings).0.is_error(405, "MethodNotAllowed");
    }
    for codings in [
        "transfer-encoding: gzip, chunked\r\n",
        "transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked, chunked\r\n",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
    ] {
        let (refused, mut client) = post(codings);
        refused.is_error(501, "NotImplemented");
        assert_eq!(refused.header("connection"), Some("close"), "{codings}");
        client.end();
        assert!(client.is_closed(), "{codings}");
    }
}

/// Who waits to be told to go on is told so only with a good signature, and
/// what it would send is not waited for without one.
#[test]
fn nobody_is_told_to_go_on_before_the_signature_was_checked() {
    let server = Server::start(&[]);
    let body = r#"{"id":"d"}"#;
    let good = request(&server, "POST", "/dbs", body).replace(body, "");
    let good = good.replace("content-length", "expect: 100-continue\r\ncontent-length");
    let bad = good.replace("/dbs", "/dbs/d/colls");
    let unsigned = good.replace("authorization", "a");
    for head in [&bad, &unsigned] {
        let mut client = server.connect();
        client.send(head);
        client.answer().is_error(401, "Unauthorized");
        client.end();
        assert!(client.is_closed());
    }
    let mut client = server.connect();
    client.send(&good);
    assert_eq!(client.answer().status, 100);
    client.send(body);
    assert_eq!(client.answer().status, 201);
}

#[test]
fn nonsense_after_a_good_request_gets_an_error_of_ours() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    client.send("GET /alive HTTP/1.1\r\nhost: localhost\r\n\r\nnonsense\r\n\r\n");
    assert_eq!(client.answer().status, 200);
    client.answer().is_error(400, "BadRequest");

    // And when it does not come along with that.
    let mut client = server.connect();
    client.get("/alive");
    assert_eq!(client.answer().status, 200);
    client.send("nonsense\r\n\r\n");
    client.answer().is_error(400, "BadRequest");
}

#[test]
fn a_request_that_breaks_off_gets_an_error_of_ours() {
    let server = Server::start(&[]);
    for half in [
        "GET",
        "GET / HTTP/1.1\r\nhost: localhost\r\na",
        "POST /alive HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\n\r\n{}",
    ] {
        let mut client = server.connect();
        client.send(half);
        client.end();
        client.answer().is_error(400, "BadRequest");
        assert!(client.is_closed(), "{half:?}");
    }
}

/// Requests with bytes changed, lost, doubled and cut off: whatever it is, it
/// gets an answer, and that is never our failure.
#[test]
fn mutilated_requests_are_answered() {
    let server = Server::start(&[]);
    let good = "POST /dbs/a/colls/b/docs HTTP/1.1\r\nhost: localhost\r\n\
                x-ms-documentdb-partitionkey: [\"a\"]\r\ntransfer-encoding: chunked\r\n\
                authorization: type%3dmaster\r\n\r\nb\r\n{\"id\":\"a\"} \r\n0\r\n\r\n";
    let mut random = 1_u64;
    for round in 0..2000 {
        let mut request = good.as_bytes().to_vec();
        for _ in 0..=below(&mut random, 3) {
            mutilate(&mut request, &mut random);
        }
        // An empty line, and the first byte of TLS, are not a request.
        if request.trim_ascii().is_empty() || request.starts_with(&[0x16]) {
            continue;
        }
        let mut client = server.connect();
        let text = String::from_utf8_lossy(&request).into_owned();
        assert!(client.try_send(&request).is_ok(), "{round}: {text:?}");
        client.end();
        let answer = client.answer();
        assert!((200..500).contains(&answer.status), "{round}: {text:?} {answer:?}");
        if answer.status >= 400 {
            assert!(answer.body.starts_with("{\"code\":\""), "{round}: {text:?} {answer:?}");
            assert!(answer.header("x-ms-activity-id").is_some(), "{round}: {answer:?}");
        }
    }
}

fn mutilate(request: &mut Vec<u8>, random: &mut u64) {
    if request.is_empty() {
        return;
    }
    let at = below(random, request.len());
    let end = (at + below(random, 20)).min(request.len());
    match below(random, 4) {
        0 => request[at] = u8::try_from(below(random, 256)).unwrap(),
        1 => drop(request.drain(at..end)),
        2 => {
            let part = request[at..end].to_vec();
            request.splice(at..at, part);
        }
        _ => request.truncate(at.max(1)),
    }
}

/// A number below `limit`; the same each time the test runs.
fn below(random: &mut u64, limit: usize) -> usize {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    usize::try_from(*random >> 33).unwrap() % limit.max(1)
}
