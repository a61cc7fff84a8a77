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
//! Nothing explains a jump while the process was down. If the wall is more than
//! a week past the last stored time, it is believed, but for ten minutes
//! nothing should be removed from the disk.

use super::wall::Look;
use crate::Second;

/// How far ahead of its boot clock a wall clock may get between two looks.
pub const JUMP_SECONDS: u64 = 60;

/// How long a doubt lasts if nobody answers it.
pub const DOUBT_SECONDS: u64 = 600;

/// How long a store may have been closed before its first look is doubted.
pub const AWAY_SECONDS: u64 = 7 * 24 * 60 * 60;

/// What the last looks at the wall clock came to.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The last look that was believed, and did not show a wall set back.
    good: Option<Look>,
    /// The look at which the jump that is held was first seen.
    held: Option<Look>,
    /// When, on the boot clock, the purge may go on.
    purge_held_until: Option<u64>,
    jumps: u64,
}

impl Watch {
    /// Whether there is no good look yet.
    pub(super) fn is_new(&self) -> bool {
        self.good.is_none()
    }

    /// The first good look, `away` seconds after the last time that was stored;
    /// 0 in a new store.
    pub(super) fn begin(&mut self, look: Look, away: u64) {
        self.good = Some(look);
        if away > AWAY_SECONDS {
            self.purge_held_until = Some(look.boot.saturating_add(DOUBT_SECONDS));
            tracing::warn!(
                "the system's clock is {away} seconds past the last time that was stored: for ten \
                 minutes expired items are hidden, but not removed. If the clock is wrong, stop \
                 the server before that, while everything is on the disk. If it is right, there \
                 is nothing to do; POST {{\"accept\":true}} to /_admin/v1/clock lets the purge go \
                 on at once"
            );
        }
    }

    /// The time that `look` is believed to show.
    pub(super) fn believe(&mut self, look: Look) -> Second {
        if self.purge_held_until.is_some_and(|until| look.boot >= until) {
            self.purge_held_until = None;
            tracing::warn!("the time of the start has stood for ten minutes: the purge goes on");
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
        }
        if look.wall >= good.wall {
            self.good = Some(look);
        }
        look.wall
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
                 back. If it is right, POST {{\"accept\":true}} to /_admin/v1/clock, or wait: \
                 after ten minutes it is taken as right, and what has expired by then is gone"
            ),
        }
        self.held = Some(look);
        self.jumps += 1;
        true
    }

    /// A person says that the wall clock is right. `false`: nobody doubted it.
    pub(super) fn accept(&mut self, look: Look) -> bool {
        self.believe(look);
        if self.held.take().is_some() {
            self.good = Some(look);
            tracing::warn!("the jump of the system's clock was accepted");
        } else if self.purge_held_until.is_some() {
            tracing::warn!("the time of the start was accepted: the purge goes on");
        } else {
            return false;
        }
        self.purge_held_until = None;
        true
    }

    /// Whether a jump is held.
    pub(super) fn holds_jump(&self) -> bool {
        self.held.is_some()
    }

    /// Whether nothing should be purged yet.
    pub(super) fn holds_purge(&self) -> bool {
        self.purge_held_until.is_some()
    }

    /// How many jumps were held so far.
    pub(super) fn jumps(&self) -> u64 {
        self.jumps
    }
}
