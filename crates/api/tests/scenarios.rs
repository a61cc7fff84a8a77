//! Plays the scripts in `tests/scenarios` against the real HTTP handler, with
//! a clock that is set by hand.
//!
//! A script is a list of steps:
//!
//! ```text
//! # Comments say what is proven.
//! strict                         at the top: open the server in strict mode
//! lenient-order-by               at the top: sort without an index, too
//! one-bucket                     at the top: the script pins ranges, so a container has one bucket
//! ttl-change-delay 60            at the top: a change of the default counts 60 seconds later
//! ttl-change-guard 10            at the top: one that expires over 10 % must be confirmed
//! query-steps 100 5000           at the top: how much work a page may make, and a whole answer
//! container-quota 102400         at the top: how many bytes of items may be alive in a container
//! partition-quota 10240          at the top: the same for a partition key
//! serverless                     at the top: nothing is offered to anybody
//! no-test-clock                  at the top: nobody may move the clock by the admin API, or reset
//! clock 1000                     time passes until the wall clock shows this second; a step back
//!                                is no time
//! pass 10                        time passes
//! jump 5000                      the wall clock shows this second, and no time has passed
//! tick                           what the server does each second
//! purge                          remove everything that is due
//! background                     what the server does in the background, until it rests
//! restart                        stop and start on the same data
//! crash                          the process is killed, and started again
//! reboot 5000                    the machine is, and its wall clock then shows this second
//!
//! POST /dbs/shop/colls           a request, signed with the primary key
//! sign: none                     ... or `read-only`, `wrong`, `raw`, `rid`
//! if-match: {e}                  any header; {name} is a value kept before
//! body-bytes: 7b7d               the body as bytes, in hexadecimal digits
//! body-rows: yes                 the body is sent in the binary rows of .NET, and so answered
//! {"id":"carts"}                 the body; `<x*5>` in it is `xxxxx`
//! > 201 {"id":"carts"}           the answer: status and the whole JSON body
//! > 201 ~ {"defaultTtl":5}       ... or a part of it; of a text, one line
//! > 204 <empty>                  ... or nothing
//! > 404                          ... or the status alone
//! > etag: <any>                  a header of the answer; `<absent>`: not there
//! > x-a: base64 {"b":1}          ... or `escaped`: a header's value, decoded
//! let e = etag                   keeps a header, or `body.a.0.b`
//! ```
//!
//! In a part, `"<any>"` is any value and `"<absent>"` no value. System
//! properties other than `_ts` are left out of whole bodies, since they are
//! tested by themselves. `UPDATE=1 cargo test -p dayfly-api` writes the whole
//! bodies anew; read the difference before you commit it.
//!
//! Every script is played in memory with 1 and with 4 buckets a container, also where reads
//! wait for what looks like a network, and on disk; and once more in memory with whatever a
//! frame of direct mode can say sent as one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may panic"
)]

#[path = "scenarios/frames.rs"]
mod frames;
#[path = "scenarios/play.rs"]
mod play;
#[path = "scenarios/rows.rs"]
mod rows;
#[path = "scenarios/script.rs"]
mod script;
#[path = "scenarios/server.rs"]
mod server;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use server::{Engine, Mode, Server};

fn scripts() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios");
    let mut found = Vec::new();
    let mut folders = vec![root];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "txt") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn play_all(engine: Engine) {
    let scripts = scripts();
    let failures: Vec<String> =
        scripts.iter().filter_map(|path| play::script(path, engine).err()).collect();
    assert!(!scripts.is_empty(), "there are no scripts");
    assert!(
        failures.is_empty(),
        "{} of {} scripts failed:\n\n{}",
        failures.len(),
        scripts.len(),
        failures.join("\n\n")
    );
    println!("{} scripts", scripts.len());
}

#[test]
fn every_script_in_memory() {
    play_all(Engine::Memory { slices: 1 });
}

#[test]
fn every_script_in_memory_with_four_buckets() {
    play_all(Engine::Memory { slices: 4 });
}

/// What HTTP answers, direct mode answers. Only those who look what was logged are told how
/// it came.
#[test]
fn every_script_in_frames() {
    play_all(Engine::Frames);
    let (asked, framed) =
        (play::ASKED.load(Ordering::Relaxed), play::FRAMED.load(Ordering::Relaxed));
    assert!(framed * 2 > asked, "{framed} of {asked} requests were frames");
}

#[test]
fn every_script_from_afar() {
    play_all(Engine::Afar);
}

#[test]
fn every_script_on_disk() {
    play_all(Engine::Disk);
}

/// Acceptance row 46: whoever reads all the time sees the item, then does not,
/// and never sees it again; and no answer that shows it is as late as its end.
#[test]
fn a_reader_who_never_stops_sees_the_item_until_its_last_second() {
    let server = Server::new(Engine::Memory { slices: 1 }, Mode::default());
    let send = |method: &str, path: &str, body: &str| {
        let key = ("x-ms-documentdb-partitionkey".to_owned(), "[\"x\"]".to_owned());
        server.send(method, path, &[key], body.as_bytes().to_vec(), "name")
    };
    server.clock(1000);
    send("POST", "/dbs", r#"{"id":"d"}"#);
    let container = r#"{"id":"c","partitionKey":{"paths":["/pk"]},"defaultTtl":3}"#;
    send("POST", "/dbs/d/colls", container);
    assert_eq!(send("POST", "/dbs/d/colls/c/docs", r#"{"id":"a","pk":"x"}"#).status(), 201);

    let end = dayfly_model::Timestamp(1003).to_http_date();
    let done = AtomicBool::new(false);
    let (mut seen, mut gone) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for second in 1000..1006 {
                for _ in 0..200 {
                    send("GET", "/dbs/d/colls/c", "");
                }
                server.clock(second);
            }
            done.store(true, Ordering::SeqCst);
        });
        while !done.load(Ordering::SeqCst) {
            let answer = send("GET", "/dbs/d/colls/c/docs/a", "");
            if answer.status() == 200 {
                seen += 1;
                assert_eq!(gone, 0, "it came back");
                assert_ne!(answer.headers()["date"].to_str().unwrap(), end);
            } else {
                assert_eq!(answer.status(), 404);
                gone += 1;
            }
        }
    });
    assert!(seen > 0 && gone > 0, "{seen} {gone}");
}
