//! The storage engine alone: writes the rows that the server would write, with
//! as many commits in a batch as the server had, each batch synced.
//!
//! It knows neither buckets nor heads nor liveness; it only makes keys and
//! values of the same count and size, with the same options of fjall.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use fjall::compaction::Leveled;
use fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
};
use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode,
};

use super::create::Mix;
use super::item::{Items, id, partition_key};
use crate::random::Random;
use crate::{Result, failed};

pub(super) const MEBIBYTE: u64 = 1024 * 1024;

/// How much of the files may be in memory.
const CACHE_BYTES: u64 = 64 * MEBIBYTE;

/// Where a container's rows are, and the store's own.
const BUCKET: [u8; 8] = 256_u64.to_be_bytes();
const SYSTEM: [u8; 8] = u64::MAX.to_be_bytes();

/// What a record has before its text, but for the key and the id.
const HEADER_BYTES: usize = 43;

/// What a bucket's head holds.
const HEAD_BYTES: usize = 77;

/// How many rows of figures a batch changes, and what such a row holds.
const FIGURES: u8 = 7;
const FIGURES_BYTES: usize = 128;

/// What a row that counts the items with a path holds.
const COUNT_BYTES: usize = 10;

/// What a feed row has before the item's name.
const FEED_BYTES: usize = 32;

/// What a row in the order of a partition has.
const ORDER_BYTES: usize = 24;

/// The bytes of a partition in its items' names.
const PARTITION_BYTES: usize = 24;

/// What an entry of the index has before the item's partition, and how much of a
/// long value is in its key.
const ENTRY_BYTES: usize = 9;
const VALUE_BYTES_MAX: usize = 512;

/// The paths of an item: each has an entry, and a row that counts.
const PATHS: [u8; 4] = *b"inpt";

/// What a purge cursor holds.
const CURSOR_BYTES: usize = 8;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// An empty folder.
    #[arg(long)]
    folder: PathBuf,
    /// What to write.
    #[arg(long, value_enum)]
    mix: Mix,
    /// How many items.
    #[arg(long)]
    items: u64,
    /// How many commits in a batch, on average.
    #[arg(long)]
    group: f64,
}

/// Writes, and prints how many commits a second.
pub(crate) fn run(options: &Options) -> Result<()> {
    let raw = Raw::open(&options.folder, CACHE_BYTES)?;
    if options.mix == Mix::Purge {
        raw.write(Mix::Create, options.items, 1000.0, PersistMode::Buffer)?;
        raw.rows.major_compact().map_err(failed("compacting"))?;
        println!("{}", raw.remove(options.items, options.group)?);
        return Ok(());
    }
    if options.mix == Mix::Replace {
        raw.write(Mix::Create, options.items, 1000.0, PersistMode::Buffer)?;
    }
    let started = Instant::now();
    raw.write(options.mix, options.items, options.group, PersistMode::SyncAll)?;
    println!("{}", options.items as f64 / started.elapsed().as_secs_f64());
    Ok(())
}

pub(super) struct Raw {
    pub(super) database: Database,
    pub(super) rows: Keyspace,
    pub(super) items: Items,
}

impl Raw {
    pub(super) fn open(folder: &Path, cache_bytes: u64) -> Result<Raw> {
        let database = Database::builder(folder)
            .cache_size(cache_bytes)
            .max_journaling_size(128 * MEBIBYTE)
            .worker_threads(1)
            .open()
            .map_err(failed("opening fjall"))?;
        let leveled = Leveled::default().with_table_target_size(8 * MEBIBYTE);
        let bloom = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0));
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(16 * MEBIBYTE)
                .compaction_strategy(Arc::new(leveled))
                .filter_policy(FilterPolicy::all(bloom))
                .data_block_compression_policy(CompressionPolicy::new([
                    CompressionType::None,
                    CompressionType::None,
                    CompressionType::Lz4,
                ]))
                .data_block_size_policy(BlockSizePolicy::all(2 * 1024))
        };
        let rows = database.keyspace("rows", options).map_err(failed("opening fjall"))?;
        Ok(Raw { database, rows, items: Items::new() })
    }

    fn write(&self, mix: Mix, items: u64, group: f64, sync: PersistMode) -> Result<()> {
        let mut random = Random::new(3);
        let (mut written, mut due) = (0, 0.0);
        while written < items {
            due += group.max(1.0);
            let mut batch = self.database.batch().durability(Some(sync));
            while written < items && (written as f64) < due {
                match mix {
                    Mix::Create | Mix::Large => self.create(&mut batch, mix, written),
                    Mix::Replace => self.replace(&mut batch, random.below(items), items + written),
                    Mix::Purge => {}
                }
                written += 1;
            }
            self.end(&mut batch);
            batch.commit().map_err(failed("writing"))?;
        }
        Ok(())
    }

    /// What every batch has besides its items: figures, head and lease.
    fn end(&self, batch: &mut OwnedWriteBatch) {
        for level in 0..FIGURES {
            batch.insert(&self.rows, key(b'l', &[level; 10]), [level; FIGURES_BYTES]);
        }
        for path in PATHS {
            batch.insert(&self.rows, key(b'n', &[path; 8]), [path; COUNT_BYTES]);
        }
        batch.insert(&self.rows, [&SYSTEM[..], b"head", &BUCKET].concat(), [0; HEAD_BYTES]);
        batch.insert(&self.rows, [&SYSTEM[..], b"clock lease"].concat(), [0; 8]);
    }

    /// Removes the items again, oldest first. Returns how many a second.
    fn remove(&self, items: u64, group: f64) -> Result<f64> {
        let started = Instant::now();
        let (mut removed, mut due) = (0, 0.0);
        while removed < items {
            due += group.max(1.0);
            let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
            while removed < items && (removed as f64) < due {
                let version = (removed << 12).to_be_bytes();
                batch.remove(&self.rows, key(b'i', &version));
                batch.remove(&self.rows, key(b'd', &name(removed)));
                batch.remove(&self.rows, in_order(removed));
                batch.remove(&self.rows, key(b'f', &version));
                let json = self.items.json(removed, 0, Mix::Create.bytes(removed));
                for entry in entries(removed, &json) {
                    batch.remove(&self.rows, entry);
                }
                removed += 1;
            }
            batch.insert(&self.rows, key(b'q', b""), [0; CURSOR_BYTES]);
            self.end(&mut batch);
            batch.commit().map_err(failed("removing"))?;
        }
        Ok(items as f64 / started.elapsed().as_secs_f64())
    }

    /// Record, row by id, row in the order of the partition, feed row, entries of the index.
    fn create(&self, batch: &mut OwnedWriteBatch, mix: Mix, number: u64) {
        let name = name(number);
        let version = (number << 12).to_be_bytes();
        let json = self.items.json(number, 0, mix.bytes(number));
        batch.insert(&self.rows, key(b'i', &version), record(number, &json));
        batch.insert(&self.rows, key(b'd', &name), version);
        batch.insert(&self.rows, in_order(number), [0; ORDER_BYTES]);
        batch.insert(&self.rows, key(b'f', &version), [&[0; FEED_BYTES][..], &name].concat());
        for entry in entries(number, &json) {
            batch.insert(&self.rows, entry, entry_row(&name));
        }
    }

    /// Record, row in the order of the partition, and a new feed row and entry of the text
    /// instead of the old ones.
    fn replace(&self, batch: &mut OwnedWriteBatch, number: u64, version: u64) {
        let name = name(number);
        let json = self.items.json(number, version, Mix::Replace.bytes(number));
        batch.insert(&self.rows, key(b'i', &(number << 12).to_be_bytes()), record(number, &json));
        batch.insert(&self.rows, in_order(number), [0; ORDER_BYTES]);
        batch.remove(&self.rows, key(b'f', &(number << 12).to_be_bytes()));
        let row = [&[0; FEED_BYTES][..], &name].concat();
        batch.insert(&self.rows, key(b'f', &(version << 12).to_be_bytes()), row);
        let before = self.items.json(number, 0, Mix::Replace.bytes(number));
        batch.remove(&self.rows, entry(b't', text(&before), number));
        batch.insert(&self.rows, entry(b't', text(&json), number), entry_row(&name));
    }
}

/// Partition and id: 16 bytes of EPK, 8 of the key's hash, the id.
pub(super) fn name(number: u64) -> Vec<u8> {
    let mut random = Random::new(number % 1000);
    let mut name = Vec::with_capacity(40);
    for _ in 0..3 {
        name.extend_from_slice(&random.next().to_be_bytes());
    }
    name.extend_from_slice(id(number).as_bytes());
    name
}

/// The key of an item's row in the order of its partition.
fn in_order(number: u64) -> Vec<u8> {
    let name = name(number);
    let partition = name.get(..PARTITION_BYTES).unwrap_or(&name);
    key(b'o', &[partition, &(number << 12).to_be_bytes()].concat())
}

/// What an entry of the item with this name holds.
fn entry_row(name: &[u8]) -> Vec<u8> {
    [&[0; ENTRY_BYTES][..], name.get(..PARTITION_BYTES).unwrap_or(name)].concat()
}

/// The keys of an item's entries, by id, number, partition key and text.
fn entries(number: u64, json: &str) -> [Vec<u8>; 4] {
    let [by_id, by_number, by_key, by_text] = PATHS;
    [
        entry(by_id, id(number).as_bytes(), number),
        entry(by_number, &number.to_be_bytes(), number),
        entry(by_key, partition_key(number).as_bytes(), number),
        entry(by_text, text(json), number),
    ]
}

/// Path, type, value, an end, and the number of the item.
fn entry(path: u8, value: &[u8], number: u64) -> Vec<u8> {
    let value = [&b"s"[..], value, &[0, 0]].concat();
    let value = value.get(..VALUE_BYTES_MAX).unwrap_or(&value);
    key(b'k', &[&[path; 8][..], value, &(number << 12).to_be_bytes()].concat())
}

/// The text of an item.
fn text(json: &str) -> &[u8] {
    json.split_once("\"text\":\"").map_or("", |(_, text)| text).as_bytes()
}

pub(super) fn key(tag: u8, rest: &[u8]) -> Vec<u8> {
    [&BUCKET[..], &[tag], rest].concat()
}

pub(super) fn record(number: u64, json: &str) -> Vec<u8> {
    let (partition, id) = (partition_key(number), id(number));
    let parts = [&[0; HEADER_BYTES][..], partition.as_bytes(), id.as_bytes(), json.as_bytes()];
    parts.concat()
}
