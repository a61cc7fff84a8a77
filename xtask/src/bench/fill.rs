//! Filling a folder quickly: through the engine, here in this process, with
//! many writes on their way at once and without waiting for the disk.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use dayfly_engine::operation::{Act, Condition, ContainerScope, Operation, WriteItem};
use dayfly_engine::{Answer, Engine, EngineSettings};
use dayfly_model::json;
use dayfly_storage::{Durability, Local, LocalOptions, Store};

use super::item::{CONTAINER, DATABASE, ITEM_BYTES, Items, definition};
use crate::{Result, failed};

/// How many writes are on their way at once.
const ON_THEIR_WAY: usize = 2048;

/// Makes a folder with a container of `count` items, compacted and closed.
pub(super) fn fill(folder: &Path, items: &Items, count: u64) -> Result<()> {
    let options = LocalOptions { durability: Durability::Relaxed, ..LocalOptions::default() };
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
    }))
}

fn done(answer: Answer) -> Result<()> {
    answer.wait().outcome.map(|_| ()).map_err(failed("filling"))
}
