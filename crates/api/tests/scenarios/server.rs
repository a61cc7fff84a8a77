//! A server for one script, without a socket.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use dayfly_api::direct::{Begun, DirectClient};
use dayfly_api::{AccountKeys, Api, Cancel, Facts, Incoming, Settings, Way};
use dayfly_engine::EngineSettings;
use dayfly_model::Timestamp;
use dayfly_storage::clock::HandWall;
use dayfly_storage::suite::Far;
use dayfly_storage::{Disk, Local, LocalOptions, Memory, Store};
use hmac::{Hmac, KeyInit, Mac};
use http::{Request, Response};
use sha2::Sha256;

use crate::frames;

const PRIMARY: &str = "cHJpbWFyeSBrZXkgb2YgdGhlIHNjZW5hcmlvcw==";
const READ_ONLY: &str = "cmVhZC1vbmx5IGtleSBvZiB0aGUgc2NlbmFyaW9z";
const WRONG: &str = "c29tZSBvdGhlciBrZXksIG5vdCBvZiB0aGlzIHNlcnZlcg==";

/// When the script's requests are signed, in real time.
const SIGNED_AT: Timestamp = Timestamp(1_700_000_000);

/// Which engine a script is played on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Engine {
    Memory {
        slices: usize,
    },
    /// In memory, and asked in frames of direct mode.
    Frames,
    /// In memory, behind what looks like a network.
    Afar,
    Disk,
}

impl Engine {
    pub(crate) fn with_one_bucket(self) -> Self {
        match self {
            Engine::Memory { .. } => Engine::Memory { slices: 1 },
            engine => engine,
        }
    }
}

/// How the server is started.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mode {
    pub(crate) engine: EngineSettings,
    pub(crate) no_test_clock: bool,
}

pub(crate) struct Server {
    kind: Engine,
    pub(crate) wall: Arc<HandWall>,
    disk: Disk,
    folder: tempfile::TempDir,
    mode: Mode,
    running: Option<Running>,
}

struct Running {
    store: Arc<dyn Store>,
    engine: Arc<dayfly_engine::Engine>,
    api: Api,
    runtime: tokio::runtime::Runtime,
}

impl Server {
    pub(crate) fn new(kind: Engine, mode: Mode) -> Self {
        let mut server = Server {
            kind,
            wall: Arc::new(HandWall::at(1)),
            disk: Disk::default(),
            folder: tempfile::tempdir().unwrap(),
            mode,
            running: None,
        };
        server.start();
        server
    }

    fn start(&mut self) {
        let options = LocalOptions {
            wall: Arc::clone(&self.wall) as _,
            test_clock: !self.mode.no_test_clock,
            ..LocalOptions::default()
        };
        let (store, slices): (Arc<dyn Store>, usize) = match self.kind {
            Engine::Memory { slices } => {
                (Arc::new(Local::on(Memory::on(&self.disk), options).unwrap()), slices)
            }
            Engine::Frames => (Arc::new(Local::on(Memory::on(&self.disk), options).unwrap()), 1),
            Engine::Afar => {
                let store = Local::on(Memory::on(&self.disk), options).unwrap();
                (Arc::new(Far::new(Box::new(store), Arc::default())), 1)
            }
            Engine::Disk => {
                (Arc::new(Local::open(self.folder.path().join("data"), options).unwrap()), 1)
            }
        };
        let resettable = !self.mode.no_test_clock;
        let settings = EngineSettings { ranges_min: slices, resettable, ..self.mode.engine };
        let engine = Arc::new(dayfly_engine::Engine::open(Arc::clone(&store), settings).unwrap());
        let settings = Settings {
            keys: AccountKeys {
                primary: PRIMARY.to_owned(),
                secondary: None,
                read_only: Some(READ_ONLY.to_owned()),
            },
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
            wall: Box::new(|| SIGNED_AT),
        };
        let api = Api::new(Arc::clone(&engine), settings).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        self.running = Some(Running { store, engine, api, runtime });
    }

    fn running(&self) -> &Running {
        self.running.as_ref().unwrap()
    }

    /// What the listener would tell of itself.
    #[allow(dead_code, reason = "no script has a listener")]
    pub(crate) fn edge(&self) -> &dayfly_api::Edge {
        self.running().api.edge()
    }

    pub(crate) fn clock(&self, second: u64) {
        self.wall.set(second);
    }

    #[allow(dead_code, reason = "scripts know what time it is")]
    pub(crate) fn wall_second(&self) -> u64 {
        use dayfly_storage::clock::Wall as _;
        self.wall.seconds()
    }

    pub(crate) fn tick(&self) {
        self.running().store.tick().unwrap();
    }

    pub(crate) fn background(&self) {
        while self.running().engine.purge_turn() < std::time::Duration::from_secs(1) {}
    }

    pub(crate) fn purge(&self) {
        self.running().engine.purge_all().unwrap();
    }

    pub(crate) fn restart(&mut self) {
        self.running().engine.close().unwrap();
        self.running = None;
        self.start();
    }

    /// As after kill -9: nothing is closed.
    pub(crate) fn crash(&mut self) {
        self.running = None;
        self.disk = self.disk.after_kill();
        self.start();
    }

    /// Sends a request; `sign` says how.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: Vec<u8>,
        sign: &str,
    ) -> Response<Bytes> {
        let running = self.running();
        let mut request =
            Request::builder().method(method).uri(path).header("host", "localhost:8081");
        for (name, value) in signed(method, path, headers, sign) {
            request = request.header(name, value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let incoming = Incoming {
            parts,
            body: body.into(),
            way: Way { secure: false, local: true, health: false },
            cancel: Cancel::default(),
        };
        running.runtime.block_on(running.api.handle(incoming)).map(|body| body.to_vec().into())
    }

    #[allow(dead_code, reason = "only scripts are played in frames")]
    pub(crate) fn is_asked_in_frames(&self) -> bool {
        matches!(self.kind, Engine::Frames)
    }

    /// The same as a frame, if one can say it.
    #[allow(dead_code, reason = "only scripts are played in frames")]
    pub(crate) fn send_framed(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: &[u8],
        sign: &str,
    ) -> Option<Result<Response<Bytes>, String>> {
        let is_played = matches!(self.kind, Engine::Frames)
            && matches!(sign, "name" | "none" | "wrong" | "read-only");
        if !is_played {
            return None;
        }
        let (head, body) = frames::frame(method, path, &signed(method, path, headers, sign), body)?;
        let running = self.running();
        let (client, _) = DirectClient::greet(frames::greeting("2020-07-15")).unwrap();
        let call = running.api.call(head, &client).unwrap();
        let framed = match running.api.begin(call, &body, Cancel::default()) {
            Begun::Done(framed) => framed,
            Begun::Later(later) => running.runtime.block_on(running.api.finish(later)),
        };
        Some(frames::answer(&framed.head, framed.body.to_vec().into()))
    }
}

/// The headers of a request with those that sign it; `sign` says how.
fn signed(
    method: &str,
    path: &str,
    headers: &[(String, String)],
    sign: &str,
) -> Vec<(String, String)> {
    let mut all = headers.to_vec();
    let has = |name: &str| headers.iter().find(|(found, _)| found == name);
    if has("authorization").is_none() && sign != "none" {
        let given = has("x-ms-date").map(|(_, date)| date.clone());
        let date = given.clone().unwrap_or_else(|| SIGNED_AT.to_http_date());
        all.push(("authorization".to_owned(), token(method, path, &date, sign)));
        if given.is_none() {
            all.push(("x-ms-date".to_owned(), date));
        }
    }
    all
}

/// What an SDK would send as `authorization`.
fn token(method: &str, path: &str, date: &str, sign: &str) -> String {
    if path.starts_with("/_admin") {
        let key = match sign {
            "read-only" => READ_ONLY,
            "wrong" => WRONG,
            _ => PRIMARY,
        };
        return format!("Bearer {key}");
    }
    // Addresses are signed as what they are for.
    let resolved = path.split_once("$resolveFor=").map(|(_, asked)| {
        let asked = asked.split('&').next().unwrap_or_default();
        percent_encoding::percent_decode_str(asked).decode_utf8_lossy()
    });
    let path = resolved.as_deref().unwrap_or(path);
    // What is done to a container is signed as the container.
    let path = path.split_once("/operations/").map_or(path, |(container, _)| container);
    let written = |part| match sign {
        "raw" => Cow::Borrowed(part),
        _ => percent_encoding::percent_decode_str(part).decode_utf8_lossy(),
    };
    let parts = path.split('/').filter(|part| !part.is_empty()).map(written);
    let parts: Vec<Cow<'_, str>> = parts.collect();
    let (kind, depth) = match parts.len() {
        0 => ("", 0),
        n if n % 2 == 0 => (&*parts[n - 2], n),
        n => (&*parts[n - 1], n - 1),
    };
    let link = if sign == "rid" {
        parts[..depth].last().unwrap().to_lowercase()
    } else {
        parts[..depth].join("/")
    };
    let key = match sign {
        "read-only" => READ_ONLY,
        "wrong" => WRONG,
        _ => PRIMARY,
    };
    let payload = format!("{}\n{kind}\n{link}\n{}\n\n", method.to_lowercase(), date.to_lowercase());
    let mut signer = Hmac::<Sha256>::new_from_slice(&STANDARD.decode(key).unwrap()).unwrap();
    signer.update(payload.as_bytes());
    let signature = STANDARD.encode(signer.finalize().into_bytes());
    let token = format!("type=master&ver=1.0&sig={signature}");
    percent_encoding::utf8_percent_encode(&token, percent_encoding::NON_ALPHANUMERIC).to_string()
}
