//! A client for the admin API: one request on one connection.
//!
//! The key itself goes over the wire, so it goes in clear text only to this
//! machine. For https the server's certificate has to be given: a server makes
//! its own, which no authority knows.

use std::fmt::Display;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

use crate::config::WELL_KNOWN_KEY;

/// How long a server may take to let us in.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long it may be silent. A purge of many items takes a while.
const SILENCE_TIMEOUT: Duration = Duration::from_mins(10);

/// The longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Where to ask, and with which key.
pub(super) struct Client {
    endpoint: String,
    /// A host, or an IP address without brackets.
    host: String,
    authority: String,
    port: u16,
    key: String,
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
            key: key_of(key, is_here)?,
            tls,
        })
    }

    /// Sends a request, with a POST if there is a `body`, and returns the body
    /// of its answer. An answer that is an error is one here too.
    pub(super) fn ask(&self, path: &str, body: Option<&Value>) -> Result<String, String> {
        let stream = self.connect()?;
        let request = self.request(path, body);
        let answer = match &self.tls {
            None => exchange(stream, &request),
            Some(config) => {
                let name = ServerName::try_from(self.host.clone())
                    .map_err(|_| self.failed("the host's name cannot stand in a certificate"))?;
                let session = ClientConnection::new(Arc::clone(config), name)
                    .map_err(|error| self.failed(error))?;
                exchange(StreamOwned::new(session, stream), &request)
            }
        };
        let answer = answer.map_err(|error| self.failed(error))?;
        let (status, body) = parse(&answer).ok_or_else(|| self.failed("the answer is cut off"))?;
        if status == 200 { Ok(body) } else { Err(told(status, &body)) }
    }

    fn connect(&self) -> Result<TcpStream, String> {
        let addresses = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|error| self.failed(error))?;
        let mut failure = self.failed("its name has no address");
        for address in addresses {
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(stream) => {
                    let timeout = Some(SILENCE_TIMEOUT);
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

    fn request(&self, path: &str, body: Option<&Value>) -> Vec<u8> {
        let method = if body.is_some() { "POST" } else { "GET" };
        let body = body.map(Value::to_string).unwrap_or_default();
        let (authority, key, length) = (&self.authority, &self.key, body.len());
        format!(
            "{method} {path} HTTP/1.1\r\nhost: {authority}\r\nauthorization: Bearer {key}\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )
        .into_bytes()
    }

    fn failed(&self, why: impl Display) -> String {
        format!("The server at {} cannot be asked: {why}.", self.endpoint)
    }
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
fn exchange(mut stream: impl Read + Write, request: &[u8]) -> std::io::Result<Vec<u8>> {
    stream.write_all(request)?;
    stream.flush()?;
    let mut answer = Vec::new();
    match stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer) {
        // Some ends of TLS come without a goodbye; the length says whether all
        // is there.
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(answer),
        outcome => outcome.map(|_| answer),
    }
}

/// The status and the body of an answer, if it is whole.
fn parse(answer: &[u8]) -> Option<(u16, String)> {
    let answer = std::str::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let mut headers = head.lines().filter_map(|line| line.split_once(':'));
    let (_, length) = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    let length: usize = length.trim().parse().ok()?;
    Some((status, body.get(..length)?.to_owned()))
}

/// What the server says in an answer that is an error.
fn told(status: u16, body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    match body.get("message").and_then(Value::as_str) {
        Some(message) => {
            // The server's log knows the activity; a person need not.
            let message = message.split("\r\nActivityId").next().unwrap_or_default();
            message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
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
    fn an_answer_is_taken_whole_or_not_at_all() {
        let head = "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\n";
        assert_eq!(parse(format!("{head}body").as_bytes()), Some((404, "body".to_owned())));
        assert_eq!(parse(format!("{head}bod").as_bytes()), None);
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\n\r\n"), None);
        assert_eq!(parse(b"SSH-2.0-OpenSSH\r\n"), None);
        assert_eq!(told(404, r#"{"message":"Gone.\r\nActivityId: 1"}"#), "Gone.");
        assert!(told(502, "<html>").starts_with("The server answered 502"));
    }
}
