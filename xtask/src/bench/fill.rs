//! Filling a folder quickly: through the engine, here in this process, with
//! many writes on their way at once and without waiting for the disk.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use dayfly_engine::operation::{
    Act, Condition, ContainerScope, Indexing, Operation, Showing, WriteItem,
};
use dayfly_engine::{Answer, Engine, EngineSettings};
use dayfly_model::json;
use dayfly_storage::clock::{HandWall, SystemWall, Wall};
use dayfly_storage::{Durability, Local, LocalOptions, Store};

use super::item::{CONTAINER, DATABASE, ITEM_BYTES, Items, definition};
use crate::{Result, failed};

/// How many writes are on their way at once.
const ON_THEIR_WAY: usize = 2048;

/// How many items are written before a line says how far it is.
const TELL_EVERY: u64 = 200_000;

/// When the items of a folder were written.
#[derive(Clone, Copy)]
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
        /// Whether that is exact: slower, and else only right on average.
        is_exact: bool,
    },
}

/// What a folder is filled with.
pub(super) struct Filling<'f> {
    /// The container's definition.
    pub(super) definition: String,
    /// Each item as JSON, by its number.
    pub(super) item: &'f dyn Fn(u64) -> String,
    pub(super) count: u64,
    pub(super) written: Written,
}

/// Makes a folder with a container of `count` items, compacted and closed.
pub(super) fn fill(folder: &Path, items: &Items, count: u64) -> Result<()> {
    fill_written(folder, items, count, Written::Now)
}

/// The same, with items of some age.
pub(super) fn fill_written(
    folder: &Path,
    items: &Items,
    count: u64,
    written: Written,
) -> Result<()> {
    let item = &|number| items.json(number, 0, ITEM_BYTES);
    fill_with(folder, &Filling { definition: definition(), item, count, written })
}

/// The same, with any items.
pub(super) fn fill_with(folder: &Path, filling: &Filling<'_>) -> Result<()> {
    let hand = Arc::new(HandWall::at(SystemWall.seconds()));
    let (wall, first, each, is_exact): (Arc<dyn Wall>, u64, u64, bool) = match filling.written {
        Written::Now => (Arc::new(SystemWall), 0, u64::MAX, false),
        Written::Since { seconds_ago, each_second, is_exact } => {
            let first = SystemWall.seconds().saturating_sub(seconds_ago);
            hand.set(first);
            (Arc::clone(&hand) as _, first, each_second, is_exact)
        }
    };
    let (store, engine) = open(folder, wall)?;
    let database = DATABASE.to_owned();
    done(engine.run(Operation::CreateDatabase { id: database.clone(), throughput: None }))?;
    let definition = filling.definition.clone().into_bytes();
    done(engine.run(Operation::CreateContainer {
        database,
        definition,
        throughput: None,
        showing: Showing::Whole,
    }))?;
    let mut waiting = VecDeque::with_capacity(ON_THEIR_WAY);
    for number in 0..filling.count {
        if number % each == 0 {
            if is_exact {
                // What is on its way belongs to the second before.
                waiting.drain(..).try_for_each(done)?;
            }
            hand.set(first + number / each);
        }
        if number > 0 && number % TELL_EVERY == 0 {
            println!("filling: {number} of {} items", filling.count);
        }
        if waiting.len() == ON_THEIR_WAY {
            waiting.pop_front().map_or(Ok(()), done)?;
        }
        waiting.push_back(engine.run(create(&(filling.item)(number))?));
    }
    waiting.into_iter().try_for_each(done)?;
    store.hints().compact().map_err(failed("compacting"))?;
    engine.close().map_err(failed("closing"))
}

/// Opens a folder here in this process, with this clock.
pub(super) fn open(folder: &Path, wall: Arc<dyn Wall>) -> Result<(Arc<dyn Store>, Engine)> {
    let options = LocalOptions { durability: Durability::Relaxed, wall, ..LocalOptions::default() };
    let store = Local::open(folder, options).map_err(failed("opening the folder"))?;
    let store: Arc<dyn Store> = Arc::new(store);
    let engine = Engine::open(Arc::clone(&store), EngineSettings::default());
    Ok((store, engine.map_err(failed("opening the engine"))?))
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
