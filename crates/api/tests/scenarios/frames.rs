//! The requests of a script as frames of direct mode, and their answers as those of HTTP.
//!
//! Written from the protocol, and not with what the server has for it. What a frame cannot
//! say, and what an answer cannot tell in one, is left to HTTP: [`frame`] is `None` then.

use bytes::Bytes;
use http::Response;
use percent_encoding::percent_decode_str;

/// How a value is written.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Flag,
    Number,
    Text,
    Short,
    Bytes,
    Amount,
    Long,
    Word(&'static [&'static str]),
}

use Kind::{Amount, Flag, Long, Number, Short, Text, Word};

const LEVELS: &[&str] = &["Strong", "BoundedStaleness", "Session", "Eventual", "ConsistentPrefix"];

/// Headers of a request that are tokens.
const ASKED: &[(&str, u16, Kind)] = &[
    ("authorization", 0x01, Text),
    ("x-ms-date", 0x03, Short),
    ("x-ms-max-item-count", 0x04, Number),
    ("x-ms-session-token", 0x05, Text),
    ("x-ms-continuation", 0x06, Text),
    ("x-ms-indexing-directive", 0x07, Word(&["Default", "Include", "Exclude"])),
    ("if-match", 0x08, Text),
    ("if-none-match", 0x08, Text),
    ("x-ms-documentdb-pre-trigger-include", 0x09, Text),
    ("x-ms-documentdb-post-trigger-include", 0x0A, Text),
    ("x-ms-consistency-level", 0x10, Word(LEVELS)),
    ("x-ms-documentdb-query-enable-scan", 0x1E, Flag),
    ("x-ms-version", 0x28, Short),
    ("x-ms-documentdb-partitionkey", 0x2B, Text),
    ("x-ms-documentdb-partitionkeyrangeid", 0x2C, Text),
    ("a-im", 0x3F, Text),
    ("x-ms-documentdb-populatequotainfo", 0x40, Flag),
    ("x-ms-documentdb-populatequerymetrics", 0x42, Flag),
    ("x-ms-documentdb-responsecontinuationtokenlimitinkb", 0x43, Number),
    ("x-ms-documentdb-populatepartitionstatistics", 0x44, Flag),
    ("if-modified-since", 0x47, Text),
    ("x-ms-start-epk", 0x62, Kind::Bytes),
    ("x-ms-end-epk", 0x63, Kind::Bytes),
    ("x-ms-read-key-type", 0x64, Word(&["", "", "", "EffectivePartitionKeyRange"])),
    ("x-ms-documentdb-content-serialization-format", 0x65, Word(&["JsonText", "CosmosBinary"])),
    ("x-ms-cosmos-batch-atomic", 0x73, Flag),
    ("x-ms-cosmos-batch-continue-on-error", 0x74, Flag),
    ("x-ms-cosmos-batch-ordered", 0x75, Flag),
    ("prefer", 0x82, Word(&["return=representation", "return=minimal"])),
    ("x-ms-cosmos-intended-collection-rid", 0x9D, Text),
    ("x-ms-cosmos-populateindexmetrics", 0xA9, Flag),
    ("x-ms-cosmos-changefeed-wire-format-version", 0xB2, Text),
    ("x-ms-cosmos-populateindexmetrics-v2", 0xC2, Flag),
    ("x-ms-cosmos-query-optimisticdirectexecute", 0xC8, Flag),
    ("x-ms-cosmos-supported-query-features", 0xFF, Text),
];

/// Headers that the number of the operation says.
const BY_OPERATION: &[&str] = &[
    "content-type",
    "x-ms-documentdb-isquery",
    "x-ms-documentdb-is-upsert",
    "x-ms-documentdb-query-enablecrosspartition",
    "x-ms-cosmos-is-batch-request",
    "x-ms-cosmos-is-query-plan-request",
];

/// Tokens of an answer that are headers.
const TOLD: &[(u16, Kind, &str)] = &[
    (0x02, Short, "x-ms-last-state-change-utc"),
    (0x03, Text, "x-ms-continuation"),
    (0x04, Text, "etag"),
    (0x0C, Number, "x-ms-retry-after-ms"),
    (0x0E, Text, "x-ms-resource-quota"),
    (0x0F, Text, "x-ms-resource-usage"),
    (0x10, Short, "x-ms-schemaversion"),
    (0x13, Long, "lsn"),
    (0x14, Number, "x-ms-item-count"),
    (0x15, Amount, "x-ms-request-charge"),
    (0x17, Text, "x-ms-alt-content-path"),
    (0x18, Text, "x-ms-content-path"),
    (0x1A, Long, ""),
    (0x1B, Flag, ""),
    (0x1C, Number, "x-ms-substatus"),
    (0x1D, Number, "x-ms-documentdb-collection-index-transformation-progress"),
    (0x1E, Number, "x-ms-current-write-quorum"),
    (0x1F, Number, "x-ms-current-replica-set-size"),
    (0x21, Text, "x-ms-documentdb-partitionkeyrangeid"),
    (0x26, Number, "x-ms-xp-role"),
    (0x28, Text, "x-ms-documentdb-query-metrics"),
    (0x29, Long, "x-ms-global-committed-lsn"),
    (0x30, Number, "x-ms-number-of-read-regions"),
    (0x31, Flag, "x-ms-offer-replace-pending"),
    (0x32, Long, "x-ms-item-lsn"),
    (0x35, Number, ""),
    (0x36, Flag, "x-ms-share-throughput"),
    (0x3A, Long, "x-ms-cosmos-llsn"),
    (0x3B, Long, ""),
    (0x3C, Long, ""),
    (0x3E, Text, "x-ms-session-token"),
    (0x42, Number, "x-ms-cosmos-min-throughput"),
    (0x44, Text, "x-ms-cosmos-index-utilization"),
    (0x51, Amount, "x-ms-request-duration-ms"),
    (0x66, Flag, "x-ms-cosmos-query-requiresdistribution"),
];

/// What is the same in all answers of direct mode, and may be missing in those of HTTP.
const ALWAYS: &[u16] = &[0x13, 0x15, 0x1A, 0x1E, 0x1F, 0x29, 0x30, 0x35, 0x3A, 0x3B, 0x51];

/// The greeting of a client, which asks for this version of the API.
pub(crate) fn greeting(version: &str) -> Bytes {
    let mut head = vec![0; 24];
    put(&mut head, 0x00, Number, "1");
    put(&mut head, 0x01, Short, version);
    put(&mut head, 0x02, Short, "scenarios");
    finished(head)
}

/// A request as a frame: its head and its body.
pub(crate) fn frame(
    method: &str,
    path: &str,
    headers: &[(String, String)],
    body: &[u8],
) -> Option<(Bytes, Bytes)> {
    if path.contains('?') || path.contains("/operations/") {
        return None;
    }
    let parts: Vec<String> = path
        .split('/')
        .filter(|part| !part.is_empty())
        .map(|part| percent_decode_str(part).decode_utf8().map(Into::into))
        .collect::<Result<_, _>>()
        .ok()?;
    let sort = sort(&parts)?;
    let value =
        |name: &str| headers.iter().find(|(found, _)| found == name).map(|(_, value)| &**value);
    let is_true = |name: &str| value(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let is_feed = parts.len() % 2 == 1;
    let is_query = is_true("x-ms-documentdb-isquery")
        || value("content-type") == Some("application/query+json");
    let operation: u16 = match (method, is_feed) {
        ("POST", true) if is_true("x-ms-cosmos-is-batch-request") => 0x25,
        ("POST", true) if is_true("x-ms-cosmos-is-query-plan-request") => 0x42,
        ("POST", true) if is_query => 0x0F,
        ("POST", true) if is_true("x-ms-documentdb-is-upsert") => 0x13,
        ("POST", true) => 0x01,
        ("GET", true) => 0x04,
        ("GET", false) => 0x03,
        ("PUT", false) => 0x06,
        ("PATCH", false) => 0x02,
        ("DELETE", false) => 0x05,
        _ => return None,
    };
    let has_part = value("x-ms-documentdb-partitionkey").is_some()
        || value("x-ms-documentdb-partitionkeyrangeid").is_some();
    let crosses = is_true("x-ms-documentdb-query-enablecrosspartition");
    if operation == 0x0F && sort == 3 && has_part == crosses {
        // A frame may always cross: clients ask range by range, or name a key.
        return None;
    }
    let mut head = vec![0; 24];
    head[4..6].copy_from_slice(&sort.to_le_bytes());
    head[6..8].copy_from_slice(&operation.to_le_bytes());
    head[8..24].copy_from_slice(b"0123456789abcdef");
    put(&mut head, 0x02, Flag, if body.is_empty() { "false" } else { "true" });
    put(&mut head, 0x4D, Number, "7");
    for (word, name) in parts.chunks(2).filter_map(|pair| pair.first().zip(pair.get(1))) {
        put(&mut head, name_token(word)?, Text, name);
    }
    for (name, value) in headers {
        if headers.iter().filter(|(other, _)| other == name).count() > 1 {
            return None;
        }
        if BY_OPERATION.contains(&&**name) {
            if name != "content-type" && !fits(Flag, value) {
                return None;
            }
            continue;
        }
        let (_, id, kind) = ASKED.iter().find(|(known, ..)| known == name)?;
        let is_read = matches!(operation, 0x03 | 0x04);
        let is_other = (name == "if-match" && is_read) || (name == "if-none-match" && !is_read);
        if is_other || (name == "x-ms-consistency-level" && sort != 3) {
            return None;
        }
        if !fits(*kind, value) {
            return None;
        }
        put(&mut head, *id, *kind, value);
    }
    Some((finished(head), body.to_vec().into()))
}

/// Whether an answer in a frame has the header.
pub(crate) fn tells(header: &str) -> bool {
    TOLD.iter().any(|(id, _, name)| *name == header && !ALWAYS.contains(id))
        || matches!(header, "x-ms-request-charge")
}

/// An answer as HTTP would have it.
pub(crate) fn answer(head: &[u8], body: Bytes) -> Result<Response<Bytes>, String> {
    let status = u16::try_from(number(&head[4..8])).map_err(|_| "no status")?;
    let length = usize::try_from(number(&head[..4])).map_err(|_| "no length")?;
    let mut response = Response::builder().status(status);
    let (mut at, mut seen, mut has_body) = (24, Vec::new(), false);
    let mut range = String::new();
    let mut session = None;
    if &head[8..24] != b"0123456789abcdef" {
        return Err("another activity id".to_owned());
    }
    while at < length {
        let id = u16::from_le_bytes([head[at], head[at + 1]]);
        let (start, size) = match head[at + 2] {
            0 => (at + 3, 1),
            2 => (at + 3, 4),
            5 | 0x0E => (at + 3, 8),
            7 => (at + 4, usize::from(head[at + 3])),
            8 => (at + 5, usize::from(u16::from_le_bytes([head[at + 3], head[at + 4]]))),
            form => return Err(format!("token {id:#06x} has the form {form}")),
        };
        let bytes = &head[start..start + size];
        at = start + size;
        seen.push(id);
        if id == 0 {
            has_body = bytes == [1];
            continue;
        }
        let (_, kind, name) = TOLD
            .iter()
            .find(|(known, ..)| *known == id)
            .ok_or_else(|| format!("nobody knows the token {id:#06x}"))?;
        let value = text(*kind, bytes)?;
        match *name {
            "" => {}
            "x-ms-session-token" => session = Some(value),
            _ => {
                if *name == "x-ms-documentdb-partitionkeyrangeid" {
                    range.clone_from(&value);
                }
                // As HTTP writes it: names of any language.
                let value = match *name {
                    "x-ms-alt-content-path" => escaped(&value),
                    _ => value,
                };
                response = response.header(*name, value);
            }
        }
    }
    if let Some(missing) = ALWAYS.iter().find(|id| !seen.contains(id)) {
        return Err(format!("the answer has no token {missing:#06x}"));
    }
    // A refusal that clients do not believe is asked for again and again.
    let is_believed = session.is_some() || seen.contains(&0x1B);
    if status >= 400 && !is_believed || status < 400 && seen.contains(&0x1B) {
        return Err(format!("{status} with the tokens {seen:x?}"));
    }
    if has_body == body.is_empty() {
        return Err(format!("the token says of a body {has_body}, and it has {}", body.len()));
    }
    if let Some(session) = session {
        response = response.header("x-ms-session-token", format!("{range}:{session}"));
    }
    response.body(body).map_err(|why| why.to_string())
}

fn escaped(path: &str) -> String {
    const SET: &percent_encoding::AsciiSet = &percent_encoding::CONTROLS.add(b'%');
    percent_encoding::utf8_percent_encode(path, SET).to_string()
}

/// The number of a kind of resource, by its path.
fn sort(parts: &[String]) -> Option<u16> {
    let words: Vec<&str> = parts.iter().step_by(2).map(|word| &**word).collect();
    Some(match words.as_slice() {
        ["dbs"] => 1,
        ["dbs", "colls"] => 2,
        ["dbs", "colls", "docs"] => 3,
        ["dbs", "users"] => 5,
        ["dbs", "colls", "sprocs"] => 7,
        ["dbs", "colls", "conflicts"] => 8,
        ["dbs", "colls", "triggers"] => 9,
        ["dbs", "colls", "udfs"] => 0x0A,
        ["dbs", "colls", "pkranges"] => 0x16,
        ["dbs", "clientencryptionkeys"] => 0x23,
        _ => return None,
    })
}

fn name_token(word: &str) -> Option<u16> {
    Some(match word {
        "dbs" => 0x15,
        "colls" => 0x16,
        "docs" => 0x17,
        "users" => 0x19,
        "sprocs" => 0x1B,
        "udfs" => 0x1C,
        "triggers" => 0x1D,
        "conflicts" => 0x20,
        "pkranges" => 0x36,
        "clientencryptionkeys" => 0x80,
        _ => return None,
    })
}

fn fits(kind: Kind, value: &str) -> bool {
    match kind {
        Flag => ["true", "false"].iter().any(|word| value.eq_ignore_ascii_case(word)),
        Number => value == "-1" || value.parse::<u32>().is_ok_and(|number| number != u32::MAX),
        Word(words) => {
            !value.is_empty() && words.iter().any(|word| value.eq_ignore_ascii_case(word))
        }
        Short => value.len() < 256,
        _ => value.len() < 65_536,
    }
}

fn put(head: &mut Vec<u8>, id: u16, kind: Kind, value: &str) {
    head.extend(id.to_le_bytes());
    let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
    match kind {
        Flag => head.extend([0, u8::from(value.eq_ignore_ascii_case("true"))]),
        Word(words) => {
            let place = words.iter().position(|word| value.eq_ignore_ascii_case(word));
            head.extend([0, place.and_then(|place| u8::try_from(place).ok()).unwrap_or(255)]);
        }
        Number => {
            head.push(2);
            head.extend(value.parse::<u32>().unwrap_or(u32::MAX).to_le_bytes());
        }
        Short => head.extend([7, u8::try_from(value.len()).unwrap_or(u8::MAX)]),
        Kind::Bytes => {
            head.push(0x0B);
            head.extend(length.to_le_bytes());
        }
        _ => {
            head.push(8);
            head.extend(length.to_le_bytes());
        }
    }
    if matches!(kind, Short | Text | Kind::Bytes) {
        head.extend(value.as_bytes());
    }
}

fn finished(mut head: Vec<u8>) -> Bytes {
    let length = u32::try_from(head.len()).unwrap_or(u32::MAX);
    head[..4].copy_from_slice(&length.to_le_bytes());
    head.into()
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn text(kind: Kind, bytes: &[u8]) -> Result<String, String> {
    Ok(match kind {
        Flag => if number(bytes) == 0 { "False" } else { "true" }.to_owned(),
        Number | Long => number(bytes).to_string(),
        Amount => f64::from_bits(number(bytes)).to_string(),
        _ => std::str::from_utf8(bytes).map_err(|why| why.to_string())?.to_owned(),
    })
}
