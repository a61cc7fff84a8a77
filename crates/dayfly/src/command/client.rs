//! A client for the admin API and for queries: one request on one connection.
//!
//! To the admin API the key itself goes over the wire, so it goes in clear text
//! only to this machine; a query or a list is signed with it. For https the server's
//! certificate has to be given: a server makes its own, which no authority knows.

use std::fmt::Display;
use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use dayfly_api::UNKNOWN_PATH;
use dayfly_model::Timestamp;
use dayfly_storage::clock::{SystemWall, Wall as _};
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::Uri;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;
use sha2::Sha256;

use super::{encoded, not_json, plain};
use crate::keys::WELL_KNOWN_KEY;

/// How long a server may take to let us in.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long it may be silent. A purge of many items takes a while.
const SILENCE_TIMEOUT: Duration = Duration::from_mins(10);

/// How long a server that is well may be silent.
const READY_TIMEOUT: Duration = Duration::from_secs(10);

/// The environment variable with the key.
const KEY_VARIABLE: &str = "DAYFLY_KEY";

/// The longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What a server answers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    status: u16,
    pub(super) body: String,
    /// Where the next page of a query starts, if there is one.
    pub(super) continuation: Option<String>,
    /// What names the version of what is shown; of a feed, where it was read up to.
    pub(super) etag: Option<String>,
}

/// Which changes to ask for.
pub(super) struct Start<'a> {
    /// Behind which place; from the first one on without it.
    pub(super) place: Option<&'a str>,
    /// No change from before this moment.
    pub(super) since: Option<Timestamp>,
    /// Every version, instead of the newest of what is there.
    pub(super) all_versions: bool,
}

/// Why there is no answer, or none that was wanted.
#[derive(Debug)]
pub(super) struct Failure {
    /// What the server answered, if it did.
    pub(super) status: Option<u16>,
    pub(super) sentence: String,
}

impl From<String> for Failure {
    fn from(sentence: String) -> Failure {
        Failure { status: None, sentence }
    }
}

impl From<Failure> for String {
    fn from(failure: Failure) -> String {
        failure.sentence
    }
}

/// How many databases or containers are listed at most: as many containers as a
/// database can have.
const LISTED_MAX: usize = 100_000;

/// Where to ask, and with which key.
pub(super) struct Client {
    endpoint: String,
    /// A host, or an IP address without brackets.
    host: String,
    authority: String,
    port: u16,
    key: String,
    /// Where the key was given, if it was.
    key_from: Option<&'static str>,
    /// How long the server may be silent.
    patience: Duration,
    /// For https.
    tls: Option<Arc<ClientConfig>>,
}

impl Client {
    pub(super) fn new(
        endpoint: &str,
        key: Option<String>,
        ca: Option<&Path>,
    ) -> Result<Client, String> {
        let refused = || {
            format!("The endpoint '{endpoint}' is not like http://host:port or https://host:port.")
        };
        let uri: Uri = endpoint.parse().map_err(|_| refused())?;
        let authority = uri.authority().ok_or_else(refused)?;
        let is_bare = uri.path() == "/" && uri.query().is_none();
        if !is_bare || authority.as_str().contains('@') {
            return Err(refused());
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let address: Option<IpAddr> = host.parse().ok();
        let is_here = host == "localhost" || address.is_some_and(|ip| ip.is_loopback());
        let secure = match uri.scheme_str() {
            Some("http") if is_here => false,
            Some("http") => {
                return Err(format!(
                    "The key must not cross a network in clear text: use https://{authority} with \
                     --ca."
                ));
            }
            Some("https") => true,
            _ => return Err(refused()),
        };
        let tls = if secure { Some(trust(endpoint, ca)?) } else { None };
        Ok(Client {
            endpoint: endpoint.to_owned(),
            port: authority.port_u16().unwrap_or(if secure { 443 } else { 80 }),
            authority: authority.to_string(),
            host,
            key_from: key.as_deref().map(key_from),
            patience: SILENCE_TIMEOUT,
            key: key_of(key, is_here)?,
            tls,
        })
    }

    /// Asks the admin API, with a POST if there is a `body`, and returns the body
    /// of its answer. An answer that is an error is one here too.
    pub(super) fn ask(&self, path: &str, body: Option<&Value>) -> Result<String, Failure> {
        let method = if body.is_some() { "POST" } else { "GET" };
        let body = body.map(Value::to_string).unwrap_or_default();
        let headers = format!("authorization: Bearer {}\r\n", self.key);
        match self.send(method, path, &headers, &body) {
            Err(failure) if failure.sentence == UNKNOWN_PATH => {
                let sentence = format!(
                    "The server at {} hides its admin API from other machines: ask on its own \
                     machine, or start it with --admin-public.",
                    self.endpoint
                );
                Err(Failure { sentence, ..failure })
            }
            answer => answer.map(|answer| answer.body),
        }
    }

    /// Whether the server is there and takes writes. No key is sent.
    pub(super) fn ready(self) -> Result<(), Failure> {
        Client { patience: READY_TIMEOUT, ..self }.send("GET", "/ready", "", "").map(drop)
    }

    /// Asks for a page of a query of a container: the first, or the one behind a
    /// continuation.
    pub(super) fn query(
        &self,
        (database, container): (&str, &str),
        query: &str,
        continuation: Option<&str>,
    ) -> Result<Answer, Failure> {
        let path = format!("/dbs/{}/colls/{}/docs", encoded(database), encoded(container));
        let signed = format!("post\ndocs\ndbs/{database}/colls/{container}");
        let headers = self.page(&signed, continuation)?
            + "content-type: application/query+json\r\n\
               x-ms-documentdb-query-enablecrosspartition: true\r\n\
               x-ms-documentdb-query-enable-scan: true\r\n";
        self.send("POST", &path, &headers, query)
    }

    /// Asks for a page of the changes of a container. When nothing is new, the answer is
    /// empty.
    pub(super) fn changes(
        &self,
        (database, container): (&str, &str),
        start: &Start<'_>,
    ) -> Result<Answer, Failure> {
        let path = format!("/dbs/{}/colls/{}/docs", encoded(database), encoded(container));
        let signed = format!("get\ndocs\ndbs/{database}/colls/{container}");
        let mode = if start.all_versions { "Full-Fidelity Feed" } else { "Incremental Feed" };
        let mut headers = self.page(&signed, None)? + &format!("a-im: {mode}\r\n");
        if let Some(place) = start.place {
            headers.push_str(&format!("if-none-match: {place}\r\n"));
        }
        if let Some(since) = start.since {
            headers.push_str(&format!("if-modified-since: {}\r\n", since.to_http_date()));
        }
        self.send("GET", &path, &headers, "")
    }

    /// The databases, as the server shows them.
    pub(super) fn databases(&self) -> Result<Vec<Value>, Failure> {
        self.list("/dbs", "get\ndbs\n", "Databases")
    }

    /// The containers of a database.
    pub(super) fn containers(&self, database: &str) -> Result<Vec<Value>, Failure> {
        let path = format!("/dbs/{}/colls", encoded(database));
        self.list(&path, &format!("get\ncolls\ndbs/{database}"), "DocumentCollections")
    }

    /// All pages of a list, together.
    fn list(&self, path: &str, signed: &str, member: &str) -> Result<Vec<Value>, Failure> {
        let (mut listed, mut continuation) = (Vec::new(), None::<String>);
        loop {
            let headers = self.page(signed, continuation.as_deref())?;
            let answer = self.send("GET", path, &headers, "")?;
            let mut page: Value = serde_json::from_str(&answer.body).map_err(|_| not_json())?;
            if let Some(Value::Array(more)) = page.get_mut(member).map(Value::take) {
                listed.extend(more);
            }
            continuation = answer.continuation;
            if continuation.is_none() || listed.len() >= LISTED_MAX {
                return Ok(listed);
            }
        }
    }

    /// The headers of a request for a page: the first, or the one behind a
    /// continuation. It is signed for its method, kind and link.
    fn page(&self, signed: &str, continuation: Option<&str>) -> Result<String, String> {
        let date = Timestamp(SystemWall.seconds()).to_http_date();
        let token = self.sign(&format!("{signed}\n{}\n\n", date.to_lowercase()))?;
        let mut headers =
            format!("authorization: {token}\r\nx-ms-date: {date}\r\nx-ms-max-item-count: -1\r\n");
        if let Some(continuation) = continuation {
            headers.push_str(&format!("x-ms-continuation: {continuation}\r\n"));
        }
        Ok(headers)
    }

    /// What stands in `authorization` for a request with this text to sign.
    fn sign(&self, payload: &str) -> Result<String, String> {
        let no_key = |_| "The key of --key is not base64.".to_owned();
        let key = BASE64.decode(&self.key).map_err(no_key)?;
        let mut signer = Hmac::<Sha256>::new_from_slice(&key)
            .map_err(|_| "The key of --key has no bytes.".to_owned())?;
        signer.update(payload.as_bytes());
        let signature = BASE64.encode(signer.finalize().into_bytes());
        Ok(encoded(&format!("type=master&ver=1.0&sig={signature}")))
    }

    /// Sends a request. An answer that is an error is one here too.
    fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Result<Answer, Failure> {
        let stream = self.connect()?;
        let (authority, length) = (&self.authority, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {authority}\r\n{headers}\
             content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        let answer = match &self.tls {
            None => exchange(stream, request.as_bytes()),
            Some(config) => {
                let name = ServerName::try_from(self.host.clone())
                    .map_err(|_| self.failed("the host's name cannot stand in a certificate"))?;
                let session = ClientConnection::new(Arc::clone(config), name)
                    .map_err(|error| self.failed(error))?;
                exchange(StreamOwned::new(session, stream), request.as_bytes())
            }
        };
        let answer = answer.map_err(|error| self.failed(silence(error, self.patience)))?;
        let answer = parse(&answer).ok_or_else(|| self.failed("the answer is cut off"))?;
        match answer.status {
            200 | 304 => Ok(answer),
            401 => Err(Failure { status: Some(401), sentence: self.wrong_key() }),
            status => Err(Failure { status: Some(status), sentence: told(status, &answer.body) }),
        }
    }

    fn connect(&self) -> Result<TcpStream, String> {
        let addresses = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|error| self.failed(error))?;
        let mut failure = self.failed("its name has no address");
        for address in addresses {
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(stream) => {
                    let timeout = Some(self.patience);
                    let set = stream.set_read_timeout(timeout);
                    set.and(stream.set_write_timeout(timeout))
                        .map_err(|error| self.failed(error))?;
                    return Ok(stream);
                }
                Err(error) => failure = self.failed(error),
            }
        }
        Err(failure)
    }

    fn wrong_key(&self) -> String {
        let endpoint = &self.endpoint;
        match self.key_from {
            Some(place) => format!(
                "The key is wrong: the server at {endpoint} does not know the one of {place}."
            ),
            None => format!(
                "The key is wrong: the server at {endpoint} has a key of its own, and none was \
                 given. Give it with --key or {KEY_VARIABLE}."
            ),
        }
    }

    fn failed(&self, why: impl Display) -> String {
        format!("The server at {} cannot be asked: {why}.", self.endpoint)
    }
}

/// Where a key was given: what the environment says is not said again.
fn key_from(key: &str) -> &'static str {
    if std::env::var(KEY_VARIABLE).is_ok_and(|value| value == key) { KEY_VARIABLE } else { "--key" }
}

/// The key to send. It stands in a header, so it must be able to.
fn key_of(key: Option<String>, is_here: bool) -> Result<String, String> {
    match key {
        Some(key) if key.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(key),
        Some(_) => Err("The key of --key is not base64.".to_owned()),
        None if is_here => Ok(WELL_KNOWN_KEY.to_owned()),
        None => Err("A server on another machine has a key of its own: give it with --key or \
                     DAYFLY_KEY."
            .to_owned()),
    }
}

/// Trusts the certificates in a file, and no others.
fn trust(endpoint: &str, ca: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let Some(file) = ca else {
        let endpoint = endpoint.trim_end_matches('/');
        return Err(format!(
            "For https give the certificate to trust with --ca: the server has its own at \
             {endpoint}/_explorer/emulator.pem."
        ));
    };
    let unreadable =
        |why: &dyn Display| format!("The file {} of --ca cannot be used: {why}.", file.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| unreadable(&error))? {
        let certificate = certificate.map_err(|error| unreadable(&error))?;
        roots.add(certificate).map_err(|error| unreadable(&error))?;
    }
    if roots.is_empty() {
        return Err(unreadable(&"it has no certificate"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unreadable(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Sends a request and reads all that comes back.
fn exchange(mut stream: impl Read + Write, request: &[u8]) -> io::Result<Vec<u8>> {
    stream.write_all(request)?;
    stream.flush()?;
    let mut answer = Vec::new();
    match stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer) {
        // Some ends of TLS come without a goodbye; the length says whether all
        // is there.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(answer),
        outcome => outcome.map(|_| answer),
    }
}

/// A server that is silent for too long shows as one that would block.
fn silence(error: io::Error, patience: Duration) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => io::Error::new(
            io::ErrorKind::TimedOut,
            match patience.as_secs() {
                seconds @ 0..60 => format!("it has not answered for {seconds} seconds"),
                seconds => format!(
                    "it has not answered for {} minutes, but goes on with what it was asked",
                    seconds / 60
                ),
            },
        ),
        _ => error,
    }
}

/// An answer, if it is whole.
fn parse(answer: &[u8]) -> Option<Answer> {
    let answer = std::str::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let header = |wanted: &str| {
        let mut headers = head.lines().filter_map(|line| line.split_once(':'));
        let found = headers.find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| value.trim().to_owned())
    };
    let length: usize = if status == 304 { 0 } else { header("content-length")?.parse().ok()? };
    let (continuation, etag) = (header("x-ms-continuation"), header("etag"));
    Some(Answer { status, body: body.get(..length)?.to_owned(), continuation, etag })
}

/// What the server says in an answer that is an error.
fn told(status: u16, body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    match body.get("message").and_then(Value::as_str) {
        Some(message) => {
            // The server's log knows the activity; a person need not.
            let message = message.split("\r\nActivityId").next().unwrap_or_default();
            plain(message)
        }
        None => format!("The server answered {status} without saying why: is it a dayfly?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(endpoint: &str, key: Option<&str>) -> String {
        let client = Client::new(endpoint, key.map(ToOwned::to_owned), None);
        client.err().unwrap_or_else(|| "taken".to_owned())
    }

    #[test]
    fn where_a_key_may_go() {
        let own = Some("MDEyMzQ1Njc4OWFiY2RlZg==");
        for (endpoint, key, expected) in [
            ("http://localhost:8081", None, "taken"),
            ("http://localhost:8081/", own, "taken"),
            ("http://[::1]:1", None, "taken"),
            ("http://127.0.0.1", None, "taken"),
            ("http://10.0.0.5:8081", own, "The key must not cross a network in clear text"),
            ("http://localhost.example", own, "The key must not cross a network"),
            (
                "https://localhost:8081/",
                own,
                "For https give the certificate to trust with --ca: \
              the server has its own at https://localhost:8081/_explorer/emulator.pem.",
            ),
            ("localhost:8081", own, "The endpoint 'localhost:8081' is not like"),
            ("http://localhost/dbs", own, "The endpoint 'http://localhost/dbs' is not like"),
            ("http://me@localhost", own, "The endpoint 'http://me@localhost' is not like"),
            ("ftp://localhost", own, "The endpoint 'ftp://localhost' is not like"),
            ("", own, "The endpoint '' is not like"),
            ("http://localhost", Some("a\r\nb: c"), "The key of --key is not base64."),
        ] {
            let outcome = refusal(endpoint, key);
            assert!(outcome.starts_with(expected), "{endpoint}: {outcome}");
        }
        assert!(key_of(None, false).unwrap_err().contains("give it with --key or DAYFLY_KEY"));
    }

    #[test]
    fn a_silent_server_is_told_as_one() {
        // The sockets that wait for a server are like these, with less patience.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let error = silence(exchange(stream, b"GET / HTTP/1.1").unwrap_err(), SILENCE_TIMEOUT);
        assert!(error.to_string().starts_with("it has not answered for 10 minutes"), "{error}");
        let error = silence(error, READY_TIMEOUT);
        assert_eq!(error.to_string(), "it has not answered for 10 seconds");
        let other = io::Error::from(io::ErrorKind::ConnectionReset);
        assert_eq!(silence(other, READY_TIMEOUT).kind(), io::ErrorKind::ConnectionReset);
    }

    #[test]
    fn an_answer_is_taken_whole_or_not_at_all() {
        let head = "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\n";
        let body = "body".to_owned();
        let whole = Answer { status: 404, body, continuation: None, etag: None };
        assert_eq!(parse(format!("{head}body").as_bytes()), Some(whole));
        let page = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nX-MS-Continuation: a:b\r\n\r\n";
        assert_eq!(parse(page.as_bytes()).unwrap().continuation.as_deref(), Some("a:b"));
        let nothing_new = parse(b"HTTP/1.1 304 Not Modified\r\netag: \"5\"\r\n\r\n").unwrap();
        assert_eq!((&*nothing_new.body, nothing_new.etag.as_deref()), ("", Some("\"5\"")));
        assert_eq!(parse(format!("{head}bod").as_bytes()), None);
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\n\r\n"), None);
        assert_eq!(parse(b"SSH-2.0-OpenSSH\r\n"), None);
        assert_eq!(told(404, r#"{"message":"Gone.\r\nActivityId: 1"}"#), "Gone.");
        assert!(told(502, "<html>").starts_with("The server answered 502"));
    }
}
