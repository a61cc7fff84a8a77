//! Aggregates that the index, or the count of the living, knows by itself.
//!
//! | query                                | answered by                           |
//! |--------------------------------------|---------------------------------------|
//! | COUNT(1), no filter                  | the life histogram                    |
//! | COUNT(1), no filter, one partition   | counting the entries of its key       |
//! | COUNT(1), a filter that is one span  | counting the entries of the span      |
//! | COUNT(c.a)                           | counting the entries of the path      |
//! | MIN(c.a), MAX(c.a), no filter or a   | the first and last entries; the query |
//! | span of c.a                          | is run over their items alone         |
//!
//! An entry that is counted is of an item that is alive: its stamp says so, or
//! its item does.

use dayfly_model::Result;
use dayfly_model::indexing::rules::VALUE_BYTES_MAX;
use dayfly_model::partition_key::Component;
use dayfly_model::value::{Type, Value, order};
use dayfly_sql::run::{Fact, Finished, IndexStep, Page, Program, Sieve, ValueSpan};
use dayfly_storage::{Bucket, Direction, KeyRange};

use super::access::{Segments, load, next_alive};
use super::choose::{Chooser, entry_range, number};
use super::item::Row;
use crate::index::walk::{Entries, Entry, EntryRange};
use crate::keys::EntryKind;
use crate::operation::Part;
use crate::parts::segments;
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
    segments: &Segments,
    mut page: Page<'_>,
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
        let record = load(chooser.opened, bucket, &entry.item, entry.docno, chooser.steps)?;
        figures.items += 1;
        figures.item_bytes += record.bytes();
        let row = Row::new(&record, &chooser.opened.container)?;
        page.add(&row, (bucket.0, record.docno))?;
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
    segments: &'a Segments,
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
                None => return self.in_partition(figures),
            },
            (None, Some(span)) => self.chooser.indexed(span)?,
            (Some(path), Some(span)) if path == span.path => self.chooser.indexed(span)?,
            (Some(_), Some(_)) => None,
            (Some(path), None) => self.whole(path)?,
        };
        match entry_range {
            Some(entry_range) => self.entries_meant(&entry_range, u64::MAX, figures),
            None => Ok(None),
        }
    }

    /// How many entries of a range are of items that are meant. `None`: there are
    /// more than so many others among them.
    fn entries_meant(
        &self,
        entry_range: &EntryRange,
        others_max: u64,
        figures: &mut QueryFigures,
    ) -> Result<Option<u64>> {
        let (mut count, mut others) = (0, 0);
        for (bucket, scope) in self.segments {
            let mut entries = self.entries(*bucket, entry_range, Direction::Forward)?;
            while others <= others_max {
                let page = next_alive(&mut entries, CHUNK, self.chooser.steps)?;
                if page.is_empty() {
                    break;
                }
                let meant = page.iter().filter(|entry| scope.contains(&entry.item)).count() as u64;
                count += meant;
                others += page.len() as u64 - meant;
            }
            figures.entries += entries.looked.keys;
            figures.dead += entries.looked.dead;
        }
        Ok((others <= others_max).then_some(count))
    }

    /// How many items are alive in the one partition that is meant. Each of them has
    /// an entry with its key; of a key with several components the last one tells
    /// most partitions apart.
    fn in_partition(&self, figures: &mut QueryFigures) -> Result<Option<u64>> {
        let definition = &self.chooser.opened.container.definition().partition_key;
        let given = self.part.partition_key.as_ref().map(|key| key.0.as_slice());
        let Some(given) = given.filter(|given| given.len() == definition.paths.len()) else {
            return Ok(None);
        };
        let (Some(path), Some(start)) =
            (definition.paths.last(), given.last().and_then(start_of_key))
        else {
            return Ok(None);
        };
        let path: Vec<_> = path.segments().iter().cloned().map(IndexStep::Name).collect();
        if !self.chooser.is_indexed(&path)? {
            return Ok(None);
        }
        let end = KeyRange::prefix(&start).end;
        let entry_range = EntryRange { kind: EntryKind::Value, path: number(&path), start, end };
        let others_max = self.chooser.opened.limits.other_entries;
        self.entries_meant(&entry_range, others_max, figures)
    }

    /// How many items are alive in the container, if all of it is meant.
    fn living(&self) -> Result<Option<u64>> {
        let opened = self.chooser.opened;
        let all = segments(&opened.container, &Part::default())?;
        let meant = self.segments.iter().map(|(_, scope)| scope.0.len()).sum::<usize>();
        let whole = self.part.is_everything() && meant == all.len();
        if !whole {
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
                for (bucket, _) in self.segments {
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
        let scope = self.segments.iter().find(|(known, _)| *known == bucket);
        let mut entries = self.entries(bucket, entry_range, direction)?;
        loop {
            let page = next_alive(&mut entries, 16, self.chooser.steps)?;
            if page.is_empty() {
                figures.entries += entries.looked.keys;
                figures.dead += entries.looked.dead;
                return Ok(None);
            }
            let meant = |entry: &Entry| scope.is_some_and(|(_, scope)| scope.contains(&entry.item));
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

/// The bytes with which the entries of all items begin that have this in their key.
/// Integers that are one number in a key have the same nearest double.
fn start_of_key(component: &Component) -> Option<Vec<u8>> {
    let mut start = order::key(&match component {
        Component::Undefined => return None,
        Component::Null => Value::Null,
        Component::Bool(truth) => Value::Bool(*truth),
        Component::Number(double) => Value::from(*double),
        Component::String(text) => Value::from(text.as_str()),
    });
    if let Component::Number(_) = component {
        start.truncate(order::DOUBLE_BYTES);
    }
    (start.len() <= VALUE_BYTES_MAX).then_some(start)
}

fn is_text(entry: &Entry) -> bool {
    let (first, past) = order::bounds(Type::String);
    entry.value.first().is_some_and(|kind| (first..past).contains(kind))
}
