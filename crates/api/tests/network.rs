//! What other machines may reach when the server listens on a network address.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use dayfly_api::{AccountKeys, Api, Cancel, Facts, Incoming, Settings, Way};
use dayfly_engine::{Engine, EngineSettings};
use dayfly_model::Timestamp;
use dayfly_storage::clock::{HandWall, Wall};
use dayfly_storage::{Local, LocalOptions, Store};
use hmac::{Hmac, KeyInit, Mac};
use http::Request;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::Sha256;

const PRIMARY: &str = "cHJpbWFyeSBrZXkgb2YgdGhpcyB0ZXN0";
const SECONDARY: &str = "c2Vjb25kYXJ5IGtleSBvZiB0aGlzIHRlc3Q=";
const READ_ONLY: &str = "cmVhZC1vbmx5IGtleSBvZiB0aGlzIHRlc3Q=";

/// In clear text, from this machine and from another.
const HERE: Way = Way { secure: false, local: true, health: false };
const THERE: Way = Way { secure: false, local: false, health: false };

fn api(loopback: bool, admin_public: bool) -> Api {
    let store: Arc<dyn Store> = Arc::new(Local::memory(LocalOptions::default()).unwrap());
    let engine = Arc::new(Engine::open(store, EngineSettings::default()).unwrap());
    let settings = Settings {
        keys: AccountKeys {
            primary: PRIMARY.to_owned(),
            secondary: Some(SECONDARY.to_owned()),
            read_only: Some(READ_ONLY.to_owned()),
        },
        loopback,
        on_ipv4: true,
        admin_public,
        open_account: false,
        public_host: None,
        direct: true,
        machine: None,
        certificate_pem: Some("a certificate".to_owned()),
        request_log: true,
        portal: true,
        facts: Facts::default(),
        wall: Box::new(|| Timestamp(1_700_000_000)),
    };
    Api::new(engine, settings).unwrap()
}

fn ask(api: &Api, method: &str, path: &str, key: Option<&str>, way: Way) -> u16 {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(key) = key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    let (parts, ()) = request.body(()).unwrap().into_parts();
    let body = Bytes::from_static(br#"{"advanceSeconds":1}"#);
    let admitted = api.admit(&parts, way).map_or_else(|error| error.kind.wire().status, |()| 200);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let answer =
        runtime.block_on(api.handle(Incoming { parts, body, way, cancel: Cancel::default() }));
    let status = answer.status().as_u16();
    if matches!(admitted, 401 | 403) {
        assert_eq!(admitted, status, "{method} {path}");
    }
    status
}

/// Where from, `--admin-public`, TLS, key: what `GET` and `POST` of the clock answer,
/// whatever the server listens on. The clock of this store cannot be moved, which is
/// 403 too.
#[test]
fn who_reaches_the_admin_api() {
    let clock = "/_admin/v1/clock";
    for (local, public, secure, key, get, post) in [
        (true, false, false, Some(PRIMARY), 200, 403),
        (true, false, true, Some(PRIMARY), 200, 403),
        (true, false, false, Some(SECONDARY), 200, 403),
        (true, false, false, Some(READ_ONLY), 200, 403),
        (true, false, false, Some("other"), 401, 401),
        (true, false, false, None, 401, 401),
        (false, false, true, Some(PRIMARY), 404, 404),
        (false, false, false, None, 404, 404),
        (false, true, true, Some(PRIMARY), 200, 403),
        (false, true, true, Some(READ_ONLY), 200, 403),
        (false, true, true, None, 401, 401),
        (false, true, false, Some(PRIMARY), 403, 403),
    ] {
        for loopback in [local, false] {
            let api = api(loopback, public);
            let case = (loopback, local, public, secure, key);
            let way = Way { secure, local, health: false };
            assert_eq!(ask(&api, "GET", clock, key, way), get, "{case:?}");
            assert_eq!(ask(&api, "POST", clock, key, way), post, "{case:?}");
        }
    }
}

#[test]
fn who_reaches_the_metrics() {
    let there_by_tls = Way { secure: true, ..THERE };
    for (loopback, way, key, status) in [
        (true, HERE, None, 200),
        (false, HERE, None, 401),
        (false, HERE, Some(READ_ONLY), 200),
        (false, there_by_tls, None, 401),
        (false, there_by_tls, Some(READ_ONLY), 200),
        (false, THERE, Some(PRIMARY), 403),
    ] {
        let api = api(loopback, false);
        let case = (loopback, way, key);
        assert_eq!(ask(&api, "GET", "/metrics", key, way), status, "{case:?}");
    }
}

#[test]
fn who_reaches_the_page_of_the_explorer() {
    for (way, public, status) in [
        (HERE, false, 200),
        (THERE, false, 404),
        (Way { secure: true, ..THERE }, false, 404),
        (Way { secure: true, ..THERE }, true, 200),
    ] {
        let api = api(false, public);
        for page in ["/_explorer/", "/_explorer/index.html", "/_explorer/quickstart.html"] {
            assert_eq!(ask(&api, "GET", page, None, way), status, "{page} {way:?} {public}");
        }
    }
}

#[test]
fn behind_the_door_for_health_checks_there_is_nothing_else() {
    let (api, way) = (api(false, true), Way { health: true, ..HERE });
    for path in ["/ready", "/status", "/alive"] {
        assert_eq!(ask(&api, "GET", path, None, way), 200, "{path}");
        assert_eq!(ask(&api, "POST", path, None, way), 405, "{path}");
    }
    for path in ["/", "/dbs", "/metrics", "/_explorer/", "/_explorer/emulator.pem", "/nothing"] {
        assert_eq!(ask(&api, "GET", path, None, way), 404, "{path}");
    }
    assert_eq!(ask(&api, "GET", "/_admin/v1/clock", Some(PRIMARY), way), 404);
}

#[test]
fn what_is_open_on_a_network() {
    let api = api(false, false);
    for (path, status) in [
        ("/ready", 200),
        ("/status", 200),
        ("/alive", 200),
        ("/_explorer/emulator.pem", 200),
        ("/", 401),
        ("/dbs", 401),
        ("/dbs/d/colls/c/docs/a", 401),
        ("/offers", 401),
        ("/nothing", 404),
    ] {
        assert_eq!(ask(&api, "GET", path, None, Way { secure: true, ..THERE }), status, "{path}");
    }
}

/// The status of a list of databases that was signed at `date`.
fn signed(api: &Api, date: u64) -> u16 {
    signed_by(api, PRIMARY, "get", date)
}

/// The status of a request for databases that was signed with `key`.
fn signed_by(api: &Api, key: &str, method: &str, date: u64) -> u16 {
    let date = Timestamp(date).to_http_date();
    let key = STANDARD.decode(key).unwrap();
    let mut signer = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    signer.update(format!("{method}\ndbs\n\n{}\n\n", date.to_lowercase()).as_bytes());
    let signature = STANDARD.encode(signer.finalize().into_bytes());
    let token = format!("type=master&ver=1.0&sig={signature}");
    let token = utf8_percent_encode(&token, NON_ALPHANUMERIC).to_string();
    let request = Request::builder()
        .method(&*method.to_uppercase())
        .uri("/dbs")
        .header("x-ms-date", date)
        .header("authorization", token);
    let (parts, ()) = request.body(()).unwrap().into_parts();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let body = Bytes::from_static(br#"{"id":"d"}"#);
    let incoming = Incoming { parts, body, way: HERE, cancel: Cancel::default() };
    runtime.block_on(api.handle(incoming)).status().as_u16()
}

#[test]
fn either_key_reads_and_writes() {
    const NOW: u64 = 1_700_000_000;
    let other = "b3RoZXIga2V5IG9mIHRoaXMgdGVzdA==";
    for (key, get, post) in
        [(PRIMARY, 200, 201), (SECONDARY, 200, 201), (READ_ONLY, 200, 403), (other, 401, 401)]
    {
        let api = api(true, false);
        assert_eq!(signed_by(&api, key, "get", NOW), get, "{key}");
        assert_eq!(signed_by(&api, key, "post", NOW), post, "{key}");
    }
}

#[test]
fn while_our_clock_is_held_clients_with_the_right_time_are_served() {
    const NOW: u64 = 1_700_000_000;
    const DAY: u64 = 24 * 3600;
    let wall = Arc::new(HandWall::at(NOW));
    let options = LocalOptions { wall: Arc::clone(&wall) as _, ..LocalOptions::default() };
    let store: Arc<dyn Store> = Arc::new(Local::memory(options).unwrap());
    let engine = Arc::new(Engine::open(store, EngineSettings::default()).unwrap());
    let shown = Arc::clone(&wall);
    let settings = Settings {
        keys: AccountKeys { primary: PRIMARY.to_owned(), ..AccountKeys::default() },
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
        wall: Box::new(move || Timestamp(shown.seconds())),
    };
    let api = Api::new(engine, settings).unwrap();
    assert_eq!((signed(&api, NOW), signed(&api, NOW + DAY)), (200, 403));

    wall.jump(NOW + DAY);
    assert_eq!((signed(&api, NOW), signed(&api, NOW + DAY)), (200, 200));

    // It has stood long enough to be believed.
    wall.pass(600);
    assert_eq!((signed(&api, NOW), signed(&api, NOW + DAY)), (403, 200));
}
