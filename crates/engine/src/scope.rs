//! A container as one request sees it: one snapshot, one time.

use std::sync::Arc;

use dayfly_model::session::{self, Seen};
use dayfly_model::{Error, ErrorKind, Result, Timestamp};
use dayfly_storage::Snapshot;

use crate::Shared;
use crate::catalog::{self, Container};
use crate::operation::ContainerScope;
use crate::reply::{Place, Reply};

/// A container, opened for one request.
pub(crate) struct Opened {
    pub(crate) snapshot: Box<dyn Snapshot>,
    pub(crate) container: Arc<Container>,
    /// Named by RID, so its items are too.
    pub(crate) by_rid: bool,
    session: Vec<Seen>,
}

impl Opened {
    /// The request's time.
    pub(crate) fn now(&self) -> Timestamp {
        catalog::now(&*self.snapshot)
    }

    pub(crate) fn failed(&self, error: Error) -> Reply {
        Reply::failed(error, self.now())
    }

    /// For an answer about the whole container.
    pub(crate) fn place(&self) -> Place {
        let lsn =
            |range: &catalog::Range| self.snapshot.head(self.container.bucket(&range.min)).lsn;
        Place {
            names: self.container.names.clone(),
            rid: self.container.rid_bytes.clone(),
            number: self.container.number,
            ranges: self
                .container
                .ranges
                .iter()
                .map(|range| (Arc::clone(&range.id), lsn(range)))
                .collect(),
        }
    }

    /// Whether this snapshot has all that the client has seen. A token for a
    /// range that is not touched, or not known, or for an earlier container of
    /// this name, says nothing.
    pub(crate) fn check_session(&self, place: &Place) -> Result<()> {
        let number = i64::from(self.container.number);
        let missing = |seen: &Seen| {
            (seen.version == -1 || seen.version == number)
                && place.ranges.iter().any(|(range, lsn)| **range == *seen.range && seen.lsn > *lsn)
        };
        if self.session.iter().any(missing) {
            return Err(Error::new(
                ErrorKind::SessionNotAvailable,
                "The read session is not available for the input session token.",
            ));
        }
        Ok(())
    }
}

impl Shared {
    /// Opens the container a request names. `missing` is the error when the
    /// database is there and the container is not.
    pub(crate) fn enter(&self, at: &ContainerScope, missing: ErrorKind) -> Result<Opened, Reply> {
        let snapshot = self.store.snapshot()?;
        let now = catalog::now(&*snapshot);
        let enter = || {
            let found = self.catalog.open(&*snapshot, &at.database, &at.container, missing)?;
            check_intended(&found.value, at.intended_rid.as_deref())?;
            let session = at.session.as_deref().map(session::parse).transpose()?;
            Ok((found, session.unwrap_or_default()))
        };
        match enter() {
            Ok((found, session)) => {
                Ok(Opened { container: found.value, by_rid: found.by_rid, session, snapshot })
            }
            Err(error) => Err(Reply::failed(error, now)),
        }
    }
}

/// Clients that have cached a container's RID say so, and look again when the
/// container was deleted and made anew since.
pub(crate) fn check_intended(container: &Container, intended: Option<&str>) -> Result<()> {
    match intended {
        Some(rid) if *rid != *container.rid_text => Err(Error::new(
            ErrorKind::ContainerRidMismatch,
            format!(
                "The container has the RID '{}', not '{rid}': it was created anew.",
                container.rid_text
            ),
        )),
        _ => Ok(()),
    }
}
