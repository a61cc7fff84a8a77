//! What a store does when its backend fails, and what a power cut leaves.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod common;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use common::{at, deletes, dump, get, put, puts, submit};
use dayfly_storage::clock::{HandWall, Refused, Step};
use dayfly_storage::tally::{Change, Count};
use dayfly_storage::{
    Backend, Batch, Bucket, Changes, Direction, Disk, Draft, Durability, Error, Loaded, Local,
    LocalOptions, Memory, Plan, Result, Rows, Store, View, Visit, commit,
};

const HERE: Bucket = Bucket(1);

/// What goes wrong with the next write.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// It fails and is not there.
    Lost,
    /// The engine cannot take it, and says so before.
    Refused,
    /// It fails, but is there.
    Kept,
    /// There is no room for it on the disk.
    NoRoom,
    /// The engine panics.
    Panics,
}

/// Much room.
const ROOM: u64 = 1 << 40;

/// A memory backend that fails when told to.
#[derive(Clone)]
struct Faulty {
    memory: Memory,
    next: Arc<Mutex<Fault>>,
    reopens_fail: Arc<AtomicU32>,
    reopened: Arc<AtomicU32>,
    free_bytes: Arc<AtomicU64>,
    /// Whether a lease can be kept without room.
    keeps: bool,
    /// Whether its reads wait for a network.
    is_far: bool,
    lease: Arc<AtomicU64>,
    /// How many keys were read, one by one or in one call.
    reads: Reads,
}

#[derive(Clone, Default)]
struct Reads {
    alone: Arc<AtomicU64>,
    together: Arc<AtomicU64>,
}

impl Reads {
    fn take(&self) -> (u64, u64) {
        (self.alone.swap(0, SeqCst), self.together.swap(0, SeqCst))
    }
}

/// The rows of a store in memory, which notes what is read.
struct ReadRows(<Memory as Backend>::Rows, Reads);

impl Rows for ReadRows {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.1.alone.fetch_add(1, SeqCst);
        Rows::get(&self.0, key)
    }

    fn get_many(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Bytes>>> {
        self.1.together.fetch_add(keys.len() as u64, SeqCst);
        Rows::get_many(&self.0, keys)
    }

    fn scan(
        &self,
        start: &[u8],
        end: &[u8],
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        Rows::scan(&self.0, start, end, direction, visit)
    }
}

impl Faulty {
    fn on(disk: &Disk) -> Self {
        let next = Arc::new(Mutex::new(Fault::None));
        Faulty {
            memory: Memory::on(disk),
            next,
            reopens_fail: Arc::default(),
            reopened: Arc::default(),
            free_bytes: Arc::new(AtomicU64::new(ROOM)),
            keeps: false,
            is_far: false,
            lease: Arc::default(),
            reads: Reads::default(),
        }
    }

    fn next(&self, fault: Fault) {
        *self.next.lock().unwrap() = fault;
    }
}

fn broken() -> Error {
    Error::Unavailable("the disk is on fire".to_owned())
}

impl Backend for Faulty {
    type Rows = ReadRows;

    fn name(&self) -> String {
        "a faulty store".to_owned()
    }

    fn waits(&self) -> bool {
        self.is_far
    }

    fn rows(&self) -> Result<Self::Rows> {
        Ok(ReadRows(self.memory.rows()?, self.reads.clone()))
    }

    fn prepare(&self) -> Result<()> {
        let mut next = self.next.lock().unwrap();
        if *next == Fault::Refused {
            *next = Fault::None;
            return Err(Error::Full);
        }
        Ok(())
    }

    fn load(&self) -> Result<Loaded> {
        let mut loaded = self.memory.load()?;
        loaded.lease.until = loaded.lease.until.max(self.lease.load(SeqCst));
        Ok(loaded)
    }

    fn apply(&self, changes: Changes, durability: Durability) -> Result<()> {
        let fault = std::mem::replace(&mut *self.next.lock().unwrap(), Fault::None);
        match fault {
            Fault::None => return self.memory.apply(changes, durability),
            Fault::Lost | Fault::Refused => {}
            Fault::NoRoom => return Err(Error::Full),
            Fault::Kept => self.memory.apply(changes, durability)?,
            Fault::Panics => std::panic::resume_unwind(Box::new("on purpose")),
        }
        Err(broken())
    }

    fn sync(&self) -> Result<()> {
        self.memory.sync()
    }

    fn compact(&self) -> Result<()> {
        self.memory.compact()
    }

    fn release(&self) -> Result<()> {
        self.memory.release()
    }

    fn disk_bytes(&self) -> u64 {
        0
    }

    fn free_bytes(&self) -> Option<u64> {
        Some(self.free_bytes.load(SeqCst))
    }

    fn keep_lease(&self, lease: u64) -> Result<()> {
        if !self.keeps {
            return Err(Error::Full);
        }
        self.lease.store(lease, SeqCst);
        Ok(())
    }

    fn close(&self) -> Result<()> {
        self.memory.close()
    }

    fn reopen(&self) -> Result<()> {
        self.reopened.fetch_add(1, SeqCst);
        let fails = self.reopens_fail.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1)).is_ok();
        if fails { Err(broken()) } else { self.memory.reopen() }
    }
}

fn open(faulty: &Faulty) -> Local<Faulty> {
    Local::on(faulty.clone(), LocalOptions::default()).unwrap()
}

#[test]
fn a_failed_write_is_unknown_and_the_store_comes_back() {
    let faulty = Faulty::on(&Disk::default());
    let store = open(&faulty);
    assert_eq!(put(&store, HERE, "a", "1").unwrap().opened, 1);

    faulty.next(Fault::Lost);
    assert!(matches!(put(&store, HERE, "a", "2"), Err(Error::Unknown(_))));
    assert_eq!(get(&store, HERE, "a").as_deref(), Some("1"));
    assert_eq!(store.writable(), Ok(()));

    // The lsn goes on without a gap; the opening tells the commits apart.
    let stamp = put(&store, HERE, "a", "3").unwrap();
    assert_eq!((stamp.lsn, stamp.opened), (2, 2));
}

#[test]
fn a_store_waits_where_its_backend_does() {
    for is_far in [false, true] {
        let faulty = Faulty { is_far, ..Faulty::on(&Disk::default()) };
        assert_eq!(open(&faulty).waits(), is_far);
    }
    assert!(!Local::memory(LocalOptions::default()).unwrap().waits());
}

#[test]
fn a_write_that_was_not_begun_is_not_unknown() {
    let faulty = Faulty::on(&Disk::default());
    let store = open(&faulty);
    faulty.next(Fault::Refused);
    assert_eq!(put(&store, HERE, "a", "1"), Err(Error::Full));
    assert_eq!(get(&store, HERE, "a"), None);
    assert_eq!(put(&store, HERE, "a", "1").unwrap().lsn, 1);
}

#[test]
fn a_failed_write_that_got_there_shows() {
    let faulty = Faulty::on(&Disk::default());
    let store = open(&faulty);
    put(&store, HERE, "a", "1").unwrap();
    assert_eq!(get(&store, HERE, "a").as_deref(), Some("1"));
    faulty.next(Fault::Kept);
    assert!(matches!(put(&store, HERE, "a", "2"), Err(Error::Unknown(_))));
    assert_eq!(get(&store, HERE, "a").as_deref(), Some("2"));
    assert_eq!(put(&store, HERE, "a", "3").unwrap().lsn, 3);
}

#[test]
fn every_job_of_a_failed_group_is_unknown() {
    let faulty = Faulty::on(&Disk::default());
    let options = LocalOptions { manual: true, ..LocalOptions::default() };
    let store = Local::on(faulty.clone(), options).unwrap();
    let tickets: Vec<_> = (0..3).map(|n| submit(&store, Bucket(n), &puts("a", "1"))).collect();
    store.begin_group();
    faulty.next(Fault::Lost);
    store.publish_group();
    for ticket in tickets {
        assert!(matches!(ticket.wait(), Err(Error::Unknown(_))));
    }
    assert!(dump(&store).is_empty());
}

/// A plan that counts what it is told.
#[derive(Clone, Default)]
struct Told {
    published: Arc<AtomicU32>,
    doubtful: Arc<AtomicU32>,
}

impl Plan for Told {
    type Done = u64;
    type Refusal = Error;

    fn draft(&self, _: &View<'_>) -> Result<Draft<u64>> {
        Ok(Draft::new(|stamp, batch: &mut Batch| {
            batch.put(b"t".to_vec(), "1");
            stamp.lsn
        }))
    }

    fn published(&self, lsn: &u64) {
        assert_eq!(*lsn, u64::from(self.published.fetch_add(1, SeqCst)) + 1);
    }

    fn doubtful(&self) {
        self.doubtful.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_plan_is_told_of_its_commit_when_that_is_published_and_only_then() {
    for (fault, is_doubtful) in [(Fault::Lost, true), (Fault::Kept, true), (Fault::Refused, false)]
    {
        let faulty = Faulty::on(&Disk::default());
        let options = LocalOptions { manual: true, ..LocalOptions::default() };
        let store = Local::on(faulty.clone(), options).unwrap();
        let told = Told::default();
        let counts = || (told.published.load(SeqCst), told.doubtful.load(SeqCst));
        let ticket = commit(&store, HERE, told.clone());
        store.begin_group();
        assert_eq!(counts(), (0, 0));
        store.publish_group();
        assert_eq!(counts(), (1, 0));
        assert_eq!(ticket.wait(), Ok(1));

        let ticket = commit(&store, HERE, told.clone());
        store.begin_group();
        faulty.next(fault);
        store.publish_group();
        assert_eq!(counts(), (1, u32::from(is_doubtful)));
        assert!(ticket.wait().is_err());

        // Nobody waits for this one, and it is told all the same.
        let alone = Told::default();
        drop(commit(&store, Bucket(3), alone.clone()));
        store.begin_group();
        store.publish_group();
        assert_eq!(alone.published.load(SeqCst), 1);
    }
}

/// A plan that counts in several rows, and reads nothing.
struct Counting(u64);

impl Plan for Counting {
    type Done = ();
    type Refusal = Error;

    fn draft(&self, _: &View<'_>) -> Result<Draft<()>> {
        let first = self.0;
        Ok(Draft::new(move |_, batch: &mut Batch| {
            let one = Change::More(Count { items: 1, bytes: 10 });
            for row in first..first + 12 {
                batch.add(format!("t{row:02}").into_bytes(), 3, one);
            }
        }))
    }
}

#[test]
fn rows_that_count_are_read_in_one_call_and_not_again() {
    let faulty = Faulty::on(&Disk::default());
    let store = open(&faulty);
    faulty.reads.take();
    for (first, read) in [(0, 12), (0, 0), (4, 4), (0, 0)] {
        commit(&store, HERE, Counting(first)).wait().unwrap();
        assert_eq!(faulty.reads.take(), (0, read), "from {first} on");
    }
    // What became of them is not known when a write failed.
    faulty.next(Fault::Kept);
    assert!(commit(&store, HERE, Counting(0)).wait().is_err());
    commit(&store, HERE, Counting(0)).wait().unwrap();
    assert_eq!(faulty.reads.take(), (0, 12));
}

#[test]
fn a_draft_from_before_the_failure_is_made_again() {
    let faulty = Faulty::on(&Disk::default());
    let options = LocalOptions { manual: true, ..LocalOptions::default() };
    let store = Local::on(faulty.clone(), options).unwrap();
    let appends = common::Change { reads: Some("a".to_owned()), ..puts("a", "x") };
    let lost = submit(&store, HERE, &appends);
    store.begin_group();
    // Drafted against nothing, while the first is on its way.
    let late = submit(&store, HERE, &appends);
    faulty.next(Fault::Kept);
    store.publish_group();
    assert!(matches!(lost.wait(), Err(Error::Unknown(_))));
    store.begin_group();
    store.publish_group();
    late.wait().unwrap();
    assert_eq!(get(&store, HERE, "a").as_deref(), Some("xx"));
}

#[test]
fn a_store_that_does_not_open_again_says_so_and_keeps_trying() {
    let faulty = Faulty::on(&Disk::default());
    let store = open(&faulty);
    put(&store, HERE, "a", "1").unwrap();
    faulty.reopens_fail.store(2, SeqCst);
    faulty.next(Fault::Lost);
    assert!(matches!(put(&store, HERE, "a", "2"), Err(Error::Unknown(_))));

    let Err(Error::Unavailable(why)) = store.writable() else { panic!("it is writable") };
    assert!(why.contains("the disk is on fire"), "{why}");
    assert!(matches!(put(&store, HERE, "a", "2"), Err(Error::Unavailable(_))));
    assert!(matches!(store.snapshot().err(), Some(Error::Unavailable(_))));
    assert!(matches!(store.clock(), Err(Error::Unavailable(_))));
    assert!(store.clear(HERE, &dayfly_storage::KeyRange::prefix(b""), 1).is_err());

    while store.writable().is_err() {
        std::thread::yield_now();
    }
    assert_eq!(faulty.reopens_fail.load(SeqCst), 0);
    assert_eq!(put(&store, HERE, "a", "2").unwrap().lsn, 2);
}

#[test]
fn without_room_reads_go_on_until_there_is_some() {
    let faulty = Faulty::on(&Disk::default());
    let wall = Arc::new(HandWall::at(1000));
    let store = Local::on(faulty.clone(), at(&wall)).unwrap();
    put(&store, HERE, "a", "1").unwrap();
    assert_eq!(store.snapshot().unwrap().now(), 1000);

    faulty.free_bytes.store(0, SeqCst);
    faulty.next(Fault::NoRoom);
    assert!(matches!(submit(&store, HERE, &deletes("a")).wait(), Err(Error::Unknown(_))));
    // Nothing is lost, and nothing is tried that would fail.
    assert_eq!(get(&store, HERE, "a").as_deref(), Some("1"));
    assert_eq!(store.buckets(), [HERE]);
    assert_eq!(submit(&store, HERE, &deletes("a")).wait(), Err(Error::Full));
    assert_eq!(store.writable(), Err(Error::Full));
    assert_eq!(faulty.reopened.load(SeqCst), 0);
    // No later lease can be had, so time stands still.
    wall.set(2000);
    assert_eq!(store.snapshot().unwrap().now(), 1003);
    assert_eq!(store.clock().unwrap().now, 1003);

    faulty.free_bytes.store(ROOM, SeqCst);
    assert_eq!(store.writable(), Ok(()));
    assert_eq!(store.snapshot().unwrap().now(), 2000);
    submit(&store, HERE, &deletes("a")).wait().unwrap();
    assert_eq!(get(&store, HERE, "a"), None);
}

#[test]
fn without_room_for_its_lease_a_reader_is_served() {
    let faulty = Faulty { keeps: true, ..Faulty::on(&Disk::default()) };
    let wall = Arc::new(HandWall::at(1000));
    let store = Local::on(faulty.clone(), at(&wall)).unwrap();
    put(&store, HERE, "a", "1").unwrap();

    faulty.free_bytes.store(0, SeqCst);
    faulty.next(Fault::NoRoom);
    // The lease is kept where it needs no room, so time goes on.
    for second in [2000, 3000] {
        wall.set(second);
        assert_eq!(store.snapshot().unwrap().now(), second);
        assert_eq!(get(&store, HERE, "a").as_deref(), Some("1"));
    }
    drop(store);
    // And it is not handed out again after a restart.
    wall.set(100);
    assert_eq!(Local::on(faulty, at(&wall)).unwrap().snapshot().unwrap().now(), 3003);
}

#[test]
fn a_store_without_room_opens_for_readers() {
    let disk = Disk::default();
    put(&open(&Faulty::on(&disk)), HERE, "a", "1").unwrap();
    let faulty = Faulty::on(&disk.after_kill());
    faulty.free_bytes.store(0, SeqCst);
    faulty.next(Fault::NoRoom);
    let store = open(&faulty);
    assert_eq!(get(&store, HERE, "a").as_deref(), Some("1"));
    assert_eq!(store.writable(), Err(Error::Full));
    faulty.free_bytes.store(ROOM, SeqCst);
    while store.writable().is_err() {
        std::thread::yield_now();
    }
    assert_eq!(put(&store, HERE, "a", "2").unwrap().lsn, 2);
}

#[test]
fn a_panic_of_the_engine_does_not_stop_the_committer() {
    let faulty = Faulty::on(&Disk::default());
    let store = open(&faulty);
    faulty.next(Fault::Panics);
    assert!(matches!(put(&store, HERE, "a", "1"), Err(Error::Unknown(_))));
    assert_eq!(put(&store, HERE, "a", "2").unwrap().lsn, 1);
}

#[test]
fn a_time_that_could_not_be_kept_is_not_shown() {
    let faulty = Faulty::on(&Disk::default());
    let wall = Arc::new(HandWall::at(1000));
    let options = LocalOptions { test_clock: true, ..at(&wall) };
    let store = Local::on(faulty.clone(), options).unwrap();
    assert_eq!(store.clock().unwrap().now, 1000);
    faulty.next(Fault::Lost);
    assert_eq!(store.move_clock(Step::Advance(50)), Err(Refused::Storage(broken())));
    assert!(store.clock().unwrap().now <= 1003);

    wall.set(2000);
    faulty.next(Fault::Lost);
    assert!(store.snapshot().is_err());
    assert_eq!(store.snapshot().unwrap().now(), 2000);
}

#[test]
fn a_power_cut_takes_nothing_that_was_answered() {
    let disk = Disk::default();
    let wall = Arc::new(HandWall::at(1000));
    let store = Local::on(Memory::on(&disk), at(&wall)).unwrap();
    for n in 0..20 {
        wall.set(1000 + n);
        put(&store, Bucket(n % 2), &format!("key {n}"), "1").unwrap();
        let shown = dump(&store);
        let now = store.snapshot().unwrap().now();
        let after = Local::on(Memory::on(&disk.after_power_cut()), at(&wall)).unwrap();
        assert_eq!(dump(&after), shown);
        assert!(after.snapshot().unwrap().now() >= now);
    }
}

#[test]
fn a_power_cut_in_relaxed_mode_takes_the_tail_but_no_time() {
    let disk = Disk::default();
    let wall = Arc::new(HandWall::at(1000));
    let relaxed = LocalOptions { durability: Durability::Relaxed, ..at(&wall) };
    let store = Local::on(Memory::on(&disk), relaxed).unwrap();
    put(&store, HERE, "a", "1").unwrap();
    store.tick().unwrap();
    put(&store, HERE, "a", "2").unwrap();

    let cut = Local::on(Memory::on(&disk.after_power_cut()), at(&wall)).unwrap();
    assert_eq!(get(&cut, HERE, "a").as_deref(), Some("1"));
    let killed = Local::on(Memory::on(&disk.after_kill()), at(&wall)).unwrap();
    assert_eq!(get(&killed, HERE, "a").as_deref(), Some("2"));
    // The same lsn again, but another opening.
    assert_eq!(put(&cut, HERE, "a", "3").unwrap().lsn, 2);
    assert_eq!(put(&cut, HERE, "a", "3").unwrap().opened, 2);

    for second in [1001, 1010, 1011, 1500] {
        wall.set(second);
        let stamp = put(&store, HERE, "a", "4").unwrap();
        // Cut before anybody asks for the time, and with a wall that is late.
        let disk = disk.after_power_cut();
        wall.set(1000);
        let cut = Local::on(Memory::on(&disk), at(&wall)).unwrap();
        assert!(cut.snapshot().unwrap().now() >= stamp.ts);
    }
}

#[test]
fn the_time_of_a_relaxed_commit_outlives_a_power_cut() {
    let disk = Disk::default();
    let wall = Arc::new(HandWall::at(1000));
    let relaxed = LocalOptions { durability: Durability::Relaxed, manual: true, ..at(&wall) };
    let store = Local::on(Memory::on(&disk), relaxed).unwrap();
    let ticket = submit(&store, HERE, &puts("a", "1"));
    // The group's time is past the lease, and nobody else asks for the time.
    wall.set(2000);
    store.begin_group();
    store.publish_group();
    assert_eq!(ticket.wait().unwrap().ts, 2000);
    wall.set(1000);
    let cut = Local::on(Memory::on(&disk.after_power_cut()), at(&wall)).unwrap();
    assert!(cut.snapshot().unwrap().now() >= 2000);
}

#[test]
fn a_group_in_flight_is_gone_after_a_power_cut() {
    let disk = Disk::default();
    let options = LocalOptions { manual: true, ..LocalOptions::default() };
    let store = Local::on(Memory::on(&disk), options).unwrap();
    let ticket = submit(&store, HERE, &puts("a", "1"));
    store.begin_group();
    let cut = Local::on(Memory::on(&disk.after_power_cut()), LocalOptions::default()).unwrap();
    assert!(dump(&cut).is_empty());
    store.publish_group();
    assert_eq!(ticket.wait().unwrap().lsn, 1);
}

#[test]
fn closing_answers_what_waits() {
    let store = Local::memory(LocalOptions::default()).unwrap();
    let tickets: Vec<_> =
        (0..100).map(|n| submit(&store, HERE, &puts("a", &n.to_string()))).collect();
    store.close().unwrap();
    let lsns: Vec<u64> = tickets.into_iter().map(|ticket| ticket.wait().unwrap().lsn).collect();
    assert!(lsns.is_sorted() && lsns.len() == 100);
}

#[test]
fn too_many_waiting_writes_are_refused() {
    let options = LocalOptions { manual: true, ..LocalOptions::default() };
    let store = Local::memory(options).unwrap();
    let tickets: Vec<_> = (0..20_000).map(|_| submit(&store, HERE, &puts("a", "1"))).collect();
    store.close().unwrap();
    let answers: Vec<_> = tickets.into_iter().map(dayfly_storage::Ticket::wait).collect();
    let refused = answers.iter().filter(|answer| answer.is_err()).count();
    assert_eq!(refused, 20_000 - 16_384);
    assert_eq!(answers[0].as_ref().unwrap().lsn, 1);
    assert!(matches!(answers[19_999], Err(Error::Unavailable(_))));
}
