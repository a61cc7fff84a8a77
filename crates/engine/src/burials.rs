//! The expired items that writes buried, because they wanted the id or a unique key: how
//! many there were, in each container, since the start.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard};

use dayfly_storage::Bucket;

use crate::keys;
use crate::locks::lock;

/// How many containers are counted. When there are more, counting starts anew,
/// as after a restart: containers that are no more are forgotten only when
/// somebody asks for the figures.
const COUNTED_MAX: usize = 100_000;

/// What is counted of each container since the start.
#[derive(Default)]
pub(crate) struct Burials(Mutex<HashMap<u32, Went>>);

#[derive(Clone, Copy, Default)]
struct Went {
    /// Expired items that stood in the way of a write.
    buried: u64,
    /// The greatest count of expired items that was shown.
    shown: u64,
}

impl Burials {
    /// A write has buried `items` that stood in its way.
    pub(crate) fn buried(&self, bucket: Bucket, items: usize) {
        if items > 0
            && let Some(container) = keys::container_of(bucket)
        {
            let mut all = self.lock();
            if all.len() >= COUNTED_MAX {
                all.clear();
            }
            all.entry(container).or_default().buried += items as u64;
        }
    }

    /// How many were buried so far.
    pub(crate) fn all_buried(&self) -> HashMap<u32, u64> {
        self.lock().iter().map(|(container, went)| (*container, went.buried)).collect()
    }

    /// What to show, if it looks as if `expired` items have expired.
    pub(crate) fn shown(&self, container: u32, expired: u64) -> u64 {
        let mut all = self.lock();
        let went = all.entry(container).or_default();
        went.shown = went.shown.max(expired);
        went.shown
    }

    /// Forgets containers that are no more.
    pub(crate) fn keep(&self, containers: &HashSet<u32>) {
        self.lock().retain(|container, _| containers.contains(container));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Went>> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_expired_is_never_shown_as_less() {
        let burials = Burials::default();
        for (counted, shown) in [(5, 5), (4, 5), (6, 6)] {
            assert_eq!(burials.shown(1, counted), shown);
        }
    }

    #[test]
    fn nobody_is_counted_for_ever() {
        let burials = Burials::default();
        burials.buried(keys::bucket(1, 0), 1);
        burials.buried(keys::bucket(2, 0), 1);
        burials.buried(keys::bucket(2, 1), 1);
        burials.keep(&HashSet::from([2]));
        assert_eq!(burials.all_buried(), HashMap::from([(2, 2)]));
        for container in 1..=100_001 {
            burials.buried(keys::bucket(container, 0), 1);
        }
        assert!(burials.lock().len() <= COUNTED_MAX);
    }
}
