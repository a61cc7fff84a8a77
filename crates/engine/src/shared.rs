//! What all operations work with: the store, the catalog, and what is known of both.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use dayfly_model::Result;
use dayfly_storage::{Snapshot, Store};

use crate::burials::Burials;
use crate::catalog::{self, Catalog};
use crate::deadlines::Deadlines;
use crate::index::Index;
use crate::listings::Listings;
use crate::metering::Metering;
use crate::quota::Quotas;
use crate::reply::Reply;
use crate::settings::EngineSettings;
use crate::usage::UsageCache;

/// What all operations share.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) catalog: Catalog,
    pub(crate) settings: EngineSettings,
    pub(crate) last_container: AtomicU32,
    /// When the purge has to look where.
    pub(crate) deadlines: Arc<Deadlines>,
    /// What writes buried.
    pub(crate) burials: Arc<Burials>,
    /// The policies by which items are indexed.
    pub(crate) index: Arc<Index>,
    /// What is alive in containers.
    pub(crate) usage: UsageCache,
    /// What ranges of the index named for queries that go on.
    pub(crate) listings: Listings,
    /// What limits how much is alive, if anything does.
    pub(crate) quotas: Option<Arc<Quotas>>,
    /// Who may take how much of a throughput.
    pub(crate) metering: Metering,
}

impl Shared {
    pub(crate) fn new(store: Arc<dyn Store>, settings: EngineSettings) -> Shared {
        Shared {
            quotas: Quotas::of(&settings),
            metering: Metering::new(&settings, &*store),
            store,
            catalog: Catalog::new(),
            settings,
            last_container: AtomicU32::new(0),
            deadlines: Arc::default(),
            burials: Arc::default(),
            index: Arc::default(),
            usage: UsageCache::default(),
            listings: Listings::default(),
        }
    }

    /// Answers from one snapshot.
    pub(crate) fn answer(&self, look: impl FnOnce(&dyn Snapshot) -> Result<Reply>) -> Reply {
        match self.store.snapshot() {
            Ok(snapshot) => look(&*snapshot)
                .unwrap_or_else(|error| Reply::failed(error, catalog::now(&*snapshot))),
            Err(error) => error.into(),
        }
    }
}
