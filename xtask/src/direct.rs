//! Frames of direct mode as bytes, and a plain client that asks in them and waits.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::server::Server;
use crate::wire::{Answer, PATIENCE, Signer};
use crate::{Result, failed};

/// What stands in front of the tokens of every frame.
pub(crate) const START_BYTES: usize = 24;

/// The kind of an item.
pub(crate) const ITEM: u16 = 3;

pub(crate) const CREATE: u16 = 0x01;
pub(crate) const READ: u16 = 0x03;
const DELETE: u16 = 0x05;
const REPLACE: u16 = 0x06;
const UPSERT: u16 = 0x13;
const BATCH: u16 = 0x25;

/// The number by which an answer is known, in the request and in the answer.
const ASKED_AS: u16 = 0x4D;
const ANSWERED_AS: u16 = 0x35;

/// A token of each kind that is needed.
pub(crate) enum Value<'v> {
    Byte(u8),
    Number(u32),
    Small(&'v str),
    Text(&'v str),
    Bytes(&'v [u8]),
}

/// Puts a token behind the others.
pub(crate) fn put(tokens: &mut Vec<u8>, id: u16, value: Value<'_>) {
    tokens.extend_from_slice(&id.to_le_bytes());
    match value {
        Value::Byte(value) => tokens.extend_from_slice(&[0x00, value]),
        Value::Number(value) => {
            tokens.push(0x02);
            tokens.extend_from_slice(&value.to_le_bytes());
        }
        Value::Small(text) => {
            tokens.extend_from_slice(&[0x07, u8::try_from(text.len()).unwrap_or(u8::MAX)]);
            tokens.extend_from_slice(text.as_bytes());
        }
        Value::Text(text) => put_long(tokens, 0x08, text.as_bytes()),
        Value::Bytes(bytes) => put_long(tokens, 0x0B, bytes),
    }
}

fn put_long(tokens: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    tokens.push(kind);
    tokens.extend_from_slice(&u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_le_bytes());
    tokens.extend_from_slice(bytes);
}

/// The first frame of a connection.
pub(crate) fn context() -> Vec<u8> {
    let mut tokens = Vec::new();
    put(&mut tokens, 0x0000, Value::Number(1));
    put(&mut tokens, 0x0001, Value::Small("2020-07-15"));
    put(&mut tokens, 0x0002, Value::Small("dayfly-xtask"));
    let mut frame = Vec::new();
    put_frame(&mut frame, [0, 0], &[&tokens]);
    frame
}

/// A head of these tokens.
pub(crate) fn put_frame(frame: &mut Vec<u8>, [kind, operation]: [u16; 2], tokens: &[&[u8]]) {
    let length = START_BYTES + tokens.iter().map(|part| part.len()).sum::<usize>();
    frame.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    frame.extend_from_slice(&kind.to_le_bytes());
    frame.extend_from_slice(&operation.to_le_bytes());
    frame.extend_from_slice(b"activity of load");
    for part in tokens {
        frame.extend_from_slice(part);
    }
}

/// Four bytes, as a length.
pub(crate) fn read_number(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(bytes)).ok()
}

/// The value of a token among these; nothing if they cannot be read so far.
pub(crate) fn token(mut tokens: &[u8], wanted: u16) -> Option<&[u8]> {
    while let [id_low, id_high, kind, rest @ ..] = tokens {
        let bytes = value_bytes(*kind, rest)?;
        let value = rest.get(..bytes)?;
        if u16::from_le_bytes([*id_low, *id_high]) == wanted {
            return Some(value);
        }
        tokens = rest.get(bytes..)?;
    }
    None
}

/// Whether a body follows these tokens; nearly always the first of them says so.
pub(crate) fn has_body(tokens: &[u8]) -> bool {
    token(tokens, 0x0000) == Some(&[1])
}

/// How long a value of this type is.
fn value_bytes(kind: u8, rest: &[u8]) -> Option<usize> {
    Some(match (kind, rest) {
        (0x00, _) => 1,
        (0x01, _) => 2,
        (0x02 | 0x03 | 0x0D, _) => 4,
        (0x04 | 0x05 | 0x0E, _) => 8,
        (0x06, _) => 16,
        (0x07 | 0x0A, [length, ..]) => 1 + usize::from(*length),
        (0x08 | 0x0B, [low, high, ..]) => 2 + usize::from(u16::from_le_bytes([*low, *high])),
        (0x09 | 0x0C, _) => 4 + read_number(rest, 0)?,
        _ => return None,
    })
}

/// Trusts the server's own certificate.
pub(crate) fn trust(server: &Server) -> Result<Arc<ClientConfig>> {
    let pem = server.connect()?.must("GET", "/_explorer/emulator.pem", &[], "")?.body;
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(&pem).map_err(failed("the certificate"))?;
    roots.add(certificate).map_err(failed("the certificate"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed("TLS"))?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

/// The server as it is called in its certificate.
pub(crate) fn secured(config: &Arc<ClientConfig>) -> Result<ClientConnection> {
    let name = ServerName::try_from("localhost").map_err(failed("a name"))?;
    ClientConnection::new(Arc::clone(config), name).map_err(failed("a TLS connection"))
}

/// A direct connection that asks for one thing after another.
pub(crate) struct Direct {
    signer: Signer,
    stream: StreamOwned<ClientConnection, TcpStream>,
    number: u32,
}

impl Direct {
    /// One that has greeted.
    pub(crate) fn open(address: SocketAddr, config: &Arc<ClientConfig>) -> Result<Direct> {
        let stream = TcpStream::connect(address).map_err(failed("connecting"))?;
        let waits = stream.set_nodelay(true).and(stream.set_read_timeout(Some(PATIENCE)));
        waits.map_err(failed("setting up a connection"))?;
        let stream = StreamOwned::new(secured(config)?, stream);
        let mut direct = Direct { signer: Signer::new()?, stream, number: 0 };
        let greeted = direct.write(&context()).and_then(|()| direct.frame(|_| false));
        greeted.map_err(failed("greeting"))?;
        Ok(direct)
    }

    /// Asks for something about items, with the headers that HTTP has for it. What is no
    /// answer to this has the status 0. An error means that nobody knows what became of it.
    pub(crate) fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: &str,
    ) -> io::Result<Answer> {
        self.number += 1;
        let mut tokens = Vec::new();
        put(&mut tokens, 0x0001, Value::Text(&self.signer.token(method, path)));
        put(&mut tokens, 0x0002, Value::Byte(u8::from(!body.is_empty())));
        put(&mut tokens, 0x0003, Value::Small(self.signer.date()));
        put(&mut tokens, ASKED_AS, Value::Number(self.number));
        for (id, name) in [0x0015, 0x0016, 0x0017].into_iter().zip(names(path)) {
            put(&mut tokens, id, Value::Text(&name));
        }
        for (name, value) in headers {
            match *name {
                "x-ms-documentdb-partitionkey" => put(&mut tokens, 0x002B, Value::Text(value)),
                "if-match" => put(&mut tokens, 0x0008, Value::Text(value)),
                "x-ms-cosmos-batch-atomic" => put(&mut tokens, 0x0073, Value::Byte(1)),
                // These are operations of their own.
                "x-ms-cosmos-is-batch-request" | "x-ms-documentdb-is-upsert" => {}
                _ => return Err(io::Error::new(ErrorKind::Unsupported, (*name).to_owned())),
            }
        }
        let mut frame = Vec::new();
        put_frame(&mut frame, [ITEM, operation(method, headers)], &[&tokens]);
        if !body.is_empty() {
            frame.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
            frame.extend_from_slice(body.as_bytes());
        }
        self.write(&frame)?;
        let (head, body) = self.frame(has_body)?;
        let tokens = head.get(START_BYTES..).unwrap_or_default();
        let is_ours = token(tokens, ANSWERED_AS) == Some(&self.number.to_le_bytes());
        let status = read_number(&head, 4).and_then(|status| u16::try_from(status).ok());
        let status = status.filter(|_| is_ours).unwrap_or(0);
        Ok(Answer { status, head: String::new(), body, framed: true })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// A head, and the body behind it if there is one.
    fn frame(&mut self, has_body: impl Fn(&[u8]) -> bool) -> io::Result<(Vec<u8>, Vec<u8>)> {
        let mut head = vec![0; START_BYTES];
        self.stream.read_exact(&mut head)?;
        head.resize(read_number(&head, 0).unwrap_or(0).max(START_BYTES), 0);
        self.stream.read_exact(head.get_mut(START_BYTES..).unwrap_or_default())?;
        let mut body = Vec::new();
        if has_body(head.get(START_BYTES..).unwrap_or_default()) {
            let mut length = [0; 4];
            self.stream.read_exact(&mut length)?;
            body.resize(read_number(&length, 0).unwrap_or(0), 0);
            self.stream.read_exact(&mut body)?;
        }
        Ok((head, body))
    }
}

/// The names in the path to items or to one of them, as they are.
fn names(path: &str) -> impl Iterator<Item = String> {
    let names = path.split('/').filter(|part| !part.is_empty()).skip(1).step_by(2);
    names.map(|name| percent_decode_str(name).decode_utf8_lossy().into_owned())
}

/// The number of what is asked for.
fn operation(method: &str, headers: &[(&str, String)]) -> u16 {
    let has = |wanted: &str| headers.iter().any(|(name, _)| *name == wanted);
    match method {
        "GET" => READ,
        "PUT" => REPLACE,
        "DELETE" => DELETE,
        _ if has("x-ms-cosmos-is-batch-request") => BATCH,
        _ if has("x-ms-documentdb-is-upsert") => UPSERT,
        _ => CREATE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_behind_those_of_any_form() {
        let mut tokens = Vec::new();
        put(&mut tokens, 0x0002, Value::Byte(1));
        put(&mut tokens, 0x0003, Value::Small("short"));
        put(&mut tokens, 0x0015, Value::Text("text"));
        put(&mut tokens, 0x0000, Value::Bytes(&[1, 2, 3]));
        tokens.extend_from_slice(&[0x15, 0x00, 0x0E, 0, 0, 0, 0, 0, 0, 0, 0]);
        put(&mut tokens, ANSWERED_AS, Value::Number(7));
        assert_eq!(token(&tokens, ANSWERED_AS), Some(&[7, 0, 0, 0][..]));
        assert_eq!(token(&tokens, 0x0004), None);
        assert_eq!(token(&tokens[..tokens.len() - 1], ANSWERED_AS), None);
    }

    #[test]
    fn a_path_has_its_names() {
        let all: Vec<String> = names("/dbs/a%20b/colls/c/docs/d").collect();
        assert_eq!(all, ["a b", "c", "d"]);
        assert_eq!(names("/dbs/a/colls/c/docs").count(), 2);
    }

    #[test]
    fn headers_say_which_operation_it_is() {
        let header = |name| [(name, "true".to_owned())];
        assert_eq!(operation("POST", &header("x-ms-cosmos-is-batch-request")), BATCH);
        assert_eq!(operation("POST", &header("x-ms-documentdb-is-upsert")), UPSERT);
        assert_eq!(operation("POST", &[]), CREATE);
        assert_eq!(operation("PUT", &[]), REPLACE);
    }
}
