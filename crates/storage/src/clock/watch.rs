//! Is the wall clock to be believed?
//!
//! What has expired is gone for good, so one wrong second of a clock that was
//! set to next year would cost everything. The boot clock, which nobody can
//! set, says how much time has really passed:
//!
//! ```text
//! wall was 12:00:00, boot was 500       the last good look
//! wall is  12:00:07, boot is  507       explained
//! wall is  13:00:07, boot is  4107      explained: nobody looked, or the machine slept
//! wall is  13:00:07, boot is  507       a jump: held, it is 12:00:07
//! ```
//!
//! A held jump ends when the wall comes back, when it has stood for ten
//! minutes, or when a person accepts it. Each good look is the measure of the
//! next one, so a clock that runs a little fast never adds up to a jump. A wall
//! that was set back is no measure before it has caught up: when it returns to
//! where it was, that is no jump.
//!
//! What is hidden can still be got back from the disk by a person, so removing
//! is judged more strictly than hiding: whenever the wall was set by more than a
//! minute, ahead or back, nothing should be removed before it has run for ten
//! minutes without that.
//!
//! **Over a restart** the last looks are kept beside the lease ([`Anchor`]). In
//! the same boot of the machine they are the measure, as if the process had
//! never been gone. After another boot nothing explains the time that has
//! passed: the wall is believed, but if it is more than a minute past the last
//! stored time, nothing should be removed for ten minutes, in which a machine
//! usually learns the time. A doubt that was open is open again: a jump that
//! was held is held, and the ten minutes begin anew, because a person should
//! have them while the server runs and says so.

use super::PurgeHold;
use super::wall::{BootId, Look};
use crate::Second;

/// How far ahead of its boot clock a wall clock may get between two looks, and
/// how far it may be behind the store's time before something must be wrong.
pub const JUMP_SECONDS: u64 = 60;

/// How long a doubt lasts if nobody answers it.
pub const DOUBT_SECONDS: u64 = 600;

/// How long a store may have been closed before a person is warned of it.
pub const AWAY_SECONDS: u64 = 7 * 24 * 60 * 60;

/// By what the next opening measures the wall clock; stored with each lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Anchor {
    /// Of which boot the looks are, if that can be told.
    pub boot_id: Option<BootId>,
    /// The last look that was believed.
    pub good: Option<Look>,
    /// The last look.
    pub last: Option<Look>,
    /// What was doubted.
    pub doubt: Doubt,
    /// The time that a person has accepted although the wall was behind it.
    pub accepted: Second,
}

/// What is not resolved yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubt {
    /// Whether a jump is held.
    pub jump: bool,
    /// Whether nothing may be removed.
    pub purge: bool,
}

/// What the last looks at the wall clock came to.
#[derive(Debug, Default)]
pub(super) struct Watch {
    boot_id: Option<BootId>,
    /// The last look that was believed, and did not show a wall set back.
    good: Option<Look>,
    /// The last look.
    last: Option<Look>,
    /// The look at which the jump that is held was first seen.
    held: Option<Look>,
    /// When, on the boot clock, the purge may go on.
    purge_held_until: Option<u64>,
    /// What an earlier opening left open, until the first good look.
    left: Doubt,
    jumps: u64,
}

impl Watch {
    /// Goes on where `anchor` was stored.
    pub(super) fn restore(&mut self, anchor: &Anchor, boot_id: Option<BootId>, look: Look) {
        self.boot_id = boot_id;
        self.left = anchor.doubt;
        let is_same = boot_id.is_some() && boot_id == anchor.boot_id;
        if !is_same || anchor.last.is_some_and(|last| last.boot > look.boot) {
            return;
        }
        (self.good, self.last) = (anchor.good, anchor.last);
        // A jump shows again by itself, against the good look.
        if self.good.is_some() && std::mem::take(&mut self.left).purge {
            self.hold_purge(look);
            tracing::warn!(
                "the system's clock was doubted when the server was last stopped: {TEN_MINUTES}"
            );
        }
    }

    /// Whether there is no good look yet.
    pub(super) fn is_new(&self) -> bool {
        self.good.is_none()
    }

    /// The first good look of this boot, `away` seconds after the last time
    /// that was stored; 0 in a new store.
    pub(super) fn begin(&mut self, look: Look, away: u64) {
        self.good = Some(look);
        let left = std::mem::take(&mut self.left);
        if left.jump && away > JUMP_SECONDS {
            // The stored time was right, as far as anybody knows; of what came
            // after it nobody knows how much has passed.
            self.good = Some(Look { wall: look.wall.saturating_sub(away), ..look });
        } else if left.purge || away > JUMP_SECONDS {
            self.hold_purge(look);
            self.last = Some(look);
            if left.purge || away > AWAY_SECONDS {
                tracing::warn!(
                    "the system's clock is {away} seconds past the last time that was stored, and \
                     nothing explains it: {TEN_MINUTES}"
                );
            } else {
                tracing::info!(
                    "the machine was started since the server last ran: nothing is removed from \
                     the disk before its clock has stood for ten minutes"
                );
            }
        }
    }

    /// The time that `look` is believed to show.
    pub(super) fn believe(&mut self, look: Look) -> Second {
        if self.purge_held_until.is_some_and(|until| look.boot >= until) {
            self.purge_held_until = None;
            tracing::info!("the system's clock has run for ten minutes: the purge goes on");
        }
        let (ahead_of_last, behind_last) = self.was_set(look);
        self.last = Some(look);
        if ahead_of_last || behind_last {
            self.hold_purge(look);
        }
        let Some(good) = self.good else { return look.wall };
        let expected = good.wall_at(look.boot);
        let ahead = look.wall.saturating_sub(expected);
        if ahead > JUMP_SECONDS {
            if self.still_doubts(look, ahead) {
                return expected;
            }
            tracing::warn!(
                "the jump of the system's clock has stood for ten minutes and is taken as right: \
                 time goes {ahead} seconds ahead"
            );
        } else if self.held.take().is_some() {
            tracing::warn!("the system's clock came back from its jump; nothing was lost");
        } else if ahead_of_last && look.wall >= good.wall {
            tracing::warn!(
                "the system's clock was set back, and is again where it was before: {TEN_MINUTES}"
            );
        }
        if look.wall >= good.wall {
            self.good = Some(look);
        }
        look.wall
    }

    /// Whether somebody set the wall since the last look, ahead or back.
    fn was_set(&self, look: Look) -> (bool, bool) {
        let Some(expected) = self.last.map(|last| last.wall_at(look.boot)) else {
            return (false, false);
        };
        let is_far = look.wall.abs_diff(expected) > JUMP_SECONDS;
        (is_far && look.wall > expected, is_far && look.wall < expected)
    }

    /// Whether a jump that `look` shows is held, or else it has stood long
    /// enough. A wall that jumps on starts anew.
    fn still_doubts(&mut self, look: Look, ahead: u64) -> bool {
        match self.held {
            Some(first) if look.wall.abs_diff(first.wall_at(look.boot)) <= JUMP_SECONDS => {
                let stood = look.boot.saturating_sub(first.boot) >= DOUBT_SECONDS;
                if stood {
                    self.held = None;
                }
                return !stood;
            }
            Some(_) => {}
            None => tracing::warn!(
                "the system's clock jumped {ahead} seconds ahead, and that time has not passed: \
                 the jump is held, and time goes on without it. If the clock is wrong, set it \
                 back, also if you stop the server meanwhile. If it is right, POST \
                 {{\"accept\":true}} to /_admin/v1/clock, or wait: after ten minutes it is taken \
                 as right, and what has expired by then is gone"
            ),
        }
        self.held = Some(look);
        self.hold_purge(look);
        self.jumps += 1;
        true
    }

    fn hold_purge(&mut self, look: Look) {
        self.purge_held_until = Some(look.boot.saturating_add(DOUBT_SECONDS));
    }

    /// A person says that the wall clock is right. `false`: nobody doubted it.
    pub(super) fn accept(&mut self, look: Look) -> bool {
        self.believe(look);
        let doubted = self.doubt() != Doubt::default();
        if self.held.take().is_some() {
            self.good = Some(look);
        }
        self.left = Doubt::default();
        self.purge_held_until = None;
        doubted
    }

    /// What is not resolved yet.
    pub(super) fn doubt(&self) -> Doubt {
        Doubt {
            jump: self.held.is_some() || self.left.jump,
            purge: self.purge_held_until.is_some() || self.left.purge,
        }
    }

    /// What is to be stored of all this.
    pub(super) fn anchor(&self) -> Anchor {
        let Watch { boot_id, good, last, .. } = *self;
        Anchor { boot_id, good, last, doubt: self.doubt(), accepted: 0 }
    }

    /// Whether a jump is held.
    pub(super) fn holds_jump(&self) -> bool {
        self.held.is_some()
    }

    /// Why nothing should be purged yet, at the last look.
    pub(super) fn purge_hold(&self) -> Option<PurgeHold> {
        if self.left.purge {
            // Counted from the first good look on.
            return Some(PurgeHold::Unproven { seconds: DOUBT_SECONDS });
        }
        let until = self.purge_held_until?;
        let boot = self.last.map_or(0, |last| last.boot);
        Some(PurgeHold::Unproven { seconds: until.saturating_sub(boot) })
    }

    /// How many jumps were held so far.
    pub(super) fn jumps(&self) -> u64 {
        self.jumps
    }
}

/// What a person may do about a hold of the purge.
const TEN_MINUTES: &str = "for ten minutes expired items are hidden, but not removed from the \
    disk. If the clock is wrong, stop the server before that, set the clock right and start again: \
    everything is on the disk until the right clock has passed what the wrong one showed. If it \
    is right, there is nothing to do; POST {\"accept\":true} to /_admin/v1/clock lets the purge go \
    on at once";
