//! A change as clients see it.
//!
//! An item of the feed has `_lsn`, the commit that wrote it, behind the properties that it
//! has everywhere. What the user calls so is left out: it would be there twice.

use bytes::BufMut;
use dayfly_model::charge::{self, Charge};
use dayfly_model::partition_key::PartitionKey;
use dayfly_model::{Timestamp, json};
use serde_json::Value;

use crate::liveness::Ending;
use crate::log::{EndedItem, Event, LogRow};
use crate::record::Record;
use crate::reply::Pieces;
use crate::scope::Opened;
use crate::version;

/// What the feed adds to an item.
const LSN: &str = "_lsn";

/// The changes of a page.
pub(super) struct Shown<'a> {
    opened: &'a Opened,
    /// Whether each item stands in an envelope, with what is told of the change.
    envelope: bool,
    documents: Vec<u8>,
    count: usize,
    charge: Charge,
}

impl<'a> Shown<'a> {
    pub(super) fn new(opened: &'a Opened, envelope: bool) -> Shown<'a> {
        Shown { opened, envelope, documents: Vec::new(), count: 0, charge: Charge::NOTHING }
    }

    /// Adds the newest version of an item.
    pub(super) fn latest(&mut self, record: &Record) {
        self.begin();
        if self.envelope {
            self.documents.put_slice(b"{\"current\":");
            self.item(record);
            let (lsn, ts) = (version::lsn_of(record.version), record.ts.0);
            let metadata = format!(",\"metadata\":{{\"lsn\":{lsn},\"crts\":{ts}}}}}");
            self.documents.put_slice(metadata.as_bytes());
        } else {
            self.item(record);
        }
    }

    /// Adds what a row of a log tells, and what was deleted as far as that is known.
    pub(super) fn told(&mut self, row: &LogRow, previous: Option<&Record>) {
        self.begin();
        let mut metadata = Metadata { row, operation: "replace", crts: row.ts, ended: None };
        self.documents.put_slice(b"{\"current\":");
        match &row.event {
            Event::Created(record) => {
                metadata.operation = "create";
                self.item(record);
            }
            Event::Replaced(record) => self.item(record),
            Event::Ended(ended) => {
                metadata.operation = "delete";
                if let Ending::Expired(at) | Ending::Deleted(Some(at)) = ended.end {
                    metadata.crts = at;
                }
                metadata.ended = Some(ended);
                self.documents.put_slice(b"{}");
            }
        }
        self.documents.put_slice(b",\"metadata\":");
        self.documents.put_slice(metadata.text(self.opened).as_bytes());
        if let Some(previous) = previous {
            self.documents.put_slice(b",\"previous\":");
            let etag = previous.etag(&self.opened.container);
            let shown = previous.render(&self.opened.container, &etag);
            self.charge = self.charge.plus(charge::of_read(shown.len()));
            self.documents.put_slice(&shown.first);
            self.documents.put_slice(&shown.second);
        }
        self.documents.push(b'}');
    }

    /// The page, and what it costs.
    pub(super) fn into_body(self) -> (Vec<u8>, Charge) {
        let rid = &self.opened.container.rid_text;
        let mut body = Vec::with_capacity(self.documents.len() + 64);
        body.put_slice(format!("{{\"_rid\":\"{rid}\",\"Documents\":[").as_bytes());
        body.put_slice(&self.documents);
        body.put_slice(format!("],\"_count\":{}}}", self.count).as_bytes());
        (body, self.charge)
    }

    fn begin(&mut self) {
        if self.count > 0 {
            self.documents.push(b',');
        }
        self.count += 1;
    }

    /// Writes an item, with the number of its commit.
    fn item(&mut self, record: &Record) {
        let container = &self.opened.container;
        let etag = record.etag(container);
        let shown = without_lsn(record.render(container, &etag));
        self.charge = self.charge.plus(charge::of_read(shown.len()));
        self.documents.put_slice(&shown.first);
        self.documents.put_slice(&shown.second);
        // System properties come last, so there is one before this.
        self.documents.pop();
        let lsn = version::lsn_of(record.version);
        self.documents.put_slice(format!(",\"{LSN}\":{lsn}}}").as_bytes());
    }
}

/// What is told of a change beside the item.
struct Metadata<'a> {
    row: &'a LogRow,
    operation: &'static str,
    /// When it happened: of an end that is told later, when that was.
    crts: Timestamp,
    ended: Option<&'a EndedItem>,
}

impl Metadata<'_> {
    fn text(&self, opened: &Opened) -> String {
        let Metadata { row, operation, crts, ended } = self;
        let crts = crts.0.max(1);
        let mut text =
            format!("{{\"lsn\":{},\"crts\":{crts},\"operationType\":\"{operation}\"", row.lsn);
        if let Some(previous) = row.previous {
            text.push_str(&format!(",\"previousImageLSN\":{}", version::lsn_of(previous)));
        }
        if let Some(ended) = ended {
            let id = Value::from(String::from_utf8_lossy(&ended.id));
            let definition = &opened.container.definition().partition_key;
            let key = PartitionKey::from_canonical(&ended.partition_key);
            let key = key.map_or_else(|| "{}".to_owned(), |key| key.to_object(definition));
            text.push_str(&format!(",\"id\":{id},\"partitionKey\":{key}"));
            if matches!(ended.end, Ending::Expired(_)) {
                text.push_str(",\"timeToLiveExpired\":true");
            }
        }
        text.push('}');
        text
    }
}

/// An item without what its user calls as the feed calls the number of the commit.
fn without_lsn(shown: Pieces) -> Pieces {
    let has_name = |piece: &[u8]| piece.windows(LSN.len()).any(|window| window == LSN.as_bytes());
    if !has_name(&shown.first) {
        return shown;
    }
    match json::parse(&shown.to_vec(), &[LSN]) {
        Ok(object) => object.into_bytes().into(),
        Err(_) => shown,
    }
}
