//! Aggregates that the index, or the count of the living, knows by itself.
//!
//! | query                                | answered by                           |
//! |--------------------------------------|---------------------------------------|
//! | COUNT(1), no filter                  | the life histogram                    |
//! | COUNT(1), no filter, one partition   | counting the rows of its order        |
//! | COUNT(1), a filter that is one span  | counting the entries of the span      |
//! | COUNT(c.a)                           | counting the entries of the path      |
//! | MIN(c.a), MAX(c.a), no filter or a   | the first and last entries; the query |
//! | span of c.a                          | is run over their items alone         |
//!
//! An entry that is counted is of an item that is alive: its stamp says so, or
//! its item does.

use dayfly_model::Result;
use dayfly_model::indexing::rules::VALUE_BYTES_MAX;
use dayfly_model::value::{Type, Value, order};
use dayfly_sql::run::{Fact, Finished, IndexStep, Program, QueryPage, Sieve, ValueSpan};
use dayfly_storage::{Bucket, Direction};

use super::access::{load, next_alive};
use super::choose::{Chooser, entry_range, number};
use super::item::Row;
use crate::index::walk::{Entries, Entry, EntryRange};
use crate::keys::EntryKind;
use crate::operation::Part;
use crate::parts::{Scope, Segment, segments};
use crate::reply::QueryFigures;
use crate::standing;

/// How many entries are read at once.
const CHUNK: usize = 512;

/// The answer of a query, if it is known without looking at its items.
///
/// Only a filter counts that an index knows *exactly*, as one span: a sieve lets through
/// too much, and nobody asks the items here. Counts are then numbers of entries. For
/// minima and maxima the query is run as it stands, over the few items that can decide:
/// so what is shown comes from the items, and an entry needs to tell no more than its
/// place in the order. `None` is always right, and means that the items are read.
pub(super) fn answer(
    chooser: &Chooser<'_>,
    program: &Program,
    part: &Part,
    segments: &[Segment],
    mut page: QueryPage<'_>,
    figures: &mut QueryFigures,
) -> Result<Option<Finished>> {
    let Some(facts) = program.facts() else { return Ok(None) };
    let knower = Knower { chooser, part, segments, filter: filter_of(program) };
    let Filter::Known(_) = knower.filter else { return Ok(None) };
    if let Some(counts) = knower.counts(&facts, figures)? {
        return page.finish_with(counts).map(Some);
    }
    let Some(items) = knower.extremes(&facts, figures)? else { return Ok(None) };
    for (bucket, entry) in items {
        for record in load(chooser.opened, bucket, &[entry.docno], chooser.steps)? {
            figures.items += 1;
            figures.item_bytes += record.bytes();
            let row = Row::new(&record, &chooser.opened.container);
            page.add(&row, (bucket.0, record.docno))?;
        }
    }
    page.finish().map(Some)
}

/// What a filter is to an index.
enum Filter {
    /// Nothing, or exactly a span.
    Known(Option<ValueSpan>),
    /// More than that.
    Other,
}

fn filter_of(program: &Program) -> Filter {
    if !program.is_filtered() {
        return Filter::Known(None);
    }
    match program.sieve() {
        Sieve::Span(span)
            if span.exact
                && span.low.len() <= VALUE_BYTES_MAX
                && span.high.len() <= VALUE_BYTES_MAX =>
        {
            Filter::Known(Some(span))
        }
        _ => Filter::Other,
    }
}

struct Knower<'a, 'c> {
    chooser: &'a Chooser<'c>,
    part: &'a Part,
    segments: &'a [Segment],
    filter: Filter,
}

impl Knower<'_, '_> {
    fn span(&self) -> Option<&ValueSpan> {
        match &self.filter {
            Filter::Known(span) => span.as_ref(),
            Filter::Other => None,
        }
    }

    /// The values of aggregates that are all counts.
    fn counts(&self, facts: &[Fact], figures: &mut QueryFigures) -> Result<Option<Vec<Value>>> {
        let mut counts = Vec::with_capacity(facts.len());
        for fact in facts {
            let Fact::Count(path) = fact else { return Ok(None) };
            let Some(count) = self.count(path.as_deref(), figures)? else { return Ok(None) };
            counts.push(Value::from(i64::try_from(count).unwrap_or(i64::MAX)));
        }
        Ok(Some(counts))
    }

    fn count(&self, path: Option<&[IndexStep]>, figures: &mut QueryFigures) -> Result<Option<u64>> {
        let entry_range = match (path, self.span()) {
            (None, None) => match self.living()? {
                Some(count) => return Ok(Some(count)),
                None => return self.in_partitions(figures).map(Some),
            },
            (None, Some(span)) => self.chooser.indexed(span)?,
            (Some(path), Some(span)) if path == span.path => self.chooser.indexed(span)?,
            (Some(_), Some(_)) => None,
            (Some(path), None) => self.whole(path)?,
        };
        match entry_range {
            Some(entry_range) => self.entries_meant(&entry_range, figures).map(Some),
            None => Ok(None),
        }
    }

    /// How many entries of a range are of items that are meant.
    fn entries_meant(&self, entry_range: &EntryRange, figures: &mut QueryFigures) -> Result<u64> {
        let mut count = 0;
        for Segment { bucket, scope, .. } in self.segments {
            count += self.count_in(*bucket, scope, entry_range, figures)?;
        }
        Ok(count)
    }

    /// How many items are alive in the partitions that are meant, by their order.
    fn in_partitions(&self, figures: &mut QueryFigures) -> Result<u64> {
        let mut count = 0;
        for Segment { bucket, scope, .. } in self.segments {
            for range in scope.ranges() {
                let entry_range = EntryRange::of_partitions(range);
                count += self.count_in(*bucket, scope, &entry_range, figures)?;
            }
        }
        Ok(count)
    }

    fn count_in(
        &self,
        bucket: Bucket,
        scope: &Scope,
        entry_range: &EntryRange,
        figures: &mut QueryFigures,
    ) -> Result<u64> {
        let mut entries = self.entries(bucket, entry_range, Direction::Forward)?;
        let mut count = 0;
        loop {
            let page = next_alive(&mut entries, CHUNK, self.chooser.steps)?;
            if page.is_empty() {
                figures.entries += entries.looked.keys;
                figures.dead += entries.looked.dead;
                return Ok(count);
            }
            count += page.iter().filter(|entry| scope.contains(&entry.partition)).count() as u64;
        }
    }

    /// How many items are alive in the container, if all of it is meant.
    fn living(&self) -> Result<Option<u64>> {
        let opened = self.chooser.opened;
        let all = segments(&opened.container, &Part::default())?;
        if !self.part.is_everything() || *self.segments != *all {
            return Ok(None);
        }
        let knows = |bucket| standing::knows_alone(&*opened.snapshot, bucket);
        if !opened.container.buckets().all(knows) {
            return Ok(None);
        }
        let standing = standing::of(&*opened.snapshot, &opened.container)?;
        Ok(Some(standing.live.items))
    }

    /// The items that decide aggregates that are all minima and maxima.
    ///
    /// Of each bucket that is the first entry in the direction of the extreme, among the
    /// scalars; and any array or object, since one of them makes the whole aggregate
    /// undefined, wherever the extreme is. `None`: the entry of a text was cut, so that
    /// others behind it may come before it as a whole.
    fn extremes(
        &self,
        facts: &[Fact],
        figures: &mut QueryFigures,
    ) -> Result<Option<Vec<(Bucket, Entry)>>> {
        let mut items = Vec::new();
        for fact in facts {
            let (path, direction) = match fact {
                Fact::Minimum(path) => (path, Direction::Forward),
                Fact::Maximum(path) => (path, Direction::Backward),
                Fact::Count(_) => return Ok(None),
            };
            let entry_range = match self.span() {
                None => self.whole(path)?,
                Some(span) if span.path == *path => self.chooser.indexed(span)?,
                Some(_) => None,
            };
            let Some(entry_range) = entry_range else { return Ok(None) };
            let compound = vec![order::bounds(Type::Array).0];
            let above = EntryRange {
                start: compound.clone().max(entry_range.start.clone()),
                ..entry_range.clone()
            };
            let scalars = EntryRange { end: compound.min(entry_range.end.clone()), ..entry_range };
            for (entry_range, direction) in [(above, Direction::Forward), (scalars, direction)] {
                for Segment { bucket, .. } in self.segments {
                    match self.first(*bucket, &entry_range, direction, figures)? {
                        Some(entry) if entry.is_cut && is_text(&entry) => {
                            return Ok(None);
                        }
                        Some(entry) => items.push((*bucket, entry)),
                        None => {}
                    }
                }
            }
        }
        Ok(Some(items))
    }

    /// The first entry of a range, in this direction, whose item is meant. Entries of other
    /// partitions are gone past without a limit of their own: the steps of the query end a
    /// walk that finds nothing.
    fn first(
        &self,
        bucket: Bucket,
        entry_range: &EntryRange,
        direction: Direction,
        figures: &mut QueryFigures,
    ) -> Result<Option<Entry>> {
        if entry_range.start >= entry_range.end {
            return Ok(None);
        }
        let mut entries = self.entries(bucket, entry_range, direction)?;
        loop {
            let page = next_alive(&mut entries, 16, self.chooser.steps)?;
            if page.is_empty() {
                figures.entries += entries.looked.keys;
                figures.dead += entries.looked.dead;
                return Ok(None);
            }
            let meant = |entry: &Entry| {
                let mut here = self.segments.iter().filter(|segment| segment.bucket == bucket);
                here.any(|segment| segment.scope.contains(&entry.partition))
            };
            if let Some(entry) = page.into_iter().find(meant) {
                figures.entries += entries.looked.keys;
                figures.dead += entries.looked.dead;
                return Ok(Some(entry));
            }
        }
    }

    fn entries(
        &self,
        bucket: Bucket,
        entry_range: &EntryRange,
        direction: Direction,
    ) -> Result<Entries<'_>> {
        self.chooser.opened.entries(bucket, entry_range, direction)
    }

    /// All entries of a path, if it is indexed.
    fn whole(&self, path: &[IndexStep]) -> Result<Option<EntryRange>> {
        if !self.chooser.is_indexed(path)? {
            return Ok(None);
        }
        let (start, end) = (vec![order::bounds(Type::Null).0], vec![order::PAST]);
        Ok(Some(EntryRange { kind: EntryKind::Value, path: number(path), start, end }))
    }
}

impl Chooser<'_> {
    /// The entries of a span, if its path is indexed.
    fn indexed(&self, span: &ValueSpan) -> Result<Option<EntryRange>> {
        Ok(self.is_indexed(&span.path)?.then(|| entry_range(span)))
    }
}

fn is_text(entry: &Entry) -> bool {
    let (first, past) = order::bounds(Type::String);
    entry.value.first().is_some_and(|kind| (first..past).contains(kind))
}
