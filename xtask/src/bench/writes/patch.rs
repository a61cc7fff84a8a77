//! A patch of one property, against a replace that makes the same change.

use crate::Result;
use crate::bench::create::prepare;
use crate::bench::item::{Items, end_with_body, id, items_path, partition_key, replace_head};
use crate::bench::load::{self, Until};
use crate::bench::report::{Bar, Report};
use crate::bench::{Bench, median};
use crate::server::Server;
use crate::wire::Signer;

const ROUNDS: u64 = 7;
const CONNECTIONS: usize = 64;

/// How many items there are: so many that no two connections change the same one.
const CHANGED: u64 = 1000;

/// How many changes there are in a round: one for so many items of the large
/// partition.
const PART: u64 = 10;

/// An item has so many properties besides its id and its key: a number that is
/// changed, and texts of so many bytes, which make it 10 KB.
const PROPERTIES: u64 = 100;
const TEXT_BYTES: usize = 94;

/// Cheaper than a replace.
const BAR: f64 = 1.0;

#[derive(Clone, Copy)]
enum Change {
    Patch,
    Replace,
}

/// An item, and how it is changed.
struct Item {
    patch_head: String,
    replace_head: String,
    /// Its JSON before and after the number that is changed.
    start: String,
    rest: String,
}

pub(super) fn run(bench: &Bench, items: u64, report: &mut Report) -> Result<()> {
    let server = Server::start(&bench.program, &bench.folder.path().join("patch"))?;
    prepare(&server)?;
    create(&server)?;
    let count = items / PART;
    let (mut patches, mut replaces) = (vec![], vec![]);
    for round in 0..ROUNDS {
        let version = 2 * round * count;
        let patch_us = change(&server, Change::Patch, version + 1, count)?;
        let replace_us = change(&server, Change::Replace, version + count + 1, count)?;
        println!(
            "writes, round {}: {patch_us:.1} us of CPU for a patch, {replace_us:.1} for a replace",
            round + 1
        );
        patches.push(patch_us);
        replaces.push(replace_us);
    }
    let (patch_us, replace_us) = (median(patches), median(replaces));
    report.note("server CPU of a patch of one property", format!("{patch_us:.1} us"));
    report.note("server CPU of the same as a replace", format!("{replace_us:.1} us"));
    report.judge("patch: ratio", patch_us / replace_us, "", Bar::Below(BAR));
    server.stop()
}

fn create(server: &Server) -> Result<()> {
    let signer = Signer::new()?;
    let head = signer.head("POST", &items_path());
    let items = made(&signer);
    let mut numbered = (0..).zip(items);
    load::run(server.address, CONNECTIONS, Until::Sent(CHANGED), move |buffer| {
        if let Some((number, item)) = numbered.next() {
            end_with_body(&head, number, &item.json(0), buffer);
        }
    })?;
    Ok(())
}

/// Changes one item after the other, from this version on. Returns the server's CPU
/// for one change.
fn change(server: &Server, change: Change, first: u64, count: u64) -> Result<f64> {
    let items = made(&Signer::new()?);
    let mut version = first;
    let before = server.cpu()?;
    load::run(server.address, CONNECTIONS, Until::Sent(count), move |buffer| {
        let number = version % CHANGED;
        if let Some(item) = usize::try_from(number).ok().and_then(|number| items.get(number)) {
            let (head, body) = match change {
                Change::Patch => (&item.patch_head, patch(version)),
                Change::Replace => (&item.replace_head, item.json(version)),
            };
            end_with_body(head, number, &body, buffer);
        }
        version += 1;
    })?;
    Ok(server.cpu_since(before)?.as_secs_f64() * 1e6 / count as f64)
}

fn patch(version: u64) -> String {
    format!("{{\"operations\":[{{\"op\":\"set\",\"path\":\"/n\",\"value\":{version}}}]}}")
}

fn made(signer: &Signer) -> Vec<Item> {
    let items = Items::new();
    (0..CHANGED).map(|number| Item::new(signer, &items, number)).collect()
}

impl Item {
    fn new(signer: &Signer, items: &Items, number: u64) -> Item {
        let (id, key) = (id(number), partition_key(number));
        let mut rest = String::new();
        for property in 1..PROPERTIES {
            let text = items.text(number ^ (property << 40), TEXT_BYTES);
            rest.push_str(&format!(",\"p{property:02}\":\"{text}\""));
        }
        rest.push('}');
        Item {
            patch_head: signer.head("PATCH", &format!("{}/{id}", items_path())),
            replace_head: replace_head(signer, number),
            start: format!("{{\"id\":\"{id}\",\"pk\":\"{key}\",\"n\":"),
            rest,
        }
    }

    fn json(&self, version: u64) -> String {
        format!("{}{version}{}", self.start, self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_has_10_kb_and_100_properties() {
        let item = Item::new(&Signer::new().unwrap(), &Items::new(), 7);
        let json = item.json(1_000_000);
        assert!((10_000..10_500).contains(&json.len()), "{}", json.len());
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value.as_object().unwrap().len() as u64, 2 + PROPERTIES);
        assert_eq!(value["n"], 1_000_000);
    }
}
