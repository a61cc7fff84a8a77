//! The portal at `/_explorer/`: the page for a browser, and the files it is made of.
//!
//! They are built by `cargo xtask portal` and lie packed in `portal/dist`, so that nothing
//! is needed but this binary. A client that does not take brotli gets them unpacked. All
//! names but that of the page itself have a hash of what is in them, so a browser may keep
//! them for ever. Nothing of a request comes into them.
//!
//! What a browser may do with the page is said in headers: it runs no script but ours, and
//! asks nobody else.

use std::sync::{LazyLock, OnceLock};

use brotli_decompressor::BrotliDecompress;
use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderMap, HeaderName, HeaderValue};

/// The page itself.
pub(crate) const INDEX: &str = "index.html";

/// Where it is.
pub(crate) const PATH: &str = "/_explorer/";

/// Each file by its name, packed.
const FILES: &[(&str, &[u8])] = include!("../../../portal/dist/files.rs");

/// The same unpacked, once somebody asked for it.
static UNPACKED: LazyLock<Vec<OnceLock<Bytes>>> =
    LazyLock::new(|| FILES.iter().map(|_| OnceLock::new()).collect());

/// What goes with every file.
const HEADERS: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
         img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("vary", "accept-encoding"),
];

/// A file of the portal, for one client.
pub(crate) struct File {
    pub(crate) kind: &'static str,
    pub(crate) body: Bytes,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
}

/// A file by its name, for a client with these headers.
pub(crate) fn file(name: &str, asked: &HeaderMap) -> Option<File> {
    let place = FILES.iter().position(|(found, _)| *found == name)?;
    let (name, packed) = FILES.get(place)?;
    let cache = if *name == INDEX { "no-cache" } else { "public, max-age=31536000, immutable" };
    let mut headers: Vec<_> = HEADERS.map(fixed).into();
    headers.push(fixed(("cache-control", cache)));
    let body = if takes_brotli(asked) {
        headers.push(fixed(("content-encoding", "br")));
        Bytes::from_static(packed)
    } else {
        UNPACKED.get(place)?.get_or_init(|| unpack(packed)).clone()
    };
    Some(File { kind: kind_of(name), body, headers })
}

/// Whether somebody looks for a page, as a browser does, and not for the account.
pub(crate) fn is_browser(asked: &HeaderMap) -> bool {
    let accepted = asked.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| {
        let kind = kind.split(';').next().unwrap_or_default();
        kind.trim().eq_ignore_ascii_case("text/html")
    })
}

fn takes_brotli(asked: &HeaderMap) -> bool {
    let accepted = asked.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_brotli = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("br"));
        let refused = |part: &str| {
            let weight = part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="));
            weight.is_some_and(|weight| weight.parse() == Ok(0.0))
        };
        is_brotli && !parts.any(refused)
    })
}

fn unpack(mut packed: &[u8]) -> Bytes {
    let mut body = Vec::new();
    // A test unpacks every file, so none of them can fail here.
    if let Err(error) = BrotliDecompress(&mut packed, &mut body) {
        tracing::error!(%error, "a file of the portal cannot be unpacked");
    }
    body.into()
}

fn fixed((name, value): (&'static str, &'static str)) -> (HeaderName, HeaderValue) {
    (HeaderName::from_static(name), HeaderValue::from_static(value))
}

fn kind_of(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, kind)| kind) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("json" | "webmanifest") => "application/json",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(name: &str, headers: &[(&'static str, &'static str)]) -> Option<File> {
        file(name, &headers.iter().copied().map(fixed).collect())
    }

    fn header(file: &File, name: &str) -> Option<HeaderValue> {
        file.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone())
    }

    /// Also that nothing in them is broken.
    #[test]
    fn every_file_comes_packed_and_unpacked() {
        for (name, packed) in FILES {
            let brotli = asked(name, &[("accept-encoding", "gzip, br;q=0.9")]).unwrap();
            assert_eq!(brotli.body, *packed, "{name}");
            assert_eq!(header(&brotli, "content-encoding").unwrap(), "br");
            let plain = asked(name, &[]).unwrap();
            let mut unpacked = Vec::new();
            BrotliDecompress(&mut &**packed, &mut unpacked).unwrap();
            assert_eq!(plain.body, unpacked, "{name}");
            assert!(!plain.body.is_empty() && header(&plain, "content-encoding").is_none());
            assert_ne!(plain.kind, "application/octet-stream", "{name}");
            let cache = header(&plain, "cache-control").unwrap();
            assert_eq!(cache == "no-cache", *name == INDEX, "{name}");
        }
        assert!(asked(INDEX, &[]).is_some());
        assert!(asked("nothing", &[]).is_none());
    }

    /// What is kept for ever must have another name when it changes.
    #[test]
    fn the_names_of_all_files_but_the_page_have_a_hash() {
        for (name, _) in FILES.iter().filter(|(name, _)| *name != INDEX) {
            let stem = name.rsplit_once('.').unwrap().0;
            let hash = stem.rsplit_once('-').unwrap().1;
            assert!(hash.len() >= 8 && hash.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        }
    }

    #[test]
    fn who_refuses_brotli_gets_none() {
        for (value, takes) in [
            ("br", true),
            ("gzip, deflate, BR", true),
            ("gzip;q=1.0, br;q=0.1", true),
            ("br;q=0", false),
            ("br; q=0.000", false),
            ("gzip", false),
            ("brotli", false),
            ("", false),
        ] {
            let headers = [fixed(("accept-encoding", value))].into_iter().collect();
            assert_eq!(takes_brotli(&headers), takes, "{value}");
        }
    }

    #[test]
    fn a_browser_asks_for_html() {
        for (value, is) in [
            ("text/html,application/xhtml+xml,*/*;q=0.8", true),
            ("application/json, text/html;q=0.9", true),
            ("application/json", false),
            ("*/*", false),
        ] {
            assert_eq!(is_browser(&[fixed(("accept", value))].into_iter().collect()), is);
        }
    }
}
