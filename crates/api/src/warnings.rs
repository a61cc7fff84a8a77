//! What the log warns of once, and not with each request.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use dayfly_engine::reply::Reply;

/// How many containers are warned of. After that nobody reads it.
const CONTAINERS_MAX: usize = 1000;

/// The containers in which a `ttl` counted for nothing, by number.
#[derive(Default)]
pub(crate) struct Warnings(Mutex<HashSet<u32>>);

impl Warnings {
    /// Warns of what a reply shows, if nobody was warned of it.
    pub(crate) fn look(&self, reply: &Reply) {
        if let (Ok(success), Some(place)) = (&reply.outcome, &reply.place)
            && success.ttl_ignored
            && self.is_first(place.number)
        {
            let container = &*String::from_utf8_lossy(&place.names);
            tracing::warn!(
                container,
                "an item was written with a ttl, and will not expire: its container has no \
                 defaultTtl. Give the container one; with -1 only items with a ttl expire. \
                 This is said once"
            );
        }
    }

    fn is_first(&self, container: u32) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.len() < CONTAINERS_MAX && known.insert(container)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_warned_of_once_and_not_too_many_are() {
        let warnings = Warnings::default();
        assert!(warnings.is_first(7));
        assert!(!warnings.is_first(7));
        let warned = (0..5000).filter(|container| warnings.is_first(*container)).count();
        assert_eq!(warned, CONTAINERS_MAX - 1);
    }
}
