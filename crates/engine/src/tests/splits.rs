//! Readers that go on while ranges are divided.
//!
//! Items are written, deleted and expire, ranges are divided, the server stops and starts;
//! and meanwhile readers come back for one page after the other, as clients do: one that is
//! told that its range is gone goes on in each part of it, with the token that it has. Of a
//! list and of a query, what stayed as it was comes exactly once, and in the order that it
//! had when the reader began. Of the feed, nothing comes twice, and the newest version of
//! each item is among what came. Of all versions each comes once, in its order, and each end
//! of an item between the versions of its lives.
//!
//! A failure prints its seed: `DAYFLY_SPLITS=1 DAYFLY_SPLITS_SEED=7 cargo test splits`.

use std::collections::{BTreeMap, HashMap, HashSet};

use dayfly_model::ErrorKind;
use dayfly_model::epk::Epk;
use dayfly_model::rid::ItemRid;
use serde_json::{Value, json};

use super::random::Random;
use super::seeds::{Outcome, Seeds};
use super::server::{Crash, Kind, Server, at, partition_key, write};
use crate::operation::{
    Act, ChangesFrom, Division, FeedMode, Operation, Page, Part, QueryItems, ReadChanges,
};

/// Few, so that writes meet, and enough for every part of a range.
const KEYS: u64 = 12;
const IDS: u64 = 4;

/// About how many steps a history has.
const STEPS: u64 = 150;

/// No more ranges than this: then most of them have items.
const RANGES: usize = 14;

/// No more readers than this at the same time.
const READERS: usize = 6;

/// One for each way to the items.
const QUERIES: [&str; 6] = [
    "SELECT c.pk, c.id, c.n FROM c",
    "SELECT c.pk, c.id, c.n FROM c WHERE c.one = 1",
    "SELECT c.pk, c.id, c.n FROM c WHERE c.n >= 0",
    "SELECT c.pk, c.id, c.n FROM c WHERE c.pk IN ('k1', 'k5', 'k2', 'k7', 'k9')",
    "SELECT DISTINCT c.pk, c.id, c.n FROM c",
    ORDERED,
];
const NAMED: [&str; 5] = ["k1", "k5", "k2", "k7", "k9"];
const ORDERED: &str = "SELECT c.pk, c.id, c.n FROM c ORDER BY c.n DESC";

#[test]
fn readers_go_on_while_ranges_are_divided() {
    let seeds = Seeds {
        count: "DAYFLY_SPLITS",
        usual: 200,
        first: "DAYFLY_SPLITS_SEED",
        each: 1,
        what: "histories",
        progress: 100,
    };
    if let Some((seed, why)) = seeds.play(play) {
        panic!("seed {seed}: {why}");
    }
}

/// A page of a half that looked at enough of what is of the other one is not the last.
#[test]
fn the_feed_of_a_half_does_not_end_behind_what_is_of_the_other() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(None, &[]);
    server.run(Operation::SplitRanges { at: at(), division: Division::Widest }).unwrap();
    let (items, history) = (BTreeMap::new(), Vec::new());
    let world = World { server, now: 1000, writes: 0, items, history };
    let [left, right] = <[Bounds; 2]>::try_from(world.ranges()).unwrap();
    let key_in = |range: &Bounds| {
        let mut keys = (0..KEYS).map(|number| format!("k{number}"));
        keys.find(|key| range.contains(&world.epk(key))).unwrap()
    };
    for id in 0..30 {
        let key = key_in(if id == 29 { &left } else { &right });
        world.server.create(json!({"id": id.to_string(), "pk": key})).unwrap();
    }
    let scope = Scope::Range(left);
    let mut strand = Strand { scope, token: None, is_done: false, rows: Vec::new() };
    for _ in 0..3 {
        let read = page(&world, LATEST, &strand, 5).unwrap();
        if let Some(row) = read.rows.first() {
            return assert_eq!(row["id"], "29");
        }
        assert!(!read.is_last);
        strand.token = read.token;
    }
    panic!("it is not shown");
}

fn play(seed: u64) -> Outcome {
    let mut random = Random(seed);
    let mut world = World::new(&mut random);
    let mut readers: Vec<Reader> = Vec::new();
    for _ in 0..STEPS {
        match random.below(100) {
            0..30 => world.write(&mut random),
            30..36 => world.delete(&mut random),
            36..40 => world.pass(1 + random.below(4)),
            40..43 => drop(world.server.purge()),
            43..50 => world.split(&mut random),
            50 => world.server.restart(),
            51 => world.crash(),
            52..62 if readers.len() < READERS => {
                let mut reader = Reader::begin(&world, &mut random);
                reader.read(&world, &mut random)?;
                readers.push(reader);
            }
            _ if readers.is_empty() => {}
            _ => {
                let place = usize::try_from(random.below(readers.len() as u64)).unwrap();
                readers[place].read(&world, &mut random)?;
                if readers[place].is_done() {
                    readers.swap_remove(place).check(&world)?;
                }
            }
        }
    }
    // Every end is told then.
    world.server.purge();
    for mut reader in readers {
        reader.drain(&world, &mut random)?;
        reader.check(&world)?;
    }
    world.server.check();
    Ok(())
}

/// Where an item is: its key and its id.
type Place = (String, String);

/// An item that was written.
#[derive(Clone, Debug)]
struct Written {
    /// Tells one write from another.
    n: u64,
    /// The number of its RID.
    docno: u64,
    expires: Option<u64>,
    epk: Epk,
}

/// A range of the container.
#[derive(Clone, Debug)]
struct Bounds {
    id: String,
    parents: Vec<u32>,
    min: Epk,
    max: Option<Epk>,
}

impl Bounds {
    fn contains(&self, epk: &Epk) -> bool {
        self.min.0 <= epk.0 && self.max.as_ref().is_none_or(|max| epk.0 < max.0)
    }
}

struct World {
    server: Server,
    now: u64,
    writes: u64,
    items: BTreeMap<Place, Written>,
    /// What each write wrote, and whether nothing was there.
    history: Vec<(Place, bool)>,
}

impl World {
    fn new(random: &mut Random) -> World {
        let slices = random.pick(&[1, 1, 3]);
        let mut server = Server::new(Kind::Memory { slices });
        server.make_container(Some(-1), &[]);
        World { server, now: 1000, writes: 0, items: BTreeMap::new(), history: Vec::new() }
    }

    fn ranges(&self) -> Vec<Bounds> {
        let opened = self.server.engine().shared.enter(&at(), ErrorKind::NotFound).unwrap();
        let ranges = opened.container.ranges.iter();
        let bounds = ranges.map(|range| Bounds {
            id: range.id.to_string(),
            parents: range.parents.to_vec(),
            min: range.min.clone(),
            max: range.max.clone(),
        });
        bounds.collect()
    }

    fn epk(&self, key: &str) -> Epk {
        let opened = self.server.engine().shared.enter(&at(), ErrorKind::NotFound).unwrap();
        opened.container.epk(&partition_key(key))
    }

    fn write(&mut self, random: &mut Random) {
        let place = random.whereabouts();
        self.writes += 1;
        let mut item = json!({"id": place.1, "pk": place.0, "n": self.writes, "one": 1});
        let ttl = random.chance(30).then(|| 1 + random.below(8));
        if let Some(ttl) = ttl {
            item["ttl"] = ttl.into();
        }
        self.history.push((place.clone(), self.alive(&place).is_none()));
        let shown = self.server.upsert(item).unwrap();
        let docno = ItemRid::parse(shown["_rid"].as_str().unwrap()).unwrap().docno;
        let (n, expires) = (self.writes, ttl.map(|ttl| self.now + ttl));
        let epk = self.epk(&place.0);
        self.items.insert(place, Written { n, docno, expires, epk });
    }

    fn delete(&mut self, random: &mut Random) {
        let place = random.whereabouts();
        let is_alive = self.alive(&place).is_some();
        let done = self.server.run(write(Act::Delete(place.1.clone()), &format!("{:?}", place.0)));
        assert_eq!(done.is_ok(), is_alive, "{place:?}");
        self.items.remove(&place);
    }

    fn pass(&mut self, seconds: u64) {
        self.now += seconds;
        self.server.clock(self.now);
    }

    /// Time stands a little ahead then.
    fn crash(&mut self) {
        self.server.crash(Crash::Kill);
        self.now = self.server.now().0;
        self.server.clock(self.now);
    }

    fn split(&self, random: &mut Random) {
        let ranges = self.ranges();
        if ranges.len() < RANGES {
            let range = random.one_of(&ranges).id.clone();
            let division = Division::Range(range);
            self.server.run(Operation::SplitRanges { at: at(), division }).unwrap();
        }
    }

    fn alive(&self, place: &Place) -> Option<&Written> {
        let is_alive = |item: &&Written| item.expires.is_none_or(|at| self.now < at);
        self.items.get(place).filter(is_alive)
    }
}

impl Random {
    fn whereabouts(&mut self) -> Place {
        (format!("k{}", self.below(KEYS)), self.below(IDS).to_string())
    }

    fn one_of<'a>(&mut self, ranges: &'a [Bounds]) -> &'a Bounds {
        &ranges[usize::try_from(self.below(ranges.len() as u64)).unwrap()]
    }

    fn wherever(&mut self, world: &World) -> Scope {
        match self.below(10) {
            0..4 => Scope::Whole,
            4..8 => Scope::Range(self.one_of(&world.ranges()).clone()),
            8 => Scope::Key(self.whereabouts().0),
            _ => {
                let mut ends =
                    [self.whereabouts().0, self.whereabouts().0].map(|key| world.epk(&key));
                ends.sort_by(|left, right| left.0.cmp(&right.0));
                let [start, end] = ends;
                Scope::Points(start, end)
            }
        }
    }

    fn whatever(&mut self) -> What {
        match self.below(6) {
            0 => What::List,
            1 => What::Feed { mode: FeedMode::Latest, from_now: self.chance(50) },
            2 => What::Feed { mode: FeedMode::AllVersions, from_now: true },
            _ => What::Query(self.pick(&QUERIES)),
        }
    }
}

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    List,
    Query(&'static str),
    Feed { mode: FeedMode, from_now: bool },
}

const LATEST: What = What::Feed { mode: FeedMode::Latest, from_now: false };

/// Where.
#[derive(Clone, Debug)]
enum Scope {
    Whole,
    Range(Bounds),
    Key(String),
    Points(Epk, Epk),
}

impl Scope {
    fn contains(&self, place: &Place, epk: &Epk) -> bool {
        match self {
            Scope::Whole => true,
            Scope::Range(bounds) => bounds.contains(epk),
            Scope::Key(key) => place.0 == *key,
            Scope::Points(start, end) => start.0 <= epk.0 && epk.0 < end.0,
        }
    }

    fn part(&self) -> Part {
        match self {
            Scope::Whole => Part::default(),
            Scope::Range(bounds) => Part { range: Some(bounds.id.clone()), ..Part::default() },
            Scope::Key(key) => Part::of(Some(partition_key(key))),
            Scope::Points(start, end) => {
                Part { start: Some(start.clone()), end: Some(end.clone()), ..Part::default() }
            }
        }
    }
}

/// One token on its way, and what came by it.
#[derive(Debug)]
struct Strand {
    scope: Scope,
    token: Option<String>,
    is_done: bool,
    rows: Vec<(Place, u64)>,
}

/// Somebody who reads page by page.
#[derive(Debug)]
struct Reader {
    what: What,
    scope: Scope,
    /// What there was when it began, in the order in which it comes.
    begun: Vec<(Place, u64)>,
    /// How many writes there had been then.
    writes: u64,
    strands: Vec<Strand>,
    /// The last of all versions that was told, and whether its end was.
    told: BTreeMap<Place, (u64, bool)>,
}

/// A page.
struct Read {
    rows: Vec<Value>,
    token: Option<String>,
    is_last: bool,
}

impl Reader {
    fn begin(world: &World, random: &mut Random) -> Reader {
        let (what, scope) = (random.whatever(), random.wherever(world));
        let ranges = world.ranges();
        let stands = |item: &Written| {
            let range = ranges.iter().position(|range| range.contains(&item.epk)).unwrap();
            (range, item.docno)
        };
        let meant = |(place, item): &(&Place, &Written)| {
            let is_named = what != What::Query(QUERIES[3]) || NAMED.contains(&&*place.0);
            is_named && scope.contains(place, &item.epk) && world.alive(place).is_some()
        };
        let mut begun: Vec<_> = world.items.iter().filter(meant).collect();
        match what {
            What::Query(ORDERED) => begun.sort_by_key(|(_, item)| std::cmp::Reverse(item.n)),
            _ => begun.sort_by_key(|(_, item)| stands(item)),
        }
        let begun = begun.into_iter().map(|(place, item)| (place.clone(), item.n)).collect();
        let strand = Strand { scope: scope.clone(), token: None, is_done: false, rows: Vec::new() };
        let (writes, told) = (world.writes, BTreeMap::new());
        Reader { what, scope, begun, writes, strands: vec![strand], told }
    }

    /// Whether there is nothing more; there always may be in a feed.
    fn is_done(&self) -> bool {
        self.strands.iter().all(|strand| strand.is_done)
    }

    /// Reads a page of one of its strands. Whether there may be more.
    fn read(&mut self, world: &World, random: &mut Random) -> Outcome<bool> {
        let open: Vec<usize> =
            (0..self.strands.len()).filter(|place| !self.strands[*place].is_done).collect();
        let Some(place) = random.any(&open) else { return Ok(false) };
        self.read_strand(place, world, random)
    }

    fn read_strand(&mut self, place: usize, world: &World, random: &mut Random) -> Outcome<bool> {
        let what = self.what;
        let strand = &mut self.strands[place];
        let limit = 1 + usize::try_from(random.below(6)).unwrap();
        let read = match page(world, what, strand, limit) {
            Err(ErrorKind::RangeGone) => {
                let parts = divided(world, strand)?;
                self.strands.extend(parts);
                return Ok(true);
            }
            read => read.map_err(|why| format!("{what:?} of {:?}: {why:?}", strand.scope))?,
        };
        for change in read.rows.iter().filter(|row| row["metadata"].is_object()) {
            if let Err(why) = tell(&mut self.told, &strand.scope, self.writes, world, change) {
                return Err(format!("{what:?} of {:?} tells {change}: {why}", strand.scope));
            }
        }
        for row in read.rows.iter().filter(|row| !row["metadata"].is_object()) {
            let text = |name: &str| row[name].as_str().unwrap().to_owned();
            let (place, n) = ((text("pk"), text("id")), row["n"].as_u64().unwrap());
            let known = world.alive(&place).filter(|item| item.n == n);
            if known.is_none_or(|item| !strand.scope.contains(&place, &item.epk)) {
                return Err(format!("{what:?} of {:?} shows {row}", strand.scope));
            }
            strand.rows.push((place, n));
        }
        strand.token = read.token;
        strand.is_done = read.is_last && !matches!(what, What::Feed { .. });
        Ok(!read.is_last)
    }

    /// Reads all there is now.
    fn drain(&mut self, world: &World, random: &mut Random) -> Outcome {
        let mut place = 0;
        for _ in 0..10_000 {
            match self.strands.get(place) {
                None => return Ok(()),
                Some(strand) if strand.is_done => place += 1,
                Some(_) => {
                    if !self.read_strand(place, world, random)? {
                        place += 1;
                    }
                }
            }
        }
        Err(format!("{:?} does not end", self.what))
    }

    fn check(&self, world: &World) -> Outcome {
        let failed = |why: &str, row: &(Place, u64)| {
            Err(format!("{:?} of {:?}: {row:?} {why}\n{self:?}", self.what, self.scope))
        };
        let mut seen = HashSet::new();
        let is_feed = matches!(self.what, What::Feed { .. });
        let stayed =
            |(place, n): &&(Place, u64)| world.alive(place).is_some_and(|item| item.n == *n);
        let stayed: HashMap<_, usize> = self.begun.iter().filter(stayed).zip(0..).collect();
        for strand in &self.strands {
            let mut last = None;
            for row in &strand.rows {
                let place = stayed.get(row).copied();
                if (is_feed || place.is_some()) && !seen.insert(row) {
                    return failed("comes twice", row);
                }
                if place.is_some() && !is_feed {
                    if last >= place {
                        return failed("is out of order", row);
                    }
                    last = place;
                }
            }
        }
        if let What::Feed { mode: FeedMode::AllVersions, .. } = self.what {
            return self.check_told(world);
        }
        if let What::Feed { from_now, .. } = self.what {
            let after = if from_now { self.writes } else { 0 };
            for (place, item) in &world.items {
                let row = (place.clone(), item.n);
                let is_meant = self.scope.contains(place, &item.epk) && item.n > after;
                if is_meant && world.alive(place).is_some() && !seen.contains(&row) {
                    return failed("is lost", &row);
                }
            }
            return Ok(());
        }
        match stayed.keys().find(|row| !seen.contains(**row)) {
            Some(row) => failed("is lost", row),
            None => Ok(()),
        }
    }

    /// All is told, and everybody who is dead is buried.
    fn check_told(&self, world: &World) -> Outcome {
        let versions = (1u64..).zip(&world.history);
        let versions = versions.filter(|(n, (place, _))| {
            *n > self.writes && self.scope.contains(place, &world.epk(&place.0))
        });
        let last: BTreeMap<&Place, u64> = versions.map(|(n, (place, _))| (place, n)).collect();
        for (place, n) in last {
            let is_alive = world.alive(place).is_some_and(|item| item.n == n);
            let told = self.told.get(place);
            if told != Some(&(n, !is_alive)) {
                return Err(format!("{self:?}: of {place:?} {n} is there: {is_alive}, {told:?}"));
            }
        }
        Ok(())
    }
}

/// Takes a change of all versions to those that were told.
fn tell(
    told: &mut BTreeMap<Place, (u64, bool)>,
    scope: &Scope,
    begun: u64,
    world: &World,
    change: &Value,
) -> Outcome {
    let (item, metadata) = (&change["current"], &change["metadata"]);
    let is_end = metadata["operationType"] == "delete";
    let (key, id) =
        if is_end { (&metadata["partitionKey"], &metadata["id"]) } else { (item, &item["id"]) };
    let place = (key["pk"].as_str().unwrap().to_owned(), id.as_str().unwrap().to_owned());
    if !scope.contains(&place, &world.epk(&place.0)) {
        return Err("it is of another part".to_owned());
    }
    let known = told.get(&place).copied();
    let (last, has_ended) = known.unwrap_or_default();
    if is_end {
        told.insert(place, (last, true));
        return if has_ended { Err("it ends twice".to_owned()) } else { Ok(()) };
    }
    let n = item["n"].as_u64().unwrap();
    let written = (1u64..)
        .zip(&world.history)
        .filter(|(at, (other, _))| (begun + 1..=n).contains(at) && *other == place);
    let written: Vec<_> = written.map(|(at, (_, is_new))| (at, *is_new)).collect();
    let is_new = metadata["operationType"] == "create";
    if written.last() != Some(&(n, is_new)) {
        return Err(format!("what was written then is {:?}", written.last()));
    }
    let before = written.iter().rev().nth(1).map_or(0, |(at, _)| *at);
    if before != last {
        return Err(format!("after {last} the next one is {before}"));
    }
    if known.is_some() && is_new != has_ended {
        return Err(format!("whether the one before it had ended: {has_ended}"));
    }
    told.insert(place, (n, false));
    Ok(())
}

/// The next page of a strand.
fn page(world: &World, what: What, strand: &Strand, limit: usize) -> Result<Read, ErrorKind> {
    let (part, continuation) = (strand.scope.part(), strand.token.clone());
    let page = Page { limit: Some(limit), continuation };
    let operation = match what {
        What::List => Operation::ListItems { at: at(), part, page },
        What::Query(query) => Operation::QueryItems(QueryItems {
            at: at(),
            query: json!({ "query": query }).to_string().into_bytes(),
            part,
            page,
            cross_partition: true,
            scan: true,
            ..QueryItems::default()
        }),
        What::Feed { mode, from_now } => Operation::ReadChanges(ReadChanges {
            at: at(),
            part,
            mode,
            from: match page.continuation {
                Some(token) => ChangesFrom::After(token),
                None if from_now => ChangesFrom::Now,
                None => ChangesFrom::Beginning,
            },
            since: None,
            limit: Some(limit),
            envelope: false,
        }),
    };
    let success = world.server.run(operation)?;
    if success.status == 304 {
        return Ok(Read { rows: Vec::new(), token: success.etag, is_last: true });
    }
    let body: Value = serde_json::from_slice(&success.body.to_vec()).unwrap();
    let rows = body["Documents"].as_array().unwrap().clone();
    let is_feed = matches!(what, What::Feed { .. });
    let is_last = !is_feed && success.continuation.is_none();
    let token = if is_feed { success.etag } else { success.continuation };
    Ok(Read { rows, token, is_last })
}

/// A strand whose range is gone goes on in the parts of it.
fn divided(world: &World, strand: &mut Strand) -> Outcome<Vec<Strand>> {
    let Scope::Range(gone) = &strand.scope else {
        return Err(format!("{:?} is gone", strand.scope));
    };
    let number: u32 = gone.id.parse().unwrap();
    let parts = world.ranges().into_iter().filter(|range| range.parents.contains(&number));
    let part = |range| Strand {
        scope: Scope::Range(range),
        token: strand.token.clone(),
        is_done: false,
        rows: Vec::new(),
    };
    let parts: Vec<Strand> = parts.map(part).collect();
    strand.is_done = true;
    if parts.len() < 2 {
        return Err(format!("the range {} has {} parts", gone.id, parts.len()));
    }
    Ok(parts)
}
