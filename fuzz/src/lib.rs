//! Bytes of strangers, given to what reads them first.
//!
//! | target   | reads                                                                |
//! |----------|----------------------------------------------------------------------|
//! | `json`   | bodies, in text and in binary JSON                                   |
//! | `patch`  | bodies of patches, which then change some items                      |
//! | `rows`   | the binary rows (`HybridRow`) in which .NET sends batches            |
//! | `frames` | frames of direct mode: greetings, tokens, and what they ask for      |
//!
//! A target takes any bytes. It panics if they were read in a way that they should not be:
//! if what was read is written and read again as something else, or is over a limit, or if an
//! answer is no answer. So whatever runs it, a random generator as in `tests/short.rs` or
//! libFuzzer (`cargo xtask fuzz`), looks for bytes that make it panic.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "to panic is how a target says what is wrong"
)]

pub mod bend;
mod frame;
mod frames;
mod json;
mod patch;
mod rows;
mod server;

/// What may be given any bytes.
#[derive(Clone, Copy)]
pub struct Target {
    /// What it is called.
    pub name: &'static str,
    /// Takes the bytes.
    pub run: fn(&[u8]),
    /// Bytes to begin with, which are good, most of them.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets.
pub const TARGETS: [Target; 4] = [
    Target { name: "json", run: json::run, seeds: json::seeds },
    Target { name: "patch", run: patch::run, seeds: patch::seeds },
    Target { name: "rows", run: rows::run, seeds: rows::seeds },
    Target { name: "frames", run: frames::run, seeds: frames::seeds },
];

/// The target of this name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}

/// Bytes that are written as hexadecimal digits.
fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_hexdigit).collect();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = digits.chunks(2);
    pairs.filter_map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect()
}

/// That a refusal is one of the client's, and not one of ours.
fn is_told(error: &dayfly_model::Error) {
    use dayfly_model::ErrorKind::{BadRequest, TooLarge};
    assert!(matches!(error.kind, BadRequest | TooLarge), "{error:?}");
}
