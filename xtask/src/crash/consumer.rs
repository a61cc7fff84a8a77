//! A consumer of both change feeds of the shared container: of the latest versions, and of
//! all versions with what was deleted or expired.
//!
//! It reads while the writers write. When the server is killed, it has the token of the last
//! page that came, and goes on from there in the next round. When all is quiet it reads to
//! the end, and what it was told is compared with what the writers know: each change that
//! was acknowledged was told, in its order, and nothing was told that was not done. Whoever
//! follows all versions is told each of them once; whoever follows the latest ones may have
//! missed those that were followed by others before he came.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::batch;
use super::book::{Book, Change, DATABASE, ItemKey, SHARED};
use crate::random::Random;
use crate::wire::{Answer, Client};
use crate::{Result, failed};

/// The most changes of a page; each has a limit of its own.
const PAGE_MAX: u64 = 40;

/// Whoever is at the end waits so long before it asks again.
const REST: Duration = Duration::from_millis(5);

pub(crate) struct Consumer {
    random: Random,
    /// The last time the server gave.
    now: u64,
    /// Where all versions began.
    begun: String,
    latest: Course,
    versions: Course,
    /// The numbers of the versions that were told as the latest, by item.
    newest: BTreeMap<ItemKey, Vec<u64>>,
    /// All that was told of each item.
    told: BTreeMap<ItemKey, Vec<Told>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Latest,
    Versions,
}

/// How far a feed was read.
struct Course {
    mode: Mode,
    /// None at the beginning.
    token: Option<String>,
    /// The last commit that was told of each partition.
    reached: BTreeMap<String, u64>,
}

/// A change of an item, as a feed tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    lsn: u64,
    event: Event,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Written {
        number: u64,
        /// The second at which it dies.
        dies: Option<u64>,
    },
    Deleted,
    Expired,
}

/// A change, with what only a first look at it needs.
struct Entry {
    key: ItemKey,
    told: Told,
    metadata: Value,
    /// The number of the version that was deleted, if it is told.
    previous: Option<u64>,
}

impl Consumer {
    pub(crate) fn new(seed: u64) -> Consumer {
        Consumer {
            random: Random::new(seed),
            now: 0,
            begun: String::new(),
            latest: Course::new(Mode::Latest, None),
            versions: Course::new(Mode::Versions, None),
            newest: BTreeMap::new(),
            told: BTreeMap::new(),
        }
    }

    /// Begins with a container in which nothing was written yet.
    pub(crate) fn begin(&mut self, client: &mut Client) -> Result<()> {
        let answer = self.versions.ask(client, 1).map_err(failed("beginning with a feed"))?;
        if answer.status != 304 {
            return Err(format!("all versions from now on: {}", answer.told()));
        }
        self.begun = etag(&answer)?;
        self.versions.token = Some(self.begun.clone());
        Ok(())
    }

    /// How many versions and ends it was told.
    pub(crate) fn told(&self) -> usize {
        self.told.values().map(Vec::len).sum()
    }

    /// Reads until the server is killed.
    pub(crate) fn follow(&mut self, client: &mut Client) -> Result<()> {
        loop {
            let mut is_end = true;
            for mode in [Mode::Latest, Mode::Versions] {
                let limit = 1 + self.random.below(PAGE_MAX);
                let Ok(answer) = self.course(mode).ask(client, limit) else { return Ok(()) };
                is_end &= !self.take(mode, &answer)?;
            }
            if is_end {
                thread::sleep(REST);
            }
        }
    }

    /// Reads both feeds to their ends.
    pub(crate) fn catch_up(&mut self, client: &mut Client) -> Result<()> {
        for mode in [Mode::Latest, Mode::Versions] {
            loop {
                let limit = 1 + self.random.below(PAGE_MAX);
                let answer = self.course(mode).ask(client, limit);
                if !self.take(mode, &answer.map_err(failed("reading a feed"))?)? {
                    break;
                }
            }
        }
        Ok(())
    }

    fn course(&self, mode: Mode) -> &Course {
        match mode {
            Mode::Latest => &self.latest,
            Mode::Versions => &self.versions,
        }
    }

    /// Takes a page, and keeps its token. `false`: there was nothing.
    fn take(&mut self, mode: Mode, answer: &Answer) -> Result<bool> {
        let now = answer.now().ok_or("an answer has no date")?;
        self.now = self.now.max(now);
        let entries = entries(answer)?;
        let course = match mode {
            Mode::Latest => &mut self.latest,
            Mode::Versions => &mut self.versions,
        };
        let violation = |why: String| format!("{why}, in the feed of {mode:?}: {}", answer.told());
        course.pass(&entries, etag(answer)?).map_err(violation)?;
        let is_page = !entries.is_empty();
        for entry in entries {
            match mode {
                Mode::Latest => self.take_newest(entry, now),
                Mode::Versions => self.take_version(entry, now),
            }
            .map_err(violation)?;
        }
        Ok(is_page)
    }

    fn take_newest(&mut self, entry: Entry, now: u64) -> Result<()> {
        let Entry { key, told, .. } = entry;
        let Event::Written { number, dies } = told.event else {
            return Err(format!("an end of {key:?} among the latest versions"));
        };
        if dies.is_some_and(|dies| dies <= now) {
            return Err(format!("GHOST: version {number} of {key:?} was told, and had expired"));
        }
        let numbers = self.newest.entry(key.clone()).or_default();
        if numbers.last().is_some_and(|last| *last >= number) {
            return Err(format!("BACK: version {number} of {key:?} was told after {numbers:?}"));
        }
        numbers.push(number);
        Ok(())
    }

    /// Each version and each end follows from what was told of the item before.
    fn take_version(&mut self, entry: Entry, now: u64) -> Result<()> {
        let Entry { key, told, metadata, previous } = entry;
        let before = self.told.entry(key.clone()).or_default();
        let alive = before.last().and_then(|last| match last.event {
            Event::Written { number, dies } => Some((last.lsn, number, dies)),
            Event::Deleted | Event::Expired => None,
        });
        let chained = metadata.get("previousImageLSN").and_then(Value::as_u64);
        let operation = metadata.get("operationType").and_then(Value::as_str).unwrap_or_default();
        let crts = metadata.get("crts").and_then(Value::as_u64);
        let follows = chained == alive.map(|(lsn, ..)| lsn);
        let fits = match (&told.event, alive) {
            (Event::Written { .. }, None) => operation == "create",
            (Event::Written { .. }, Some(_)) => operation == "replace",
            (Event::Deleted, Some((_, number, _))) => previous == Some(number),
            (Event::Expired, Some((.., dies))) => {
                dies.is_some() && crts == dies && dies <= Some(now)
            }
            (Event::Deleted | Event::Expired, None) => false,
        };
        if !follows || !fits {
            return Err(format!("WRONG: {told:?} of {key:?} ({metadata}) came after {before:?}"));
        }
        before.push(told);
        Ok(())
    }

    /// Compares what it was told with what the writers know, when nobody writes.
    pub(crate) fn compare(&self, books: &[Book]) -> Result<()> {
        let known: BTreeMap<&ItemKey, &Vec<Change>> =
            books.iter().flat_map(|book| &book.changes).collect();
        for (key, changes) in &known {
            let told = self.told.get(key).map(Vec::as_slice).unwrap_or_default();
            agree(changes, told).map_err(|why| {
                format!("{why}: of {key:?} {told:?} was told, and {changes:?} was done")
            })?;
        }
        let unknown = |key: &&ItemKey| !known.contains_key(key);
        if let Some(key) = self.told.keys().chain(self.newest.keys()).find(unknown) {
            return Err(format!("GHOST: nobody wrote {key:?}, and it was told"));
        }
        for (key, numbers) in &self.newest {
            let written = |number: &u64| {
                known.get(key).is_some_and(|changes| {
                    changes.iter().any(|change| change.number == Some(*number))
                })
            };
            if let Some(number) = numbers.iter().find(|number| !written(number)) {
                return Err(format!("GHOST: nobody wrote version {number} of {key:?}"));
            }
        }
        for (key, number) in alive(books, self.now) {
            let newest = self.newest.get(&key).and_then(|numbers| numbers.last().copied());
            if newest != Some(number) {
                return Err(format!(
                    "LOST: {key:?} is there in version {number}, and {newest:?} was told last"
                ));
            }
        }
        Ok(())
    }

    /// Whatever has expired is buried now and was told; and whoever reads all of it once
    /// more is told the same.
    pub(crate) fn finish(&mut self, client: &mut Client, books: &[Book]) -> Result<()> {
        let expired_by = self.now;
        client.admin("POST", "purge/run", "{}")?;
        self.catch_up(client)?;
        self.compare(books)?;
        for (key, told) in &self.told {
            if let Some(Told { event: Event::Written { dies: Some(dies), .. }, .. }) = told.last()
                && *dies <= expired_by
            {
                return Err(format!("LOST: the expiry of {key:?} was not told: {told:?}"));
            }
        }
        let mut again = Consumer::new(self.random.next());
        again.versions.token = Some(self.begun.clone());
        again.catch_up(client)?;
        again.compare_newest(books)?;
        for (key, told) in &self.told {
            let told_again = again.told.get(key).map(Vec::as_slice).unwrap_or_default();
            // What expired meanwhile may have been told since.
            if !told_again.starts_with(told) {
                return Err(format!("CHANGED: of {key:?} {told:?}, and then {told_again:?}"));
            }
        }
        Ok(())
    }

    /// From the beginning come the items that are there, once each.
    fn compare_newest(&self, books: &[Book]) -> Result<()> {
        for (key, number) in alive(books, self.now) {
            if self.newest.get(&key) != Some(&vec![number]) {
                return Err(format!("LOST: {key:?} is there, and was not told from the beginning"));
            }
        }
        for (key, numbers) in &self.newest {
            let told = self.told.get(key).map(Vec::as_slice).unwrap_or_default();
            // It may have expired since.
            let last = told.iter().rev().find(|told| told.event != Event::Expired);
            let last = last.and_then(number_of);
            if last != numbers.last().copied() {
                return Err(format!("GHOST: {key:?} was told as {numbers:?}, and is {last:?}"));
            }
        }
        Ok(())
    }
}

impl Course {
    fn new(mode: Mode, token: Option<String>) -> Course {
        Course { mode, token, reached: BTreeMap::new() }
    }

    /// Asks for the next page, all of them in envelopes.
    fn ask(&self, client: &mut Client, limit: u64) -> std::io::Result<Answer> {
        let mode = match self.mode {
            Mode::Latest => "Incremental feed",
            Mode::Versions => "Full-Fidelity Feed",
        };
        let mut headers = vec![
            ("a-im", mode.to_owned()),
            ("x-ms-cosmos-changefeed-wire-format-version", "2021-09-15".to_owned()),
            ("x-ms-max-item-count", limit.to_string()),
        ];
        match (&self.token, self.mode) {
            (Some(token), _) => headers.push(("if-none-match", token.clone())),
            // All versions are told from now on.
            (None, Mode::Versions) => headers.push(("if-none-match", "*".to_owned())),
            (None, Mode::Latest) => {}
        }
        client.ask("GET", &format!("/dbs/{DATABASE}/colls/{SHARED}/docs"), &headers, "")
    }

    /// Goes on behind a page. Commits of a partition come in their order, and none of them
    /// on two pages.
    fn pass(&mut self, entries: &[Entry], token: String) -> Result<()> {
        let mut page: BTreeMap<&str, u64> = BTreeMap::new();
        for entry in entries {
            let (partition, lsn) = (entry.key.0.as_str(), entry.told.lsn);
            let is_new = self.reached.get(partition).is_none_or(|reached| *reached < lsn);
            let last = page.insert(partition, lsn);
            if !is_new || last.is_some_and(|last| last > lsn) {
                return Err(format!("TWICE: commit {lsn} of {partition} was passed already"));
            }
        }
        let page: Vec<_> = page.into_iter().map(|(key, lsn)| (key.to_owned(), lsn)).collect();
        self.reached.extend(page);
        self.token = Some(token);
        Ok(())
    }
}

/// What was told of an item is what was done to it, in that order, and all of what was
/// acknowledged; it may have expired at any moment.
fn agree(changes: &[Change], told: &[Told]) -> Result<()> {
    let mut told = told.iter().filter(|told| told.event != Event::Expired).peekable();
    for change in changes {
        if told.next_if(|told| number_of(told) == change.number).is_none() && change.is_certain {
            return Err(format!("LOST: {change:?} was not told in its turn"));
        }
    }
    match told.next() {
        None => Ok(()),
        Some(told) => Err(format!("GHOST: {told:?} was told, and not done then")),
    }
}

/// The number of the version that was written.
fn number_of(told: &Told) -> Option<u64> {
    match told.event {
        Event::Written { number, .. } => Some(number),
        Event::Deleted | Event::Expired => None,
    }
}

/// What is there for certain, with the number of its version.
fn alive(books: &[Book], now: u64) -> Vec<(ItemKey, u64)> {
    let items = books.iter().flat_map(|book| book.alive(now));
    items.chain(books.iter().flat_map(batch::alive)).collect()
}

fn etag(answer: &Answer) -> Result<String> {
    let etag = answer.header("etag").map(str::to_owned);
    etag.ok_or_else(|| format!("a page has no token: {}", answer.told()))
}

fn entries(answer: &Answer) -> Result<Vec<Entry>> {
    match answer.status {
        304 => Ok(Vec::new()),
        200 => {
            let page = answer.json();
            let entries = page.get("Documents").and_then(Value::as_array);
            let entries = entries.map(|entries| entries.iter().map(entry).collect());
            entries.flatten().ok_or_else(|| format!("a page cannot be read: {page}"))
        }
        _ => Err(format!("reading a feed answered {}", answer.told())),
    }
}

fn entry(entry: &Value) -> Option<Entry> {
    let (current, metadata) = (entry.get("current")?, entry.get("metadata")?.clone());
    let lsn = metadata.get("lsn")?.as_u64()?;
    let text = |value: &Value, name: &str| Some(value.get(name)?.as_str()?.to_owned());
    let is_end = metadata.get("operationType").is_some_and(|operation| operation == "delete");
    let (key, event) = if is_end {
        let expired = metadata.get("timeToLiveExpired") == Some(&Value::Bool(true));
        let key = (text(metadata.get("partitionKey")?, "pk")?, text(&metadata, "id")?);
        (key, if expired { Event::Expired } else { Event::Deleted })
    } else {
        let number = current.get("n")?.as_u64()?;
        let ttl = current.get("ttl").and_then(Value::as_u64);
        let dies = ttl.and_then(|ttl| Some(current.get("_ts")?.as_u64()? + ttl));
        ((text(current, "pk")?, text(current, "id")?), Event::Written { number, dies })
    };
    let previous = entry.get("previous").and_then(|previous| previous.get("n")?.as_u64());
    Some(Entry { key, told: Told { lsn, event }, metadata, previous })
}

#[cfg(test)]
mod tests {
    use dayfly_model::Timestamp;
    use serde_json::json;

    use super::super::book::Draft;
    use super::*;

    const NOW: u64 = 1000;

    /// The item that all changes are of.
    fn key() -> ItemKey {
        ("w0".to_owned(), "i0".to_owned())
    }

    fn page(entries: &[Value]) -> Answer {
        let date = Timestamp(NOW).to_http_date();
        Answer {
            status: 200,
            head: format!("HTTP/1.1 200 OK\r\ndate: {date}\r\netag: \"9\"\r\n\r\n"),
            body: json!({ "Documents": entries }).to_string().into_bytes(),
            framed: false,
        }
    }

    /// A version as both feeds tell it.
    fn written(operation: &str, lsn: u64, number: u64, previous: Option<u64>) -> Value {
        let mut metadata = json!({ "lsn": lsn, "crts": 990, "operationType": operation });
        if let Some(previous) = previous {
            metadata["previousImageLSN"] = previous.into();
        }
        json!({
            "current": { "pk": "w0", "id": "i0", "n": number, "_ts": 990 },
            "metadata": metadata,
        })
    }

    fn created(lsn: u64, number: u64) -> Value {
        written("create", lsn, number, None)
    }

    /// The same with its life in seconds, of which ten are over.
    fn mortal(mut written: Value, ttl: u64) -> Value {
        written["current"]["ttl"] = ttl.into();
        written
    }

    fn ended(lsn: u64, previous: u64) -> Value {
        json!({
            "current": {},
            "metadata": {
                "lsn": lsn, "crts": 995, "operationType": "delete", "id": "i0",
                "partitionKey": { "pk": "w0" }, "previousImageLSN": previous,
            },
        })
    }

    fn deleted(lsn: u64, previous: u64, number: u64) -> Value {
        let mut deleted = ended(lsn, previous);
        deleted["previous"] = json!({ "n": number });
        deleted
    }

    fn expired(lsn: u64, previous: u64) -> Value {
        let mut expired = ended(lsn, previous);
        expired["metadata"]["timeToLiveExpired"] = true.into();
        expired
    }

    /// What comes of pages with these changes.
    fn take(mode: Mode, pages: &[&[Value]]) -> Result<Consumer> {
        let mut consumer = Consumer::new(0);
        for entries in pages {
            consumer.take(mode, &page(entries))?;
        }
        Ok(consumer)
    }

    fn refused(mode: Mode, pages: &[&[Value]]) -> String {
        take(mode, pages).err().unwrap()
    }

    /// A book in which these versions were written; none is a delete.
    fn book(changes: &[(Option<u64>, bool)]) -> Book {
        let mut book = Book::new(0, 0);
        for &(number, is_certain) in changes {
            book.changed(0, 0, Change { number, is_certain });
        }
        book
    }

    #[test]
    fn versions_follow_each_other() {
        let pages: [&[Value]; 3] = [
            &[created(1, 1), written("replace", 2, 2, Some(1))],
            &[deleted(3, 2, 2), mortal(created(4, 3), 5)],
            &[expired(5, 4), created(6, 4)],
        ];
        let consumer = take(Mode::Versions, &pages).unwrap();
        assert_eq!(consumer.told(), 6);
        assert_eq!(consumer.told[&key()].iter().filter_map(number_of).count(), 4);
    }

    #[test]
    fn what_follows_from_nothing_is_seen() {
        let mode = Mode::Versions;
        for second in [
            created(2, 2),
            written("replace", 2, 2, None),
            written("replace", 2, 2, Some(7)),
            deleted(2, 1, 7),
            expired(2, 1),
        ] {
            assert!(refused(mode, &[&[created(1, 1)], &[second]]).starts_with("WRONG"));
        }
        assert!(refused(mode, &[&[mortal(created(1, 1), 20), expired(2, 1)]]).starts_with("WRONG"));
        let twice = [mortal(created(1, 1), 5), expired(2, 1), expired(3, 1)];
        assert!(refused(mode, &[&twice]).starts_with("WRONG"));
    }

    #[test]
    fn a_commit_on_two_pages_is_seen() {
        for mode in [Mode::Latest, Mode::Versions] {
            assert!(refused(mode, &[&[created(5, 1)], &[created(5, 1)]]).starts_with("TWICE"));
            assert!(refused(mode, &[&[created(5, 1), created(4, 2)]]).starts_with("TWICE"));
        }
    }

    #[test]
    fn the_dead_and_the_overwritten_are_no_latest_versions() {
        let mode = Mode::Latest;
        assert!(refused(mode, &[&[mortal(created(1, 1), 10)]]).starts_with("GHOST"));
        assert!(refused(mode, &[&[created(1, 2)], &[created(2, 1)]]).starts_with("BACK"));
        assert!(take(mode, &[&[mortal(created(1, 1), 11)], &[created(2, 2)]]).is_ok());
    }

    #[test]
    fn what_was_acknowledged_was_told_in_its_order() {
        let [one, two] = [1, 2].map(|number| (Some(number), true));
        let both = [created(1, 1), written("replace", 2, 2, Some(1))];
        let consumer = take(Mode::Versions, &[&both]).unwrap();
        assert_eq!(consumer.compare(&[book(&[one, two])]), Ok(()));
        assert_eq!(consumer.compare(&[book(&[one, two, (None, false)])]), Ok(()));
        for lost in [&[one, two, (None, true)][..], &[two, one], &[one, (Some(3), true), two]] {
            assert!(consumer.compare(&[book(lost)]).unwrap_err().starts_with("LOST"));
        }
        assert!(consumer.compare(&[book(&[one])]).unwrap_err().starts_with("GHOST"));
        assert!(consumer.compare(&[]).unwrap_err().starts_with("GHOST"));
    }

    #[test]
    fn what_is_there_was_told_as_the_latest() {
        let mut known = book(&[(Some(1), false), (Some(2), false)]);
        let draft = Draft { number: 2, ttl: None, unique: String::new() };
        known.container(0).keep(0, draft, NOW, String::new());
        let books = [known];
        let latest = |pages: &[&[Value]]| take(Mode::Latest, pages).unwrap().compare(&books);
        assert_eq!(latest(&[&[created(1, 1)], &[created(2, 2)]]), Ok(()));
        assert!(latest(&[&[created(1, 1)]]).unwrap_err().starts_with("LOST"));
        assert!(latest(&[&[created(2, 2)], &[created(3, 3)]]).unwrap_err().starts_with("GHOST"));
    }
}
