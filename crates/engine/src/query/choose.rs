//! Which way a query takes to its items.
//!
//! | the filter says                 | items are found by                         |
//! |---------------------------------|--------------------------------------------|
//! | nothing that an index knows     | reading all of them                        |
//! | one value, or several           | the entries of those values, intersected   |
//! |                                 | for AND and united for OR                  |
//! | a range                         | the entries of that range, in their order  |
//!
//! With ORDER BY, the entries of the path that is sorted by give the order,
//! unless the filter leaves so few items that sorting them costs less.

use dayfly_model::indexing::rules::{Composite, Computed, Rules, VALUE_BYTES_MAX, path_id};
use dayfly_model::indexing::{Order, Step};
use dayfly_model::{Error, Result};
use dayfly_sql::run::{IndexStep, OrderKey, Program, Sieve, Span, Style};
use dayfly_storage::{Direction, KeyRange};

use super::access::{Segments, next_alive};
use super::numbers::Set;
use super::token::{Place, index_gone};
use crate::index::Index;
use crate::index::walk::{self, Entries, Stretch};
use crate::keys::EntryKind;
use crate::reply::storage_failed;
use crate::scope::Opened;

/// Up to this many items are sorted in memory although an index has the order.
const SORTED_MAX: usize = if cfg!(test) { 10 } else { 1_000 };

/// No more items than this are read without an index.
const FEW: usize = 16;

/// The way to the items.
#[derive(Clone, Debug)]
pub(super) enum Way {
    /// No item can be of use.
    Nothing,
    /// All items.
    Scan,
    /// The entries of a range.
    Walk(Stretch),
    /// Some values.
    Numbers(Set),
    /// In the order that is asked for.
    Ordered(Route),
}

/// Entries in the order of a query.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub(super) stretch: Stretch,
    pub(super) direction: Direction,
    /// Up to this many bytes of each sort value are those of its entry.
    pub(super) value_bytes_max: usize,
    /// The index, if it is one of several paths.
    pub(super) composite: Option<Composite>,
}

/// Chooses the way of a query over some ranges of keys. A page that goes on from
/// a place goes on along the way that the place is on.
pub(super) fn choose(
    chooser: &Chooser<'_>,
    program: &Program,
    segments: &Segments,
    start: &Place,
    lenient: bool,
) -> Result<Way> {
    if !lenient {
        chooser.check_order(program)?;
    }
    let sieve = program.sieve();
    if sieve == Sieve::Nothing {
        return Ok(Way::Nothing);
    }
    match start {
        Place::Start => {}
        Place::Item(..) => return Ok(Way::Scan),
        Place::Entry(..) => return chooser.walk(&sieve),
        Place::Number(..) => return chooser.numbers(&sieve),
    }
    if chooser.is_small(segments)? {
        return Ok(Way::Scan);
    }
    let by_filter = chooser.by_filter(&sieve)?;
    if program.style() != Style::Sort || chooser.is_selective(&by_filter, segments)? {
        return Ok(by_filter);
    }
    let ordered = chooser.by_order(program.order(), &sieve)?;
    Ok(ordered.map_or(by_filter, Way::Ordered))
}

/// What the choice depends on.
pub(super) struct Chooser<'a> {
    pub(super) opened: &'a Opened,
    pub(super) index: &'a Index,
}

impl Chooser<'_> {
    /// Refuses an order for which the container has no index, as the service
    /// does.
    fn check_order(&self, program: &Program) -> Result<()> {
        let keys = program.order();
        if keys.is_empty() || program.style() == Style::Whole && keys.len() > 1 {
            return Ok(());
        }
        let definition = self.opened.container.definition();
        let computed = definition.computed.iter();
        let computed =
            computed.map(|property| Computed { name: &property.name, has_entries: true });
        let rules = Rules::with_computed(&definition.indexing, &computed.collect::<Vec<_>>());
        let mut paths = Vec::new();
        for key in keys {
            match &key.path {
                Some(path) => paths.push(path.as_slice()),
                None => return Err(refused(UNMAPPED)),
            }
        }
        if let [path] = paths.as_slice() {
            let steps: Vec<Step<'_>> = path.iter().map(|name| Step::Name(name)).collect();
            let known = rules.is_indexed(&steps) || is_system(path);
            return if known { Ok(()) } else { Err(refused(EXCLUDED)) };
        }
        let known = rules.composites().iter().any(|composite| fits(composite, keys).is_some());
        if known { Ok(()) } else { Err(refused(NO_COMPOSITE)) }
    }

    /// Whether there are few items to look at.
    fn is_small(&self, segments: &Segments) -> Result<bool> {
        let mut left = FEW + 1;
        for (bucket, scope) in segments {
            for range in &scope.0 {
                let snapshot = &self.opened.snapshot;
                let some = snapshot
                    .scan(*bucket, range, Direction::Forward, left)
                    .map_err(storage_failed)?;
                left -= some.len();
                if left == 0 {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn by_filter(&self, sieve: &Sieve) -> Result<Way> {
        if let Some(set) = self.set(sieve, false)? {
            return Ok(Way::Numbers(set));
        }
        match best(sieve) {
            Some(span) if !self.is_indexed(&span.path)? => Ok(Way::Scan),
            // An item may have several values in the range, and is wanted once.
            Some(span) if span.path.contains(&IndexStep::Items) => {
                Ok(Way::Numbers(Set::Range(stretch(span))))
            }
            Some(span) => Ok(Way::Walk(stretch(span))),
            None => Ok(Way::Scan),
        }
    }

    /// The way along the entries of a range, for a page that goes on there.
    fn walk(&self, sieve: &Sieve) -> Result<Way> {
        match best(sieve) {
            Some(span) if self.is_indexed(&span.path)? => Ok(Way::Walk(stretch(span))),
            _ => Err(index_gone()),
        }
    }

    /// The way along the numbers of items, for a page that goes on there.
    fn numbers(&self, sieve: &Sieve) -> Result<Way> {
        match self.by_filter(sieve)? {
            way @ Way::Numbers(_) => Ok(way),
            _ => Err(index_gone()),
        }
    }

    /// The items of a sieve by their numbers. `None`: it cannot be told, or only
    /// by a range, and ranges are not asked for.
    fn set(&self, sieve: &Sieve, ranges: bool) -> Result<Option<Set>> {
        Ok(match sieve {
            Sieve::All | Sieve::Nothing => None,
            Sieve::Span(span) if !self.is_indexed(&span.path)? => None,
            Sieve::Span(span) if span.is_point => Some(Set::Point(stretch(span))),
            Sieve::Span(span) => ranges.then(|| Set::Range(stretch(span))),
            Sieve::And(members) => {
                let mut sets = Vec::new();
                for member in members {
                    sets.extend(self.set(member, false)?);
                }
                if sets.is_empty() && ranges {
                    for member in members {
                        sets.extend(self.set(member, true)?);
                    }
                    sets.truncate(1);
                }
                match sets.len() {
                    0 => None,
                    1 => sets.pop(),
                    _ => Some(Set::All(sets)),
                }
            }
            Sieve::Or(members) => {
                let mut sets = Vec::with_capacity(members.len());
                for member in members {
                    match self.set(member, true)? {
                        Some(set) => sets.push(set),
                        None => return Ok(None),
                    }
                }
                Some(Set::Any(sets))
            }
        })
    }

    pub(super) fn is_indexed(&self, path: &[IndexStep]) -> Result<bool> {
        let steps: Vec<Step<'_>> = path.iter().map(step).collect();
        walk::is_indexed(self.index, &*self.opened.snapshot, &self.opened.container, &steps)
            .map_err(storage_failed)
    }

    /// Whether a filter leaves so few items that they are best sorted in memory.
    fn is_selective(&self, way: &Way, segments: &Segments) -> Result<bool> {
        let Way::Numbers(set) = way else { return Ok(false) };
        let mut points = Vec::new();
        if !gather(set, &mut points) {
            return Ok(false);
        }
        let mut left = SORTED_MAX;
        for stretch in points {
            for (bucket, _) in segments {
                let snapshot = &*self.opened.snapshot;
                let mut entries = Entries::new(snapshot, *bucket, stretch, Direction::Forward)
                    .map_err(storage_failed)?;
                while left > 0 {
                    let page = next_alive(&mut entries, left.min(256))?;
                    if page.is_empty() {
                        break;
                    }
                    left = left.saturating_sub(page.len());
                }
                if left == 0 {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The entries that have the order of a query, if none of its items can lack
    /// one.
    fn by_order(&self, keys: &[OrderKey], sieve: &Sieve) -> Result<Option<Route>> {
        match keys {
            [key] => self.by_path(key, sieve),
            _ => self.by_composite(keys),
        }
    }

    fn by_path(&self, key: &OrderKey, sieve: &Sieve) -> Result<Option<Route>> {
        let Some(path) = &key.path else { return Ok(None) };
        let path: Vec<IndexStep> = path.iter().cloned().map(IndexStep::Name).collect();
        if !self.is_indexed(&path)? {
            return Ok(None);
        }
        let wanted = match sieve {
            Sieve::Span(span) if span.path == path => Some(span),
            Sieve::And(members) => members.iter().find_map(|member| match member {
                Sieve::Span(span) if span.path == path => Some(span),
                _ => None,
            }),
            _ => None,
        };
        let stretch = match wanted {
            Some(span) => stretch(span),
            None if self.is_lacking(&path)? => return Ok(None),
            None => everything(EntryKind::Value, number(&path)),
        };
        let direction = if key.descends() { Direction::Backward } else { Direction::Forward };
        Ok(Some(Route { stretch, direction, value_bytes_max: VALUE_BYTES_MAX, composite: None }))
    }

    fn is_lacking(&self, path: &[IndexStep]) -> Result<bool> {
        let snapshot = &*self.opened.snapshot;
        for bucket in self.opened.container.buckets() {
            if walk::lacking(snapshot, bucket, number(path)).map_err(storage_failed)? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn by_composite(&self, keys: &[OrderKey]) -> Result<Option<Route>> {
        let opened = self.opened;
        let composites = walk::composites(self.index, &*opened.snapshot, &opened.container)
            .map_err(storage_failed)?;
        Ok(composites.iter().find_map(|composite| {
            let direction = fits(composite, keys)?;
            let stretch = everything(EntryKind::Composite, composite.id);
            let value_bytes_max = composite.member_bytes_max();
            let composite = Some(composite.clone());
            Some(Route { stretch, direction, value_bytes_max, composite })
        }))
    }
}

/// Which way a composite index must be walked to give an order.
fn fits(composite: &Composite, keys: &[OrderKey]) -> Option<Direction> {
    let same_paths = composite.members.len() == keys.len()
        && composite
            .members
            .iter()
            .zip(keys)
            .all(|((path, _), key)| key.path.as_deref() == Some(path.segments()));
    if !same_paths {
        return None;
    }
    let mut agree = composite
        .members
        .iter()
        .zip(keys)
        .map(|((_, order), key)| (*order == Order::Descending) == key.descends());
    let first = agree.next()?;
    agree.all(|agrees| agrees == first).then_some(if first {
        Direction::Forward
    } else {
        Direction::Backward
    })
}

/// The values that a set is made of; `false`: it has ranges.
fn gather<'s>(set: &'s Set, points: &mut Vec<&'s Stretch>) -> bool {
    match set {
        Set::Point(stretch) => {
            points.push(stretch);
            true
        }
        Set::Range(_) => false,
        // One of them is enough to know a limit.
        Set::All(sets) => sets.first().is_some_and(|set| gather(set, points)),
        Set::Any(sets) => sets.iter().all(|set| gather(set, points)),
    }
}

/// The range that says most of those that an item must have a value in.
fn best(sieve: &Sieve) -> Option<&Span> {
    match sieve {
        Sieve::Span(span) => Some(span),
        Sieve::And(members) => {
            let spans = members.iter().filter_map(|member| match member {
                Sieve::Span(span) => Some(span),
                _ => None,
            });
            spans.max_by_key(|span| tightness(span))
        }
        _ => None,
    }
}

/// How much a span says, roughly.
fn tightness(span: &Span) -> (bool, usize, bool) {
    let bounded = span.low.len() > 1 && span.high.len() > 1;
    (bounded, span.low.len().max(span.high.len()), span.exact)
}

fn step(step: &IndexStep) -> Step<'_> {
    match step {
        IndexStep::Name(name) => Step::Name(name),
        IndexStep::Items => Step::Item,
    }
}

pub(super) fn number(path: &[IndexStep]) -> u64 {
    path_id(&path.iter().map(step).collect::<Vec<_>>())
}

/// The entries of a span. Long values are cut in the index.
pub(super) fn stretch(span: &Span) -> Stretch {
    let cut = |bytes: &[u8]| bytes.get(..VALUE_BYTES_MAX).unwrap_or(bytes).to_vec();
    let mut end = cut(&span.high);
    if span.high.len() > VALUE_BYTES_MAX {
        // What starts like this may still be below the bound.
        end = KeyRange::prefix(&end).end;
    }
    Stretch { kind: EntryKind::Value, path: number(&span.path), start: cut(&span.low), end }
}

fn everything(kind: EntryKind, path: u64) -> Stretch {
    Stretch { kind, path, start: Vec::new(), end: vec![0xFF; VALUE_BYTES_MAX + 1] }
}

/// What the server adds to an item can be sorted by without an index.
fn is_system(path: &[String]) -> bool {
    matches!(path, [name] if dayfly_sql::run::SYSTEM_PROPERTIES.contains(&name.as_str()))
}

const EXCLUDED: &str = "The index path corresponding to the specified order-by item is excluded.";
const NO_COMPOSITE: &str = "The order by query does not have a corresponding composite index that \
                            it can be served from.";
const UNMAPPED: &str = "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped \
                        to a document path.";

fn refused(sentence: &str) -> Error {
    let body = serde_json::json!({ "Errors": [sentence] });
    Error::bad_request(format!("Message: {body}"))
}
