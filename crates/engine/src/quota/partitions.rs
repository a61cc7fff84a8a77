//! How much is alive in a logical partition, as far as somebody had to know.
//!
//! A partition has no histogram of its own: most are small, and there are many. So what one
//! holds is gone through once, when its bucket has more than a partition may hold; from then on
//! it is known here by the second of each life stamp, and follows the commits of its bucket. What
//! expires is out of the sum in that second.
//!
//! Nothing in the store says that two drafts add to the same partition. So each draft is promised
//! what it adds before it is handed in, and the promise stands until its commit is counted here,
//! or it comes to nothing. Whoever would fit but for what is promised to others is told to come
//! again.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use dayfly_model::Timestamp;
use dayfly_model::ttl::Cuts;
use dayfly_storage::{Bucket, Direction, Result, View};

use crate::deleted::DeletedPartition;
use crate::head::State;
use crate::keys::{self, Partition};
use crate::lives::{Class, CountedItem, second_of};
use crate::locks::lock;

/// Of how many partitions something is known at most, if nobody writes to them.
const KNOWN_MAX: usize = 4_096;

/// So many changes of a partition are remembered that a draft of before may not have seen.
const RECENT_MAX: usize = 4_096;

/// How many items are gone through at once.
const CHUNK: usize = 1_024;

/// Who has how much of what a partition may hold.
pub(crate) struct Partitions {
    bytes_max: u64,
    rooms: Mutex<HashMap<(Bucket, Partition), SharedSpace>>,
}

/// The room in a partition, for all who write to it.
type SharedSpace = Arc<PartitionSpace>;

/// The room in a partition, and who finds out how much there is.
#[derive(Default)]
struct PartitionSpace {
    space: Mutex<Space>,
    /// Whoever has this goes through the items.
    walking: Mutex<()>,
}

/// What is known of a partition.
#[derive(Default)]
struct Space {
    /// What drafts may add whose commits are not counted yet.
    promised: u64,
    held: Option<HeldItems>,
    /// What the last commits did, for who goes through the items of before. Empty if it is known
    /// what is held.
    recent: VecDeque<(u64, Shift)>,
    /// Commits up to this one are not among them any more.
    forgotten: u64,
    /// How often nobody knew what was committed.
    doubts: u64,
}

/// What a commit did in a partition.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shift {
    /// One version of an item gave way to another.
    Item { gone: Option<CountedItem>, came: Option<CountedItem> },
    /// All that there was is dead.
    Emptied,
}

/// The bytes of the items of a partition by the second of their life stamp, for each class.
#[derive(Debug, Default)]
struct HeldItems {
    /// With all commits up to this one.
    lsn: u64,
    by_second: [BTreeMap<u64, u64>; Class::ALL.len()],
    total: u64,
}

impl HeldItems {
    fn apply(&mut self, moved: &Shift) {
        match moved {
            Shift::Item { gone, came } => {
                if let Some(came) = came {
                    *self.at(came) += came.bytes;
                    self.total += came.bytes;
                }
                if let Some(gone) = gone {
                    let bytes = self.at(gone);
                    let taken = gone.bytes.min(*bytes);
                    *bytes -= taken;
                    self.total -= taken;
                }
            }
            Shift::Emptied => *self = HeldItems { lsn: self.lsn, ..HeldItems::default() },
        }
    }

    fn at(&mut self, item: &CountedItem) -> &mut u64 {
        let class = Class::of(item.life);
        let [inherit, explicit, never, opaque] = &mut self.by_second;
        let seconds = match class {
            Class::Inherit => inherit,
            Class::Explicit => explicit,
            Class::Never => never,
            Class::Opaque => opaque,
        };
        seconds.entry(second_of(item.life, item.ts)).or_default()
    }

    /// What is alive. What is dead is forgotten: it never comes back.
    fn live(&mut self, cuts: Cuts) -> u64 {
        for (class, seconds) in Class::ALL.into_iter().zip(&mut self.by_second) {
            let Some(cut) = class.cut(cuts) else { continue };
            while let Some(first) = seconds.first_entry().filter(|first| *first.key() <= cut.0) {
                self.total -= first.remove();
            }
        }
        self.total
    }
}

impl Space {
    /// A commit is published that did all this.
    fn moved(&mut self, lsn: u64, moved: impl Iterator<Item = Shift>) {
        if let Some(held) = &mut self.held {
            // What was found in a group that was not published yet has its commits already.
            if lsn > held.lsn {
                held.lsn = lsn;
                moved.for_each(|moved| held.apply(&moved));
            }
            return;
        }
        self.recent.extend(moved.map(|moved| (lsn, moved)));
        while self.recent.len() > RECENT_MAX
            && let Some((lsn, _)) = self.recent.pop_front()
        {
            self.forgotten = lsn;
        }
    }

    /// What came in commits that somebody has not seen who saw those up to `lsn`; `None`: nobody
    /// knows any more.
    fn since(&self, lsn: u64) -> Option<u64> {
        let unseen = self.recent.iter().filter(|(at, _)| *at > lsn);
        let bytes = unseen.map(|(_, moved)| match moved {
            Shift::Item { came: Some(came), .. } => came.bytes,
            Shift::Item { .. } | Shift::Emptied => 0,
        });
        (self.forgotten <= lsn).then(|| bytes.sum())
    }

    /// Nobody knows what was committed. What is promised may be written still.
    fn doubt(&mut self) {
        let (promised, doubts) = (self.promised, self.doubts + 1);
        *self = Space { promised, doubts, ..Space::default() };
    }

    /// What was found in a snapshot, by somebody who knew of so many doubts.
    fn found(&mut self, mut held: HeldItems, doubts: u64) {
        if self.held.is_some() || self.forgotten > held.lsn || self.doubts != doubts {
            return;
        }
        let found = held.lsn;
        for (lsn, moved) in self.recent.drain(..).filter(|(lsn, _)| *lsn > found) {
            held.lsn = lsn;
            held.apply(&moved);
        }
        self.held = Some(held);
    }
}

/// Whether there is room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fits {
    Yes,
    /// There is none.
    No,
    /// There would be, but for what others are about to write.
    Perhaps,
    /// The items would have to be gone through, and everybody waits for this draft.
    Unknown,
}

/// What a draft may add to a partition. It is given back when this is dropped.
pub(crate) struct Promise {
    room: SharedSpace,
    partition: Partition,
    bytes: u64,
    /// What it knows of doubts: a snapshot from before the last one is of no use.
    doubts: u64,
}

impl Promise {
    /// Whether the draft may add so much in all, and if so, from now on nobody else may. `live`
    /// is what is alive in the whole bucket, so no partition has more.
    pub(super) fn raise(
        &mut self,
        to: u64,
        bytes_max: u64,
        live: u64,
        view: &View<'_>,
    ) -> Result<Fits> {
        let seen = view.head().lsn;
        let cuts = State::of(view.head()).policy.cuts(Timestamp(view.now()));
        let more = to.saturating_sub(self.bytes);
        {
            let mut room = lock(&self.room.space);
            if room.doubts != self.doubts {
                return Ok(Fits::Perhaps);
            }
            if more == 0 {
                return Ok(Fits::Yes);
            }
            if room.held.is_none()
                && let Some(since) = room.since(seen)
                && live + since + room.promised + more <= bytes_max
            {
                room.promised += more;
                self.bytes = to;
                return Ok(Fits::Yes);
            }
        }
        if !self.find_out(view)? {
            return Ok(Fits::Unknown);
        }
        let mut room = lock(&self.room.space);
        let promised = room.promised;
        // A view from so long ago does not hold any more.
        let Some(held) = &mut room.held else { return Ok(Fits::Perhaps) };
        let live = held.live(cuts);
        Ok(if live + promised + more <= bytes_max {
            room.promised += more;
            self.bytes = to;
            Fits::Yes
        } else if live + to > bytes_max {
            Fits::No
        } else {
            Fits::Perhaps
        })
    }

    /// Goes through the items, unless somebody did. `false`: somebody has to, and everybody
    /// waits for this draft.
    fn find_out(&self, view: &View<'_>) -> Result<bool> {
        let is_known = || lock(&self.room.space).held.is_some();
        if is_known() {
            return Ok(true);
        }
        if view.is_waited_for() {
            return Ok(false);
        }
        let _walking = lock(&self.room.walking);
        if !is_known() {
            let held = hold(view, &self.partition)?;
            lock(&self.room.space).found(held, self.doubts);
        }
        Ok(true)
    }

    /// What was promised is written, or will not be.
    pub(super) fn give_back(&mut self) {
        let mut room = lock(&self.room.space);
        room.promised = room.promised.saturating_sub(std::mem::take(&mut self.bytes));
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Goes through the items of a partition.
fn hold(view: &View<'_>, partition: &Partition) -> Result<HeldItems> {
    let (snapshot, bucket) = (view.snapshot(), view.bucket());
    let key = bytes::Bytes::from(keys::deleted_partition(partition.bytes()));
    let deleted = snapshot.get(bucket, &key)?;
    let deleted = deleted.map(|row| DeletedPartition::decode(&key, &row)).transpose()?;
    let from = deleted.map_or(0, |deleted| deleted.before);
    let mut held = HeldItems { lsn: view.head().lsn, ..HeldItems::default() };
    let mut range = keys::in_partition(partition.bytes(), from, u64::MAX);
    loop {
        let rows = snapshot.scan(bucket, &range, Direction::Forward, CHUNK)?;
        let Some((last, _)) = rows.last() else { return Ok(held) };
        range.go_behind(last);
        for (_, row) in &rows {
            held.apply(&Shift::Item { gone: None, came: Some(CountedItem::decode(row)?) });
        }
    }
}

impl Partitions {
    pub(super) fn new(bytes_max: u64) -> Partitions {
        Partitions { bytes_max, rooms: Mutex::default() }
    }

    pub(super) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// For a write that may add to a partition; to be had before the snapshot of its draft.
    pub(super) fn promise(&self, bucket: Bucket, partition: &Partition) -> Promise {
        let mut rooms = lock(&self.rooms);
        if rooms.len() >= KNOWN_MAX {
            rooms.retain(|_, room| Arc::strong_count(room) > 1);
        }
        let room = rooms.entry((bucket, partition.clone())).or_default();
        let (room, partition) = (Arc::clone(room), partition.clone());
        let doubts = lock(&room.space).doubts;
        Promise { room, partition, bytes: 0, doubts }
    }

    /// A commit is published that did this in a partition.
    pub(super) fn moved(
        &self,
        bucket: Bucket,
        partition: &Partition,
        lsn: u64,
        moved: impl Iterator<Item = Shift>,
    ) {
        let room = lock(&self.rooms).get(&(bucket, partition.clone())).map(Arc::clone);
        if let Some(room) = room {
            lock(&room.space).moved(lsn, moved);
        }
    }

    /// Nobody knows what was committed.
    pub(super) fn forget(&self) {
        lock(&self.rooms).values().for_each(|room| lock(&room.space).doubt());
    }
}
