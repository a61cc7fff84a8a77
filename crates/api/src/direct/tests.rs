//! Frames, good and bent: whatever comes is read within its bytes, or refused.

use std::borrow::Cow;

use bytes::Bytes;
use dayfly_model::ErrorKind;
use proptest::prelude::*;

use super::asked::AskedFrame;
use super::frame::{DirectClient, Head, head_bytes, is_greeting};
use super::token::{Form, Forms, Malformed, Tokens, Writer};
use crate::options::{Opt, Options};

/// A greeting as .NET sends it.
fn greeting(protocol: u32) -> Bytes {
    let mut greeting = Writer(vec![0; 24]);
    greeting.ulong(0x0000, protocol);
    greeting.small_text(0x0001, "2020-07-15");
    greeting.small_text(0x0002, "a test");
    finished(greeting)
}

fn finished(Writer(mut bytes): Writer) -> Bytes {
    let length = u32::try_from(bytes.len()).unwrap();
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes.into()
}

fn client() -> DirectClient {
    DirectClient::greet(greeting(1)).unwrap().0
}

/// The head of a request.
fn head(resource: u16, operation: u16, fill: impl FnOnce(&mut Writer)) -> Bytes {
    let mut head = Writer(vec![0; 24]);
    head.0[4..6].copy_from_slice(&resource.to_le_bytes());
    head.0[6..8].copy_from_slice(&operation.to_le_bytes());
    head.byte(0x0002, 0);
    head.ulong(0x004D, 7);
    fill(&mut head);
    finished(head)
}

fn asked(resource: u16, operation: u16, fill: impl FnOnce(&mut Writer)) -> AskedFrame {
    let head = Head::read(head(resource, operation, fill)).unwrap();
    AskedFrame::read(head, &client()).unwrap()
}

fn path(asked: &AskedFrame) -> Result<String, ErrorKind> {
    asked.segments().map(|segments| segments.join("/")).map_err(|error| error.kind)
}

#[test]
fn a_greeting_is_known_and_answered() {
    let bytes = greeting(1);
    assert!(is_greeting(bytes.first_chunk().unwrap()));
    assert!(!is_greeting(b"GET / HT") && !is_greeting(b"PRI * HT"));
    let (client, answer) = DirectClient::greet(bytes).unwrap();
    assert_eq!(client.version, "2020-07-15");
    assert_eq!(answer[..4], u32::try_from(answer.len()).unwrap().to_le_bytes());
    assert_eq!(answer[4..8], 200_u32.to_le_bytes());
    let forms = Forms(b"277722");
    let tokens = Tokens::read(answer[24..].to_vec().into(), &forms).unwrap();
    assert_eq!((tokens.number(0), tokens.text(1)), (Some(1), Some("2020-07-15")));
    assert_eq!((tokens.text(2), tokens.number(4)), (Some("dayfly"), Some(1800)));
    assert!(DirectClient::greet(greeting(2)).is_err());
    // A request is no greeting, and a greeting no request.
    assert!(DirectClient::greet(head(3, 3, |_| ())).is_err());
    assert!(Head::read(greeting(1)).is_err());
}

#[test]
fn what_a_frame_names() {
    let named = |writer: &mut Writer| {
        writer.text(0x0015, b"d");
        writer.text(0x0016, b"c%20");
        writer.text(0x0017, "a/b ?\u{e4}".as_bytes());
    };
    let rid = [0, 0, 0, 5, 0x80, 0, 0, 7, 9, 0, 0, 0, 0, 0, 0, 0];
    for (resource, operation, expected) in [
        (3, 0x0003, Ok("dbs/d/colls/c%20/docs/a/b ?\u{e4}")),
        (3, 0x0001, Ok("dbs/d/colls/c%20/docs")),
        (2, 0x0011, Ok("dbs/d/colls/c%20")),
        (2, 0x0004, Ok("dbs/d/colls")),
        (1, 0x0003, Ok("dbs/d")),
        (1, 0x0012, Ok("dbs")),
        (7, 0x0008, Err(ErrorKind::BadRequest)),
        (3, 0x0099, Err(ErrorKind::BadRequest)),
        (0x99, 0x0003, Err(ErrorKind::BadRequest)),
    ] {
        let asked = asked(resource, operation, named);
        assert_eq!(path(&asked).as_deref(), expected.as_ref().map(|path| *path));
    }
    for (resource, operation, bytes, expected) in [
        (3, 0x0003, 16, Ok("dbs/AAAABQ==/colls/AAAABYAAAAc=/docs/AAAABYAAAAcJAAAAAAAAAA==")),
        (3, 0x0004, 8, Ok("dbs/AAAABQ==/colls/AAAABYAAAAc=/docs")),
        (2, 0x0003, 8, Ok("dbs/AAAABQ==/colls/AAAABYAAAAc=")),
        (1, 0x0003, 4, Ok("dbs/AAAABQ==")),
        (3, 0x0003, 8, Err(ErrorKind::BadRequest)),
        (3, 0x0004, 16, Err(ErrorKind::BadRequest)),
        (1, 0x0003, 16, Err(ErrorKind::BadRequest)),
        (3, 0x0003, 0, Err(ErrorKind::BadRequest)),
    ] {
        let asked = asked(resource, operation, |writer| {
            writer.bytes(0x0000, &rid[..bytes]);
        });
        assert_eq!(path(&asked).as_deref(), expected.as_ref().map(|path| *path), "{bytes}");
    }
}

#[test]
fn tokens_say_what_headers_say() {
    let tokens = |writer: &mut Writer| {
        writer.ulong(0x0004, u32::MAX);
        writer.text(0x0008, b"\"e\"");
        writer.byte(0x0010, 0);
        writer.text(0x0013, b"/apps/x/services/x/partitions/AA-A%3D-3/replicas/1p");
        writer.byte(0x0042, 1);
        writer.bytes(0x0062, b"1F");
        writer.byte(0x0064, 3);
        writer.byte(0x0082, 1);
        writer.byte(0x00BF, 2);
    };
    let (read, write) = (asked(3, 0x0003, tokens), asked(3, 0x0013, tokens));
    let text = |asked: &AskedFrame, option| asked.text(option).unwrap().map(Cow::into_owned);
    for (option, of_read, of_write) in [
        (Opt::MaxItemCount, Some("-1"), Some("-1")),
        (Opt::IfMatch, None, Some("\"e\"")),
        (Opt::IfNoneMatch, Some("\"e\""), None),
        (Opt::ConsistencyLevel, Some("Strong"), Some("Strong")),
        (Opt::RangeId, Some("3"), Some("3")),
        (Opt::QueryMetrics, Some("true"), Some("true")),
        (Opt::StartEpk, Some("1F"), Some("1F")),
        (Opt::ReadKeyType, Some("EffectivePartitionKeyRange"), Some("EffectivePartitionKeyRange")),
        (Opt::Prefer, Some("return=minimal"), Some("return=minimal")),
        (Opt::Priority, Some("Low"), Some("Low")),
        (Opt::IsUpsert, None, Some("true")),
        (Opt::Version, Some("2020-07-15"), Some("2020-07-15")),
        (Opt::SessionToken, None, None),
    ] {
        assert_eq!(text(&read, option).as_deref(), of_read, "{option:?}");
        assert_eq!(text(&write, option).as_deref(), of_write, "{option:?}");
    }
    // Clients ask for the strongest of what is no item, whatever the account has.
    assert_eq!(text(&asked(1, 0x0003, tokens), Opt::ConsistencyLevel), None);
    // With a partition key the range is known by that.
    let keyed = asked(3, 0x0003, |writer| {
        tokens(writer);
        writer.text(0x002B, b"[\"a\"]");
    });
    assert_eq!(text(&keyed, Opt::RangeId), None);
}

#[test]
fn what_makes_no_sense_is_not_read() {
    let bad = |fill: fn(&mut Writer)| Head::read(head(3, 3, fill)).map(drop);
    // A token of another form, one twice, a text that is none, one past the end.
    assert_eq!(bad(|writer| writer.ulong(0x0015, 1)), Err(Malformed));
    assert_eq!(bad(|writer| writer.byte(0x0002, 1)), Err(Malformed));
    assert_eq!(bad(|writer| writer.text(0x0015, b"\xff")), Err(Malformed));
    assert_eq!(bad(|writer| writer.0.extend([0x15, 0, 8, 255, 255, 1])), Err(Malformed));
    assert_eq!(bad(|writer| writer.0.extend([0x15, 0, 0x0F, 1])), Err(Malformed));
    assert_eq!(bad(|writer| writer.0.push(1)), Err(Malformed));
    // Unknown ones are passed, also twice; one number is signed or not.
    assert_eq!(bad(|writer| writer.byte(0x7000, 1)), Ok(()));
    assert_eq!(bad(|writer| (0..2).for_each(|_| writer.byte(0x7000, 1))), Ok(()));
    assert_eq!(bad(|writer| writer.ulong(0x0059, 1)), Ok(()));
    assert_eq!(bad(|writer| writer.0.extend([0x59, 0, 3, 1, 0, 0, 0])), Ok(()));
    // Without the number of the request, or without a word of its body, nobody can go on.
    for (has_body, number, outcome) in [
        (Some(0), Some(7), Ok(())),
        (Some(1), Some(7), Ok(())),
        (Some(2), Some(7), Err(Malformed)),
        (None, Some(7), Err(Malformed)),
        (Some(0), None, Err(Malformed)),
    ] {
        let mut bare = Writer(vec![0; 24]);
        if let Some(has_body) = has_body {
            bare.byte(0x0002, has_body);
        }
        if let Some(number) = number {
            bare.ulong(0x004D, number);
        }
        let head = Head::read(finished(bare)).unwrap();
        let read = AskedFrame::read(head, &client()).map(drop);
        assert_eq!(read, outcome, "{has_body:?} {number:?}");
    }
    for (length, is_good) in
        [(0, false), (23, false), (24, true), (256 << 10, true), ((256 << 10) + 1, false)]
    {
        assert_eq!(head_bytes(u32::to_le_bytes(length)).is_ok(), is_good, "{length}");
    }
}

fn form() -> impl Strategy<Value = u8> {
    0..=(Form::Double as u8 + 1)
}

proptest! {
    /// Whatever bytes come, they are read or refused, and nothing outside of them is.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = Head::read(bytes.clone().into());
        let _ = DirectClient::greet(bytes.into());
    }

    /// The same for bytes that look like tokens, which get further.
    #[test]
    fn any_tokens_are_read_or_refused(
        resource in 0_u16..0x30,
        operation in 0_u16..0x50,
        tokens in proptest::collection::vec(
            (0_u16..0x120, form(), proptest::collection::vec(any::<u8>(), 0..24)), 0..30),
    ) {
        let bytes = head(resource, operation, |writer| {
            for (id, form, value) in &tokens {
                writer.0.extend(id.to_le_bytes());
                writer.0.push(*form);
                writer.0.extend(value);
            }
        });
        if let Ok(head) = Head::read(bytes)
            && let Ok(asked) = AskedFrame::read(head, &client())
        {
            let _ = (asked.segments(), asked.verb(), asked.is_query());
            let _ = (asked.cached_rid(), asked.second_rid());
            for option in [Opt::RangeId, Opt::MaxItemCount, Opt::Prefer, Opt::StartEpk] {
                prop_assert!(asked.text(option).is_ok());
            }
        }
    }

    /// What is written is read back, and its beginning is no frame.
    #[test]
    fn tokens_are_read_back(
        name in "\\PC{0,40}", rid in proptest::collection::vec(any::<u8>(), 0..20), count: u32,
        cut in 1_usize..20,
    ) {
        let bytes = head(3, 3, |writer| {
            writer.text(0x0015, name.as_bytes());
            writer.bytes(0x0000, &rid);
            writer.ulong(0x0004, count);
        });
        let read = Head::read(bytes.clone()).unwrap().tokens;
        prop_assert_eq!(read.text(0x0015), Some(&*name));
        prop_assert_eq!(read.bytes(0x0000), Some(&*rid));
        prop_assert_eq!(read.number(0x0004), Some(u64::from(count)));
        let end = bytes.len() - cut.min(6);
        prop_assert!(Head::read(bytes.slice(..end)).is_err());
    }
}
