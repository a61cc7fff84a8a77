//! Filling a folder quickly: through the engine, here in this process, with
//! many writes on their way at once and without waiting for the disk.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use dayfly_engine::operation::{Act, Condition, ContainerScope, Indexing, Operation, WriteItem};
use dayfly_engine::{Answer, Engine, EngineSettings};
use dayfly_model::json;
use dayfly_storage::clock::{HandWall, SystemWall, Wall};
use dayfly_storage::{Durability, Local, LocalOptions, Store};

use super::item::{CONTAINER, DATABASE, ITEM_BYTES, Items, definition};
use crate::{Result, failed};

/// How many writes are on their way at once.
const ON_THEIR_WAY: usize = 2048;

/// When the items of a folder were written.
pub(super) enum Written {
    /// Just now.
    Now,
    /// One second after the other, with so many items in each, from so many
    /// seconds ago on.
    Since {
        /// How long ago the first one was written.
        seconds_ago: u64,
        /// How many in each second.
        each_second: u64,
    },
}

/// Makes a folder with a container of `count` items, compacted and closed.
pub(super) fn fill(folder: &Path, items: &Items, count: u64) -> Result<()> {
    fill_written(folder, items, count, &Written::Now)
}

/// The same, with items of some age.
pub(super) fn fill_written(
    folder: &Path,
    items: &Items,
    count: u64,
    written: &Written,
) -> Result<()> {
    let hand = Arc::new(HandWall::at(SystemWall.seconds()));
    let (wall, first, each): (Arc<dyn Wall>, u64, u64) = match written {
        Written::Now => (Arc::new(SystemWall), 0, u64::MAX),
        Written::Since { seconds_ago, each_second } => {
            let first = SystemWall.seconds().saturating_sub(*seconds_ago);
            hand.set(first);
            (Arc::clone(&hand) as _, first, *each_second)
        }
    };
    let options = LocalOptions { durability: Durability::Relaxed, wall, ..LocalOptions::default() };
    let store = Local::open(folder, options).map_err(failed("opening the folder"))?;
    let store: Arc<dyn Store> = Arc::new(store);
    let engine = Engine::open(Arc::clone(&store), EngineSettings::default());
    let engine = engine.map_err(failed("opening the engine"))?;
    let database = DATABASE.to_owned();
    done(engine.run(Operation::CreateDatabase { id: database.clone(), throughput: None }))?;
    let definition = definition().into_bytes();
    done(engine.run(Operation::CreateContainer { database, definition, throughput: None }))?;
    let mut waiting = VecDeque::with_capacity(ON_THEIR_WAY);
    for number in 0..count {
        if number % each == 0 {
            hand.set(first + number / each);
        }
        if waiting.len() == ON_THEIR_WAY {
            waiting.pop_front().map_or(Ok(()), done)?;
        }
        waiting.push_back(engine.run(create(&items.json(number, 0, ITEM_BYTES))?));
    }
    waiting.into_iter().try_for_each(done)?;
    store.compact().map_err(failed("compacting"))?;
    engine.close().map_err(failed("closing"))
}

fn create(item: &str) -> Result<Operation> {
    Ok(Operation::WriteItem(WriteItem {
        at: ContainerScope {
            database: DATABASE.to_owned(),
            container: CONTAINER.to_owned(),
            ..ContainerScope::default()
        },
        act: Act::Create(json::parse(item.as_bytes(), &[]).map_err(failed("an item"))?),
        partition_key: None,
        condition: Condition::default(),
        minimal: true,
        indexing: Indexing::default(),
    }))
}

fn done(answer: Answer) -> Result<()> {
    answer.wait().outcome.map(|_| ()).map_err(failed("filling"))
}
