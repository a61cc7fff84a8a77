//! What a bucket's head says about its container.
//!
//! ```text
//! <epoch:8> <deleted:1> <default:8> <inherit watermark:8> <explicit watermark:8>
//! <watermark raised at:8> <default changed at:8> <deleted partitions:4> <their last change:8>
//! [<pending default:8> <its second:8>]
//! [<log after:8> <log cut:8> <minutes:4> <asked for by the definition:1>]
//! ```
//!
//! The life policy stands here, and not with the container's definition, so
//! that a change of it has a place in the order of the bucket's commits: a
//! draft made under the old policy is made again under the new one. So does a log begin.

use bytes::Bytes;
use dayfly_model::Timestamp;
use dayfly_model::ttl::{ContainerTtl, Pending, Policy};
use dayfly_storage::{Error, Head, Result};

/// The state of a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// Which definition of the container is installed; 0 for none.
    pub(crate) epoch: u64,
    /// The container is gone.
    pub(crate) deleted: bool,
    /// What it says about the life of its items.
    pub(crate) policy: Policy,
    /// Its partitions that were deleted and are not removed yet.
    pub(crate) partitions: PartitionDeletes,
    /// What is told of every version of its items; `None`: nothing.
    pub(crate) log: Option<LogState>,
}

/// The log of a bucket: from where on it tells what happened, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogState {
    /// What commits up to this one did is not told.
    pub(crate) after: u64,
    /// Nor what happened up to this second: what an earlier retention let go does not come
    /// back with a longer one.
    pub(crate) cut: Timestamp,
    /// How long it is told; 0: the log is off, and what is left of it goes.
    pub(crate) minutes: u32,
    /// Whether the container's definition asks for it. If not, a reader did.
    pub(crate) by_definition: bool,
}

impl LogState {
    /// A log that begins with the commit `lsn`.
    pub(crate) fn begun(lsn: u64, minutes: u32, by_definition: bool) -> LogState {
        LogState { after: lsn.saturating_sub(1), cut: Timestamp(0), minutes, by_definition }
    }

    /// The log when the definition has said at `now`, with the commit `lsn`, how long it is
    /// to be. A definition that says nothing ends what another one asked for, and leaves
    /// alone what a reader did.
    pub(crate) fn defined(
        log: Option<LogState>,
        minutes: Option<u32>,
        lsn: u64,
        now: Timestamp,
    ) -> Option<LogState> {
        let is_on = log.is_some_and(LogState::is_on);
        match (log, minutes) {
            (Some(log), Some(minutes)) if minutes > 0 && is_on => {
                Some(LogState { cut: log.cut(now), minutes, by_definition: true, ..log })
            }
            (_, Some(minutes)) if minutes > 0 => Some(LogState::begun(lsn, minutes, true)),
            (Some(log), None) if is_on && !log.by_definition => Some(log),
            (Some(log), _) if is_on => Some(LogState { after: lsn, minutes: 0, ..log }),
            (log, _) => log,
        }
    }

    /// Whether what happens is told.
    pub(crate) fn is_on(self) -> bool {
        self.minutes > 0
    }

    /// What happened up to this second is not told at `now`.
    pub(crate) fn cut(self, now: Timestamp) -> Timestamp {
        self.cut.max(Timestamp(now.0.saturating_sub(self.seconds())))
    }

    /// From which second on it is not told what happens at `ts`.
    pub(crate) fn until(self, ts: Timestamp) -> u64 {
        ts.0.saturating_add(self.seconds())
    }

    fn seconds(self) -> u64 {
        u64::from(self.minutes) * 60
    }
}

/// The partitions of a bucket whose items were deleted all at once, as far as some of these
/// are still there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartitionDeletes {
    /// How many there are.
    pub(crate) pending: u32,
    /// The commit that deleted the last one. So a draft that did not see it does not hold.
    pub(crate) last: u64,
}

impl State {
    /// Reads the state of `head`; a bucket without one has the empty state. One
    /// that cannot be read is closed for good: it takes nothing, no definition
    /// either, since nobody could say what had expired before that.
    pub(crate) fn of(head: &Head) -> State {
        if head.state.is_empty() {
            return State::default();
        }
        let closed = State { epoch: u64::MAX, deleted: true, ..State::default() };
        Self::decode(&head.state).unwrap_or(closed)
    }

    /// The life policy of a bucket whose container is there. A closed one has
    /// none, and shows nothing.
    pub(crate) fn policy(head: &Head) -> Result<Policy> {
        match State::of(head) {
            State { deleted: true, .. } => Err(Error::Corrupt("the head of a bucket".to_owned())),
            state => Ok(state.policy),
        }
    }

    pub(crate) fn encode(self) -> Bytes {
        let mut bytes = Vec::with_capacity(PENDING_AT + PENDING_BYTES + LOG_BYTES);
        bytes.extend(self.epoch.to_be_bytes());
        bytes.push(u8::from(self.deleted));
        bytes.extend(number_of(self.policy.default));
        bytes.extend(self.policy.inherit_watermark.0.to_be_bytes());
        bytes.extend(self.policy.explicit_watermark.0.to_be_bytes());
        bytes.extend(self.policy.raised_at.0.to_be_bytes());
        bytes.extend(self.policy.changed_at.0.to_be_bytes());
        bytes.extend(self.partitions.pending.to_be_bytes());
        bytes.extend(self.partitions.last.to_be_bytes());
        if let Some(pending) = self.policy.pending {
            bytes.extend(number_of(pending.default));
            bytes.extend(pending.at.0.to_be_bytes());
        }
        if let Some(log) = self.log {
            bytes.extend(log.after.to_be_bytes());
            bytes.extend(log.cut.0.to_be_bytes());
            bytes.extend(log.minutes.to_be_bytes());
            bytes.push(u8::from(log.by_definition));
        }
        bytes.into()
    }

    fn decode(bytes: &[u8]) -> Option<State> {
        let number = |at: usize| -> Option<[u8; 8]> { bytes.get(at..at + 8)?.try_into().ok() };
        let second = |at: usize| Some(Timestamp(u64::from_be_bytes(number(at)?)));
        let behind = bytes.len().checked_sub(PENDING_AT)?;
        let (has_pending, has_log) = match behind {
            0 => (false, false),
            PENDING_BYTES => (true, false),
            LOG_BYTES => (false, true),
            _ if behind == PENDING_BYTES + LOG_BYTES => (true, true),
            _ => return None,
        };
        let pending = if has_pending {
            let default = default_of(number(PENDING_AT)?)?;
            Some(Pending { default, at: second(PENDING_AT + 8)? })
        } else {
            None
        };
        let log = if has_log {
            let at = bytes.len() - LOG_BYTES;
            Some(LogState {
                after: u64::from_be_bytes(number(at)?),
                cut: second(at + 8)?,
                minutes: u32::from_be_bytes(bytes.get(at + 16..at + 20)?.try_into().ok()?),
                by_definition: *bytes.get(at + 20)? != 0,
            })
        } else {
            None
        };
        let partitions = PartitionDeletes {
            pending: u32::from_be_bytes(bytes.get(49..53)?.try_into().ok()?),
            last: u64::from_be_bytes(number(53)?),
        };
        Some(State {
            epoch: u64::from_be_bytes(number(0)?),
            deleted: *bytes.get(8)? != 0,
            policy: Policy {
                default: default_of(number(9)?)?,
                inherit_watermark: second(17)?,
                explicit_watermark: second(25)?,
                raised_at: second(33)?,
                changed_at: second(41)?,
                pending,
            },
            partitions,
            log,
        })
    }
}

/// Where a default that is to come stands, and its bytes.
const PENDING_AT: usize = 61;
const PENDING_BYTES: usize = 16;
/// The bytes of the log's state, behind it.
const LOG_BYTES: usize = 21;

fn number_of(default: ContainerTtl) -> [u8; 8] {
    default.to_json().unwrap_or(0).to_be_bytes()
}

fn default_of(number: [u8; 8]) -> Option<ContainerTtl> {
    Some(match i64::from_be_bytes(number) {
        0 => ContainerTtl::Off,
        -1 => ContainerTtl::NoDefault,
        seconds => ContainerTtl::Default(u32::try_from(seconds).ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_back() {
        let log = LogState { cut: Timestamp(13), ..LogState::begun(13, 14, true) };
        let defaults = [ContainerTtl::Off, ContainerTtl::NoDefault, ContainerTtl::Default(7)];
        for (default, log) in defaults.into_iter().flat_map(|d| [(d, None), (d, Some(log))]) {
            let state = State {
                epoch: 3,
                deleted: false,
                policy: Policy {
                    default,
                    inherit_watermark: Timestamp(5),
                    explicit_watermark: Timestamp(6),
                    raised_at: Timestamp(7),
                    changed_at: Timestamp(9),
                    pending: (default != ContainerTtl::Off)
                        .then_some(Pending { default: ContainerTtl::Off, at: Timestamp(8) }),
                },
                partitions: PartitionDeletes { pending: 10, last: 11 },
                log,
            };
            let head = Head { lsn: 1, ts: 1, state: state.encode() };
            assert_eq!(State::of(&head), state);
        }
        assert_eq!(State::of(&Head::default()), State::default());
        let damaged = Head { lsn: 1, ts: 1, state: bytes::Bytes::from_static(b"?") };
        assert!(State::of(&damaged).deleted);
        assert!(State::policy(&damaged).is_err());
    }

    #[test]
    fn a_longer_retention_brings_nothing_back() {
        let now = Timestamp(10_000);
        let begun = LogState::defined(None, Some(10), 5, now);
        assert_eq!(begun, Some(LogState::begun(5, 10, true)));
        let longer = LogState::defined(begun, Some(60), 9, now).unwrap();
        assert_eq!((longer.after, longer.cut(now)), (4, Timestamp(9400)));
        assert_eq!(longer.cut(Timestamp(13_601)), Timestamp(10_001));
        assert_eq!(longer.until(Timestamp(10_001)), 13_601);
        let off = LogState::defined(Some(longer), Some(0), 12, now).unwrap();
        assert_eq!((off.is_on(), off.after), (false, 12));
        assert_eq!(LogState::defined(Some(off), None, 13, now), Some(off));
        let again = LogState::defined(Some(off), Some(1), 14, now);
        assert_eq!(again, Some(LogState::begun(14, 1, true)));
    }

    #[test]
    fn a_definition_that_says_nothing_leaves_alone_what_a_reader_asked_for() {
        let by_reader = Some(LogState::begun(5, 10, false));
        let now = Timestamp(10_000);
        assert_eq!(LogState::defined(by_reader, None, 7, now), by_reader);
        let off = LogState::defined(Some(LogState::begun(5, 10, true)), None, 7, now);
        assert!(!off.unwrap().is_on());
        assert_eq!(LogState::defined(None, None, 7, now), None);
        assert_eq!(LogState::defined(None, Some(0), 7, now), None);
    }
}
