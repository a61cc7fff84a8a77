//! Queries of resources that are not items: they are few, so all are looked at
//! for each page.

use dayfly_model::charge::Charge;
use dayfly_model::{ErrorKind, Result};
use dayfly_sql::run::{Added, Limits, Program, QueryPage, Steps};
use dayfly_sql::{Computed, Request};
use serde_json::Value;

use super::item::Resource;
use super::token::{Position, Seals, Token, Tried};
use super::{PAGE_BYTES_MAX, alone};
use crate::operation::{Feed, QueryFeed};
use crate::reply::{Reply, Success};
use crate::shared::Shared;
use crate::{catalog, containers, databases, encryption_keys, offers, pages, ranges};

/// Shows the resources that a query asks for.
pub(crate) fn feed(shared: &Shared, asked: &QueryFeed, steps: &Steps<'_>) -> Reply {
    shared.answer(|snapshot| {
        let (rid, place, name, resources) = match &asked.feed {
            Feed::Databases => (String::new(), None, "Databases", databases::all(snapshot)?),
            Feed::Containers(database, showing) => {
                let (owner, containers) = containers::all(snapshot, database, *showing)?;
                (owner.rid(), Some(owner.place()), "DocumentCollections", containers)
            }
            Feed::EncryptionKeys(database) => {
                let (owner, keys) = encryption_keys::all(snapshot, database)?;
                (owner.rid(), Some(owner.place()), "ClientEncryptionKeys", keys)
            }
            Feed::Ranges(at) | Feed::Conflicts(at) => {
                let opened = match shared.enter(at, ErrorKind::OwnerNotFound) {
                    Ok(opened) => opened,
                    Err(reply) => return Ok(reply),
                };
                let container = &opened.container;
                let (name, resources) = match &asked.feed {
                    Feed::Ranges(_) => ("PartitionKeyRanges", ranges::all(&opened)),
                    _ => ("Conflicts", Vec::new()),
                };
                (container.rid_text.to_string(), Some(container.place(None, None)), name, resources)
            }
            Feed::Offers => {
                offers::check_account(&shared.settings)?;
                (String::new(), None, "Offers", offers::all(snapshot)?)
            }
        };
        let page = page(asked, &resources, catalog::now(snapshot), steps)?;
        let (rows, count, continuation) = page;
        let body = [
            format!("{{\"_rid\":\"{rid}\",\"{name}\":[").as_bytes(),
            &rows,
            format!("],\"_count\":{count}}}").as_bytes(),
        ]
        .concat();
        let success = Success { continuation, item_count: Some(count), ..Success::new(200, body) };
        Ok(Reply { place, ..Reply::ok(success, catalog::now(snapshot), Charge::LOOK) })
    })
}

/// The rows of a page, how many there are, and where the next one starts.
fn page(
    asked: &QueryFeed,
    resources: &[Value],
    now: dayfly_model::Timestamp,
    steps: &Steps<'_>,
) -> Result<(Vec<u8>, usize, Option<String>)> {
    let request = Request::read(&asked.query)?;
    let program = Program::compile(&request, Computed::NONE)?;
    let seals = Seals::new(0, &asked.query, &request.query);
    let start = asked.page.continuation.as_deref().map(|text| Token::read(text, seals));
    let (resume, mut next) = match start.transpose()? {
        Some(Token { resume, at: Position::Item { docno, .. }, .. }) => (Some(resume), docno),
        Some(Token { resume, .. }) => (Some(resume), 0),
        None => (None, 0),
    };
    let limits = Limits { rows: pages::limit(&asked.page), bytes: PAGE_BYTES_MAX };
    let mut page = QueryPage::new(&program, now, false, limits, resume, false, steps);
    let (finished, at) = if program.reads_items() {
        for (number, resource) in (0u64..).zip(resources) {
            if number < next || page.is_done() {
                continue;
            }
            let resource = Resource { text: resource.to_string(), number };
            next = number;
            if page.add(&resource, (0, number))? != Added::More {
                break;
            }
        }
        let at = Position::Item { range: 0, mark: 0, docno: next, tried: Tried::Nothing };
        (page.finish()?, at)
    } else {
        alone(page)?
    };
    let continuation = finished.resume.map(|resume| Token { resume, at, numbered: 1 }.write(seals));
    Ok((finished.rows, finished.count, continuation))
}
