//! A backend in memory: a persistent map, so that a snapshot is a clone.
//!
//! Its [`Disk`] can outlive it, as a real one outlives a process. It keeps
//! apart what was applied and what was synced, so a test can let the power
//! fail.

use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use rpds::RedBlackTreeMapSync;

use crate::local::{Backend, Changes, Durability, Loaded, Local, LocalOptions, Rows, Visit};
use crate::{Direction, Result};

/// Pairs in byte order.
type Tree = RedBlackTreeMapSync<Bytes, Bytes>;

/// A backend in memory.
#[derive(Clone, Default)]
pub struct Memory {
    disk: Disk,
}

impl Local<Memory> {
    /// An empty store in memory.
    pub fn memory(options: LocalOptions) -> Result<Self> {
        Local::on(Memory::default(), options)
    }
}

impl Memory {
    /// A backend on `disk`, with what is there.
    pub fn on(disk: &Disk) -> Self {
        Memory { disk: disk.clone() }
    }
}

/// What a [`Memory`] keeps its bytes on. Clones are the same disk.
#[derive(Clone, Default)]
pub struct Disk(Arc<Mutex<Platters>>);

struct Platters {
    applied: Tree,
    synced: Tree,
}

impl Default for Platters {
    fn default() -> Self {
        Platters { applied: Tree::new_sync(), synced: Tree::new_sync() }
    }
}

impl Disk {
    /// Another disk, with what this one would hold if the power failed now:
    /// whatever was synced.
    pub fn after_power_cut(&self) -> Disk {
        let synced = self.with(|platters| platters.synced.clone());
        Disk(Arc::new(Mutex::new(Platters { applied: synced.clone(), synced })))
    }

    /// Another disk, with what this one would hold if the process were killed
    /// now: whatever was applied.
    pub fn after_kill(&self) -> Disk {
        let applied = self.with(|platters| platters.applied.clone());
        Disk(Arc::new(Mutex::new(Platters { synced: applied.clone(), applied })))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Platters) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Backend for Memory {
    type Rows = Tree;

    fn name(&self) -> String {
        "the store in memory".to_owned()
    }

    fn rows(&self) -> Result<Tree> {
        Ok(self.disk.with(|platters| platters.applied.clone()))
    }

    fn load(&self) -> Result<Loaded> {
        Loaded::from_rows(&self.rows()?)
    }

    fn apply(&self, changes: Changes, durability: Durability) -> Result<()> {
        self.disk.with(|platters| {
            for (key, value) in changes.into_rows() {
                match value {
                    Some(value) => platters.applied.insert_mut(key.into(), value),
                    None => _ = platters.applied.remove_mut(&key[..]),
                }
            }
            if durability == Durability::Sync {
                platters.synced = platters.applied.clone();
            }
        });
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.disk.with(|platters| platters.synced = platters.applied.clone());
        Ok(())
    }

    fn compact(&self) -> Result<()> {
        Ok(())
    }

    fn release(&self) -> Result<()> {
        Ok(())
    }

    fn disk_bytes(&self) -> u64 {
        0
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }

    fn close(&self) -> Result<()> {
        self.sync()
    }

    fn reopen(&self) -> Result<()> {
        Ok(())
    }
}

impl Rows for Tree {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.get(key).cloned())
    }

    fn scan(
        &self,
        start: &[u8],
        end: &[u8],
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let range = (Bound::Included(start), Bound::Excluded(end));
        let mut pairs = self.range::<[u8], _>(range);
        while let Some((key, value)) = match direction {
            Direction::Forward => pairs.next(),
            Direction::Backward => pairs.next_back(),
        } {
            if let ControlFlow::Break(()) = visit(key.clone(), value.clone()) {
                break;
            }
        }
        Ok(())
    }
}
