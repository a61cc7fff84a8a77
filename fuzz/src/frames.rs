//! Frames of direct mode: bytes as they come from a socket are a greeting, or a request that
//! a server answers, or they are refused.

use std::cell::RefCell;

use dayfly_api::direct::{
    DirectClient, FIXED_BYTES, FRAME_HEAD_BYTES_MAX, GREETING_SIGN_BYTES, head_bytes, is_greeting,
};

use crate::frame::{Frame, Token, tokens};
use crate::server::{CONTAINER, DATABASE, Server, greeting, signed};
use crate::{hex, rows};

/// What frames may have changed is thrown away after so many.
const FRAMES_PER_SERVER: usize = 64;

/// The token of the number by which a client knows the answer, in a request and in an answer.
const ASKED_AS: u16 = 0x4D;
const ANSWERED_AS: u16 = 0x35;

thread_local! {
    static SERVER: RefCell<Option<(Server, usize)>> = const { RefCell::new(None) };
}

pub(crate) fn run(bytes: &[u8]) {
    let Some((&length, _)) = bytes.split_first_chunk() else { return };
    let Ok(length) = head_bytes(length) else { return };
    assert!((FIXED_BYTES..=FRAME_HEAD_BYTES_MAX).contains(&length));
    // Whatever it says of its length: as much as there is.
    let (head, rest) = bytes.split_at(length.min(bytes.len()));
    let is_greeting = head.first_chunk::<GREETING_SIGN_BYTES>().is_some_and(is_greeting);
    if let Ok((_, answer)) = DirectClient::greet(head.to_vec().into()) {
        assert!(is_greeting || length < GREETING_SIGN_BYTES);
        is_answer(head, &answer, &[]);
    }
    let body = rest.get(4..).unwrap_or_default();
    SERVER.with_borrow_mut(|server| {
        let (here, asked) = server.get_or_insert_with(|| (Server::new(), 0));
        ask(here, head, body);
        *asked += 1;
        if *asked == FRAMES_PER_SERVER {
            *server = None;
        }
    });
}

/// Asks as the bytes are, and then as somebody who has a key.
fn ask(server: &Server, head: &[u8], body: &[u8]) {
    let frame = Frame::read(head);
    if let Some(framed) = server.ask(head, body) {
        let read = frame.as_ref().expect("what the server reads is a frame");
        assert_eq!(read.write()[4..], head[4..], "written as it was read");
        is_answer(head, &framed.head, &framed.body.to_vec());
    }
    if let Some(frame) = frame {
        let head = signed(frame).write();
        if let Some(framed) = server.ask(&head, body) {
            is_answer(&head, &framed.head, &framed.body.to_vec());
        }
    }
}

/// That it is an answer to the request, or to the greeting, to the last byte.
fn is_answer(asked: &[u8], answer: &[u8], body: &[u8]) {
    let asked = Frame::read(asked).expect("what is answered is a frame");
    let number = |at: usize| answer[at..at + 4].iter().rev().fold(0, |n, b| n << 8 | u32::from(*b));
    let length = usize::try_from(number(0)).expect("a length");
    let status = number(4);
    assert!((200..600).contains(&status) && status != 500, "{status} for {asked:?}");
    assert_eq!(answer[8..FIXED_BYTES], asked.activity, "the activity");
    let told = tokens(&answer[FIXED_BYTES..length]).expect("tokens");
    let value = |id: u16| told.iter().find(|token| token.id == id).map(|token| &*token.value);
    let is_greeting = asked.resource == 0 && asked.operation == 0;
    if !is_greeting {
        assert_eq!(value(ANSWERED_AS), asked.value(ASKED_AS), "the number of the request");
        assert_eq!(value(0), Some(&[u8::from(!body.is_empty())][..]), "whether there is a body");
    }
    let ids = told.iter().map(|token| token.id).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(ids.len(), told.len(), "each token once");
    let rest = answer.len() - length;
    match body.len() {
        0 => assert_eq!(rest, 0, "nothing behind the head"),
        bytes => {
            assert_eq!((rest, usize::try_from(number(length))), (4, Ok(bytes)), "a length");
        }
    }
}

/// The frames that real clients sent, and others for what those did not ask.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let captured = include_str!("../../crates/dayfly/tests/direct/captured.txt");
    let frames = captured.split("\n= ").skip(1).filter_map(|part| part.split_once('\n'));
    let mut seeds: Vec<Vec<u8>> = frames.map(|(_, digits)| hex(digits)).collect();
    seeds.push(greeting());
    let named = |more: Vec<Token>| {
        let mut tokens = vec![Token::text(0x15, DATABASE), Token::text(0x16, CONTAINER)];
        tokens.push(Token::text(0x2B, r#"["a"]"#));
        [tokens, more].concat()
    };
    let item = |more: Vec<Token>| named([vec![Token::text(0x17, "3")], more].concat());
    let query = br#"{"query":"SELECT TOP 2 c.id, c.l FROM c WHERE c.n > @n ORDER BY c.n DESC","parameters":[{"name":"@n","value":0}]}"#;
    let patch = br#"{"operations":[{"op":"incr","path":"/n","value":1},{"op":"add","path":"/l/-","value":4}]}"#;
    let batch = br#"[{"operationType":"Create","resourceBody":{"id":"9","pk":"a"}},{"operationType":"Read","id":"1"}]"#;
    let atomic = || vec![Token::byte(0x73, 1)];
    let requests: [(Frame, Vec<u8>); 14] = [
        (Frame::new(3, 0x01, named(vec![])), br#"{"id":"5","pk":"a","ttl":60}"#.to_vec()),
        (
            Frame::new(3, 0x13, named(vec![Token::byte(0x82, 1)])),
            br#"{"id":"6","pk":"a"}"#.to_vec(),
        ),
        (Frame::new(3, 0x02, item(vec![Token::text(0x08, "\"e\"")])), patch.to_vec()),
        (Frame::new(3, 0x03, item(vec![Token::byte(0x10, 2)])), vec![]),
        (Frame::new(3, 0x05, item(vec![])), vec![]),
        (Frame::new(3, 0x04, named(vec![Token::number(0x04, 1)])), vec![]),
        (Frame::new(3, 0x04, named(vec![Token::text(0x3F, "Incremental feed")])), vec![]),
        (Frame::new(3, 0x0F, named(vec![Token::byte(0x42, 1)])), query.to_vec()),
        (
            Frame::new(3, 0x0F, named(vec![Token::bytes(0x62, b""), Token::bytes(0x63, b"FF")])),
            query.to_vec(),
        ),
        (
            Frame::new(3, 0x42, named(vec![Token::text(0xFF, "Aggregate, OrderBy, Top")])),
            query.to_vec(),
        ),
        (Frame::new(3, 0x25, named(atomic())), batch.to_vec()),
        (Frame::new(3, 0x25, named(atomic())), rows::alone(&hex(rows::ROWS[0]))),
        (Frame::new(2, 0x11, named(vec![])), vec![]),
        (Frame::new(0x16, 0x04, named(vec![])), vec![]),
    ];
    seeds.extend(requests.iter().map(|(frame, body)| frame.with_body(body)));
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is bent gets as far as what it was bent from.
    #[test]
    fn most_seeds_are_carried_out() {
        let mut statuses = Vec::new();
        for seed in seeds() {
            let length = usize::from(u16::from_le_bytes([seed[0], seed[1]]));
            let (head, body) = seed.split_at(length);
            let Some(frame) = Frame::read(head) else { continue };
            let body = body.get(4..).unwrap_or_default();
            let asked = Server::new().ask(&signed(frame).write(), body);
            let status =
                asked.map_or(0, |framed| u16::from_le_bytes([framed.head[4], framed.head[5]]));
            statuses.push(status);
        }
        let carried_out = statuses.iter().filter(|status| (200..300).contains(*status)).count();
        assert!(carried_out >= 18, "{statuses:?}");
    }
}
