//! The old end of a log goes, when its retention lets it.
//!
//! What is too old is in no page already, so when it goes cannot be seen. The rows of a log
//! are in the order of their time: those that go are the first ones. A log that was switched
//! off goes whole, and in the end the head forgets it.

use dayfly_model::Timestamp;
use dayfly_storage::{
    Batch, Bucket, Direction, Draft, Error, KeyRange, Plan, Result, Room, Snapshot, Stamp, Urgency,
    View, commit,
};

use super::Purge;
use super::pacer::Pace;
use crate::deadlines::Outlook;
use crate::head::{LogState, State};
use crate::keys;
use crate::log::{self, LogRow};

/// How many rows are read at once: they have whole items.
const CHUNK: usize = 32;
/// How many rows go for each item that a unit might bury.
const ROWS_PER_ITEM: usize = 8;
/// How many times the bytes of a unit are read for one: nothing is kept of them.
const BYTES_FACTOR: usize = 16;

/// Removes some of what the log of a bucket keeps no longer, and says when it is to be
/// looked at again.
pub(super) fn step(purge: &Purge, bucket: Bucket, pace: Pace) -> Result<Outlook> {
    let look = {
        let snapshot = purge.shared.store.snapshot()?;
        let head = snapshot.head(bucket);
        match State::of(&head) {
            State { log: Some(log), deleted: false, .. } => look(&*snapshot, bucket, log, pace)?,
            _ => return Ok(Outlook::Next(None)),
        }
    };
    let (trim, after) = look;
    if let Some(trim) = trim {
        commit(&*purge.shared.store, bucket, trim).wait()?;
        purge.counted();
    }
    Ok(after)
}

/// What is to go first.
fn look(
    snapshot: &dyn Snapshot,
    bucket: Bucket,
    state: LogState,
    pace: Pace,
) -> Result<(Option<Trim>, Outlook)> {
    let cut = state.cut(Timestamp(snapshot.now()));
    let (rows_max, bytes_max) = (pace.items * ROWS_PER_ITEM, pace.bytes() * BYTES_FACTOR);
    let trimmed = log::trimmed(snapshot, bucket)?;
    let mut range: KeyRange = keys::log_from(trimmed);
    let (mut gone, mut bytes, mut up_to): (Vec<Vec<u8>>, usize, u64) = (Vec::new(), 0, trimmed);
    let urgency = pace.urgency;
    loop {
        let rows = snapshot.scan(bucket, &range, Direction::Forward, CHUNK)?;
        for (key, row) in &rows {
            let lsn = keys::log_lsn(key).ok_or_else(broken)?;
            let ts = LogRow::ts_of(row)?;
            if lsn > state.after && ts > cut {
                let next = Outlook::Next(Some(state.until(ts)));
                let trim = Trim { gone, up_to, is_end: false, urgency };
                return Ok((Some(trim).filter(|trim| !trim.gone.is_empty()), next));
            }
            (up_to, bytes) = (lsn, bytes + row.len());
            gone.push(key.to_vec());
            range.go_behind(key);
        }
        let is_end = rows.len() < CHUNK;
        if is_end || gone.len() >= rows_max || bytes >= bytes_max {
            let after = if is_end { Outlook::Next(None) } else { Outlook::More };
            let is_over = is_end && !state.is_on();
            let trim = Trim { gone, up_to, is_end: is_over, urgency };
            return Ok((Some(trim).filter(|trim| is_over || !trim.gone.is_empty()), after));
        }
    }
}

fn broken() -> Error {
    Error::Corrupt("a row of the log".to_owned())
}

/// One commit that removes the first rows of a log.
struct Trim {
    gone: Vec<Vec<u8>>,
    /// The commit of the last one of them.
    up_to: u64,
    /// Whether nothing is left of a log that is off.
    is_end: bool,
    urgency: Urgency,
}

impl Plan for Trim {
    type Done = ();
    type Refusal = Error;

    /// What is too old stays so, whatever the log's state becomes; but one that was switched
    /// on again is not forgotten.
    fn draft(&self, view: &View<'_>) -> Result<Draft<()>> {
        let state = State::of(view.head());
        let is_off = state.log.is_some_and(|log| !log.is_on());
        if state.deleted || (self.is_end && !is_off) {
            return Err(Error::Retry);
        }
        let (gone, up_to, is_end) = (self.gone.clone(), self.up_to, self.is_end);
        let rows = gone.len();
        Ok(Draft::new(move |_: Stamp, batch: &mut Batch| {
            for key in gone {
                batch.delete(key);
            }
            if is_end {
                batch.delete(keys::log_trimmed());
                batch.set_state(State { log: None, ..state }.encode());
            } else {
                batch.put(keys::log_trimmed(), up_to.to_be_bytes().to_vec());
            }
        })
        .of_rows(rows))
    }

    fn room(&self) -> Room {
        Room::Frees
    }

    fn urgency(&self) -> Urgency {
        self.urgency
    }
}
