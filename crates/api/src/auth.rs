//! Who may do what: signatures with the account's keys.
//!
//! A client signs the verb, the type of the resource, the link to it and the
//! date. SDKs differ in how they write the link: decoded or as it stands in
//! the path, in full or, for RIDs, only the last one in lower case. Any of
//! them is good, the last one where the whole path is RIDs: a RID says what it
//! is in, a name does not. Nothing of the key shows in how long a comparison
//! takes.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dayfly_engine::Caller;
use dayfly_model::rid::{self, OfferRid};
use dayfly_model::{Error, ErrorKind, Result, Timestamp};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::options::{Opt, Options};

/// How far a request's date may be from the server's, in seconds.
const WINDOW_SECONDS: u64 = 15 * 60;

type Signer = Hmac<Sha256>;

/// A key of the account.
struct Key {
    text: String,
    signer: Signer,
}

impl Key {
    /// Reads a key as it is written: base64.
    fn parse(text: &str) -> Result<Key> {
        let bytes = STANDARD
            .decode(text.trim())
            .map_err(|_| Error::bad_request("The account key is not valid base64."))?;
        let signer = Signer::new_from_slice(&bytes)
            .map_err(|_| Error::bad_request("The account key cannot be used."))?;
        Ok(Key { text: text.trim().to_owned(), signer })
    }

    fn signed(&self, payload: &str, signature: &[u8]) -> bool {
        let mut signer = self.signer.clone();
        signer.update(payload.as_bytes());
        signer.verify_slice(signature).is_ok()
    }

    fn is(&self, text: &str) -> bool {
        self.text.as_bytes().ct_eq(text.as_bytes()).into()
    }
}

/// The keys of the account, in base64.
#[derive(Clone, Default)]
pub struct AccountKeys {
    /// The key that may do everything.
    pub primary: String,
    /// Another that may do the same, if there is one.
    pub secondary: Option<String>,
    /// The key that may read, if there is one.
    pub read_only: Option<String>,
}

impl fmt::Debug for AccountKeys {
    /// Nothing of a key stands in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccountKeys").finish_non_exhaustive()
    }
}

/// The account's keys.
pub(crate) struct Keys {
    primary: Key,
    /// May do the same: clients use it while the primary is changed.
    secondary: Option<Key>,
    read_only: Option<Key>,
}

impl Keys {
    /// Reads keys as they are written.
    pub(crate) fn parse(keys: &AccountKeys) -> Result<Keys> {
        let key = |text: &Option<String>| text.as_deref().map(Key::parse).transpose();
        Ok(Keys {
            primary: Key::parse(&keys.primary)?,
            secondary: key(&keys.secondary)?,
            read_only: key(&keys.read_only)?,
        })
    }

    /// Who signed a request.
    pub(crate) fn verify(
        &self,
        method: &str,
        path: SignedPath<'_>,
        options: &dyn Options,
        wall: Timestamp,
    ) -> Result<Caller> {
        let token = options.text(Opt::Authorization)?.ok_or_else(|| {
            unauthorized(
                "Required Header authorization is missing. Ensure a valid Authorization token is \
                 passed.",
            )
        })?;
        let signature = signature(&token)?;
        let date = signed_date(options)?;
        let signed = Signed { method, path, date: &date };
        let caller = self.caller(|key| signed.by(key, &signature));
        let caller = caller.ok_or_else(|| wrong_signature(&signed))?;
        check_window(&date, wall)?;
        Ok(caller)
    }

    /// Whose key it is that somebody gives as it is.
    pub(crate) fn whose(&self, key: &str) -> Option<Caller> {
        self.caller(|known| known.is(key))
    }

    /// Whose key it is.
    fn caller(&self, is: impl Fn(&Key) -> bool) -> Option<Caller> {
        let keys = [
            (Some(&self.primary), Caller::Primary),
            (self.secondary.as_ref(), Caller::Secondary),
            (self.read_only.as_ref(), Caller::ReadOnly),
        ];
        keys.into_iter().find_map(|(key, caller)| key.is_some_and(&is).then_some(caller))
    }
}

/// What somebody sends as it is, and signs nothing with: a key or a token.
pub(crate) fn bearer(options: &dyn Options) -> Result<Option<String>> {
    let given = options.text(Opt::Authorization)?.unwrap_or_default();
    Ok(given.strip_prefix("Bearer ").map(|bearer| bearer.trim().to_owned()))
}

pub(crate) fn unauthorized(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unauthorized, message)
}

fn wrong_signature(signed: &Signed<'_>) -> Error {
    let payload = signed.payload(signed.kind(), &signed.decoded_link());
    unauthorized(format!(
        "The input authorization token can't serve the request. Please check that the expected \
         payload is built as per the protocol, and check the key being used. Server used the \
         following payload to sign: '{}'",
        payload.replace('\n', "\\n")
    ))
}

/// The signature in `type=master&ver=1.0&sig=…`, percent-encoded or not.
fn signature(token: &str) -> Result<Vec<u8>> {
    let token = decoded(token.as_bytes());
    let mut kind: &[u8] = b"";
    let mut signature: &[u8] = b"";
    for part in token.splitn(3, |byte| *byte == b'&') {
        if let Some(value) = part.strip_prefix(b"type=") {
            kind = value;
        } else if let Some(value) = part.strip_prefix(b"sig=") {
            signature = value;
        }
    }
    match kind {
        b"master" => STANDARD.decode(signature).map_err(|_| malformed()),
        b"resource" => Err(Error::not_yet("A resource token")),
        b"sas" => Err(Error::not_yet("A SAS token")),
        b"aad" => Err(Error::not_yet("An Entra ID token")),
        _ => Err(malformed()),
    }
}

/// Percent-encoded bytes, decoded; what is no escape stays as it is. Every
/// request has one of these, and most of its bytes are not escaped.
fn decoded(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let escaped = match after {
            [high, low, ..] if *first == b'%' => digit(*high).zip(digit(*low)),
            _ => None,
        };
        if let Some((high, low)) = escaped {
            bytes.push(high << 4 | low);
            rest = after.get(2..).unwrap_or_default();
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    bytes
}

fn digit(byte: u8) -> Option<u8> {
    u8::try_from(char::from(byte).to_digit(16)?).ok()
}

fn malformed() -> Error {
    unauthorized(
        "The input authorization token can't serve the request. It must have the form \
         'type=master&ver=1.0&sig=<signature>'.",
    )
}

/// The date that was signed. It is signed in lower case, in one of two fields.
struct SignedDate<'a> {
    text: Cow<'a, str>,
    is_x_ms_date: bool,
}

fn signed_date(options: &dyn Options) -> Result<SignedDate<'_>> {
    let given = |option: Opt| Ok(options.text(option)?.filter(|date| !date.is_empty()));
    if let Some(text) = given(Opt::Date)? {
        return Ok(SignedDate { text, is_x_ms_date: true });
    }
    match given(Opt::PlainDate)? {
        Some(text) => Ok(SignedDate { text, is_x_ms_date: false }),
        None => Err(unauthorized(
            "Authorization token mandates Date headers. Please generate another token and retry.",
        )),
    }
}

fn check_window(signed: &SignedDate<'_>, wall: Timestamp) -> Result<()> {
    let text = &signed.text;
    let start =
        Timestamp::parse_http_date(text).or_else(|| Timestamp::parse_http_date(&cased(text)));
    let Some(start) = start else {
        return Err(unauthorized(format!(
            "The input date header '{text}' is invalid. Please pass a date in RFC 1123 format."
        )));
    };
    if start.0.abs_diff(wall.0) <= WINDOW_SECONDS {
        return Ok(());
    }
    let end = Timestamp(start.0.saturating_add(WINDOW_SECONDS));
    Err(Error::new(
        ErrorKind::Forbidden,
        format!(
            "The authorization token is not valid at the current time. Please create another \
             token and retry (token start time: {}, token expiry time: {}, current server time: \
             {}).",
            start.to_http_date(),
            end.to_http_date(),
            wall.to_http_date()
        ),
    ))
}

/// A date as it is usually written: some clients send it in lower case.
fn cased(date: &str) -> String {
    let mut text = String::with_capacity(date.len());
    let mut word_starts = true;
    for c in date.chars() {
        text.push(if word_starts { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() });
        word_starts = !c.is_ascii_alphabetic();
    }
    text.replace("Gmt", "GMT")
}

/// The path of a request, as far as it is signed.
#[derive(Clone, Copy)]
pub(crate) struct SignedPath<'a> {
    /// As it stands in the request, where it stands there in one piece.
    pub(crate) raw: Option<&'a str>,
    /// Its parts, decoded.
    pub(crate) segments: &'a [Cow<'a, str>],
}

/// What a client signs of a request. SDKs write the link in different ways.
struct Signed<'a> {
    method: &'a str,
    path: SignedPath<'a>,
    date: &'a SignedDate<'a>,
}

impl Signed<'_> {
    /// Whether `signature` was made with `key`, the likeliest form first.
    fn by(&self, key: &Key, signature: &[u8]) -> bool {
        let good = |link: &str| {
            key.signed(&self.payload(self.kind(), link), signature)
                || (self.is_partition_key_delete()
                    && key.signed(&self.payload("partitionkey", link), signature))
        };
        good(&self.decoded_link())
            || self.raw_link().is_some_and(|link| good(&link))
            || self.rid_link().is_some_and(|link| good(&link))
    }

    fn payload(&self, kind: &str, link: &str) -> String {
        let mut payload = String::with_capacity(96 + link.len());
        payload.push_str(self.method);
        payload.make_ascii_lowercase();
        for part in ["\n", kind, "\n", link, "\n"] {
            payload.push_str(part);
        }
        if !self.date.is_x_ms_date {
            payload.push('\n');
        }
        let date_starts = payload.len();
        payload.push_str(&self.date.text);
        if let Some(date) = payload.get_mut(date_starts..) {
            date.make_ascii_lowercase();
        }
        payload.push_str(if self.date.is_x_ms_date { "\n\n" } else { "\n" });
        payload
    }

    fn is_partition_key_delete(&self) -> bool {
        self.path.segments.get(4).is_some_and(|kind| kind == "operations")
    }

    /// How much of the path is the link: the resource itself, or for a feed
    /// the resource above it.
    fn depth(&self) -> usize {
        let count = self.path.segments.len();
        if self.is_partition_key_delete() { 4 } else { count - count % 2 }
    }

    /// The type that is signed: the last but one segment, or for a feed the
    /// last.
    fn kind(&self) -> &str {
        let at = match self.path.segments.len() {
            _ if self.is_partition_key_delete() => 2,
            0 => return "",
            count if count % 2 == 0 => count - 2,
            count => count - 1,
        };
        self.path.segments.get(at).map_or("", AsRef::as_ref)
    }

    fn decoded_link(&self) -> String {
        join(self.path.segments.iter().map(AsRef::as_ref).take(self.depth()))
    }

    fn raw_link(&self) -> Option<String> {
        let segments = self.path.raw?.split('/').filter(|segment| !segment.is_empty());
        Some(join(segments.take(self.depth())))
    }

    /// If everything is named by its RID.
    fn rid_link(&self) -> Option<String> {
        let path = self.path.segments.get(..self.depth())?;
        let (last, first) = (path.last()?, path.first()?);
        let is_rid = if first == "offers" {
            OfferRid::parse(last).is_some()
        } else {
            rid::is_line(path.iter().skip(1).step_by(2).map(AsRef::as_ref))
        };
        is_rid.then(|| last.to_ascii_lowercase())
    }
}

fn join<'a>(segments: impl Iterator<Item = &'a str>) -> String {
    let mut link = String::with_capacity(64);
    for segment in segments {
        if !link.is_empty() {
            link.push('/');
        }
        link.push_str(segment);
    }
    link
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read_in_either_case() {
        for (text, expected) in [
            ("type%3Dmaster%26ver%3d1.0", "type=master&ver=1.0"),
            ("a%2Bb%2f%3D%3D", "a+b/=="),
            ("100%", "100%"),
            ("%4", "%4"),
            ("%zz%41", "%zzA"),
            ("", ""),
        ] {
            assert_eq!(String::from_utf8(decoded(text.as_bytes())).unwrap(), expected);
        }
    }
}
