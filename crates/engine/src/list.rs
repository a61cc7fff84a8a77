//! The items of a container, page by page.

use bytes::{BufMut, Bytes};
use dayfly_model::{Result, charge};
use dayfly_storage::{Bucket, Direction, KeyRange};

use crate::liveness::Liveness;
use crate::operation::{Page, Part};
use crate::pages::{bad_token, limit, read_token, write_token};
use crate::parts::segments;
use crate::record::Seen;
use crate::reply::{CHARGE_MINIMUM_RU, Reply, Success, storage_failed};
use crate::scope::Opened;

/// The largest page, in bytes of JSON.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many keys one page looks at; many may be expired.
const SCAN_MAX: usize = 20_000;
/// How many keys are read at once.
const CHUNK: usize = 32;

/// Shows items of a container in key order: by EPK, then by id.
pub(crate) fn items(opened: &Opened, part: &Part, page: &Page) -> Reply {
    let outcome = ListPage::new(opened, part, page).and_then(ListPage::run);
    outcome.unwrap_or_else(|error| opened.failed(error)).at(opened.place(part))
}

/// One page of items on its way.
struct ListPage<'a> {
    opened: &'a Opened,
    /// What to read, in order.
    segments: Vec<(Bucket, KeyRange)>,
    limit: usize,
    scope: [u8; 4],
    documents: Vec<u8>,
    count: usize,
    looked_at: usize,
    charge_ru: f64,
}

impl<'a> ListPage<'a> {
    fn new(opened: &'a Opened, part: &Part, page: &Page) -> Result<Self> {
        let container = &opened.container;
        let mut segments = segments(container, part)?;
        opened.check_session(&opened.touched(part)?)?;
        let scope = container.number.to_be_bytes();
        if let Some(token) = &page.continuation {
            skip_to(&mut segments, read_token(token, scope)?)?;
        }
        Ok(ListPage {
            opened,
            segments,
            limit: limit(page),
            scope,
            documents: Vec::new(),
            count: 0,
            looked_at: 0,
            charge_ru: 0.0,
        })
    }

    fn run(mut self) -> Result<Reply> {
        let mut next = None;
        for (bucket, range) in std::mem::take(&mut self.segments) {
            next = self.read_segment(bucket, range)?;
            if next.is_some() {
                break;
            }
        }
        let rid = &self.opened.container.rid_text;
        let mut body = Vec::with_capacity(self.documents.len() + 64);
        body.put_slice(format!("{{\"_rid\":\"{rid}\",\"Documents\":[").as_bytes());
        body.put_slice(&self.documents);
        body.put_slice(format!("],\"_count\":{}}}", self.count).as_bytes());
        let success = Success {
            continuation: next.map(|(bucket, key)| write_token(bucket, &key, self.scope)),
            item_count: Some(self.count),
            ..Success::new(200, body)
        };
        let charge_ru = self.charge_ru.max(CHARGE_MINIMUM_RU);
        Ok(Reply::ok(success, self.opened.now(), charge_ru))
    }

    /// Reads one bucket's part. Where the next page starts, if this one is
    /// full.
    fn read_segment(
        &mut self,
        bucket: Bucket,
        mut range: KeyRange,
    ) -> Result<Option<(Bucket, Vec<u8>)>> {
        let snapshot = &*self.opened.snapshot;
        let liveness = Liveness::of(&snapshot.head(bucket), self.opened.now());
        let liveness = liveness.map_err(storage_failed)?;
        loop {
            let pairs =
                snapshot.scan(bucket, &range, Direction::Forward, CHUNK).map_err(storage_failed)?;
            let end = pairs.len() < CHUNK;
            for (key, value) in &pairs {
                if !self.add(value.clone(), &liveness)? {
                    return Ok(Some((bucket, key.to_vec())));
                }
                range.go_behind(key);
            }
            if end {
                return Ok(None);
            }
        }
    }

    /// Adds an item to the page if it is alive. `false`: the page ends before
    /// it. An expired item ends no page, unless too many were met.
    fn add(&mut self, value: Bytes, liveness: &Liveness) -> Result<bool> {
        if self.looked_at >= SCAN_MAX {
            return Ok(false);
        }
        self.looked_at += 1;
        let Seen::Alive(record) = Seen::of(value, liveness).map_err(storage_failed)? else {
            return Ok(true);
        };
        if self.count >= self.limit {
            return Ok(false);
        }
        let container = &self.opened.container;
        let text = record.render(container, &record.etag(container));
        if self.count > 0 && self.documents.len() + text.len() > PAGE_BYTES_MAX {
            return Ok(false);
        }
        if self.count > 0 {
            self.documents.push(b',');
        }
        self.documents.extend_from_slice(&text.first);
        self.documents.extend_from_slice(&text.second);
        self.count += 1;
        self.charge_ru += charge::of_read(text.len());
        Ok(true)
    }
}

/// Lets `segments` start at a position that an earlier page returned.
fn skip_to(segments: &mut Vec<(Bucket, KeyRange)>, position: (Bucket, Vec<u8>)) -> Result<()> {
    let (bucket, key) = position;
    segments.retain(|(candidate, _)| *candidate >= bucket);
    match segments.first_mut() {
        Some((first, range)) if *first == bucket && range.contains(&key) => {
            range.start = key;
            Ok(())
        }
        _ => Err(bad_token()),
    }
}
