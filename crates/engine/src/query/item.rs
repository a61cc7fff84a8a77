//! Items and other resources, as the query language sees them.

use dayfly_model::charge;
use dayfly_model::value::{self, Value};
use dayfly_sql::run::Item;

use crate::catalog::Container;
use crate::record::{self, Record};

/// An item of a container.
pub(super) struct Row<'a> {
    record: &'a Record,
    container: &'a Container,
}

impl<'a> Row<'a> {
    pub(super) fn new(record: &'a Record, container: &'a Container) -> Row<'a> {
        Row { record, container }
    }
}

impl Item for Row<'_> {
    fn text(&self) -> &[u8] {
        self.record.text()
    }

    fn system(&self, name: &str) -> Value {
        let Record { docno, ts, .. } = *self.record;
        record::system(name, self.container, Some(docno), ts, Some(self.record))
    }

    fn number(&self) -> u64 {
        self.record.docno
    }

    fn render(&self, out: &mut Vec<u8>) {
        let text = self.record.render(self.container, &self.record.etag(self.container));
        out.extend_from_slice(&text.first);
        out.extend_from_slice(&text.second);
    }

    /// What reading it would cost.
    fn weight(&self) -> u64 {
        charge::weight(self.record.text().len())
    }
}

/// A resource that is kept as a whole, system properties and all.
pub(super) struct Resource {
    pub(super) text: String,
    pub(super) number: u64,
}

impl Item for Resource {
    fn text(&self) -> &[u8] {
        self.text.as_bytes()
    }

    fn system(&self, name: &str) -> Value {
        let found = dayfly_model::json::property(&self.text, name);
        found.map(value::read_raw).unwrap_or_default()
    }

    fn number(&self) -> u64 {
        self.number
    }

    fn render(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.text.as_bytes());
    }
}
