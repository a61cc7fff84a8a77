//! Requests as bytes, signed as an SDK would, and a plain client for them.
//!
//! A signature covers the verb, the resource and the date, and the date is
//! good for 15 minutes. So a request can be made once and sent many times.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dayfly_model::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use sha2::Sha256;

use crate::{Result, failed};

/// The key that every emulator of the service uses; works on loopback only.
const WELL_KNOWN_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// Longer than any answer takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Signs requests with one date.
#[derive(Clone)]
pub(crate) struct Signer {
    key: Hmac<Sha256>,
    date: String,
}

impl Signer {
    /// With the date of now.
    pub(crate) fn new() -> Result<Signer> {
        let key = STANDARD.decode(WELL_KNOWN_KEY).map_err(failed("the key"))?;
        let key = Hmac::new_from_slice(&key).map_err(failed("the key"))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(failed("the clock"))?;
        Ok(Signer { key, date: Timestamp(now.as_secs()).to_http_date() })
    }

    /// The head of a request without its end, so that more headers can follow.
    pub(crate) fn head(&self, method: &str, path: &str) -> String {
        format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nx-ms-date: {}\r\nauthorization: {}\r\n",
            self.date,
            self.token(method, path)
        )
    }

    /// The date that everything is signed with.
    pub(crate) fn date(&self) -> &str {
        &self.date
    }

    /// What says who signed a request, percent-encoded.
    pub(crate) fn token(&self, method: &str, path: &str) -> String {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (kind, link) = match parts.as_slice() {
            // What is done to a resource is signed as the resource.
            ["dbs", _, kind, _, "operations", _] => (*kind, parts.get(..4).unwrap_or_default()),
            // A feed: the type is the last part, the link is what is above.
            [above @ .., kind] if above.len() % 2 == 0 => (*kind, above),
            [.., kind, _] => (*kind, parts.as_slice()),
            _ => ("", parts.as_slice()),
        };
        let (verb, date) = (method.to_ascii_lowercase(), self.date.to_ascii_lowercase());
        let mut signer = self.key.clone();
        signer.update(format!("{verb}\n{kind}\n{}\n{date}\n\n", link.join("/")).as_bytes());
        let signature = STANDARD.encode(signer.finalize().into_bytes());
        let token = format!("type=master&ver=1.0&sig={signature}");
        utf8_percent_encode(&token, NON_ALPHANUMERIC).to_string()
    }
}

/// A whole request to the admin API.
pub(crate) fn admin_request(method: &str, call: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} /_admin/v1/{call} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer \
         {WELL_KNOWN_KEY}\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// The header that says which partition an item is in.
pub(crate) fn partition(key: &str) -> (&'static str, String) {
    ("x-ms-documentdb-partitionkey", format!("[\"{key}\"]"))
}

/// A connection that asks and waits for the answer.
pub(crate) struct Client {
    signer: Signer,
    stream: BufReader<TcpStream>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The header lines, as they came.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// Whether it came as a frame, which tells no time.
    pub(crate) framed: bool,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Result<Client> {
        let stream = TcpStream::connect(address).map_err(failed("connecting"))?;
        let waits = stream.set_nodelay(true).and(stream.set_read_timeout(Some(PATIENCE)));
        waits.map_err(failed("setting up a connection"))?;
        Ok(Client { signer: Signer::new()?, stream: BufReader::new(stream) })
    }

    /// Calls the admin API, which has to work.
    pub(crate) fn admin(&mut self, method: &str, call: &str, body: &str) -> Result<Value> {
        let request = admin_request(method, call, body);
        let sent = self.stream.get_mut().write_all(request.as_bytes());
        let answer = sent.and_then(|()| self.answer()).map_err(failed("asking the server"))?;
        match answer.status {
            200 => Ok(answer.json()),
            _ => Err(format!("{method} {call} answered {}", answer.told())),
        }
    }

    /// The same for a call that may take minutes.
    pub(crate) fn admin_patiently(
        &mut self,
        method: &str,
        call: &str,
        body: &str,
    ) -> Result<Value> {
        let waits = self.stream.get_ref().set_read_timeout(None);
        waits.map_err(failed("setting up a connection"))?;
        self.admin(method, call, body)
    }

    /// Asks and waits. An error means that nobody knows what became of it.
    pub(crate) fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: &str,
    ) -> std::io::Result<Answer> {
        let mut request = self.signer.head(method, path);
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        self.stream.get_mut().write_all(request.as_bytes())?;
        self.answer()
    }

    fn answer(&mut self) -> std::io::Result<Answer> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut head)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let mut answer = Answer { status, head, body: Vec::new(), framed: false };
        let length = answer.header("content-length").and_then(|length| length.parse().ok());
        answer.body.resize(length.unwrap_or(0), 0);
        self.stream.read_exact(&mut answer.body)?;
        Ok(answer)
    }

    /// Asks for something that has to work.
    pub(crate) fn must(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: &str,
    ) -> Result<Answer> {
        let answer = self.ask(method, path, headers, body).map_err(failed("asking the server"))?;
        match answer.status {
            200..300 => Ok(answer),
            _ => Err(format!("{method} {path} answered {}", answer.told())),
        }
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The time of the request, as the server says it.
    pub(crate) fn now(&self) -> Option<u64> {
        Timestamp::parse_http_date(self.header("date")?).map(|now| now.0)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// Status and body, for a message.
    pub(crate) fn told(&self) -> String {
        let body: String = String::from_utf8_lossy(&self.body).chars().take(300).collect();
        format!("{} at {}: {body}", self.status, self.header("date").unwrap_or("no date"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_signs_itself_and_a_feed_what_is_above_it() {
        let mut signer = Signer::new().unwrap();
        signer.date = "Thu, 27 Apr 2017 00:51:12 GMT".to_owned();
        // The example of the service's documentation, with its key.
        let key = "dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/\
                   t4bQtVNw==";
        signer.key = Hmac::new_from_slice(&STANDARD.decode(key).unwrap()).unwrap();
        let signature = "c09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu%2Bc%2Bc%3D";
        assert!(signer.token("GET", "/dbs/ToDoList").ends_with(signature));
        assert_eq!(signer.token("GET", "/dbs/a/colls"), signer.token("GET", "dbs/a/colls/"));
        let delete = signer.token("POST", "/dbs/a/colls/b/operations/partitionkeydelete");
        assert_eq!(delete, signer.token("POST", "/dbs/a/colls/b"));
    }
}
