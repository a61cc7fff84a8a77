//! A server in memory, asked in frames.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use dayfly_api::direct::{Begun, DirectClient, Framed};
use dayfly_api::{AccountKeys, Api, Cancel, Facts, Settings};
use dayfly_engine::{Engine, EngineSettings};
use dayfly_model::Timestamp;
use dayfly_storage::clock::HandWall;
use dayfly_storage::{Local, LocalOptions, Memory, Store};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::frame::{Frame, Token};

const KEY: &str = "cHJpbWFyeSBrZXkgb2YgdGhlIHRhcmdldHM=";

/// The time of signatures, and of all that is written.
const NOW: Timestamp = Timestamp(1_700_000_000);

/// The container of the captured frames.
pub(crate) const DATABASE: &str = "extra";
pub(crate) const CONTAINER: &str = "cap";

/// The id that it had when they were captured.
const CAPTURED_RID: &[u8] = b"AAAABoAAABI=";

pub(crate) struct Server {
    api: Api,
    engine: Arc<Engine>,
    client: DirectClient,
    runtime: tokio::runtime::Runtime,
}

impl Server {
    /// A server with the container, and two items in it.
    pub(crate) fn new() -> Server {
        let options =
            LocalOptions { wall: Arc::new(HandWall::at(NOW.0)) as _, ..LocalOptions::default() };
        let store = Local::on(Memory::default(), options).expect("a store in memory");
        let store: Arc<dyn Store> = Arc::new(store);
        let engine = Engine::open(store, EngineSettings::default()).expect("an engine");
        let engine = Arc::new(engine);
        let settings = Settings {
            keys: AccountKeys { primary: KEY.to_owned(), secondary: None, read_only: None },
            loopback: true,
            on_ipv4: true,
            admin_public: false,
            open_account: false,
            public_host: None,
            direct: true,
            machine: None,
            certificate_pem: None,
            request_log: true,
            portal: true,
            facts: Facts::default(),
            wall: Box::new(|| NOW),
        };
        let api = Api::new(Arc::clone(&engine), settings).expect("the API");
        let (client, _) = DirectClient::greet(greeting().into()).expect("a greeting");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let server = Server { api, engine, client, runtime };
        server.fill();
        server
    }

    fn fill(&self) {
        let named = vec![Token::text(0x15, DATABASE), Token::text(0x16, CONTAINER)];
        let keyed = [named.clone(), vec![Token::text(0x2B, r#"["a"]"#)]].concat();
        let container =
            r#"{"id":"cap","partitionKey":{"paths":["/pk"],"kind":"Hash"},"defaultTtl":-1}"#;
        for (resource, tokens, body) in [
            (1, Vec::new(), r#"{"id":"extra"}"#),
            (2, named[..1].to_vec(), container),
            (3, keyed.clone(), r#"{"id":"1","pk":"a","n":1}"#),
            (3, keyed, r#"{"id":"3","pk":"a","n":3,"l":[1,2,{"x":"y"}]}"#),
        ] {
            let frame = signed(Frame::new(resource, 0x01, tokens));
            let framed = self.ask(&frame.write(), body.as_bytes()).expect("a frame");
            assert_eq!(framed.head[4..8], 201_u32.to_le_bytes(), "{body}");
        }
    }

    /// The answer to a frame; `None`: it cannot be read, and its connection ends.
    pub(crate) fn ask(&self, head: &[u8], body: &[u8]) -> Option<Framed> {
        let call = self.api.call(Bytes::copy_from_slice(head), &self.client).ok()?;
        let body = if call.has_body() { Bytes::copy_from_slice(body) } else { Bytes::new() };
        Some(match self.api.begin(call, &body, Cancel::default()) {
            Begun::Done(framed) => framed,
            Begun::Later(later) => self.runtime.block_on(self.api.finish(later)),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.engine.close().expect("what is in memory can be closed");
    }
}

pub(crate) fn greeting() -> Vec<u8> {
    let tokens = vec![
        Token::number(0x00, 1),
        Token::short_text(0x01, "2020-07-15"),
        Token::short_text(0x02, "a target"),
    ];
    Frame { resource: 0, operation: 0, activity: [7; 16], tokens }.write()
}

/// The same request, signed for this server and for its container.
pub(crate) fn signed(mut frame: Frame) -> Frame {
    frame.tokens.retain(|token| match token.id {
        0x00 => STANDARD.encode(&token.value).as_bytes() != CAPTURED_RID,
        0x35 => token.value != CAPTURED_RID,
        _ => true,
    });
    if let Some((verb, kind, link)) = frame.signed() {
        let date = NOW.to_http_date();
        let payload = format!("{verb}\n{kind}\n{link}\n{}\n\n", date.to_lowercase());
        let key = STANDARD.decode(KEY).expect("a key");
        let mut signer = Hmac::<Sha256>::new_from_slice(&key).expect("a key");
        signer.update(payload.as_bytes());
        let signature = STANDARD.encode(signer.finalize().into_bytes());
        let token = format!("type=master&ver=1.0&sig={signature}");
        let all = percent_encoding::NON_ALPHANUMERIC;
        let token = percent_encoding::utf8_percent_encode(&token, all).to_string();
        frame.set(Token::text(0x01, &token));
        frame.set(Token::short_text(0x03, &date));
    }
    frame
}
