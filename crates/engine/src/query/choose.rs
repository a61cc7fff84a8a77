//! Which way a query takes to its items.
//!
//! | the filter says                 | items are found by                         |
//! |---------------------------------|--------------------------------------------|
//! | nothing that an index knows     | reading all of them                        |
//! | one value, or several           | the entries of those values, intersected   |
//! |                                 | for AND and united for OR                  |
//! | a range                         | the entries of that range, put in order,   |
//! |                                 | or all of them in turns (`access.rs`)      |
//!
//! Of several ranges the one counts that says most of those in an index. What the
//! partition of a query says already is not sought (`said.rs`), and where there are
//! few items (`few.rs`), all of them are read.
//!
//! The entries of a value are those of all partitions. So within one partition they
//! are taken together with the rows of its order. All of these ways have one order, and
//! a page may take another one than the page before.
//!
//! With ORDER BY, the entries of the path that is sorted by give the order,
//! unless the filter leaves so few items that sorting them costs less.

use dayfly_model::Result;
use dayfly_model::indexing::rules::{Composite, VALUE_BYTES_MAX, path_id};
use dayfly_model::indexing::{Order, Step, path_text};
use dayfly_model::json::Path;
use dayfly_sql::run::{IndexStep, OrderKey, Program, Sieve, Steps, Style, ValueSpan};
use dayfly_storage::{Direction, KeyRange};

use super::needs::fits;
use super::numbers::Set;
use super::said::Said;
use crate::index::Index;
use crate::index::walk::{self, EntryRange};
use crate::keys::EntryKind;
use crate::parts::Segment;
use crate::reply::storage_failed;
use crate::scope::Opened;

/// The way to the items.
#[derive(Clone, Debug)]
pub(super) enum Way {
    /// No item can be of use.
    Nothing,
    /// All items.
    Scan(Why),
    /// Some values.
    Numbers(Set),
    /// In the order that is asked for.
    Ordered(Route),
}

/// Why all items are read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Why {
    /// They are few.
    Few,
    /// The filter says nothing of values.
    NothingToSeek,
    /// The filter says nothing of values that the partition does not say.
    Partition,
    /// What the filter asks for is in no index, or only in a part of it.
    NotIndexed,
}

/// Entries in the order of a query.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub(super) entry_range: EntryRange,
    pub(super) direction: Direction,
    /// The path, and which of its values, unless it is all of them.
    pub(super) path: String,
    pub(super) span: Option<ValueSpan>,
    /// Up to this many bytes of each sort value are those of its entry.
    pub(super) value_bytes_max: usize,
    /// The index, if it is one of several paths.
    pub(super) composite: Option<Composite>,
}

/// Chooses the way of a query over some segments, and says whether it is paid by what it
/// gives: the policy alone decides that, and not the way. A filter that no index can look up
/// is paid by all that it is asked of; but in an order of an index, by what it gives.
pub(super) fn choose(
    chooser: &Chooser<'_>,
    program: &Program,
    segments: &[Segment],
) -> Result<(Way, bool)> {
    let sieve = program.sieve();
    if sieve == Sieve::Nothing {
        return Ok((Way::Nothing, true));
    }
    let by_filter = chooser.by_filter(&chooser.said.without(&sieve))?;
    let is_sorted = program.style() == Style::Sort;
    let is_sought = matches!(by_filter, Way::Numbers(_));
    if !is_sought && !is_sorted {
        return Ok((by_filter, !program.filters_items()));
    }
    if chooser.is_small(segments)? {
        return Ok((Way::Scan(Why::Few), true));
    }
    if is_sorted
        && !chooser.is_selective(&sieve, segments)?
        && let Some(route) = chooser.by_order(program.order(), &sieve)?
    {
        return Ok((Way::Ordered(route), true));
    }
    Ok((by_filter, true))
}

/// What there is to choose from.
pub(super) struct Chooser<'a> {
    pub(super) opened: &'a Opened,
    pub(super) index: &'a Index,
    /// What the partition of the query says of its items.
    pub(super) said: Said,
    pub(super) steps: &'a Steps<'a>,
}

impl Chooser<'_> {
    fn by_filter(&self, sieve: &Sieve) -> Result<Way> {
        if let Some(set) = self.set(sieve, false)? {
            return Ok(Way::Numbers(set));
        }
        match self.best(sieve)? {
            Some(span) => Ok(Way::Numbers(Set::Range(span.clone()))),
            None if *sieve == Sieve::All && self.said.is_anything() => {
                Ok(Way::Scan(Why::Partition))
            }
            None if *sieve == Sieve::All => Ok(Way::Scan(Why::NothingToSeek)),
            None => Ok(Way::Scan(Why::NotIndexed)),
        }
    }

    /// Of the ranges that an item must have a value in, the one that says most of
    /// those that are indexed.
    fn best<'s>(&self, sieve: &'s Sieve) -> Result<Option<&'s ValueSpan>> {
        let mut spans = spans(sieve);
        spans.sort_by_key(|span| tightness(span));
        for span in spans.into_iter().rev() {
            if self.is_indexed(&span.path)? {
                return Ok(Some(span));
            }
        }
        Ok(None)
    }

    /// The items of a sieve by their numbers. `None`: it cannot be told, or only
    /// by a range, and ranges are not asked for.
    pub(super) fn set(&self, sieve: &Sieve, ranges: bool) -> Result<Option<Set>> {
        Ok(match sieve {
            Sieve::All | Sieve::Nothing => None,
            Sieve::Span(span) if !self.is_indexed(&span.path)? => None,
            Sieve::Span(span) if span.is_point && !is_time(&span.path) => {
                Some(Set::Point(span.clone()))
            }
            Sieve::Span(span) => ranges.then(|| Set::Range(span.clone())),
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

    /// Whether every item with a value there has an entry.
    pub(super) fn is_indexed(&self, path: &[IndexStep]) -> Result<bool> {
        let steps: Vec<Step<'_>> = path.iter().map(IndexStep::as_step).collect();
        walk::is_indexed(self.index, &*self.opened.snapshot, &self.opened.container, &steps)
            .map_err(storage_failed)
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
        let entry_range = match wanted {
            Some(span) => entry_range(span),
            None if self.is_lacking(&path)? => return Ok(None),
            None => everything(EntryKind::Value, number(&path)),
        };
        Ok(Some(Route {
            entry_range,
            direction: if key.descends() { Direction::Backward } else { Direction::Forward },
            path: path_text(&path.iter().map(IndexStep::as_step).collect::<Vec<_>>()),
            span: wanted.cloned(),
            value_bytes_max: VALUE_BYTES_MAX,
            composite: None,
        }))
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

    pub(super) fn by_composite(&self, keys: &[OrderKey]) -> Result<Option<Route>> {
        let opened = self.opened;
        let composites = walk::composites(self.index, &*opened.snapshot, &opened.container)
            .map_err(storage_failed)?;
        Ok(composites.iter().find_map(|composite| {
            let direction = fits(&composite.members, keys)?;
            let entry_range = everything(EntryKind::Composite, composite.id);
            Some(Route {
                entry_range,
                direction,
                path: composite_text(&composite.members),
                span: None,
                value_bytes_max: composite.member_bytes_max(),
                composite: Some(composite.clone()),
            })
        }))
    }
}

/// The ranges that an item must have a value in, all of them.
fn spans(sieve: &Sieve) -> Vec<&ValueSpan> {
    let members = match sieve {
        Sieve::And(members) => members.as_slice(),
        sieve => std::slice::from_ref(sieve),
    };
    let spans = members.iter().filter_map(|member| match member {
        Sieve::Span(span) => Some(span),
        _ => None,
    });
    spans.collect()
}

/// How much a span says, roughly.
fn tightness(span: &ValueSpan) -> (bool, usize, bool) {
    let bounded = span.low.len() > 1 && span.high.len() > 1;
    (bounded, span.low.len().max(span.high.len()), span.exact)
}

/// What is written in one second is a range, too: of the feed.
fn is_time(path: &[IndexStep]) -> bool {
    walk::leads_to_time(&path.iter().map(IndexStep::as_step).collect::<Vec<_>>())
}

pub(super) fn number(path: &[IndexStep]) -> u64 {
    path_id(&path.iter().map(IndexStep::as_step).collect::<Vec<_>>())
}

/// A composite index, for people: `/a ASC, /b DESC`.
fn composite_text(members: &[(Path, Order)]) -> String {
    let members: Vec<String> =
        members.iter().map(|(path, order)| member_text(path.segments(), *order)).collect();
    members.join(", ")
}

/// A member of a composite index, as the service writes it.
pub(super) fn member_text(path: &[String], order: Order) -> String {
    let steps: Vec<Step<'_>> = path.iter().map(|name| Step::Name(name)).collect();
    let order = match order {
        Order::Ascending => "ASC",
        Order::Descending => "DESC",
    };
    format!("{} {order}", path_text(&steps))
}

/// The entries of a span. Long values are cut in the index.
pub(super) fn entry_range(span: &ValueSpan) -> EntryRange {
    let cut = |bytes: &[u8]| bytes.get(..VALUE_BYTES_MAX).unwrap_or(bytes).to_vec();
    let mut end = cut(&span.high);
    if span.high.len() > VALUE_BYTES_MAX {
        // What starts like this may still be below the bound.
        end = KeyRange::prefix(&end).end;
    }
    EntryRange { kind: EntryKind::Value, path: number(&span.path), start: cut(&span.low), end }
}

fn everything(kind: EntryKind, path: u64) -> EntryRange {
    EntryRange { kind, path, start: Vec::new(), end: vec![0xFF; VALUE_BYTES_MAX + 1] }
}
