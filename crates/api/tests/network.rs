//! What other machines may reach when the server listens on a network address.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use bytes::Bytes;
use dayfly_api::{Api, Incoming, Settings};
use dayfly_engine::{Engine, EngineSettings};
use dayfly_model::Timestamp;
use dayfly_storage::{Local, LocalOptions, Store};
use http::Request;

const PRIMARY: &str = "cHJpbWFyeSBrZXkgb2YgdGhpcyB0ZXN0";
const READ_ONLY: &str = "cmVhZC1vbmx5IGtleSBvZiB0aGlzIHRlc3Q=";

fn api(loopback: bool, admin_public: bool) -> Api {
    let store: Arc<dyn Store> = Arc::new(Local::memory(LocalOptions::default()).unwrap());
    let engine = Arc::new(Engine::open(store, EngineSettings::default()).unwrap());
    let settings = Settings {
        primary_key: PRIMARY.to_owned(),
        read_only_key: Some(READ_ONLY.to_owned()),
        loopback,
        admin_public,
        certificate_pem: Some("a certificate".to_owned()),
        wall: Box::new(|| Timestamp(1_700_000_000)),
    };
    Api::new(engine, settings).unwrap()
}

fn ask(api: &Api, method: &str, path: &str, key: Option<&str>, secure: bool) -> u16 {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(key) = key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    let (parts, ()) = request.body(()).unwrap().into_parts();
    let body = Bytes::from_static(br#"{"advanceSeconds":1}"#);
    let admitted =
        api.admit(&parts, secure).map_or_else(|error| error.kind.wire().status, |()| 200);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let answer = runtime.block_on(api.handle(Incoming { parts, body, secure }));
    let status = answer.status().as_u16();
    if matches!(admitted, 401 | 403) {
        assert_eq!(admitted, status, "{method} {path}");
    }
    status
}

/// Listener, `--admin-public`, TLS, key: what `GET` and `POST` of the clock
/// answer. The clock of this store cannot be moved, which is 403 too.
#[test]
fn who_reaches_the_admin_api() {
    let clock = "/_admin/v1/clock";
    for (loopback, public, secure, key, get, post) in [
        (true, false, false, Some(PRIMARY), 200, 403),
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
        let api = api(loopback, public);
        let case = (loopback, public, secure, key);
        assert_eq!(ask(&api, "GET", clock, key, secure), get, "{case:?}");
        assert_eq!(ask(&api, "POST", clock, key, secure), post, "{case:?}");
    }
}

#[test]
fn who_reaches_the_metrics() {
    for (loopback, secure, key, status) in [
        (true, false, None, 200),
        (false, true, None, 401),
        (false, true, Some(READ_ONLY), 200),
        (false, false, Some(PRIMARY), 403),
    ] {
        let api = api(loopback, false);
        let case = (loopback, secure, key);
        assert_eq!(ask(&api, "GET", "/metrics", key, secure), status, "{case:?}");
    }
}

#[test]
fn what_is_open_on_a_network() {
    let api = api(false, false);
    for (path, status) in [
        ("/ready", 200),
        ("/alive", 200),
        ("/_explorer/emulator.pem", 200),
        ("/", 401),
        ("/dbs", 401),
        ("/dbs/d/colls/c/docs/a", 401),
        ("/offers", 401),
        ("/nothing", 404),
    ] {
        assert_eq!(ask(&api, "GET", path, None, true), status, "{path}");
    }
}
