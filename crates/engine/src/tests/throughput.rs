//! What the background lives on.

use dayfly_storage::Bucket;

use crate::index::rebuild::RebuildMeans;

/// For rebuilds that somebody waits for.
pub(super) struct Unlimited;

impl RebuildMeans for Unlimited {
    fn items(&self, _: Bucket) -> usize {
        usize::MAX
    }

    fn spent(&self, _: Bucket, _: dayfly_model::charge::Charge) {}
}
