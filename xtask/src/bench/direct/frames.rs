//! Requests as frames, put together once or from few parts, and where an answer ends. They
//! have what .NET sends with each.

use crate::Result;
use crate::wire::Signer;

use super::super::item::{CONTAINER, DATABASE, id, items_path, partition_key};

const ITEM: u16 = 3;
const CREATE: u16 = 1;
const READ: u16 = 3;

/// What stands in front of the tokens of every frame.
const START_BYTES: usize = 24;

/// A token of each kind that is needed.
enum Value<'v> {
    Byte(u8),
    Number(u32),
    Small(&'v str),
    Text(&'v str),
    Bytes(&'v [u8]),
}

fn put(tokens: &mut Vec<u8>, id: u16, value: Value<'_>) {
    tokens.extend_from_slice(&id.to_le_bytes());
    match value {
        Value::Byte(value) => tokens.extend_from_slice(&[0x00, value]),
        Value::Number(value) => {
            tokens.push(0x02);
            tokens.extend_from_slice(&value.to_le_bytes());
        }
        Value::Small(text) => {
            tokens.extend_from_slice(&[0x07, u8::try_from(text.len()).unwrap_or(u8::MAX)]);
            tokens.extend_from_slice(text.as_bytes());
        }
        Value::Text(text) => put_long(tokens, 0x08, text.as_bytes()),
        Value::Bytes(bytes) => put_long(tokens, 0x0B, bytes),
    }
}

fn put_long(tokens: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    tokens.push(kind);
    tokens.extend_from_slice(&u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_le_bytes());
    tokens.extend_from_slice(bytes);
}

/// The first frame of a connection.
pub(super) fn context() -> Vec<u8> {
    let mut tokens = Vec::new();
    put(&mut tokens, 0x0000, Value::Number(1));
    put(&mut tokens, 0x0001, Value::Small("2020-07-15"));
    put(&mut tokens, 0x0002, Value::Small("dayfly-bench"));
    let mut frame = Vec::new();
    put_frame(&mut frame, [0, 0], &[&tokens]);
    frame
}

/// A head of these tokens.
fn put_frame(frame: &mut Vec<u8>, [kind, operation]: [u16; 2], tokens: &[&[u8]]) {
    let length = START_BYTES + tokens.iter().map(|part| part.len()).sum::<usize>();
    frame.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    frame.extend_from_slice(&kind.to_le_bytes());
    frame.extend_from_slice(&operation.to_le_bytes());
    frame.extend_from_slice(b"activity of load");
    for part in tokens {
        frame.extend_from_slice(part);
    }
}

/// The container of the items, as frames name it.
pub(super) struct Place<'p> {
    pub(super) signer: &'p Signer,
    /// Its resource id, as text and as bytes.
    pub(super) rid: (&'p str, &'p [u8]),
}

impl Place<'_> {
    /// What does not depend on the item: the signature does, of a request to one.
    fn tokens(&self, method: &str, path: &str, has_body: bool) -> Vec<u8> {
        let mut tokens = Vec::new();
        let token = self.signer.token(method, path);
        let replica =
            format!("/apps/dayfly/services/dayfly/partitions/{}-0/replicas/1p", self.rid.0);
        put(&mut tokens, 0x0000, Value::Bytes(self.rid.1));
        put(&mut tokens, 0x0001, Value::Text(&token));
        put(&mut tokens, 0x0002, Value::Byte(u8::from(has_body)));
        put(&mut tokens, 0x0003, Value::Small(self.signer.date()));
        put(&mut tokens, 0x0013, Value::Text(&replica));
        put(&mut tokens, 0x0015, Value::Text(DATABASE));
        put(&mut tokens, 0x0016, Value::Text(CONTAINER));
        put(&mut tokens, 0x0035, Value::Text(self.rid.0));
        put(&mut tokens, 0x0049, Value::Number(30_000));
        put(&mut tokens, 0x004A, Value::Number(0));
        put(&mut tokens, 0x00A2, Value::Number(9));
        tokens
    }

    /// The whole frame that reads an item, but for its number.
    pub(super) fn read(&self, number: u64) -> Vec<u8> {
        let name = id(number);
        let mut tokens = self.tokens("GET", &format!("{}/{name}", items_path()), false);
        put(&mut tokens, 0x0017, Value::Text(&name));
        put_item(&mut tokens, number);
        let mut frame = Vec::new();
        put_frame(&mut frame, [ITEM, READ], &[&tokens]);
        frame
    }

    /// What all frames that create items have in common.
    pub(super) fn creates(&self) -> Creates {
        Creates { tokens: self.tokens("POST", &items_path(), true) }
    }
}

/// The key of an item's partition, and at the very end room for the number of the request.
fn put_item(tokens: &mut Vec<u8>, number: u64) {
    put(tokens, 0x002B, Value::Text(&format!("[\"{}\"]", partition_key(number))));
    put(tokens, 0x004D, Value::Number(0));
}

/// Makes frames that create items; they all have the same signature.
pub(super) struct Creates {
    tokens: Vec<u8>,
}

impl Creates {
    /// Puts the frame for an item into `frame`.
    pub(super) fn put(&self, number: u64, json: &str, frame: &mut Vec<u8>) {
        let mut own = Vec::with_capacity(32);
        put_item(&mut own, number);
        put_frame(frame, [ITEM, CREATE], &[&self.tokens, &own]);
        frame.extend_from_slice(&u32::try_from(json.len()).unwrap_or(u32::MAX).to_le_bytes());
        frame.extend_from_slice(json.as_bytes());
    }
}

/// Gives a request its number, at the end of its tokens.
pub(super) fn set_number(frame: &mut [u8], number: u32) {
    let end = read_number(frame, 0).unwrap_or(0);
    if let Some(place) = end.checked_sub(4).and_then(|start| frame.get_mut(start..end)) {
        place.copy_from_slice(&number.to_le_bytes());
    }
}

/// Four bytes, as a length.
fn read_number(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(bytes)).ok()
}

/// How long the answer in front is, if it is whole; an error if it is one. This is in the
/// way of every answer, on the cores of the server.
pub(super) fn whole(bytes: &[u8]) -> Result<Option<usize>> {
    let Some(head) = read_number(bytes, 0) else { return Ok(None) };
    let Some(tokens) = bytes.get(START_BYTES..head) else { return Ok(None) };
    let status = read_number(bytes, 4).unwrap_or(0);
    if !(200..300).contains(&status) {
        return Err(format!("the server answered {status}: {}", String::from_utf8_lossy(bytes)));
    }
    if !has_body(tokens) {
        return Ok(Some(head));
    }
    let Some(body) = read_number(bytes, head) else { return Ok(None) };
    let end = head + 4 + body;
    Ok((bytes.len() >= end).then_some(end))
}

/// Whether a body follows these tokens; nearly always the first of them says so.
fn has_body(mut tokens: &[u8]) -> bool {
    while let [id_low, id_high, kind, rest @ ..] = tokens {
        if [*id_low, *id_high, *kind] == [0, 0, 0] {
            return rest.first() == Some(&1);
        }
        let Some(after) = value_bytes(*kind, rest).and_then(|bytes| rest.get(bytes..)) else {
            return false;
        };
        tokens = after;
    }
    false
}

/// How long a value of this type is.
fn value_bytes(kind: u8, rest: &[u8]) -> Option<usize> {
    Some(match (kind, rest) {
        (0x00, _) => 1,
        (0x01, _) => 2,
        (0x02 | 0x03 | 0x0D, _) => 4,
        (0x04 | 0x05 | 0x0E, _) => 8,
        (0x06, _) => 16,
        (0x07 | 0x0A, [length, ..]) => 1 + usize::from(*length),
        (0x08 | 0x0B, [low, high, ..]) => 2 + usize::from(u16::from_le_bytes([*low, *high])),
        (0x09 | 0x0C, _) => 4 + read_number(rest, 0)?,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_when_its_body_is_here() {
        let with_body = |tokens: &[u8]| {
            let mut answer = Vec::new();
            put_frame(&mut answer, [200, 0], &[tokens]);
            answer.extend_from_slice(&[2, 0, 0, 0, b'{', b'}']);
            answer
        };
        let mut late = Vec::new();
        put(&mut late, 0x0004, Value::Text("\"etag\""));
        put(&mut late, 0x0010, Value::Small("1.17"));
        put(&mut late, 0x0000, Value::Byte(1));
        for answer in [with_body(&[0, 0, 0, 1]), with_body(&late)] {
            assert_eq!(whole(&answer), Ok(Some(answer.len())));
            assert_eq!(whole(&[&answer[..], &[1, 2, 3]].concat()), Ok(Some(answer.len())));
            for end in [0, 3, 24, answer.len() - 1] {
                assert_eq!(whole(&answer[..end]), Ok(None), "{end}");
            }
        }
        let mut empty = Vec::new();
        put_frame(&mut empty, [204, 0], &[&[0, 0, 0, 0]]);
        assert_eq!(whole(&empty), Ok(Some(empty.len())));
        put_frame(&mut empty, [200, 0], &[]);
        let mut refused = Vec::new();
        put_frame(&mut refused, [404, 0], &[&[0, 0, 0, 0]]);
        assert!(whole(&refused).is_err());
    }

    #[test]
    fn a_request_gets_its_number() {
        let signer = Signer::new().unwrap();
        let place = Place { signer: &signer, rid: ("AAAABoAAABI=", &[0, 0, 0, 6, 128, 0, 0, 18]) };
        let mut frame = place.read(7);
        set_number(&mut frame, 0x0102_0304);
        assert!(frame.ends_with(&[0x4D, 0x00, 0x02, 4, 3, 2, 1]));
        let mut frame = Vec::new();
        place.creates().put(7, "{}", &mut frame);
        set_number(&mut frame, 9);
        assert!(frame.ends_with(&[0x4D, 0x00, 0x02, 9, 0, 0, 0, 2, 0, 0, 0, b'{', b'}']));
    }
}
