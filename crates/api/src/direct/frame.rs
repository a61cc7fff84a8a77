//! Frames: the head of a request or an answer, and the greeting that comes first.
//!
//! ```text
//! request   length: u32   resource: u16   operation: u16   activity id   tokens   [length, body]
//! answer    length: u32   status: u32                      activity id   tokens   [length, body]
//! ```
//!
//! The length is that of the head. There is no sign at its beginning, so a client is known
//! by its greeting, whose resource and operation are 0: no request of HTTP begins so.

use bytes::Bytes;

use super::token::{Forms, Malformed, Tokens, Writer};

/// What stands before the tokens.
pub const FIXED_BYTES: usize = 24;

/// How many bytes the head of a frame may have.
pub const FRAME_HEAD_BYTES_MAX: usize = 256 * 1024;

/// How many bytes tell a greeting from a request of HTTP.
pub const GREETING_SIGN_BYTES: usize = 8;

/// The version of the protocol, of which there is one.
const PROTOCOL: u64 = 1;

/// What a client reads as the version of the service.
const SERVER_VERSION: &str = "version=2.14.0.0";

/// How long clients may say nothing, in seconds: what they are told.
const IDLE_SECONDS: u32 = 1800;

/// The forms of the tokens of a request, thirty-two to a line.
const REQUEST_FORMS: Forms = Forms(
    b"B8072880888022880878288888888800\
      8888880070088....0.0288...880808\
      000200880225528808000.00B2B0800B\
      B0BB0000.0......00B0008B028000BB\
      85000000008B0082088000B040800800\
      3020880.800808886080080000000080\
      800000000000888080BB000600000000\
      00000001800000000080088860560008\
      7100000",
);

/// The forms of the tokens of a greeting; the last ones are of nobody that we know.
const GREETING_FORMS: Forms = Forms(b"27700");

/// Whether a client greets as those in direct mode do.
pub fn is_greeting(first: &[u8; GREETING_SIGN_BYTES]) -> bool {
    matches!(first, [_, _, _, 0, 0, 0, 0, 0])
}

/// How many bytes the head of the next frame has, if it can be one.
pub fn head_bytes(first: [u8; 4]) -> Result<usize, Malformed> {
    let length = usize::try_from(u32::from_le_bytes(first)).map_err(|_| Malformed)?;
    let is_good = (FIXED_BYTES..=FRAME_HEAD_BYTES_MAX).contains(&length);
    if is_good { Ok(length) } else { Err(Malformed) }
}

/// The head of a request.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) resource: u16,
    pub(super) operation: u16,
    /// To be sent back as it came.
    pub(super) activity: [u8; 16],
    pub(super) tokens: Tokens,
}

impl Head {
    /// Reads a whole head.
    pub(super) fn read(bytes: Bytes) -> Result<Head, Malformed> {
        Head::with(bytes, &REQUEST_FORMS)
    }

    fn with(mut bytes: Bytes, forms: &Forms) -> Result<Head, Malformed> {
        if bytes.len() < FIXED_BYTES {
            return Err(Malformed);
        }
        let tokens = bytes.split_off(FIXED_BYTES);
        let [_, _, _, _, r0, r1, o0, o1, activity @ ..]: [u8; FIXED_BYTES] =
            bytes.as_ref().try_into().map_err(|_| Malformed)?;
        Ok(Head {
            resource: u16::from_le_bytes([r0, r1]),
            operation: u16::from_le_bytes([o0, o1]),
            activity,
            tokens: Tokens::read(tokens, forms)?,
        })
    }
}

/// A client, as it has greeted.
#[derive(Clone, Debug)]
pub struct DirectClient {
    /// The version of the API, for all its requests.
    pub(super) version: String,
}

impl DirectClient {
    /// Reads a greeting: who greets, and what is answered. No greeting is refused: clients
    /// take a refusal for something else.
    pub fn greet(bytes: Bytes) -> Result<(DirectClient, Vec<u8>), Malformed> {
        let Head { resource: 0, operation: 0, activity, tokens } =
            Head::with(bytes, &GREETING_FORMS)?
        else {
            return Err(Malformed);
        };
        if tokens.number(0) != Some(PROTOCOL) {
            return Err(Malformed);
        }
        let version = tokens.text(1).ok_or(Malformed)?.to_owned();
        let mut answer = begin(200, activity);
        answer.ulong(0x0000, 1);
        answer.small_text(0x0001, &version);
        answer.small_text(0x0002, "dayfly");
        answer.small_text(0x0003, SERVER_VERSION);
        answer.ulong(0x0004, IDLE_SECONDS);
        answer.ulong(0x0005, 30);
        Ok((DirectClient { version }, end(answer, 0)))
    }
}

/// The beginning of an answer, which gets its length in the end.
pub(super) fn begin(status: u16, activity: [u8; 16]) -> Writer {
    let mut head = Vec::with_capacity(512);
    head.extend_from_slice(&[0; 4]);
    head.extend_from_slice(&u32::from(status).to_le_bytes());
    head.extend_from_slice(&activity);
    Writer(head)
}

/// An answer's head, with the length of the body behind it where there is one.
pub(super) fn end(answer: Writer, body_bytes: usize) -> Vec<u8> {
    let Writer(mut head) = answer;
    let length = u32::try_from(head.len()).unwrap_or(u32::MAX);
    if let Some(place) = head.first_chunk_mut() {
        *place = length.to_le_bytes();
    }
    if body_bytes > 0 {
        let length = u32::try_from(body_bytes).unwrap_or(u32::MAX);
        head.extend_from_slice(&length.to_le_bytes());
    }
    head
}
