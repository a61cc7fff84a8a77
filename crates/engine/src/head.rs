//! What a bucket's head says about its container.
//!
//! ```text
//! <epoch:8> <deleted:1> <default:8> <inherit watermark:8> <explicit watermark:8>
//! <watermark raised at:8> <default changed at:8> <deleted partitions:4> <their last change:8>
//! [<pending default:8> <its second:8>]
//! ```
//!
//! The life policy stands here, and not with the container's definition, so
//! that a change of it has a place in the order of the bucket's commits: a
//! draft made under the old policy is made again under the new one.

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
        let mut bytes = Vec::with_capacity(PENDING_AT + 16);
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
        bytes.into()
    }

    fn decode(bytes: &[u8]) -> Option<State> {
        let number = |at: usize| -> Option<[u8; 8]> { bytes.get(at..at + 8)?.try_into().ok() };
        let second = |at: usize| Some(Timestamp(u64::from_be_bytes(number(at)?)));
        let pending = match bytes.len() {
            PENDING_AT => None,
            _ => Some(Pending {
                default: default_of(number(PENDING_AT)?)?,
                at: second(PENDING_AT + 8)?,
            }),
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
        })
    }
}

/// Where a default that is to come stands.
const PENDING_AT: usize = 61;

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
        for default in [ContainerTtl::Off, ContainerTtl::NoDefault, ContainerTtl::Default(7)] {
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
            };
            let head = Head { lsn: 1, ts: 1, state: state.encode() };
            assert_eq!(State::of(&head), state);
        }
        assert_eq!(State::of(&Head::default()), State::default());
        let damaged = Head { lsn: 1, ts: 1, state: bytes::Bytes::from_static(b"?") };
        assert!(State::of(&damaged).deleted);
        assert!(State::policy(&damaged).is_err());
    }
}
