//! Which changes of containers have not reached their heads.
//!
//! A change of a container is recorded in the catalog by one commit, and brought into the
//! heads of its buckets by others. While it is under way, and as long as one of these
//! commits failed, a head may be behind the catalog. The clerk makes one change at a time,
//! so to know of all of them takes three numbers.
//!
//! They are in memory, where the clerk is, and none is unfinished when the engine is opened.
//! So whoever shares a store with others changes a container only while all that is asked of
//! it is answered here.

use std::sync::atomic::{AtomicU64, Ordering};

/// The changes of containers since the start, by their numbers.
#[derive(Default)]
pub(crate) struct Unfinished {
    /// The last one that was begun.
    begun: AtomicU64,
    /// The last one that ended, whether or not it reached all heads.
    ended: AtomicU64,
    /// The last one up to which all have reached them.
    finished: AtomicU64,
}

impl Unfinished {
    /// A change begins. Called before the catalog says anything of it.
    pub(crate) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::SeqCst);
    }

    /// The change that was begun has ended. `is_finished`: all heads have it, or it was
    /// refused; not so if it may have landed, or a head has to be brought to it later.
    pub(crate) fn end(&self, is_finished: bool) {
        let number = self.begun.load(Ordering::SeqCst);
        self.ended.store(number, Ordering::SeqCst);
        if is_finished {
            // Not if one before it is left.
            let (before, order) = (number.saturating_sub(1), Ordering::SeqCst);
            let _ = self.finished.compare_exchange(before, number, order, order);
        }
    }

    /// Whether all heads were where the catalog was, at an instant of this call.
    pub(crate) fn is_none(&self) -> bool {
        let finished = self.finished.load(Ordering::SeqCst);
        self.begun.load(Ordering::SeqCst) == finished
    }

    /// The change up to which some are to be finished; `None`: there are none, or one is
    /// still under way.
    pub(crate) fn left(&self) -> Option<u64> {
        let ended = self.ended.load(Ordering::SeqCst);
        (ended > self.finished.load(Ordering::SeqCst)).then_some(ended)
    }

    /// All changes up to this one, which had ended, are finished now.
    pub(crate) fn finished_to(&self, number: u64) {
        self.finished.fetch_max(number, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_unfinished_until_it_and_all_before_it_are() {
        let changes = Unfinished::default();
        assert!(changes.is_none());
        changes.begin();
        assert!(!changes.is_none());
        assert_eq!(changes.left(), None, "it is under way");
        changes.end(true);
        assert!(changes.is_none());
        changes.begin();
        changes.end(false);
        assert_eq!((changes.is_none(), changes.left()), (false, Some(2)));
        changes.begin();
        changes.end(true);
        assert_eq!((changes.is_none(), changes.left()), (false, Some(3)), "the second is not");
        changes.begin();
        changes.finished_to(3);
        assert_eq!((changes.is_none(), changes.left()), (false, None), "the fourth goes on");
        changes.end(true);
        assert_eq!((changes.is_none(), changes.left()), (true, None));
    }

    #[test]
    fn one_that_never_ended_is_left_to_be_finished_with_the_next() {
        let changes = Unfinished::default();
        changes.begin();
        changes.begin();
        changes.end(true);
        assert_eq!((changes.is_none(), changes.left()), (false, Some(2)));
        changes.finished_to(2);
        assert!(changes.is_none());
    }
}
