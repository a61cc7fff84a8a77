//! A replace that gives an item another id.
//!
//! The item stays the one it was: its RID, its place in no other partition, its
//! unique keys. Only everything that says where it stands is written anew, in the
//! commit that moves it, so nobody sees it twice or not at all. The new id must be
//! free; one whose item has expired is.

use std::sync::Arc;

use dayfly_model::Result;
use dayfly_model::ttl::ItemTtl;
use dayfly_storage::{Batch, Draft, View};

use super::{
    Body, Corpse, ItemPlan, Rules, Seen, Written, bury, expiry, rows_of, seal, stored_index, taken,
};
use crate::keys::ItemKey;
use crate::record::Record;

/// Where an item stands that is about to get another id.
#[derive(Clone, Debug)]
pub(super) struct From {
    pub(super) key: ItemKey,
    pub(super) id: Vec<u8>,
}

impl ItemPlan {
    /// A new version of an item that is alive, under another id.
    pub(super) fn rename(
        &self,
        view: &View<'_>,
        body: &Body,
        old: Record,
        from: &From,
        by: &Rules,
    ) -> Result<Draft<Written>> {
        self.check_condition(&old)?;
        let in_the_way = match self.look(view, &self.spot.key, by.cuts)? {
            Seen::Alive(_) => return Err(taken()),
            Seen::Dead(record) => Some(record),
            Seen::Absent => None,
        };
        let ttl = ItemTtl::parse(body.ttl.as_deref(), by.default)?;
        let mut corpses = self.free_unique_keys(view, body, by)?;
        if let Some(record) = in_the_way {
            let indexed = stored_index(view, &record, by)?;
            corpses.push(Corpse { record, key: self.spot.key.clone(), indexed });
        }
        let before = stored_index(view, &old, by)?;
        let (bytes, indexed) = self.made(body, by)?;
        let rows = rows_of(&corpses) + before.rows() + indexed.rows();
        let answer = self.replaced(body, &old, by);
        let (spot, from) = (self.spot.clone(), from.key.clone());
        let gone = Arc::clone(&self.around.gone);
        let alive_before = expiry(&old, by.default);
        Ok(Draft::new(move |stamp, batch: &mut Batch| {
            let graves = bury(corpses, gone, spot.bucket, batch);
            let record = bytes.seal(seal(stamp, ttl, old.docno));
            let old = (&old, &before, &from);
            record.put_moved(old, batch, &spot.partition, &spot.key, &indexed);
            Written { graves: Some(graves), ..answer(stamp, Some(record)) }
        })
        .of_rows(rows)
        .valid_before(alive_before))
    }
}
