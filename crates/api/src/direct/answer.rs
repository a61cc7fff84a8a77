//! How a frame spells what an answer tells: tokens.
//!
//! Clients believe an answer, a refusal too, only if it says where the order of commits
//! stands; what is about no container stands at the first commit. They have one replica,
//! in one region, and what it has committed all have.
//!
//! Who reads in a session believes a refusal only by the session token of its container. One
//! that has none says that nobody else would answer otherwise, and is believed at once; so
//! does the news that a container is another by now, whose token the client does not know.

use dayfly_engine::reply::{Pieces, Reply};
use dayfly_model::{ErrorKind, Timestamp};

use super::token::Writer;
use super::{Sender, frame};
use crate::told::{self, Exchange, Figure, Out, Told};

/// An answer, as its bytes: the head, and the body behind it.
pub struct Framed {
    /// Everything but the body.
    pub head: Vec<u8>,
    /// The body.
    pub body: Pieces,
}

/// What an answer needs to know of its request, beside what is told in any protocol.
pub(super) struct ReturnTo<'a> {
    pub(super) sender: Sender,
    /// Whether only the head of an answer is wanted.
    pub(super) only_head: bool,
    pub(super) exchange: Exchange<'a>,
}

/// The tokens that never change while a server runs.
pub(crate) struct Fixed {
    state_change: String,
}

impl Fixed {
    /// Those of a server that runs since `started`.
    pub(crate) fn new(started: Timestamp) -> Fixed {
        Fixed { state_change: started.to_http_date() }
    }
}

/// Turns a reply into a frame.
pub(super) fn respond(reply: Reply, sent: ReturnTo<'_>, fixed: &Fixed) -> Framed {
    let is_in_container = reply.place.is_some();
    let refused = reply.outcome.as_ref().err().map(|error| error.kind);
    let mut out =
        TokenOut { writer: frame::begin(0, sent.sender.activity), lsn: None, has_session: false };
    let payload_present = out.writer.0.len() + 3;
    out.writer.byte(0x0000, 0);
    out.writer.ulong(0x0035, sent.sender.transport_id);
    let (status, body) = told::tell(reply, sent.exchange, &mut out);
    let body = if sent.only_head { Pieces::default() } else { body };
    let is_final = refused == Some(ErrorKind::NameCacheStale) || !out.has_session;
    let (lsn, mut writer) = (out.lsn.unwrap_or(1).max(1), out.writer);
    if refused.is_some() && is_final {
        writer.byte(0x001B, 1);
    }
    for id in [0x0013, 0x003A, 0x0029, 0x001A, 0x003B] {
        writer.longlong(id, lsn);
    }
    // One replica that writes, and no other region.
    for (id, count) in [(0x001E, 1), (0x001F, 1), (0x0030, 0)] {
        writer.ulong(id, count);
    }
    if is_in_container {
        writer.small_text(0x0010, told::SCHEMA_VERSION);
        writer.small_text(0x0002, &fixed.state_change);
        writer.ulong(0x0026, 1);
    }
    for (place, byte) in (4..).zip(u32::from(status).to_le_bytes()) {
        set(&mut writer.0, place, byte);
    }
    set(&mut writer.0, payload_present, u8::from(!body.is_empty()));
    Framed { head: frame::end(writer, body.len()), body }
}

fn set(bytes: &mut [u8], place: usize, byte: u8) {
    if let Some(there) = bytes.get_mut(place) {
        *there = byte;
    }
}

/// Where the figures of an answer become tokens.
struct TokenOut {
    writer: Writer,
    /// The last commit that the answer knows.
    lsn: Option<u64>,
    has_session: bool,
}

impl Out for TokenOut {
    fn put(&mut self, figure: Figure, told: Told) {
        let writer = &mut self.writer;
        match (figure, told) {
            (Figure::Lsn, Told::Number(lsn)) => self.lsn = Some(lsn),
            (Figure::ItemLsn, Told::Number(lsn)) => {
                writer.longlong(0x0032, lsn);
                writer.longlong(0x003C, lsn);
            }
            (Figure::SessionToken, Told::Text(token)) => {
                // The range stands in a token of its own.
                let start = token.iter().position(|byte| *byte == b':').map_or(0, |at| at + 1);
                writer.text(0x003E, token.get(start..).unwrap_or_default());
                self.has_session = true;
            }
            (figure, told) => {
                if let Some(id) = id(figure) {
                    put(writer, id, told);
                }
            }
        }
    }
}

fn put(writer: &mut Writer, id: u16, told: Told) {
    match told {
        Told::Text(text) => writer.text(id, &text),
        Told::Word(word) => writer.byte(id, u8::from(word.eq_ignore_ascii_case("true"))),
        Told::Number(number) => writer.ulong(id, u32::try_from(number).unwrap_or(u32::MAX)),
        Told::Charge(charge_ru) => writer.double(id, charge_ru),
        Told::Took(took) => writer.double(id, took.as_secs_f64() * 1000.0),
        Told::Quota(usage) => writer.text(id, told::quota(usage).as_bytes()),
        Told::Usage(usage) => writer.text(id, told::used(usage).as_bytes()),
        // Of the time of the request nothing is said in a frame.
        Told::Time(_) => {}
    }
}

/// The token of a figure; some have none.
fn id(figure: Figure) -> Option<u16> {
    Some(match figure {
        Figure::Etag => 0x0004,
        Figure::AltContentPath => 0x0017,
        Figure::ContentPath => 0x0018,
        Figure::Continuation => 0x0003,
        Figure::IndexProgress => 0x001D,
        Figure::IndexUtilization => 0x0044,
        Figure::ItemCount => 0x0014,
        Figure::MinThroughput => 0x0042,
        Figure::QueryMetrics => 0x0028,
        Figure::RangeId => 0x0021,
        Figure::ReplacePending => 0x0031,
        Figure::Charge => 0x0015,
        Figure::Duration => 0x0051,
        Figure::RequiresDistribution => 0x0066,
        Figure::RetryAfter => 0x000C,
        Figure::Quota => 0x000E,
        Figure::Usage => 0x000F,
        Figure::ShareThroughput => 0x0036,
        Figure::Substatus => 0x001C,
        // Written once for all that is the same number; or told in another place.
        Figure::Lsn | Figure::LocalLsn | Figure::GlobalLsn | Figure::ItemLsn => return None,
        Figure::SessionToken | Figure::TransportId | Figure::ActivityId => return None,
        Figure::Time | Figure::ContentType | Figure::TtlIgnored => return None,
        Figure::ChargeParts => return None,
    })
}
