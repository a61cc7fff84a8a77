//! What can happen in a history: steps, as data.
//!
//! A seed makes a history, always the same one. A history that fails is made
//! shorter by leaving steps out, so a step means something wherever it stands;
//! one that has nothing to do, does nothing.

use std::fmt;

use super::super::random::Random;
use super::super::server::{Crash, Kind, Setup};
use crate::QueryLimits;
use crate::operation::BatchMode;

/// About how many steps a history has.
const STEPS: usize = 60;

/// The partition keys and ids in use: few, so that writes meet.
const KEYS: [&str; 2] = ["x", "y"];
const IDS: [&str; 3] = ["a", "b", "c"];

/// Where an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) key: &'static str,
    pub(super) id: &'static str,
}

impl Place {
    pub(super) fn all() -> impl Iterator<Item = Place> {
        KEYS.into_iter().flat_map(|key| IDS.into_iter().map(move |id| Place { key, id }))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.key, self.id)
    }
}

/// The `ttl` of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ttl {
    Absent,
    Never,
    After(u64),
    /// Not a number: taken only while the container has no default.
    Odd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Create,
    Upsert,
    Replace,
    /// A replace that gives the item this id, which may be the one it has.
    Rename(&'static str),
    /// A patch of the email and the mark, and of the `ttl` in one of these ways.
    Patch(TtlPatch),
    Delete,
    /// All items of the partition key are deleted.
    Clear,
}

/// What a patch does to the `ttl` of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TtlPatch {
    Keep,
    Set,
    Remove,
}

/// A write to one item.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    pub(super) act: Act,
    pub(super) place: Place,
    /// What it brings, if it brings any.
    pub(super) ttl: Ttl,
    /// Unique in its logical partition.
    pub(super) email: u64,
    /// Tells two writes apart, and makes them differ in length.
    pub(super) mark: u64,
}

impl Write {
    /// Where the item is afterwards.
    pub(super) fn target(&self) -> Place {
        match self.act {
            Act::Rename(id) => Place { id, ..self.place },
            _ => self.place,
        }
    }
}

/// The default of a container, as in its definition.
pub(super) type Default = Option<i64>;

/// Writes of one partition key that are one commit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    pub(super) writes: [Write; 3],
    /// What happens when one fails.
    pub(super) mode: BatchMode,
}

impl Batch {
    /// Whether it is drafted again by who waits for it.
    pub(super) fn has_patch(&self) -> bool {
        self.writes.iter().any(|write| matches!(write.act, Act::Patch(_)))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// A write is handed in, and waits.
    Write(Write),
    /// So are several, as one.
    Batch(Batch),
    /// A group begins with the writes that wait, or they join the one that has.
    Begin,
    /// The group is written, seen and answered.
    Publish,
    /// Both at once.
    Commit,
    /// The wall clock moves, back perhaps.
    Wall(i64),
    /// A change of the default is handed in.
    Default(Default),
    /// The division of a range is handed in, the one that this falls on.
    Split(usize),
    /// Everything dead goes; with a write that is handed in meanwhile.
    Purge(Option<Write>),
    /// The same, but it is the background that does it.
    Turns(Option<Write>),
    /// The background rests, or goes on.
    Pause(bool),
    /// The server stops and starts.
    Restart,
    /// The server is gone, and another one starts on its disk.
    Crash(Crash),
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let act = format!("{:?}", self.act).to_lowercase();
        write!(f, "{act} {}", self.place)?;
        if matches!(self.act, Act::Delete | Act::Clear) {
            return Ok(());
        }
        write!(f, ", email {}", self.email)?;
        match self.ttl {
            Ttl::Absent => Ok(()),
            Ttl::Never => write!(f, ", ttl -1"),
            Ttl::After(seconds) => write!(f, ", ttl {seconds}"),
            Ttl::Odd => write!(f, ", ttl \"odd\""),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Write(write) => write!(f, "hand in: {write}"),
            Step::Batch(Batch { writes: [first, second, third], mode }) => {
                write!(f, "hand in as one, {mode:?}: {first}; {second}; {third}")
            }
            Step::Begin => write!(f, "begin a group"),
            Step::Publish => write!(f, "publish the group"),
            Step::Commit => write!(f, "begin and publish"),
            Step::Wall(seconds) => write!(f, "the wall clock moves by {seconds} s"),
            Step::Default(None) => write!(f, "hand in: no default"),
            Step::Default(Some(default)) => write!(f, "hand in: default {default}"),
            Step::Split(pick) => write!(f, "hand in: range {pick} is divided"),
            Step::Purge(None) => write!(f, "purge"),
            Step::Purge(Some(write)) => write!(f, "purge, and meanwhile: {write}"),
            Step::Turns(None) => write!(f, "turns of the background purge"),
            Step::Turns(Some(write)) => {
                write!(f, "turns of the background purge, and meanwhile: {write}")
            }
            Step::Pause(true) => write!(f, "pause the purge"),
            Step::Pause(false) => write!(f, "resume the purge"),
            Step::Restart => write!(f, "stop and start"),
            Step::Crash(crash) => write!(f, "crash: {crash:?}"),
        }
    }
}

/// A whole history.
#[derive(Clone, Debug)]
pub(super) struct History {
    pub(super) setup: Setup,
    /// Whether somebody reads every version from the beginning on.
    pub(super) has_log: bool,
    pub(super) steps: Vec<Step>,
}

impl History {
    /// The history of a seed. Odd seeds have one bucket, even ones four, and every third one
    /// has a hierarchical partition key.
    pub(super) fn of(seed: u64, stage: super::Stage) -> History {
        let mut random = Random(seed);
        let slices = if seed.is_multiple_of(2) { 4 } else { 1 };
        let kind = match stage {
            super::Stage::Memory => Kind::Memory { slices },
            super::Stage::Disk => Kind::Disk { slices },
            super::Stage::Afar => Kind::Far { slices },
        };
        let setup = Setup {
            kind,
            stepped: true,
            change_delay_seconds: random.pick(&[0, 0, 0, 3]),
            cache_bytes: random.pick(&[0, 20_000]),
            hierarchical: seed.is_multiple_of(3),
            limits: QueryLimits::SMALL,
            container_quota: None,
            partition_quota: None,
        };
        let steps = (0..STEPS as u64).map(|mark| random.step(mark)).collect();
        History { setup, has_log: seed % 5 < 3, steps }
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setup { kind, change_delay_seconds, cache_bytes, hierarchical, .. } = self.setup;
        writeln!(f, "{kind:?}, cache {cache_bytes} B, changes wait {change_delay_seconds} s")?;
        if self.has_log {
            writeln!(f, "with a log")?;
        }
        if hierarchical {
            writeln!(f, "a hierarchical partition key")?;
        }
        for (number, step) in (1..).zip(&self.steps) {
            writeln!(f, "{number:>4}. {step}")?;
        }
        Ok(())
    }
}

impl Random {
    fn step(&mut self, mark: u64) -> Step {
        match self.below(100) {
            0..31 => Step::Write(self.write(mark)),
            31..36 => Step::Batch(self.batch(mark)),
            36..51 => Step::Commit,
            51..56 => Step::Begin,
            56..62 => Step::Publish,
            62..77 => Step::Wall(self.seconds()),
            77..84 => {
                let seconds = 1 + self.below(7).cast_signed();
                Step::Default(self.pick(&[None, Some(-1), Some(seconds), Some(seconds)]))
            }
            84 => Step::Purge(None),
            85 => Step::Split(usize::try_from(self.below(8)).unwrap()),
            86..88 => Step::Purge(Some(self.write(mark))),
            88..90 => Step::Turns(None),
            90..93 => Step::Turns(Some(self.write(mark))),
            93 => Step::Pause(true),
            94 => Step::Pause(false),
            95 => Step::Restart,
            96..98 => Step::Crash(Crash::PowerCut),
            _ => Step::Crash(Crash::Kill),
        }
    }

    fn seconds(&mut self) -> i64 {
        match self.below(10) {
            0 => -1 - self.below(5).cast_signed(),
            1 => 5 + self.below(40).cast_signed(),
            _ => 1 + self.below(3).cast_signed(),
        }
    }

    /// What is about all items is left to single writes. How it goes on is not drawn, so that
    /// all else in a history of old is as it was.
    fn batch(&mut self, mark: u64) -> Batch {
        let key = self.pick(&KEYS);
        let mode = match mark % 6 {
            0 | 3 => BatchMode::GoesOn,
            1 => BatchMode::Stops,
            _ => BatchMode::Atomic,
        };
        let writes = [0, 1, 2].map(|more| {
            let mut write = self.write(mark + 100 * more);
            write.place.key = key;
            if write.act == Act::Clear {
                write.act = Act::Upsert;
            }
            write
        });
        Batch { writes, mode }
    }

    fn write(&mut self, mark: u64) -> Write {
        use Act::{Clear, Create, Delete, Patch, Rename, Replace, Upsert};
        use TtlPatch::{Keep, Remove, Set};
        let rename = Rename(self.pick(&IDS));
        let patch = Patch(self.pick(&[Keep, Keep, Set, Set, Remove]));
        let seconds = 1 + self.below(6);
        let delete = if self.chance(40) { Clear } else { Delete };
        Write {
            act: self.pick(&[
                Create, Create, Upsert, Upsert, Upsert, Replace, Replace, rename, patch, patch,
                delete,
            ]),
            place: Place { key: self.pick(&KEYS), id: self.pick(&IDS) },
            ttl: self.pick(&[
                Ttl::Absent,
                Ttl::Absent,
                Ttl::Absent,
                Ttl::Never,
                Ttl::After(seconds),
                Ttl::After(seconds),
                Ttl::After(seconds),
                Ttl::Odd,
            ]),
            email: self.below(3),
            mark,
        }
    }
}
