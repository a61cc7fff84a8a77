//! A change as clients see it.
//!
//! An item of the feed has `_lsn`, the commit that wrote it, behind the properties that it
//! has everywhere. What the user calls so is left out: it would be there twice.

use bytes::BufMut;
use dayfly_model::charge::{self, Charge};
use dayfly_model::json;

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
