//! Queries: which items are looked at, page by page, and what the answer says.
//!
//! ```text
//! reach.rs    which part of the container it can find anything in
//! needs.rs    what it is refused without an index
//! choose.rs   which way a query takes to its items; said.rs leaves out what is known
//!             of all of them, few.rs tells whether they are few
//! known.rs    aggregates that the index knows by itself
//! access.rs   the items on that way, one by one, with numbers.rs and ordered.rs
//! again.rs    what a page that starts anew leaves to those before it
//! item.rs     an item, as the query language sees it
//! token.rs    where a page ended, as text
//! explain.rs  what a page did, and why
//! advice.rs   which indexes a query uses, and which would help it
//! plan.rs     what a client is told that asks ranges by itself
//! laps.rs     how long the steps before the first item take
//! feed.rs     queries of databases, containers, offers and ranges
//! ```
//!
//! Only items that are alive are brought to a query, so nothing in the language
//! knows of time to live: what has expired is in no row, no count and no order.
//! Each page is one look at the data, at one time.
//!
//! A query counts its steps, in the language and on the way to its items, and ends
//! when it is told to (`lanes.rs`). A page that can end anywhere ends by itself when it
//! has made enough of them, or when its client will not wait much longer; the next one goes
//! on from there.

mod access;
mod advice;
mod again;
mod choose;
mod explain;
mod feed;
mod few;
mod item;
mod known;
mod laps;
mod needs;
mod numbers;
mod ordered;
mod plan;
mod reach;
mod said;
mod token;

use bytes::BufMut;
use dayfly_model::charge::{self, Charge, Loaded};
use dayfly_model::container::Geospatial;
use dayfly_model::{Error, ErrorKind, Result};
use dayfly_sql::Request;
use dayfly_sql::run::{Added, Finished, Item, Limits, Program, QueryPage, Resume, Steps, Style};

use self::access::{Access, Found, Within};
use self::again::Again;
use self::choose::{Chooser, Way, choose};
pub(crate) use self::explain::explain;
pub(crate) use self::feed::feed;
use self::item::Row;
use self::laps::Laps;
pub(crate) use self::plan::plan;
use self::reach::Reach;
use self::said::Said;
use self::token::{Position, Seals, Token};
use crate::operation::{AdviceForm, QueryItems};
use crate::pages::{self, bad_token};
use crate::reply::{IndexAdvice, QueryFigures, Reply, Success};
use crate::scope::Opened;
use crate::shared::Shared;

/// The largest page, in bytes of JSON.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Shows the items that a query asks for.
pub(crate) fn items(
    shared: &Shared,
    opened: &Opened,
    asked: &QueryItems,
    steps: &Steps<'_>,
) -> Reply {
    match run(shared, opened, asked, steps) {
        Ok(ran) => ran.into_reply(opened, asked),
        Err(error) => opened.failed(error),
    }
    .at(opened.place(&asked.part))
}

/// The way that a query took.
enum Taken {
    /// It reads no items.
    NoItems,
    /// The index, or the count of the living, knew the aggregates.
    Known,
    /// This way to its items; and whether all had to be read on it.
    Way(Way, bool),
}

/// A page, and how it came about.
struct Ran {
    finished: Finished,
    continuation: Option<String>,
    figures: QueryFigures,
    charge: Charge,
    /// How many partitions were looked at, if they are named.
    partitions: Option<usize>,
    taken: Taken,
    advice: Option<(AdviceForm, IndexAdvice)>,
}

impl Ran {
    fn into_reply(self, opened: &Opened, asked: &QueryItems) -> Reply {
        let rid = &opened.container.rid_text;
        let mut body = Vec::with_capacity(self.finished.rows.len() + 64);
        body.put_slice(format!("{{\"_rid\":\"{rid}\",\"Documents\":[").as_bytes());
        body.put_slice(&self.finished.rows);
        body.put_slice(format!("],\"_count\":{}}}", self.finished.count).as_bytes());
        let success = Success {
            continuation: self.continuation,
            item_count: Some(self.finished.count),
            is_whole: asked.direct,
            query: asked.metrics.then(|| Box::new(self.figures)),
            advice: self.advice.map(Box::new),
            ..Success::new(200, body)
        };
        Reply::ok(success, opened.now(), self.charge)
    }
}

/// Carries out one page of a query.
///
/// What can be refused is refused before the first item is read. That a container has
/// one range today is no reason to take a query that would be refused tomorrow. Aggregates
/// that are known take no way at all; they come in one page, so no token ever leads to
/// them. An aggregate over several partitions that has no value is left to the client: each
/// makes something else of nothing, and its users know what.
fn run(shared: &Shared, opened: &Opened, asked: &QueryItems, steps: &Steps<'_>) -> Result<Ran> {
    let container = &opened.container;
    let mut figures = QueryFigures::default();
    let mut laps = Laps::start();
    let request = Request::read(&asked.query)?;
    let program = Program::compile(&request, container.computed()?)?;
    figures.times.compile = laps.next();
    let seals = Seals::new(container.number, &asked.query, &request.query);
    let start = asked.page.continuation.as_deref().map(|text| Token::read(text, seals));
    let numbered = match &start {
        Some(Ok(token)) => token.numbered.min(container.numbered()),
        _ => container.numbered(),
    };
    let reach = reach::reach(opened, &request, &asked.part, numbered)?;
    opened.check_session(&reach.touched)?;
    let crosses = crosses(opened, asked, &program, &reach)?;
    check_needs(shared, opened, asked, &program)?;
    let Reach { segments, partitions, key, .. } = reach;
    let (resume, at) = start_of(&program, &request, start.transpose()?)?;
    let limits = Limits { rows: pages::limit(&asked.page), bytes: PAGE_BYTES_MAX };
    let flat = container.definition().geospatial == Geospatial::Geometry;
    let new_page = |resume, ordered| {
        QueryPage::new(&program, opened.now(), flat, limits, resume, ordered, steps)
    };
    figures.times.plan = laps.next();
    let (mut taken, mut advice, mut loaded) = (Taken::NoItems, None, Loaded::default());
    let (finished, at) = if program.reads_items() {
        let said = |key| Said::by(key, &container.definition().partition_key);
        let said = key.as_ref().map_or_else(Said::nothing, said);
        let within = Within { opened, program: &program, listings: &shared.listings, steps };
        let chooser = Chooser { opened, index: &shared.index, said, steps };
        if let Some(form) = asked.advice {
            advice = Some((form, advice::advise(within, &shared.index, &asked.part)?));
        }
        let page = new_page(None, false);
        let known = known::answer(&chooser, &program, &asked.part, &segments, page, &mut figures)?;
        if let Some(finished) = known {
            taken = Taken::Known;
            (finished, Position::Start)
        } else {
            let (way, is_served) = choose(&chooser, &program, &segments)?;
            figures.times.choose = laps.next();
            let after = resume.as_ref().and_then(|resume| resume.after.as_ref());
            let again = Again::new(opened, &program, &segments, &at, after);
            let mut access = Access::open(within, &way, segments, &at, after, limits.rows)?;
            figures.times.open = laps.next();
            let page = new_page(resume, access.is_ordered());
            let steps_max = shared.settings.query_steps.page;
            let (finished, next, all) =
                look(within, page, &mut access, &again, steps_max, &mut figures)?;
            loaded = if is_served { given(&finished) } else { all };
            taken = Taken::Way(way, access.is_scan());
            (finished, again.position().unwrap_or(next))
        }
    } else {
        alone(new_page(resume, false))?
    };
    if crosses && program.is_one_aggregate() && finished.count == 0 && finished.resume.is_none() {
        return Err(not_servable());
    }
    figures.rows = finished.count as u64;
    figures.row_bytes = finished.rows.len() as u64;
    let next = |resume| Token { resume, at, numbered }.write(seals);
    Ok(Ran {
        continuation: finished.resume.clone().map(next),
        finished,
        figures,
        charge: charge::of_query(loaded, figures.row_bytes),
        partitions,
        taken,
        advice,
    })
}

/// Where a page starts: where the one before it ended, or where a client says that it did.
fn start_of(
    program: &Program,
    request: &Request,
    token: Option<Token>,
) -> Result<(Option<Resume>, Position)> {
    let Some(Token { resume, at, .. }) = token else {
        let boundary = request.boundary.as_ref();
        let resume = boundary.map(|boundary| program.start_at(boundary)).transpose()?;
        return Ok((resume, Position::Start));
    };
    if resume.after.is_some() && program.style() == Style::Stream {
        return Err(bad_token());
    }
    Ok((Some(resume), at))
}

/// What a query is paid by that an index can serve: what it gave. Which way it took, and past
/// what it went on it, depends on what is dead and not purged yet.
fn given(finished: &Finished) -> Loaded {
    Loaded { items: finished.given.items, hundredths: finished.given.weight }
}

/// Whether a query goes over partitions that neither the request nor its filter
/// names, which the request must allow. That the container has but one range, for now, is no
/// excuse. One without a partition key has nothing to name.
fn crosses(opened: &Opened, asked: &QueryItems, program: &Program, reach: &Reach) -> Result<bool> {
    let is_divided = !opened.container.definition().partition_key.system_key;
    let is_open = reach.partitions.is_none() || reach.touched.len() > 1;
    let crosses = is_divided && is_open && !asked.part.is_scoped() && program.reads_items();
    if crosses && !asked.cross_partition { Err(cross_partition()) } else { Ok(crosses) }
}

/// Refuses what the service refuses without an index.
fn check_needs(
    shared: &Shared,
    opened: &Opened,
    asked: &QueryItems,
    program: &Program,
) -> Result<()> {
    let definition = opened.container.definition();
    if !shared.settings.lenient_order_by {
        needs::check_order(definition, program)?;
    }
    needs::check_filter(&definition.indexing, program, asked.scan)
}

/// The page of a query that reads no items.
fn alone(mut page: QueryPage<'_>) -> Result<(Finished, Position)> {
    page.add_nothing()?;
    Ok((page.finish()?, Position::Start))
}

/// Brings items to a page until it is full, or has made so many steps, and says where
/// the next one starts, and what it looked at.
fn look(
    Within { opened, program, steps, .. }: Within<'_>,
    mut page: QueryPage<'_>,
    access: &mut Access<'_>,
    again: &Again,
    steps_max: u64,
    figures: &mut QueryFigures,
) -> Result<(Finished, Position, Loaded)> {
    let streams = program.style() == Style::Stream;
    let mut next = Position::Start;
    let (mut found_first, mut loaded) = (None, Loaded::default());
    if page.is_done() {
        return Ok((page.finish()?, next, loaded));
    }
    while let Some(Found { record, bucket, rank, at, resumed }) = access.next()? {
        if !resumed {
            page.start_afresh();
        }
        // What was passed before the first item does not count: the next page would pass
        // it again, and never get further.
        let so_far = (access.looked().keys, steps.made());
        let (looked_first, made_first) = *found_first.get_or_insert(so_far);
        let tired = so_far.0 - looked_first > opened.limits.page_looks
            || so_far.1 - made_first > steps_max
            || figures.items > 0 && steps.is_hurried();
        if tired && streams {
            page.cut();
            next = at;
            break;
        }
        figures.items += 1;
        figures.item_bytes += record.bytes();
        let row = Row::new(&record, &opened.container);
        loaded.add(row.weight());
        if again.has_passed(&record, rank) {
            continue;
        }
        // Items that are sorted alike stand by their buckets, whichever way brings them.
        let rank = rank.filter(|_| program.order().is_empty());
        let tie = (rank.unwrap_or(bucket.0), record.docno);
        match page.add(&row, tie)? {
            Added::More if tired && access.is_ordered() && page.cut_after(&row, tie)? => break,
            Added::More => {}
            Added::Full => {
                next = at;
                break;
            }
            Added::Done => break,
        }
    }
    let looked = access.looked();
    (figures.entries, figures.dead) = (looked.keys, looked.dead);
    Ok((page.finish()?, next, loaded))
}

fn too_many_alike() -> Error {
    Error::bad_request(
        "Too many items have the same long beginning of the value that is sorted by. Narrow the \
         filter of the query.",
    )
}

/// An aggregate without a value has no row, and clients that merge ranges by themselves
/// show something else for it, each its own. The service leaves all aggregates to them;
/// here they take over where it matters.
fn not_servable() -> Error {
    Error::new(
        ErrorKind::NotServable,
        "The provided cross partition query can not be directly served by the gateway. This is a \
         first chance (internal) exception that all newer clients will know how to handle \
         gracefully: ask for the query plan, and merge the answers of the ranges.",
    )
}

fn cross_partition() -> Error {
    Error::new(
        ErrorKind::BadRequest,
        "Cross partition query is required but disabled. Please set \
         x-ms-documentdb-query-enablecrosspartition to true, specify \
         x-ms-documentdb-partitionkey, or revise your query to avoid this exception.",
    )
}
