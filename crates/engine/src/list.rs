//! The items of a container, page by page, in the order in which they were made.

use bytes::{Buf, BufMut};
use dayfly_model::Result;
use dayfly_model::charge::{self, Charge};

use crate::creation::InOrder;
use crate::operation::{Page, Part};
use crate::pages::{bad_token, limit, read_token, write_token};
use crate::parts::{Segment, segments_before};
use crate::record::Record;
use crate::reply::{Reply, Success};
use crate::scope::Opened;

/// The largest page, in bytes of JSON.
pub(crate) const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Shows items of a container.
pub(crate) fn items(opened: &Opened, part: &Part, page: &Page) -> Reply {
    let container = &opened.container;
    let show = |record: &Record, out: &mut Vec<u8>| {
        record.render_into(container, &record.etag(container), out);
    };
    let outcome = rows(opened, part, page, &show).map(|filled| reply(opened, filled));
    outcome.unwrap_or_else(|error| opened.failed(error)).at(opened.place(part))
}

fn reply(opened: &Opened, filled: Filled) -> Reply {
    let rid = &opened.container.rid_text;
    let mut body = Vec::with_capacity(filled.rows.len() + 64);
    body.put_slice(format!("{{\"_rid\":\"{rid}\",\"Documents\":[").as_bytes());
    body.put_slice(&filled.rows);
    body.put_slice(format!("],\"_count\":{}}}", filled.count).as_bytes());
    let success = Success {
        continuation: filled.continuation,
        item_count: Some(filled.count),
        ..Success::new(200, body)
    };
    Reply::ok(success, opened.now(), filled.charge.or_miss())
}

/// Writes what is shown of an item.
type Show<'a> = &'a dyn Fn(&Record, &mut Vec<u8>);

/// A page that is done.
pub(crate) struct Filled {
    /// What is shown of the items, with commas between.
    pub(crate) rows: Vec<u8>,
    pub(crate) count: usize,
    pub(crate) continuation: Option<String>,
    pub(crate) charge: Charge,
}

/// A page of items, each of which is shown by `show`.
pub(crate) fn rows(opened: &Opened, part: &Part, page: &Page, show: Show<'_>) -> Result<Filled> {
    ListPage::new(opened, part, page, show).and_then(ListPage::run)
}

/// Where a page ends: the range, the mark of its segment, and the number of the first item
/// that is not on it.
type ListPlace = (u32, u32, u64);

/// One page of items on its way.
struct ListPage<'a> {
    opened: &'a Opened,
    /// What to read, in order.
    segments: Vec<Segment>,
    /// The number of the first item, in the first of them.
    from: u64,
    limit: usize,
    scope: [u8; 4],
    /// How many ranges had been numbered when the first page was asked for.
    numbered: u32,
    show: Show<'a>,
    documents: Vec<u8>,
    count: usize,
    /// What was looked at in ranges that are done.
    looked_at: u64,
    charge: Charge,
}

impl<'a> ListPage<'a> {
    fn new(opened: &'a Opened, part: &Part, page: &Page, show: Show<'a>) -> Result<Self> {
        let container = &opened.container;
        let scope = container.number.to_be_bytes();
        let begun = page.continuation.as_ref().map(|token| read(token, scope));
        let numbered = match &begun {
            Some(Ok((numbered, _))) => *numbered,
            _ => container.numbered(),
        };
        let mut segments = segments_before(container, part, numbered)?;
        opened.check_session(&opened.touched(part)?)?;
        let begun = begun.transpose()?;
        let from = begun.map_or(Ok(0), |(_, place)| skip_to(&mut segments, place))?;
        Ok(ListPage {
            opened,
            segments,
            from,
            limit: limit(page),
            scope,
            numbered,
            show,
            documents: Vec::new(),
            count: 0,
            looked_at: 0,
            charge: Charge::NOTHING,
        })
    }

    fn run(mut self) -> Result<Filled> {
        let mut next = None;
        let mut from = self.from;
        for segment in std::mem::take(&mut self.segments) {
            next = self.read_segment(&segment, from)?;
            if next.is_some() {
                break;
            }
            from = 0;
        }
        Ok(Filled {
            rows: self.documents,
            count: self.count,
            continuation: next.map(|place| written(place, self.numbered, self.scope)),
            charge: self.charge,
        })
    }

    /// Reads the items of a segment. Where the next page starts, if this one is full. An
    /// expired item ends no page, unless too many were met.
    fn read_segment(&mut self, segment: &Segment, from: u64) -> Result<Option<ListPlace>> {
        let free = |_| Ok(());
        let mut items = InOrder::new(self.opened, segment, from, &free)?;
        // What was passed to begin with does not count: the next page would pass it again,
        // and never get further.
        let begun = items.looked().keys;
        let most = self.opened.limits.list_looks;
        loop {
            while let Some(record) = items.pop() {
                if !self.add(&record) {
                    return Ok(Some((segment.range, segment.mark, record.docno)));
                }
            }
            if self.looked_at + items.looked().keys - begun >= most {
                return Ok(Some((segment.range, segment.mark, items.from())));
            }
            if !items.fetch(self.limit - self.count + 1, &free)? {
                break;
            }
        }
        self.looked_at += items.looked().keys - begun;
        Ok(None)
    }

    /// Adds an item to the page. `false`: the page ends before it.
    fn add(&mut self, record: &Record) -> bool {
        if self.count >= self.limit {
            return false;
        }
        let before = self.documents.len();
        if self.count > 0 {
            self.documents.push(b',');
        }
        let start = self.documents.len();
        (self.show)(record, &mut self.documents);
        let bytes = self.documents.len() - start;
        if self.count > 0 && before + bytes > PAGE_BYTES_MAX {
            self.documents.truncate(before);
            return false;
        }
        self.count += 1;
        self.charge = self.charge.plus(charge::of_read(bytes));
        true
    }
}

fn written((range, mark, docno): ListPlace, numbered: u32, scope: [u8; 4]) -> String {
    let mut place = mark.to_be_bytes().to_vec();
    place.put_u64(docno);
    place.put_u32(numbered);
    write_token(range.into(), &place, scope)
}

/// How many ranges had been numbered when the first page was asked for, and where the last
/// one ended.
fn read(token: &str, scope: [u8; 4]) -> Result<(u32, ListPlace)> {
    let (range, place) = read_token(token, scope)?;
    let read = |mut place: &[u8]| {
        let (mark, docno) = (place.try_get_u32().ok()?, place.try_get_u64().ok()?);
        let numbered = place.try_get_u32().ok()?;
        Some((numbered, (u32::try_from(range).ok()?, mark, docno)))
    };
    read(&place).ok_or_else(bad_token)
}

/// Lets `segments` start at a place that an earlier page returned, and says with which
/// number.
fn skip_to(segments: &mut Vec<Segment>, (range, mark, docno): ListPlace) -> Result<u64> {
    let is_there = |segment: &Segment| segment.range == range && segment.mark == mark;
    let first = segments.iter().position(is_there).ok_or_else(bad_token)?;
    segments.drain(..first);
    Ok(docno)
}
