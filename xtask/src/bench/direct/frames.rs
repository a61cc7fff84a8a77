//! Requests as frames, put together once or from few parts, and where an answer ends. They
//! have what .NET sends with each.

use crate::Result;
use crate::direct::{
    CREATE, ITEM, READ, START_BYTES, Value, has_body, put, put_frame, read_number,
};
use crate::wire::Signer;

use super::super::item::{CONTAINER, DATABASE, id, items_path, partition_key};

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
