//! A container as one request sees it: one snapshot, one time.

use std::sync::Arc;

use dayfly_model::charge::Charge;
use dayfly_model::meter::Service;
use dayfly_model::session::{self, TokenPart};
use dayfly_model::{Error, ErrorKind, Result, Timestamp};
use dayfly_storage::{Bucket, Direction, Snapshot};

use crate::catalog::{self, Container};
use crate::index::walk::{Entries, EntryRange};
use crate::metering::Toll;
use crate::operation::{ContainerScope, Intended, Part};
use crate::parts::{self, Touched};
use crate::reply::{Origin, Reply, Usage, storage_failed};
use crate::settings::QueryLimits;
use crate::shared::Shared;

/// A container, opened for one request.
pub(crate) struct Opened {
    pub(crate) snapshot: Box<dyn Snapshot>,
    pub(crate) container: Arc<Container>,
    /// Named by RID, so its items are too.
    pub(crate) by_rid: bool,
    session: Vec<TokenPart>,
    /// How much a query looks at.
    pub(crate) limits: QueryLimits,
}

impl Opened {
    /// The request's time.
    pub(crate) fn now(&self) -> Timestamp {
        catalog::now(&*self.snapshot)
    }

    pub(crate) fn failed(&self, error: Error) -> Reply {
        Reply::failed(error, self.now())
    }

    /// Takes what the request believes of the container, if that can be.
    fn believe(&mut self, at: &ContainerScope) -> Result<()> {
        check_intended(&self.container, &at.intended)?;
        if let Some(token) = &at.session {
            self.session = session::parse(token)?;
        }
        Ok(())
    }

    /// A walk over a range of entries, in one of the container's buckets.
    pub(crate) fn entries(
        &self,
        bucket: Bucket,
        entry_range: &EntryRange,
        direction: Direction,
    ) -> Result<Entries<'_>> {
        Entries::new(&*self.snapshot, bucket, entry_range, direction, &self.limits)
            .map_err(storage_failed)
    }

    /// The ranges that a part touches.
    pub(crate) fn touched(&self, part: &Part) -> Result<Vec<Touched>> {
        parts::touched(&*self.snapshot, &self.container, part)
    }

    /// Where items are that a request names by `part`, for whatever it is answered, a
    /// refusal too. If that is one range, it is the range of the answer; if it is
    /// several, or the part names none, there is none.
    pub(crate) fn place(&self, part: &Part) -> Origin {
        let touched = self.touched(part).unwrap_or_default();
        let range = match touched.as_slice() {
            [only] => Some(Arc::clone(&only.range)),
            _ => None,
        };
        self.container.place(range, touched.iter().map(|touched| touched.lsn).max())
    }

    /// Where the container itself is.
    pub(crate) fn owner(&self) -> Origin {
        let heads = self.container.buckets().map(|bucket| self.snapshot.head(bucket).lsn);
        Origin { lsn: heads.max(), ..self.container.owner.clone() }
    }

    /// Whether this snapshot has all that the client has seen. A token for a
    /// range that is not touched, or not known, or for an earlier container of
    /// this name, says nothing. One for a range that was divided is one for its parts.
    pub(crate) fn check_session(&self, touched: &[Touched]) -> Result<()> {
        let number = i64::from(self.container.number);
        let missing = |part: &TokenPart| {
            let is_ahead =
                |touched: &Touched| touched.is_named(&part.range) && part.lsn > touched.lsn;
            (part.version == -1 || part.version == number) && touched.iter().any(is_ahead)
        };
        if self.session.iter().any(missing) {
            return Err(Error::new(
                ErrorKind::SessionNotAvailable,
                "The read/write session is not available for the input session token.",
            ));
        }
        Ok(())
    }
}

impl Shared {
    /// Opens the container a request names. `missing` is the error when the
    /// database is there and the container is not.
    pub(crate) fn enter(&self, at: &ContainerScope, missing: ErrorKind) -> Result<Opened, Reply> {
        let mut opened = self.find(at, missing)?;
        opened.believe(at).map_err(|error| opened.failed(error))?;
        Ok(opened)
    }

    /// The same for a request about the items of a part: a refusal is about that part.
    pub(crate) fn enter_part(&self, at: &ContainerScope, part: &Part) -> Result<Opened, Reply> {
        let mut opened = self.find(at, ErrorKind::OwnerNotFound)?;
        opened.believe(at).map_err(|error| opened.failed(error).at(opened.place(part)))?;
        Ok(opened)
    }

    /// The same for a request that takes from the container's throughput, if that gives it
    /// something.
    pub(crate) fn enter_metered(
        &self,
        at: &ContainerScope,
        part: &Part,
    ) -> Result<(Opened, Option<Toll>), Reply> {
        let opened = self.enter_part(at, part)?;
        let toll = self.admit(&opened, at.service, part)?;
        Ok((opened, toll))
    }

    /// Whether a request may take from the throughput of the ranges that it touches.
    pub(crate) fn admit(
        &self,
        opened: &Opened,
        service: Service,
        part: &Part,
    ) -> Result<Option<Toll>, Reply> {
        let (snapshot, container) = (&*opened.snapshot, &opened.container);
        self.metering.admit(&self.store, snapshot, container, part, service).map_err(|throttled| {
            let refused = opened.failed(Error::throttled(throttled));
            Reply { charge: Charge::NOTHING, ..refused }.at(opened.place(part))
        })
    }

    /// Answers about the items of a part of a container, for what the answer costs.
    pub(crate) fn in_metered(
        &self,
        at: &ContainerScope,
        part: &Part,
        look: impl FnOnce(&Opened) -> Reply,
    ) -> Reply {
        match self.enter_metered(at, part) {
            Ok((opened, toll)) => {
                let reply = self.tell_usage(&opened, look(&opened));
                if let Some(toll) = toll {
                    toll.pay_at_once(reply.charge);
                }
                reply
            }
            Err(reply) => reply,
        }
    }

    /// Adds to an answer about items what is alive in their container.
    pub(crate) fn tell_usage(&self, opened: &Opened, mut reply: Reply) -> Reply {
        if let (Ok(success), Some(now)) = (&mut reply.outcome, reply.now) {
            let lsn = reply.place.as_ref().and_then(|place| place.lsn);
            success.usage = self.usage_in(&*opened.snapshot, &opened.container, now, lsn);
        }
        reply
    }

    /// What is alive in a container, for an answer of this time and this commit.
    pub(crate) fn usage_at(
        &self,
        container: &Container,
        now: Timestamp,
        lsn: Option<u64>,
    ) -> Option<Usage> {
        let snapshot = self.store.snapshot().ok()?;
        self.usage_in(&*snapshot, container, now, lsn)
    }

    fn usage_in(
        &self,
        snapshot: &dyn Snapshot,
        container: &Container,
        now: Timestamp,
        lsn: Option<u64>,
    ) -> Option<Usage> {
        let live = self.usage.of(snapshot, container, now, lsn.unwrap_or_default());
        live.map(|live| container.usage(live, self.settings.container_quota))
    }

    /// Answers about the items of a part of a container.
    pub(crate) fn in_container(
        &self,
        at: &ContainerScope,
        part: &Part,
        look: impl FnOnce(&Opened) -> Reply,
    ) -> Reply {
        match self.enter_part(at, part) {
            Ok(opened) => self.tell_usage(&opened, look(&opened)),
            Err(reply) => reply,
        }
    }

    fn find(&self, at: &ContainerScope, missing: ErrorKind) -> Result<Opened, Reply> {
        let named = (&*at.database, &*at.container);
        let recalled = self.catalog.recall(named.0, named.1);
        let snapshot = self.store.snapshot()?;
        match self.catalog.open(&*snapshot, recalled, named, missing) {
            Ok(found) => Ok(Opened {
                container: found.value,
                by_rid: found.by_rid,
                session: Vec::new(),
                limits: self.settings.query_limits,
                snapshot,
            }),
            Err(error) => Err(Reply::failed(gone(error, at), catalog::now(&*snapshot))),
        }
    }
}

/// An answer, once its charge is taken.
pub(crate) fn paid(toll: Option<Toll>, reply: Reply) -> Reply {
    if let Some(toll) = toll {
        toll.pay(reply.charge);
    }
    reply
}

/// Clients that have cached a container's RID say so, and look again when the
/// container was deleted and made anew since.
pub(crate) fn check_intended(container: &Container, intended: &[Intended]) -> Result<()> {
    match intended.iter().find(|intended| *intended.rid != *container.rid_text) {
        Some(Intended { rid, otherwise }) => Err(Error::new(
            *otherwise,
            format!(
                "The container has the RID '{}', not '{rid}': it was created anew.",
                container.rid_text
            ),
        )),
        None => Ok(()),
    }
}

/// What a client is told of a container that is not there. One that has cached a RID for
/// the name, and wants to hear it before all else when that is stale, looks again.
fn gone(error: Error, at: &ContainerScope) -> Error {
    let is_missing = matches!(error.kind, ErrorKind::NotFound | ErrorKind::OwnerNotFound);
    let is_stale = |intended: &Intended| intended.otherwise == ErrorKind::NameCacheStale;
    if is_missing && at.intended.iter().any(is_stale) {
        return Error { kind: ErrorKind::NameCacheStale, ..error };
    }
    error
}
