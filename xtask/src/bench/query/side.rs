//! A container of some size, open in this process, and what asking it costs.
//!
//! Cost is the CPU time of the whole process: queries run on threads of the
//! engine's own. Nothing else goes on here meanwhile.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dayfly_engine::Engine;
use dayfly_engine::operation::{
    Condition, ContainerScope, ItemAddress, Operation, Page, QueryItems,
};
use dayfly_engine::reply::Success;
use dayfly_model::Timestamp;
use dayfly_model::partition_key::{Component, PartitionKey};
use dayfly_storage::Store;
use dayfly_storage::clock::{SystemWall, Wall};
use rustix::time::{ClockId, clock_gettime};

use super::data::{Data, definition};
use crate::bench::Bench;
use crate::bench::fill::{Filling, Written, fill_with, open};
use crate::bench::item::{CONTAINER, DATABASE};
use crate::{Result, failed};

/// How many items were written in a second.
const EACH_SECOND: u64 = 50;

/// What is asked is asked again until it took this long.
const SPAN: Duration = Duration::from_millis(200);

/// The most rows of a page.
const PAGE_ROWS: usize = 10_000;

/// A container.
pub(super) struct Side {
    pub(super) data: Data,
    folder: PathBuf,
    engine: Engine,
    store: Arc<dyn Store>,
}

/// An answer that came in some pages.
pub(super) struct Answered {
    pub(super) rows: usize,
    /// The last page.
    pub(super) body: Vec<u8>,
    pub(super) now: Option<Timestamp>,
}

impl Side {
    /// A new one with so many items, written over a while until now, compacted.
    pub(super) fn new(bench: &Bench, count: u64) -> Result<Side> {
        println!("query: filling a folder with {count} items");
        let (data, folder) = (Data::new(count), bench.folder.path().join(count.to_string()));
        let written = Written::Since {
            seconds_ago: count / EACH_SECOND,
            each_second: EACH_SECOND,
            is_exact: true,
        };
        let item = &|number| data.json(number);
        fill_with(&folder, &Filling { definition: definition(), item, count, written })?;
        Side::open(data, folder, Arc::new(SystemWall))
    }

    pub(super) fn open(data: Data, folder: PathBuf, wall: Arc<dyn Wall>) -> Result<Side> {
        let (store, engine) = open(&folder, wall)?;
        Ok(Side { data, folder, engine, store })
    }

    /// Closes the folder, so that others can open it.
    pub(super) fn close(self) -> Result<(Data, PathBuf)> {
        self.engine.close().map_err(failed("closing"))?;
        Ok((self.data, self.folder))
    }

    /// Asks for one page.
    pub(super) fn ask(&self, operation: Operation) -> Result<(Success, Option<Timestamp>)> {
        let reply = self.engine.run(operation).wait();
        reply.outcome.map(|success| (success, reply.now)).map_err(failed("asking the engine"))
    }

    /// Asks a query, page after page until its end.
    pub(super) fn ask_all(&self, body: &str) -> Result<Answered> {
        let mut rows = 0;
        let mut continuation = None;
        loop {
            let (page, now) = self.ask(query(body, continuation))?;
            rows += page.item_count.unwrap_or(0);
            match page.continuation {
                Some(next) => continuation = Some(next),
                None => return Ok(Answered { rows, body: page.body.to_vec(), now }),
            }
        }
    }

    /// The CPU of what `make` makes, in microseconds; without that of making it.
    pub(super) fn cost(&self, mut make: impl FnMut(u64) -> Vec<Operation>) -> Result<f64> {
        let (mut used, mut times) = (Duration::ZERO, 0);
        while used < SPAN {
            let operations = make(times);
            let before = cpu();
            for operation in operations {
                self.ask(operation)?;
            }
            used += cpu().saturating_sub(before);
            times += 1;
        }
        Ok(used.as_secs_f64() * 1e6 / times as f64)
    }

    /// Removes what has expired, and says how many items that were.
    pub(super) fn purge(&self) -> Result<u64> {
        self.engine.purge_all().map_err(failed("purging"))
    }

    /// Merges what is left of the purge.
    pub(super) fn compact(&self) -> Result<()> {
        self.store.hints().compact().map_err(failed("compacting"))
    }
}

/// The CPU time of this process.
pub(in crate::bench) fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
}

pub(super) fn container() -> ContainerScope {
    let (database, container) = (DATABASE.to_owned(), CONTAINER.to_owned());
    ContainerScope { database, container, ..ContainerScope::default() }
}

/// A page of a query over all partitions.
pub(super) fn query(body: &str, continuation: Option<String>) -> Operation {
    Operation::QueryItems(QueryItems {
        at: container(),
        query: body.as_bytes().to_vec(),
        page: Page { limit: Some(PAGE_ROWS), continuation },
        cross_partition: true,
        scan: true,
        ..QueryItems::default()
    })
}

/// The request's body of a query that may have the parameter `@v`.
pub(in crate::bench) fn body(text: &str, value: Option<u64>) -> String {
    let parameters: Vec<String> =
        value.iter().map(|value| format!("{{\"name\":\"@v\",\"value\":{value}}}")).collect();
    format!("{{\"query\":\"{text}\",\"parameters\":[{}]}}", parameters.join(","))
}

/// A read of an item.
pub(super) fn read((id, key): (String, String)) -> Operation {
    let partition_key = Some(PartitionKey(vec![Component::String(key)]));
    let item = ItemAddress { id, partition_key };
    Operation::ReadItem { at: container(), item, condition: Condition::default() }
}
