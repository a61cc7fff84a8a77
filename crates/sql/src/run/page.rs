//! One page of a query's answer.
//!
//! Items are added until the page is full or there are no more. What a later
//! page needs to know is a [`Resume`]: how many rows may still come, and for a
//! sorted answer the place of the last row. Groups and aggregates give all they have
//! in one page: they must come from one look at the data. Distinct rows that do not
//! fit in one are seen to by `distinct.rs`.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use dayfly_model::value::{Value, order};
use dayfly_model::{Result, Timestamp};

use super::Item;
use super::aggregate::{GroupValues, Groups, kept};
use super::budget::{Run, Steps, refused};
use super::distinct::DistinctRows;
use super::evaluate::{Bound, Loaded, Scope};
use super::place::{AFTER_MAX, After, Gate, SortPlace, may_follow, sort_key};
use super::program::{Program, Style};
use super::rows::Flow;
use super::stage::Gathering;
use crate::functions::Setting;

/// How long a page may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// In rows.
    pub rows: usize,
    /// In bytes of JSON; a single row may have more.
    pub bytes: usize,
}

/// Where a page goes on from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resume {
    /// Rows still to be left out.
    pub skip: u64,
    /// Rows that may still come.
    pub take: Option<u64>,
    /// Rows of the first item that earlier pages have.
    pub rows_done: u64,
    /// For a sorted answer: where the page before ended.
    pub after: Option<After>,
}

/// What became of an item that was added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    /// There is room for more.
    More,
    /// The page ends before this item, or within it; the next one starts with it.
    Full,
    /// The whole answer ends here.
    Done,
}

/// A page.
#[derive(Debug)]
pub struct Finished {
    /// The rows as JSON, with commas between them.
    pub rows: Vec<u8>,
    /// How many there are.
    pub count: usize,
    /// How the next page starts, if there may be one. For an answer in the
    /// order of the items it starts with the item that found the page full.
    pub resume: Option<Resume>,
    /// What was in memory before anything could be written.
    pub held: Held,
    /// The items that it gave.
    pub given: Given,
}

/// The items that a page gave: those that have a row on it; where rows are made of all items
/// at once, those that the filter let through. It is the same whichever way brought the items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// How many.
    pub items: u64,
    /// What they weigh together.
    pub weight: u64,
}

impl Given {
    fn add(&mut self, weight: u64) {
        self.items += 1;
        self.weight += weight;
    }
}

/// What a page had to keep in memory before anything could be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// What it is.
    pub what: Holds,
    /// How many there were at the end.
    pub count: usize,
    /// How many bytes they had.
    pub bytes: usize,
}

/// What a page keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Nothing: each row is written when it is found.
    Nothing,
    /// Rows that are put in order, as many as the page can have.
    SortedRows,
    /// Groups and their aggregates.
    Groups,
    /// Rows that were not there before.
    DistinctRows,
}

/// A page on its way.
pub struct QueryPage<'p> {
    program: &'p Program,
    limits: Limits,
    run: Run<'p>,
    resume: Resume,
    rows: Vec<u8>,
    count: usize,
    full: bool,
    stages: Vec<Gathering<'p>>,
    gathered: Gathered,
    given: Given,
    /// What the item weighs that is being added.
    weight: u64,
    /// Whether its rows are gathered with those of others.
    is_gathered: bool,
}

/// A row in its place, and what its item weighs.
pub(super) type SortedRow = (Vec<u8>, u64);

/// What is gathered before anything can be written.
enum Gathered {
    Nothing,
    Groups(Groups),
    /// Rows by their place in the order; whether some were left out.
    Sorted(BTreeMap<SortPlace, SortedRow>, bool),
    /// Rows that come in their order: the last one, and what holds back those of
    /// earlier pages.
    Ordered(Option<After>, Gate),
    Distinct(DistinctRows),
}

impl<'p> QueryPage<'p> {
    /// An empty page of a program; `resume`: where the one before ended.
    /// `ordered`: items are brought in the order that the query asks for.
    pub fn new(
        program: &'p Program,
        now: Timestamp,
        plane: bool,
        limits: Limits,
        resume: Option<Resume>,
        ordered: bool,
        steps: &'p Steps<'p>,
    ) -> Self {
        let start = || Resume { skip: program.skip, take: program.take, ..Resume::default() };
        let gathered = match program.outermost_style() {
            Style::Whole if program.select.is_grouped() => {
                Gathered::Groups(program.select.groups())
            }
            Style::Whole => Gathered::Distinct(DistinctRows::new(
                resume.as_ref().and_then(|resume| resume.after.clone()),
            )),
            Style::Sort if ordered => Gathered::Ordered(None, Gate::default()),
            Style::Sort => Gathered::Sorted(BTreeMap::new(), false),
            Style::Stream => Gathered::Nothing,
        };
        QueryPage {
            program,
            limits,
            run: Run::new(Setting { now, plane }, RandomState::new().hash_one(0u8), steps),
            resume: resume.unwrap_or_else(start),
            rows: Vec::new(),
            count: 0,
            full: false,
            stages: program.stages.iter().map(Gathering::new).collect(),
            gathered,
            given: Given::default(),
            weight: 0,
            is_gathered: false,
        }
    }

    /// The item that the page before ended in is gone; this page starts with
    /// another one.
    pub fn start_afresh(&mut self) {
        self.resume.rows_done = 0;
    }

    /// Whether no row is left to come, before any item was looked at.
    pub fn is_done(&self) -> bool {
        self.resume.take == Some(0)
    }

    /// Adds the rows of an item. `tie`: where it stands among items with the
    /// same sort values.
    pub fn add(&mut self, item: &dyn Item, tie: (u64, u64)) -> Result<Added> {
        self.run.next_item();
        self.run.step()?;
        self.run.pass(item.text().len())?;
        let tie = self.program.tie(tie);
        let loaded = Loaded::read(&self.program.fields, item, &self.run)?;
        (self.weight, self.is_gathered) = (item.weight(), false);
        let count = self.count;
        let added = self.add_rows(Some(&loaded), tie)?;
        if self.is_gathered || self.count > count {
            self.given.add(self.weight);
        }
        self.weight = 0;
        Ok(added)
    }

    /// Finishes the page of a query without groups whose aggregates are known.
    pub fn finish_with(mut self, aggregates: Vec<Value>) -> Result<Finished> {
        self.gathered = Gathered::Nothing;
        let held = self.held();
        self.write_group(&GroupValues { keys: Vec::new(), aggregates })?;
        let given = Given::default();
        Ok(Finished { rows: self.rows, count: self.count, resume: None, held, given })
    }

    /// Adds the row of a query that reads no items.
    pub fn add_nothing(&mut self) -> Result<Added> {
        self.add_rows(None, (0, 0))
    }

    fn add_rows(&mut self, item: Option<&Loaded<'_>>, tie: (u64, u64)) -> Result<Added> {
        if self.is_done() {
            return Ok(Added::Done);
        }
        let scope = Scope { run: &self.run, item, bound: None, group: None };
        if let Some(stage) = self.stages.first_mut() {
            self.is_gathered = stage.add(&scope)?;
            return Ok(Added::More);
        }
        self.add_outermost(item, None, tie)
    }

    /// Adds the rows that the outermost select makes of an item, or of what its
    /// first source is bound to.
    ///
    /// Where a page ended is told in two ways. An answer in the order of the items ended in
    /// an item: `rows_done` of its rows were given, and are stepped over once, with the
    /// first item that comes. An answer in an order ended at a place in it, so that all of
    /// an item's rows are compared with that place, and the item may be met again anywhere.
    /// `number` counts all rows that an item makes, those that are left out too: it is the
    /// last part of a row's place, and must be the same on every page. A row that has no
    /// room makes the page full, and is made again by the next one.
    fn add_outermost(
        &mut self,
        item: Option<&Loaded<'_>>,
        bound: Option<&Bound<'_>>,
        tie: (u64, u64),
    ) -> Result<Added> {
        let QueryPage { program, limits, run, resume, rows, count, full, gathered, .. } = self;
        let (weight, is_gathered) = (self.weight, &mut self.is_gathered);
        let select = &program.select;
        let scope = Scope { run, item, bound, group: None };
        let mut number = 0;
        let done_before = std::mem::take(&mut resume.rows_done);
        select.each(&scope, &mut |row| {
            let place = number;
            match gathered {
                Gathered::Groups(groups) => {
                    *is_gathered = true;
                    select.add_to_group(row, groups)?;
                }
                Gathered::Sorted(sorted, cut) => {
                    let place = (sort_key(&program.order, row)?, tie, place);
                    if may_follow(resume.after.as_ref(), &place) {
                        let keep = rows_wanted(resume, limits);
                        *cut |= insert(sorted, place, keep, program, row, weight)?;
                    }
                }
                Gathered::Distinct(distinct) => {
                    *is_gathered = true;
                    let place = (sort_key(&program.order, row)?, tie, place);
                    if !distinct.add(place, program, row, resume, limits)? {
                        *full = true;
                        return Ok(Flow::Enough);
                    }
                }
                Gathered::Ordered(last, gate) => {
                    let place = (sort_key(&program.order, row)?, tie, place);
                    if gate.passes(resume.after.as_ref(), &place)? {
                        if !stream(program, row, limits, resume, rows, count)? {
                            *full = true;
                            return Ok(Flow::Enough);
                        }
                        let before = last.take().or_else(|| resume.after.clone());
                        *last = Some(After::next(before, place));
                        if resume.take == Some(0) {
                            return Ok(Flow::Enough);
                        }
                    }
                }
                Gathered::Nothing => {
                    if place >= done_before && !stream(program, row, limits, resume, rows, count)? {
                        *full = true;
                        resume.rows_done = place;
                        return Ok(Flow::Enough);
                    }
                    if resume.take == Some(0) {
                        return Ok(Flow::Enough);
                    }
                }
            }
            number += 1;
            Ok(Flow::More)
        })?;
        Ok(match (*full, self.resume.take) {
            (true, _) => Added::Full,
            (false, Some(0)) => Added::Done,
            _ => Added::More,
        })
    }

    /// The page ends after this item, which was added, although there may be more
    /// of them: `false` if it cannot end there.
    pub fn cut_after(&mut self, item: &dyn Item, tie: (u64, u64)) -> Result<bool> {
        let key = self.program.sort_key(item, self.run.steps)?;
        let place = (key, self.program.tie(tie), u64::MAX);
        // A page that ended where it started would come again and again.
        if place.0.len() > AFTER_MAX || !may_follow(self.resume.after.as_ref(), &place) {
            return Ok(false);
        }
        if let Gathered::Ordered(last, _) = &mut self.gathered {
            *last = Some(After::Row(place));
            self.full = true;
        }
        Ok(self.full)
    }

    /// The page ends although there may be more items.
    pub fn cut(&mut self) {
        self.full = true;
    }

    /// The page.
    pub fn finish(mut self) -> Result<Finished> {
        let held = self.held();
        let staged = !self.stages.is_empty();
        self.finish_stages()?;
        let more = match std::mem::replace(&mut self.gathered, Gathered::Nothing) {
            Gathered::Nothing => self.full,
            Gathered::Ordered(last, gate) => {
                if !self.full {
                    gate.check()?;
                }
                self.resume.after = last.or(self.resume.after.take());
                self.full
            }
            Gathered::Groups(groups) => {
                self.write_groups(groups)?;
                false
            }
            Gathered::Distinct(distinct) => {
                let (rows, cut) = distinct.finish();
                self.write_sorted(rows, cut)?
            }
            Gathered::Sorted(sorted, cut) => self.write_sorted(sorted, cut)?,
        };
        if more && staged {
            return Err(too_large());
        }
        let resume = (more && self.resume.take != Some(0)).then_some(self.resume);
        let given = self.given;
        Ok(Finished { rows: self.rows, count: self.count, resume, held, given })
    }

    fn held(&self) -> Held {
        let (what, count) = match &self.gathered {
            Gathered::Nothing | Gathered::Ordered(..) => (Holds::Nothing, 0),
            Gathered::Groups(groups) => (Holds::Groups, groups.count()),
            Gathered::Sorted(sorted, _) => (Holds::SortedRows, sorted.len()),
            Gathered::Distinct(distinct) => (Holds::DistinctRows, distinct.count()),
        };
        Held { what, count, bytes: self.run.kept() }
    }

    /// Brings the rows of each stage to the next one, and those of the last to
    /// the outermost select. They all come in one page.
    fn finish_stages(&mut self) -> Result<()> {
        if self.stages.is_empty() {
            return Ok(());
        }
        self.limits.rows = usize::MAX;
        let mut stages = std::mem::take(&mut self.stages).into_iter().peekable();
        while let Some(stage) = stages.next() {
            let rows = stage.finish(&self.run)?;
            for (number, value) in (0..).zip(&rows) {
                self.run.next_item();
                self.run.step()?;
                let bound = Bound { value, outer: None };
                if let Some(next) = stages.peek_mut() {
                    let run = &self.run;
                    next.add(&Scope { run, item: None, bound: Some(&bound), group: None })?;
                } else if self.add_outermost(None, Some(&bound), (0, number))? != Added::More {
                    break;
                }
            }
        }
        Ok(())
    }

    fn write_groups(&mut self, groups: Groups) -> Result<()> {
        let mut seen = HashSet::new();
        for group in self.in_order(groups)? {
            self.run.next_item();
            self.run.step()?;
            if self.program.distinct {
                let scope = Scope { run: &self.run, item: None, bound: None, group: Some(&group) };
                let value = self.program.select.projection.eval(&scope)?;
                if !seen.insert(order::key(&value)) {
                    continue;
                }
            }
            self.write_group(&group)?;
        }
        Ok(())
    }

    /// Groups as they are sorted; those with equal keys as they were met.
    fn in_order(&self, groups: Groups) -> Result<Vec<GroupValues>> {
        let order = &self.program.group_order;
        if order.is_empty() {
            return Ok(groups.into_values().collect());
        }
        let mut sorted = Vec::with_capacity(groups.count());
        for group in groups.into_values() {
            let scope = Scope { run: &self.run, item: None, bound: None, group: Some(&group) };
            let key = sort_key(order, &scope)?;
            self.run.keep(kept(&key))?;
            sorted.push((key, group));
        }
        sorted.sort_by(|(left, _), (right, _)| left.cmp(right));
        Ok(sorted.into_iter().map(|(_, group)| group).collect())
    }

    fn write_group(&mut self, group: &GroupValues) -> Result<()> {
        let scope = Scope { run: &self.run, item: None, bound: None, group: Some(group) };
        let mut text = Vec::new();
        if self.program.select.projection.write(&scope, &mut text)? {
            self.write_whole(&text)?;
        }
        Ok(())
    }

    /// Writes a row of an answer that comes in one page.
    fn write_whole(&mut self, text: &[u8]) -> Result<()> {
        if self.resume.skip > 0 {
            self.resume.skip -= 1;
            return Ok(());
        }
        if self.resume.take == Some(0) {
            return Ok(());
        }
        if self.rows.len() + text.len() > self.limits.bytes {
            return Err(too_large());
        }
        push(&mut self.rows, &mut self.count, text);
        self.resume.take = self.resume.take.map(|take| take - 1);
        Ok(())
    }

    /// Writes sorted rows. Whether there are more than fit.
    fn write_sorted(&mut self, sorted: BTreeMap<SortPlace, SortedRow>, cut: bool) -> Result<bool> {
        let before = self.resume.after.clone();
        let mut gate = Gate::default();
        let mut items = HashSet::new();
        for (place, (text, weight)) in sorted {
            if !gate.passes(before.as_ref(), &place)? {
                continue;
            }
            if self.resume.take == Some(0) {
                return Ok(false);
            }
            let fits = self.count == 0 || self.rows.len() + text.len() <= self.limits.bytes;
            if self.count >= self.limits.rows || !fits {
                return Ok(true);
            }
            let item = place.1;
            self.resume.after = Some(After::next(self.resume.after.take(), place));
            if self.resume.skip > 0 {
                self.resume.skip -= 1;
                continue;
            }
            if weight > 0 && items.insert(item) {
                self.given.add(weight);
            }
            push(&mut self.rows, &mut self.count, &text);
            self.resume.take = self.resume.take.map(|take| take - 1);
        }
        gate.check()?;
        Ok(cut)
    }
}

fn too_large() -> dayfly_model::Error {
    refused(
        "The groups or distinct values of the query are too large for one answer. Narrow its \
         filter, or select less.",
    )
}

/// Writes a row of an answer in the order of the items. `false`: it has no
/// room.
fn stream(
    program: &Program,
    row: &Scope<'_>,
    limits: &Limits,
    resume: &mut Resume,
    rows: &mut Vec<u8>,
    count: &mut usize,
) -> Result<bool> {
    let before = rows.len();
    let room = *count < limits.rows;
    if *count > 0 {
        rows.push(b',');
    }
    let defined = program.select.projection.write(row, rows)?;
    row.run.pass(rows.len() - before)?;
    if !defined || resume.skip > 0 {
        rows.truncate(before);
        resume.skip -= u64::from(defined);
        return Ok(true);
    }
    if !room || (*count > 0 && rows.len() > limits.bytes) {
        rows.truncate(before);
        return Ok(false);
    }
    *count += 1;
    resume.take = resume.take.map(|take| take - 1);
    Ok(true)
}

/// Puts a row in its place, and drops the last one when there are more than are
/// wanted. Whether one was dropped.
fn insert(
    sorted: &mut BTreeMap<SortPlace, SortedRow>,
    place: SortPlace,
    wanted: usize,
    program: &Program,
    row: &Scope<'_>,
    weight: u64,
) -> Result<bool> {
    let full = sorted.len() >= wanted;
    if full && sorted.last_key_value().is_none_or(|(last, _)| place > *last) {
        return Ok(true);
    }
    let mut text = Vec::new();
    if !program.select.projection.write(row, &mut text)? {
        return Ok(false);
    }
    row.run.pass(text.len())?;
    row.run.keep(kept(&text) + place.0.len())?;
    sorted.insert(place, (text, weight));
    if full && let Some((place, (text, _))) = sorted.pop_last() {
        row.run.drop_kept(kept(&text) + place.0.len());
    }
    Ok(full)
}

/// How many rows of those that come in an order can be on the page.
pub(super) fn rows_wanted(resume: &Resume, limits: &Limits) -> usize {
    let page = resume.take.map_or(limits.rows as u64, |take| take.min(limits.rows as u64));
    if matches!(resume.after, Some(After::Start(..))) {
        // Those that start alike are all needed to find where to go on.
        return usize::MAX;
    }
    let wanted = page.saturating_add(resume.skip);
    usize::try_from(wanted).unwrap_or(usize::MAX)
}

fn push(rows: &mut Vec<u8>, count: &mut usize, text: &[u8]) {
    if *count > 0 {
        rows.push(b',');
    }
    rows.extend_from_slice(text);
    *count += 1;
}
