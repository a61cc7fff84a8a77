//! A small client of direct mode, written from the protocol alone: the server's own code is
//! not asked what is right.

pub(crate) mod tokens;

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dayfly_storage::clock::{SystemWall, Wall as _};
use hmac::{Hmac, KeyInit as _, Mac as _};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value as Json;

use self::tokens::{CONTEXT_REPLY, REPLY, REQUEST, Tokens, Value, head, text};
use super::common::{Answer, Server, request};

/// Longer than anything a test waits for.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const DATABASE: u16 = 1;
pub(crate) const CONTAINER: u16 = 2;
pub(crate) const ITEM: u16 = 3;
pub(crate) const PROCEDURE: u16 = 7;

pub(crate) const CREATE: u16 = 0x01;
pub(crate) const PATCH: u16 = 0x02;
pub(crate) const READ: u16 = 0x03;
pub(crate) const READ_FEED: u16 = 0x04;
pub(crate) const DELETE: u16 = 0x05;
pub(crate) const REPLACE: u16 = 0x06;
pub(crate) const EXECUTE: u16 = 0x08;
pub(crate) const SQL_QUERY: u16 = 0x09;
pub(crate) const QUERY: u16 = 0x0F;
pub(crate) const HEAD: u16 = 0x11;
pub(crate) const HEAD_FEED: u16 = 0x12;
pub(crate) const UPSERT: u16 = 0x13;
pub(crate) const BATCH: u16 = 0x25;
pub(crate) const QUERY_PLAN: u16 = 0x42;

/// The REST verb of an operation, which is signed.
pub(crate) fn verb(operation: u16) -> &'static str {
    match operation {
        READ | READ_FEED => "get",
        REPLACE => "put",
        DELETE => "delete",
        PATCH => "patch",
        HEAD | HEAD_FEED => "head",
        _ => "post",
    }
}

/// The type of a resource, which is signed.
pub(crate) fn kind_name(kind: u16) -> &'static str {
    match kind {
        DATABASE => "dbs",
        CONTAINER => "colls",
        ITEM => "docs",
        PROCEDURE => "sprocs",
        0x05 => "users",
        0x08 => "conflicts",
        _ => "none",
    }
}

/// What is signed, and with which key.
pub(crate) fn signature(key: &str, verb: &str, kind: &str, link: &str, date: &str) -> String {
    let payload = format!("{verb}\n{kind}\n{link}\n{}\n\n", date.to_lowercase());
    let mut signer = Hmac::<sha2::Sha256>::new_from_slice(&STANDARD.decode(key).unwrap()).unwrap();
    signer.update(payload.as_bytes());
    STANDARD.encode(signer.finalize().into_bytes())
}

/// As a token has it, in the form of .NET.
pub(crate) fn authorization(signature: &str) -> String {
    let escaped = signature.replace('+', "%2b").replace('/', "%2f").replace('=', "%3d");
    format!("type%3dmaster%26ver%3d1.0%26sig%3d{escaped}")
}

pub(crate) fn key_of(server: &Server) -> String {
    let after = server.banner.split("AccountKey=").nth(1).unwrap();
    after.split(';').next().unwrap().to_owned()
}

/// The date of so many seconds ago.
pub(crate) fn date(seconds_ago: u64) -> String {
    dayfly_model::Timestamp(SystemWall.seconds() - seconds_ago).to_http_date()
}

/// A resource id as bytes.
pub(crate) fn rid_bytes(rid: &str) -> Vec<u8> {
    STANDARD.decode(rid.replace('-', "/")).unwrap()
}

/// A signed request over http with one more header.
pub(crate) fn rest(server: &Server, verb: &str, path: &str, header: &str, body: &str) -> Answer {
    let plain = request(server, verb, path, body);
    let mut client = server.connect();
    client.send(plain.replacen("content-length:", &format!("{header}content-length:"), 1));
    client.answer()
}

/// A container, by its names and its ids.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) database: String,
    pub(crate) container: String,
    pub(crate) database_rid: String,
    pub(crate) rid: String,
}

impl Place {
    /// A container of one range whose key is `pk`.
    pub(crate) fn make(server: &Server, database: &str, container: &str) -> Place {
        Place::make_with(server, database, container, 400, "")
    }

    /// One of four ranges.
    pub(crate) fn make_wide(server: &Server, database: &str, container: &str) -> Place {
        Place::make_with(server, database, container, 20_000, "")
    }

    /// With more members in its definition.
    pub(crate) fn make_with(
        server: &Server,
        database: &str,
        container: &str,
        throughput: u32,
        more: &str,
    ) -> Place {
        let made = rest(server, "POST", "/dbs", "", &format!(r#"{{"id":"{database}"}}"#));
        assert!([201, 409].contains(&made.status), "{made:?}");
        let escaped = utf8_percent_encode(database, NON_ALPHANUMERIC);
        let found = rest(server, "GET", &format!("/dbs/{escaped}"), "", "");
        let header = format!("x-ms-offer-throughput: {throughput}\r\n");
        let definition = format!(
            r#"{{"id":"{container}","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}}{more}}}"#
        );
        let path = format!("/dbs/{escaped}/colls");
        let made = rest(server, "POST", &path, &header, &definition);
        assert_eq!(made.status, 201, "{made:?}");
        Place {
            database: database.to_owned(),
            container: container.to_owned(),
            database_rid: rid_in(&found.body),
            rid: rid_in(&made.body),
        }
    }

    /// The link that names it.
    pub(crate) fn link(&self) -> String {
        format!("dbs/{}/colls/{}", self.database, self.container)
    }

    /// A request to all items: create, query and the like.
    pub(crate) fn feed(&self, operation: u16) -> Ask {
        let mut ask = Ask::new(ITEM, operation, &self.link());
        ask.tokens.set(0x0000, Value::Bytes(rid_bytes(&self.rid)));
        ask.tokens.set(0x0015, text(&self.database));
        ask.tokens.set(0x0016, text(&self.container));
        ask.tokens.set(0x0035, text(&self.rid));
        ask
    }

    /// A request to one item of the partition `key`.
    pub(crate) fn item(&self, operation: u16, id: &str, key: &str) -> Ask {
        let mut ask = self.feed(operation).key(key);
        ask.link = format!("{}/docs/{id}", self.link());
        ask.tokens.set(0x0017, text(id));
        ask
    }

    /// Writes an item into the partition `key`.
    pub(crate) fn write(&self, operation: u16, key: &str, body: &str) -> Ask {
        self.feed(operation).key(key).body(body)
    }

    /// Asks a query of one partition or range.
    pub(crate) fn query(&self, query: &str) -> Ask {
        self.feed(QUERY).body(&serde_json::json!({ "query": query }).to_string())
    }

    /// A request to the container itself.
    pub(crate) fn itself(&self, operation: u16) -> Ask {
        let mut ask = Ask::new(CONTAINER, operation, &self.link());
        ask.tokens.set(0x0000, Value::Bytes(rid_bytes(&self.rid)));
        ask.tokens.set(0x0015, text(&self.database));
        ask.tokens.set(0x0016, text(&self.container));
        ask
    }
}

pub(crate) fn rid_in(body: &str) -> String {
    let body: Json = serde_json::from_str(body).unwrap();
    body["_rid"].as_str().unwrap().to_owned()
}

/// A request in the making. What is not set of the date, the signature and whether a body
/// follows is put in when it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) kind: u16,
    pub(crate) operation: u16,
    pub(crate) activity: [u8; 16],
    pub(crate) tokens: Tokens,
    pub(crate) body: Vec<u8>,
    /// What is signed of the address.
    pub(crate) link: String,
    /// Tokens that are left out although they are needed.
    pub(crate) omitted: Vec<u16>,
    pub(crate) signing_key: Option<String>,
}

impl Ask {
    pub(crate) fn new(kind: u16, operation: u16, link: &str) -> Ask {
        let mut tokens = Tokens::default();
        let path = "/apps/dayfly/services/dayfly/partitions/test-0/replicas/1p";
        tokens.set(0x0013, text(path));
        tokens.set(0x0049, Value::ULong(30_000));
        tokens.set(0x004A, Value::ULong(0));
        tokens.set(0x00A2, Value::ULong(9));
        Ask {
            kind,
            operation,
            activity: *b"activity of test",
            tokens,
            body: Vec::new(),
            link: link.to_owned(),
            omitted: Vec::new(),
            signing_key: None,
        }
    }

    /// A request to the databases, or to one of them.
    pub(crate) fn database(operation: u16, name: Option<&str>) -> Ask {
        let link = name.map_or(String::new(), |name| format!("dbs/{name}"));
        let ask = Ask::new(DATABASE, operation, &link).with(0x0010, Value::Byte(0));
        match name {
            Some(name) => ask.with(0x0015, text(name)),
            None => ask,
        }
    }

    /// A request by a resource id alone, which is signed in lower case.
    pub(crate) fn by_rid(kind: u16, operation: u16, rid: &str) -> Ask {
        let ask = Ask::new(kind, operation, &rid.to_lowercase());
        ask.with(0x0000, Value::Bytes(rid_bytes(rid)))
    }

    pub(crate) fn with(mut self, id: u16, value: Value) -> Ask {
        self.tokens.set(id, value);
        self
    }

    pub(crate) fn without(mut self, id: u16) -> Ask {
        self.tokens.remove(id);
        self.omitted.push(id);
        self
    }

    /// Of the partition that this text is the key of.
    pub(crate) fn key(self, key: &str) -> Ask {
        self.with(0x002B, text(serde_json::json!([key]).to_string()))
    }

    /// Of the range with this id.
    pub(crate) fn range(self, id: &str) -> Ask {
        self.with(0x002C, text(id))
    }

    pub(crate) fn body(mut self, body: &str) -> Ask {
        self.body = body.as_bytes().to_vec();
        self
    }

    /// Signed with another key than the server's first.
    pub(crate) fn signed_with(mut self, key: &str) -> Ask {
        self.signing_key = Some(key.to_owned());
        self
    }

    /// The bytes of the frame.
    pub(crate) fn encode(&self, key: &str, transport: u32) -> Vec<u8> {
        let mut tokens = self.tokens.clone();
        let mut put = |id: u16, value: Value| {
            if tokens.get(id).is_none() && !self.omitted.contains(&id) {
                tokens.set(id, value);
            }
        };
        put(0x0003, Value::SmallString(date(0)));
        put(0x0002, Value::Byte(u8::from(!self.body.is_empty())));
        put(0x004D, Value::ULong(transport));
        if tokens.get(0x0001).is_none() && !self.omitted.contains(&0x0001) {
            let key = self.signing_key.as_deref().unwrap_or(key);
            let date = tokens.get(0x0003).map_or("", Value::text);
            let (verb, kind) = (verb(self.operation), kind_name(self.kind));
            let signature = signature(key, verb, kind, &self.link, date);
            tokens.set(0x0001, text(authorization(&signature)));
        }
        let frame = self.frame(&tokens.encode());
        if self.body.is_empty() {
            return frame;
        }
        let length = u32::try_from(self.body.len()).unwrap().to_le_bytes();
        [&frame[..], &length, &self.body].concat()
    }

    /// The head of this request with these tokens.
    pub(crate) fn frame(&self, tokens: &[u8]) -> Vec<u8> {
        let ([a, b], [c, d]) = (self.kind.to_le_bytes(), self.operation.to_le_bytes());
        head([a, b, c, d], self.activity, tokens)
    }

    /// A request as it stood on the wire.
    pub(crate) fn decode(frame: &[u8]) -> Ask {
        let (start, activity, tokens, body) = split_frame(frame);
        let field = |at: usize| u16::from_le_bytes([start[at], start[at + 1]]);
        let tokens = Tokens::decode(tokens);
        tokens.are_of(REQUEST);
        Ask {
            kind: field(0),
            operation: field(2),
            activity,
            tokens,
            body: body.to_vec(),
            link: String::new(),
            omitted: Vec::new(),
            signing_key: None,
        }
    }
}

/// The fields of a whole frame: what follows its length, the activity, its tokens and its body.
pub(crate) fn split_frame(frame: &[u8]) -> ([u8; 4], [u8; 16], &[u8], &[u8]) {
    let number = |at: usize| u32::from_le_bytes(frame[at..at + 4].try_into().unwrap());
    let length = usize::try_from(number(0)).unwrap();
    let body = if frame.len() == length {
        &[]
    } else {
        assert_eq!(frame.len() - length - 4, usize::try_from(number(length)).unwrap());
        &frame[length + 4..]
    };
    (frame[4..8].try_into().unwrap(), frame[8..24].try_into().unwrap(), &frame[24..length], body)
}

/// What came back.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u32,
    pub(crate) activity: [u8; 16],
    pub(crate) tokens: Tokens,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// An answer as it stood on the wire.
    pub(crate) fn decode(frame: &[u8]) -> Reply {
        let (start, activity, tokens, body) = split_frame(frame);
        let tokens = Tokens::decode(tokens);
        Reply { status: u32::from_le_bytes(start), activity, tokens, body: body.to_vec() }
    }

    #[track_caller]
    pub(crate) fn text(&self, id: u16) -> &str {
        let value = self.tokens.get(id);
        value.unwrap_or_else(|| panic!("no token {id:#06x}: {self:?}")).text()
    }

    #[track_caller]
    pub(crate) fn number(&self, id: u16) -> i64 {
        let value = self.tokens.get(id);
        value.unwrap_or_else(|| panic!("no token {id:#06x}: {self:?}")).number()
    }

    /// The substatus; without one, 0.
    pub(crate) fn substatus(&self) -> i64 {
        self.tokens.get(0x001C).map_or(0, Value::number)
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Json {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The text of an error.
    #[track_caller]
    pub(crate) fn message(&self) -> String {
        self.json()["message"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    pub(crate) fn is(&self, status: u32) -> &Reply {
        let body = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, status, "{body} {:?}", self.tokens);
        self
    }

    /// An error of this status and substatus, with its code and its sentence.
    #[track_caller]
    pub(crate) fn fails(&self, status: u32, substatus: i64) -> &Reply {
        self.is(status);
        assert_eq!(self.substatus(), substatus, "{self:?}");
        let body = self.json();
        assert!(body["code"].is_string() && body["message"].is_string(), "{body}");
        self
    }

    /// What every answer has: both clients need it to believe the answer.
    #[track_caller]
    pub(crate) fn is_whole(&self) {
        self.tokens.are_of(REPLY);
        assert_eq!(self.number(0x0000), i64::from(!self.body.is_empty()), "{self:?}");
        let lsn = self.number(0x0013);
        assert!(lsn > 0, "{self:?}");
        for id in [0x001A, 0x0029, 0x003A, 0x003B] {
            assert_eq!(self.number(id), lsn, "{id:#06x} {self:?}");
        }
        for (id, value) in [(0x001E, 1), (0x001F, 1), (0x0030, 0)] {
            assert_eq!(self.number(id), value, "{id:#06x} {self:?}");
        }
        assert!(self.tokens.get(0x0015).is_some(), "no charge: {self:?}");
    }

    /// Clients are told not to ask anybody else, and believe it without a session token.
    #[track_caller]
    pub(crate) fn is_final(&self) {
        assert_eq!(self.tokens.get(0x001B), Some(&Value::Byte(1)), "{self:?}");
    }

    /// It is of this range, and has its session token and no other.
    #[track_caller]
    pub(crate) fn is_of_range(&self, range: &str) -> &Reply {
        assert_eq!(self.text(0x0021), range, "{self:?}");
        let session = self.text(0x003E);
        let well_formed = session.split('#').all(|part| part.parse::<u64>().is_ok());
        assert!(well_formed && session.contains('#'), "'{session}' is not one range's token");
        self
    }
}

/// A connection, with the context exchanged.
pub(crate) struct Channel {
    pub(crate) wire: Wire,
    key: String,
    next: u32,
    early: BTreeMap<u32, Reply>,
}

impl Channel {
    pub(crate) fn open(server: &Server) -> Channel {
        Channel::open_with(server, &context(1)).0
    }

    /// With this context request, and the answer to it.
    pub(crate) fn open_with(server: &Server, context: &[u8]) -> (Channel, Reply) {
        let mut wire = Wire::open(server);
        wire.write(context);
        let reply = Reply::decode(&wire.frame(|_| false).expect("the context is answered"));
        reply.is(200).tokens.are_of(CONTEXT_REPLY);
        (Channel { wire, key: key_of(server), next: 1, early: BTreeMap::new() }, reply)
    }

    /// The bytes of a request with the next number.
    pub(crate) fn encode(&mut self, ask: &Ask) -> (u32, Vec<u8>) {
        let number = self.next;
        self.next += 1;
        (number, ask.encode(&self.key, number))
    }

    /// Sends a request. Returns its number.
    pub(crate) fn send(&mut self, ask: &Ask) -> u32 {
        let (number, frame) = self.encode(ask);
        self.wire.write(&frame);
        number
    }

    /// The next answer and its number; none, if the server closed the connection.
    pub(crate) fn next(&mut self) -> Option<(u32, Reply)> {
        let reply = Reply::decode(&self.wire.frame(has_payload)?);
        reply.is_whole();
        Some((u32::try_from(reply.number(0x0035)).unwrap(), reply))
    }

    /// The answer to a request, whatever comes before it.
    #[track_caller]
    pub(crate) fn answer(&mut self, number: u32) -> Reply {
        loop {
            if let Some(reply) = self.early.remove(&number) {
                return reply;
            }
            let (other, reply) = self.next().expect("the connection was closed");
            assert!(self.early.insert(other, reply).is_none(), "{other} is answered twice");
        }
    }

    /// Sends a request and waits for its answer.
    #[track_caller]
    pub(crate) fn ask(&mut self, ask: &Ask) -> Reply {
        let number = self.send(ask);
        let reply = self.answer(number);
        assert_eq!(reply.activity, ask.activity, "the activity is echoed");
        reply
    }

    /// The answers to all of these, whatever their order.
    pub(crate) fn answers(&mut self, numbers: &[u32]) -> Vec<Reply> {
        numbers.iter().map(|number| self.answer(*number)).collect()
    }

    /// Whether it still answers.
    #[track_caller]
    pub(crate) fn is_alive(&mut self) {
        self.ask(&Ask::database(READ_FEED, None)).is(200);
    }
}

/// The context request of .NET, but for the version.
pub(crate) fn context(version: u32) -> Vec<u8> {
    let mut tokens = Tokens::default();
    tokens.set(0x0000, Value::ULong(version));
    tokens.set(0x0001, Value::SmallString("2020-07-15".to_owned()));
    tokens.set(0x0002, Value::SmallString("dayfly-tests".to_owned()));
    head([0; 4], [7; 16], &tokens.encode())
}

/// Whether a body follows the tokens of an answer.
pub(crate) fn has_payload(tokens: &Tokens) -> bool {
    tokens.get(0x0000) == Some(&Value::Byte(1))
}

/// A TLS connection to the one port, on which nothing has been said.
pub(crate) struct Wire {
    stream: StreamOwned<ClientConnection, TcpStream>,
}

impl Wire {
    pub(crate) fn open(server: &Server) -> Wire {
        Wire::open_as(server, &[])
    }

    /// With these protocols in its ALPN.
    pub(crate) fn open_as(server: &Server, protocols: &[&str]) -> Wire {
        Wire::to(server, "localhost", protocols).unwrap()
    }

    /// As a client that knows the server by this name, which its certificate has to have.
    pub(crate) fn to(server: &Server, name: &str, protocols: &[&str]) -> std::io::Result<Wire> {
        let pem = server.get("/_explorer/emulator.pem").body;
        Wire::trusting(server, &pem, name, protocols)
    }

    /// As one that has this certificate already.
    pub(crate) fn trusting(
        server: &Server,
        pem: &str,
        name: &str,
        protocols: &[&str],
    ) -> std::io::Result<Wire> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let stream = TcpStream::connect(server.address()).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(Wire { stream })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.try_write(bytes).unwrap();
    }

    /// What may be refused half way.
    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// The next frame; nothing, if the server closed the connection instead.
    pub(crate) fn frame(&mut self, has_body: impl Fn(&Tokens) -> bool) -> Option<Vec<u8>> {
        let mut frame = vec![0; 4];
        if !self.fill(&mut frame, 0) {
            return None;
        }
        let length = usize::try_from(u32::from_le_bytes(frame[..4].try_into().unwrap())).unwrap();
        assert!((24..1_000_000).contains(&length), "a head of {length} bytes");
        frame.resize(length, 0);
        assert!(self.fill(&mut frame, 4), "half a head");
        if has_body(&Tokens::decode(&frame[24..])) {
            frame.resize(length + 4, 0);
            assert!(self.fill(&mut frame, length), "no length of a body");
            let body = u32::from_le_bytes(frame[length..].try_into().unwrap());
            frame.resize(length + 4 + usize::try_from(body).unwrap(), 0);
            assert!(self.fill(&mut frame, length + 4), "half a body");
        }
        Some(frame)
    }

    /// Whether something came that was not read.
    pub(crate) fn has_more(&self) -> bool {
        let socket = &self.stream.sock;
        socket.set_nonblocking(true).unwrap();
        let has_more = socket.peek(&mut [0]).is_ok_and(|bytes| bytes > 0);
        socket.set_nonblocking(false).unwrap();
        has_more
    }

    /// Waits for so long, or until something comes or the connection is closed. Whether
    /// nothing did.
    pub(crate) fn is_silent_for(&mut self, time: Duration) -> bool {
        let socket = &self.stream.sock;
        socket.set_read_timeout(Some(time)).unwrap();
        let looked = socket.peek(&mut [0]);
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        looked.is_err_and(|error| {
            [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind())
        })
    }

    /// The next bytes.
    pub(crate) fn read<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        assert!(self.fill(&mut bytes, 0), "the connection was closed");
        bytes
    }

    /// Fills a buffer from `start` on; whether that much came.
    fn fill(&mut self, buffer: &mut [u8], start: usize) -> bool {
        match self.stream.read_exact(&mut buffer[start..]) {
            Ok(()) => true,
            Err(error) if is_end(error.kind()) => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// What is in the next record of TLS. Nothing may have been read ahead.
    pub(crate) fn record(&mut self) -> Vec<u8> {
        let mut plain = Vec::new();
        // Some are about the connection only.
        while plain.is_empty() {
            let mut record = vec![0; 5];
            self.stream.sock.read_exact(&mut record).unwrap();
            let length = u16::from_be_bytes([record[3], record[4]]);
            record.resize(5 + usize::from(length), 0);
            self.stream.sock.read_exact(&mut record[5..]).unwrap();
            let mut rest = &record[..];
            while !rest.is_empty() {
                self.stream.conn.read_tls(&mut rest).unwrap();
            }
            let state = self.stream.conn.process_new_packets().unwrap();
            plain.resize(state.plaintext_bytes_to_read(), 0);
            self.stream.conn.reader().read_exact(&mut plain).unwrap();
        }
        plain
    }

    /// Waits until the server has closed the connection. What it sent before.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        if let Err(error) = self.stream.read_to_end(&mut rest) {
            assert!(is_end(error.kind()), "it is not closed: {error}");
        }
        rest
    }

    /// Whether the server closes the connection, and says nothing before.
    #[track_caller]
    pub(crate) fn is_closed(&mut self) {
        let rest = self.rest();
        assert!(rest.is_empty(), "it said {rest:?}");
    }

    /// Says that nothing more will come, as TLS does and TCP. It may be closed already.
    pub(crate) fn end(&mut self) {
        self.stream.conn.send_close_notify();
        let _ = self.stream.flush();
        let _ = self.stream.sock.shutdown(std::net::Shutdown::Write);
    }
}

/// How a connection that was closed looks, with a farewell of TLS or without.
fn is_end(kind: ErrorKind) -> bool {
    let closed = [
        ErrorKind::UnexpectedEof,
        ErrorKind::ConnectionReset,
        ErrorKind::ConnectionAborted,
        ErrorKind::BrokenPipe,
    ];
    closed.contains(&kind)
}
