//! Random histories, played on memory and on disk at once.
//!
//! Both stores get the same writes, in the same groups, at the same times,
//! and are dropped, closed and compacted at the same moments. Whatever can be
//! seen must be the same, byte for byte. A failure prints its seed, and the
//! same seed always plays the same history.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod common;

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Change, dump, submit};
use dayfly_storage::clock::{HandWall, Step};
use dayfly_storage::suite::Stepped;
use dayfly_storage::{
    Bucket, Direction, Disk, EmbeddedOptions, Emptied, KeyRange, Local, LocalOptions, Memory,
    Snapshot,
};

const HISTORIES: u64 = 60;
const STEPS: usize = 150;

/// The seeds to play: `SEEDS=180..181` in the environment plays just one.
fn seeds() -> Range<u64> {
    let Ok(seeds) = std::env::var("SEEDS") else { return 1..HISTORIES + 1 };
    let (start, end) = seeds.split_once("..").unwrap();
    start.parse().unwrap()..end.parse().unwrap()
}

#[test]
fn memory_and_disk_show_the_same() {
    let folder = common::quick_folder();
    let seeds = Mutex::new(seeds());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(seed) = seeds.lock().unwrap().next() else { break };
                    play(seed, &folder.path().join(seed.to_string()));
                }
            });
        }
    });
}

fn play(seed: u64, path: &Path) {
    let mut pair = Pair::new(seed, path);
    for step in 0..STEPS {
        pair.place = format!("seed {seed}, step {step}");
        pair.step();
    }
    pair.reopen(true);
    pair.compare();
}

/// The two stores, and what the history needs.
struct Pair {
    memory: Option<Local<Memory>>,
    embedded: Option<Box<dyn Stepped>>,
    disk: Disk,
    wall: Arc<HandWall>,
    options: LocalOptions,
    folder: EmbeddedOptions,
    held: Vec<[Box<dyn Snapshot>; 2]>,
    random: Random,
    seconds: u64,
    place: String,
}

impl Pair {
    fn new(seed: u64, path: &Path) -> Self {
        let wall = Arc::new(HandWall::at(1000));
        let options = LocalOptions {
            manual: true,
            wall: wall.clone(),
            test_clock: true,
            cache_bytes: if seed.is_multiple_of(3) { 0 } else { 20_000 },
            reserve_bytes: 0,
            slow_scan: Duration::MAX,
            ..LocalOptions::default()
        };
        // Tiny memtables, so that a short history has many tables.
        let folder = EmbeddedOptions { memtable_bytes: 20_000, ..EmbeddedOptions::new(path) };
        let mut pair = Pair {
            memory: None,
            embedded: None,
            disk: Disk::default(),
            wall,
            options,
            folder,
            held: Vec::new(),
            random: Random(seed),
            seconds: 1000,
            place: String::new(),
        };
        pair.open();
        pair
    }

    fn open(&mut self) {
        let memory = Local::on(Memory::on(&self.disk), self.options.clone());
        // Memory leaps over nothing, the disk over all that was seen empty.
        let leaps = LocalOptions { slow_scan: Duration::ZERO, ..self.options.clone() };
        let embedded = Local::embedded(self.folder.clone(), leaps);
        self.memory = Some(memory.unwrap_or_else(|error| panic!("{}: {error}", self.place)));
        let embedded = embedded.unwrap_or_else(|error| panic!("{}: {error}", self.place));
        self.embedded = Some(Box::new(embedded));
    }

    fn both(&self) -> [&dyn Stepped; 2] {
        [self.memory.as_ref().unwrap(), &**self.embedded.as_ref().unwrap()]
    }

    /// Does the same to both, and compares what comes back.
    fn same<T: PartialEq + std::fmt::Debug>(&self, act: impl Fn(&dyn Stepped) -> T) {
        let [memory, embedded] = self.both().map(act);
        assert_eq!(memory, embedded, "{}", self.place);
    }

    fn step(&mut self) {
        match self.random.below(40) {
            0..20 => self.group(),
            20..23 => self.scan(),
            23..26 => self.read_held(),
            26..28 => self.hold(),
            28 => self.probe(),
            29..32 => self.pass_time(),
            32 => self.move_clock(),
            33 => self.clear(),
            34 => self.same(|store| store.tick()),
            35 => self.reopen(false),
            36 => self.reopen(true),
            37 => self.same(|store| store.hints().compact()),
            38 => self.forget(),
            _ => self.compare(),
        }
    }

    /// A few writes, some of them handed in while a group is under way.
    fn group(&mut self) {
        let early: Vec<_> = (0..self.random.below(4)).map(|_| self.change()).collect();
        let late: Vec<_> = (0..self.random.below(3)).map(|_| self.change()).collect();
        self.same(|store| {
            let hand_in = |(bucket, change): &(Bucket, Change)| submit(store, *bucket, change);
            let mut tickets: Vec<_> = early.iter().map(hand_in).collect();
            store.begin_group();
            let unpublished = store.snapshot().unwrap().now();
            tickets.extend(late.iter().map(hand_in));
            store.publish_group();
            // A large write goes when no small one waits.
            for _ in 0..2 {
                store.begin_group();
                store.publish_group();
            }
            let stamps: Vec<_> = tickets.into_iter().map(dayfly_storage::Ticket::wait).collect();
            (unpublished, stamps, store.snapshot().unwrap().now())
        });
    }

    fn change(&mut self) -> (Bucket, Change) {
        let bucket = Bucket(self.random.below(3));
        let writes = (0..=self.random.below(4)).map(|_| (self.key(), self.value())).collect();
        let state = (self.random.below(10) == 0).then(|| format!("state {}", self.random.next()));
        let reads = (self.random.below(2) == 0).then(|| self.key());
        let counts = (self.random.below(3) == 0).then(|| [0, 7, 63][self.random.index(3)]);
        let is_large = self.random.below(8) == 0;
        (bucket, Change { writes, state, reads, frees: false, counts, is_large })
    }

    fn key(&mut self) -> String {
        let stem = ["a", "ab", "b", "\u{0}", "\u{7ff}"][self.random.index(5)];
        let long = if self.random.below(20) == 0 { 1900 } else { 0 };
        format!("{stem}{:02}{}", self.random.below(15), "k".repeat(long))
    }

    fn value(&mut self) -> Option<String> {
        let length = match self.random.below(10) {
            0..3 => return None,
            3 => 0,
            4..9 => self.random.index(100),
            _ => self.random.index(70_000),
        };
        Some(
            (0..length)
                .map(|_| char::from(b'a' + self.random.next().to_be_bytes()[0] % 26))
                .collect(),
        )
    }

    fn range(&mut self) -> KeyRange {
        let (one, other) = (self.key(), self.key());
        match self.random.below(4) {
            0 => KeyRange::prefix(b""),
            1 => KeyRange::prefix(&one.as_bytes()[..1]),
            _ => KeyRange {
                start: one.clone().min(other.clone()).into(),
                end: one.max(other).into(),
            },
        }
    }

    fn direction(&mut self) -> Direction {
        if self.random.below(2) == 0 { Direction::Forward } else { Direction::Backward }
    }

    fn scan(&mut self) {
        let (bucket, range) = (Bucket(self.random.below(4)), self.range());
        let (direction, limit) = (self.direction(), self.random.index(12));
        self.same(|store| store.snapshot().unwrap().scan(bucket, &range, direction, limit));
    }

    fn hold(&mut self) {
        let snapshots = self.both().map(|store| store.snapshot().unwrap());
        self.held.push(snapshots);
    }

    /// Looks at an old snapshot again.
    fn read_held(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let index = self.random.index(self.held.len());
        let bucket = Bucket(self.random.below(3));
        let keys: Vec<_> = (0..10).map(|_| self.key()).collect();
        let (range, direction) = (self.range(), self.direction());
        let shown = self.held[index].each_ref().map(|snapshot| {
            let get = |key: &String| snapshot.get(bucket, key.as_bytes()).unwrap();
            let gets: Vec<_> = keys.iter().map(get).collect();
            let all = KeyRange::prefix(b"");
            let pairs = snapshot.scan(bucket, &all, Direction::Backward, usize::MAX);
            let some = snapshot.scan(bucket, &range, direction, 3);
            (snapshot.now(), snapshot.head(bucket), gets, pairs, some)
        });
        assert_eq!(shown[0], shown[1], "{}", self.place);
        if self.random.below(3) == 0 {
            self.held.swap_remove(index);
        }
    }

    fn pass_time(&mut self) {
        self.seconds = match self.random.below(6) {
            0 => self.seconds.saturating_sub(self.random.below(50)),
            1 => self.seconds + self.random.below(1000),
            _ => self.seconds + self.random.below(4),
        };
        self.wall.set(self.seconds);
    }

    fn move_clock(&mut self) {
        let step = match self.random.below(5) {
            0 => Step::Freeze,
            1 => Step::Run,
            2 => Step::To(self.seconds + self.random.below(100)),
            _ => Step::Advance(self.random.below(20)),
        };
        self.same(|store| store.move_clock(step));
    }

    fn clear(&mut self) {
        let (bucket, range, limit) =
            (Bucket(self.random.below(4)), self.range(), self.random.index(10));
        self.same(|store| store.clear(bucket, &range, limit));
    }

    /// Says that something was deleted somewhere, whether or not it was.
    fn probe(&mut self) {
        let (bucket, range) = (Bucket(self.random.below(3)), self.range());
        let deleted = self.key().into();
        self.same(|store| {
            store.hints().emptied(
                bucket,
                &[Emptied { range: range.clone(), deleted: Vec::clone(&deleted) }],
            );
        });
    }

    fn forget(&mut self) {
        let bucket = Bucket(self.random.below(3));
        self.same(|store| {
            while store.clear(bucket, &KeyRange::prefix(b""), 7).unwrap().removed > 0 {}
            store.forget(bucket)
        });
    }

    /// Stops both, cleanly or not, and opens them again.
    fn reopen(&mut self, clean: bool) {
        self.held.clear();
        if clean {
            self.same(|store| store.close());
        }
        self.memory = None;
        self.embedded = None;
        self.open();
        self.compare();
    }

    fn compare(&self) {
        self.same(|store| (dump(store), store.clock()));
    }
}

/// A small generator of random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn index(&mut self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).unwrap()
    }
}
