//! The system's clocks, and a pair that is set by hand.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::time::{ClockId, clock_gettime};

use crate::Second;

/// The clock that counts real time since the machine was started, also while
/// it sleeps. Nobody can set it.
#[cfg(target_os = "linux")]
const BOOT: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const BOOT: ClockId = ClockId::Monotonic;

/// Names one boot of one machine.
pub type BootId = u128;

/// What both clocks show at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Seconds since 1970, as far as the machine knows.
    pub wall: Second,
    /// Seconds of real time since some start.
    pub boot: u64,
}

impl Look {
    /// What the wall clock will show at `boot` if nobody touches it.
    pub(super) fn wall_at(self, boot: u64) -> Second {
        self.wall.saturating_add(boot.saturating_sub(self.boot))
    }
}

/// The system's clocks, replaced by hand in tests.
pub trait Wall: Send + Sync {
    /// Both clocks, and how many milliseconds of the wall's second have passed.
    fn look(&self) -> (Look, u64);

    /// Which boot the boot clock counts from. Looks with the same one can be
    /// compared, also those of another process.
    fn boot_id(&self) -> Option<BootId>;

    /// Seconds since 1970.
    fn seconds(&self) -> Second {
        self.look().0.wall
    }
}

/// The real clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemWall;

impl Wall for SystemWall {
    /// The boot clock is asked first. If the machine falls asleep in between,
    /// the wall seems to have jumped, which the next look takes back; the other
    /// way round it would seem to be late, and to jump at the next look.
    #[expect(clippy::disallowed_methods, reason = "this is the place that asks")]
    fn look(&self) -> (Look, u64) {
        let boot = u64::try_from(clock_gettime(BOOT).tv_sec).unwrap_or(0);
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let since = since.unwrap_or_default();
        (Look { wall: since.as_secs(), boot }, since.subsec_millis().into())
    }

    fn boot_id(&self) -> Option<BootId> {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        BootId::from_str_radix(&text.trim().replace('-', ""), 16).ok()
    }
}

/// Clocks that show what they are told, also when that is in the past.
#[derive(Debug, Default)]
pub struct HandWall(Mutex<Hands>);

#[derive(Debug, Default)]
struct Hands {
    look: Look,
    milliseconds: u64,
    boot_id: BootId,
}

impl HandWall {
    /// A wall clock that shows `second`.
    pub fn at(second: Second) -> Self {
        let look = Look { wall: second, boot: 0 };
        HandWall(Mutex::new(Hands { look, milliseconds: 0, boot_id: 1 }))
    }

    /// Time passes until the wall clock shows `second`. If that is in the past,
    /// the wall clock was set back.
    pub fn set(&self, second: Second) {
        let look = &mut self.lock().look;
        look.boot += second.saturating_sub(look.wall);
        look.wall = second;
    }

    /// Time passes.
    pub fn pass(&self, seconds: u64) {
        let look = &mut self.lock().look;
        look.boot += seconds;
        look.wall += seconds;
    }

    /// A little time passes.
    pub fn pass_milliseconds(&self, milliseconds: u64) {
        let mut hands = self.lock();
        let passed = hands.milliseconds + milliseconds;
        hands.milliseconds = passed % 1000;
        hands.look.boot += passed / 1000;
        hands.look.wall += passed / 1000;
    }

    /// The wall clock is set to `second`, and no time passes.
    pub fn jump(&self, second: Second) {
        self.lock().look.wall = second;
    }

    /// The machine is started again, and its wall clock shows `second`.
    pub fn reboot(&self, second: Second) {
        let mut hands = self.lock();
        hands.look = Look { wall: second, boot: 0 };
        hands.boot_id += 1;
    }

    fn lock(&self) -> MutexGuard<'_, Hands> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wall for HandWall {
    fn look(&self) -> (Look, u64) {
        let hands = self.lock();
        (hands.look, hands.milliseconds)
    }

    fn boot_id(&self) -> Option<BootId> {
        Some(self.lock().boot_id)
    }
}
