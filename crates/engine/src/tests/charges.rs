//! Two servers with one history, and what is dead waits in one of them: every answer costs
//! the same, to the last part of its charge.
//!
//! One server purges before each step, and there was never anything in it but what is asked
//! for. The other purges hardly ever, and is full of items that have expired; nor does it
//! rebuild its index. So nothing may be charged for what the background has not done yet, nor
//! for the ways that queries take around it.

use dayfly_model::charge::Charge;
use dayfly_model::patch::Patch;
use serde_json::{Value, json};

use super::random::Random;
use super::seeds::{Outcome, Seeds};
use super::server::{Kind, Server, Setup, at, partition_key, text, write};
use crate::QueryLimits;
use crate::operation::{
    Act, ChangesFrom, Condition, FeedMode, ItemAddress, Operation, Page, Part, QueryItems,
    ReadChanges,
};
use crate::reply::Reply;

/// How many steps a history has.
const STEPS: u64 = 60;

/// No page ends because of what is dead: that is another matter.
pub(super) const LIMITS: QueryLimits = QueryLimits {
    page_looks: 50_000,
    list_looks: 20_000,
    feed_looks: 50_000,
    ..QueryLimits::SMALL
};

/// Filters that an index serves, in part or not at all.
const FILTERS: [&str; 9] = [
    "true",
    "c.a = 1",
    "c.n > 3",
    "c.n > 1 AND c.a = 2",
    "c.a = 1 OR c.n = 5",
    "c.a = 0 AND UPPER(c.s) = 'X'",
    "UPPER(c.s) = 'Y'",
    "c.out = 1",
    "c.pk = 'p' AND c.n >= 0",
];

const SELECTED: [&str; 8] = [
    "SELECT * FROM c WHERE {}",
    "SELECT VALUE c.n FROM c WHERE {} ORDER BY c.n",
    "SELECT c.id FROM c WHERE {} ORDER BY c.a DESC, c.n",
    "SELECT VALUE COUNT(1) FROM c WHERE {}",
    "SELECT VALUE MAX(c.s) FROM c WHERE {}",
    "SELECT c.a, SUM(c.n) AS n FROM c WHERE {} GROUP BY c.a",
    "SELECT DISTINCT VALUE c.s FROM c WHERE {}",
    "SELECT t FROM c JOIN t IN c.t WHERE {}",
];

#[test]
fn what_is_dead_costs_nobody_anything() {
    let seeds = Seeds {
        count: "DAYFLY_CHARGES",
        usual: 60 * STEPS,
        first: "DAYFLY_CHARGES_SEED",
        each: STEPS,
        what: "steps",
        progress: 10_000,
    };
    if let Some((seed, why)) = seeds.play(play) {
        panic!("{why}\nwith DAYFLY_CHARGES_SEED={seed}");
    }
}

/// A server that is clean, and one that is not.
struct Pair {
    clean: Server,
    full: Server,
    now: u64,
    /// Tells writes apart.
    writes: u64,
}

/// What an answer is compared by.
#[derive(Debug, PartialEq)]
struct Told {
    status: u16,
    charge: Charge,
    count: Option<usize>,
}

fn told(reply: &Reply) -> Told {
    let (status, count) = match &reply.outcome {
        Ok(success) => (success.status, success.item_count),
        Err(error) => (error.kind.wire().status, None),
    };
    Told { status, charge: reply.charge, count }
}

impl Pair {
    fn new(random: &mut Random) -> Pair {
        let slices = random.pick(&[1, 4]);
        let server = || {
            let kind = Kind::Memory { slices };
            let mut server = Server::with(Setup { limits: LIMITS, ..Setup::of(kind) });
            server.make_container(Some(1000), &[]);
            server.try_definition(Some(1000), &policy("/x/?"), &json!([])).unwrap();
            server.turns();
            server
        };
        Pair { clean: server(), full: server(), now: 1000, writes: 0 }
    }

    /// Both get another policy, and only one of them rebuilds its index.
    fn change_policy(&mut self, random: &mut Random) {
        let policy = policy(random.pick(&["/x/?", "/y/?"]));
        for server in [&self.clean, &self.full] {
            server.try_definition(Some(1000), &policy, &json!([])).unwrap();
        }
        self.clean.turns();
    }

    /// Both are asked, and both tell the same. Returns the answers.
    fn ask(&self, operation: &Operation) -> Outcome<(Reply, Reply)> {
        self.ask_each(operation.clone(), operation.clone())
    }

    fn ask_each(&self, clean: Operation, full: Operation) -> Outcome<(Reply, Reply)> {
        let what = format!("{clean:?}");
        let (clean, full) = (self.clean.ask(clean), self.full.ask(full));
        if told(&clean) == told(&full) {
            return Ok((clean, full));
        }
        Err(format!("{what}\nclean {:?}\nfull  {:?}", told(&clean), told(&full)))
    }

    /// Time passes, and what was to die is dead.
    fn pass(&mut self, seconds: u64) {
        self.now += seconds;
        self.clean.clock(self.now);
        self.full.clock(self.now);
        self.clean.purge();
    }

    /// Fills the one with what dies in the next second.
    fn litter(&mut self, random: &mut Random) {
        for _ in 0..random.below(25) {
            let id = format!("dead{}", random.below(60));
            let item = item(random, &id, Some(1));
            self.full.upsert(item).unwrap();
        }
        self.pass(1);
    }

    fn write(&mut self, random: &mut Random) -> Outcome {
        let id = random.below(30).to_string();
        let key = random.pick(&["p", "q", "r"]);
        self.writes += 1;
        let ttl = random.chance(30).then(|| 1 + random.below(5));
        let mut body = item(random, &id, ttl);
        body["pk"] = key.into();
        let act = match random.below(6) {
            0 => Act::Create(text(&body)),
            1 | 2 => Act::Upsert(text(&body)),
            3 => Act::Replace(id, text(&body)),
            4 => {
                let patch = json!({"operations": [
                    {"op": "set", "path": "/n", "value": random.below(9)},
                    {"op": "set", "path": "/w", "value": self.writes},
                ]});
                Act::Patch(id, Patch::read(patch.to_string().as_bytes()).unwrap())
            }
            _ => Act::Delete(id),
        };
        self.ask(&write(act, &format!("\"{key}\""))).map(drop)
    }

    fn read(&self, random: &mut Random) -> Outcome {
        let key = random.pick(&["p", "q", "r"]);
        let item = ItemAddress {
            id: random.below(30).to_string(),
            partition_key: Some(partition_key(key)),
        };
        self.ask(&Operation::ReadItem { at: at(), item, condition: Condition::default() })?;
        self.ask(&Operation::ReadChanges(ReadChanges {
            at: at(),
            part: Part::default(),
            mode: FeedMode::Latest,
            from: ChangesFrom::Beginning,
            since: None,
            limit: None,
            envelope: false,
        }))?;
        let part = Part::of(random.chance(50).then(|| partition_key(key)));
        let limit = Some(1 + usize::try_from(random.below(9)).unwrap());
        self.pages(limit, |page| Operation::ListItems { at: at(), part: part.clone(), page })
    }

    fn query(&self, random: &mut Random) -> Outcome {
        let query = random.pick(&SELECTED).replace("{}", random.pick(&FILTERS));
        let key = random.any(&["p", "q", "r"]).filter(|_| random.chance(50)).map(partition_key);
        let limit = Some(random.pick(&[1, 3, 8, 1000]));
        self.pages(limit, |page| {
            Operation::QueryItems(QueryItems {
                at: at(),
                query: json!({ "query": query }).to_string().into_bytes(),
                part: Part { partition_key: key.clone(), ..Part::default() },
                page,
                cross_partition: true,
                scan: true,
                ..QueryItems::default()
            })
        })
    }

    /// All pages there are; each server goes on by its own token.
    fn pages(&self, limit: Option<usize>, operation: impl Fn(Page) -> Operation) -> Outcome {
        let mut next = (None, None);
        loop {
            let page = |continuation| operation(Page { limit, continuation });
            let (clean, full) = self.ask_each(page(next.0), page(next.1))?;
            let token = |reply: Reply| reply.outcome.ok().and_then(|done| done.continuation);
            next = (token(clean), token(full));
            if next == (None, None) {
                return Ok(());
            }
            if next.0.is_none() || next.1.is_none() {
                return Err("one has more pages than the other".to_owned());
            }
        }
    }
}

/// A policy that leaves out a path of which no query knows.
fn policy(left_out: &str) -> Value {
    json!({
        "includedPaths": [{"path": "/*"}],
        "excludedPaths": [{"path": "/out/?"}, {"path": left_out}],
        "compositeIndexes": [
            [{"path": "/a", "order": "descending"}, {"path": "/n"}],
            [{"path": "/n"}, {"path": "/_ts"}],
        ],
    })
}

fn item(random: &mut Random, id: &str, ttl: Option<u64>) -> Value {
    let length = usize::try_from(random.pick(&[1, 500, 3000])).unwrap();
    let mut item = json!({
        "id": id,
        "pk": random.pick(&["p", "q", "r"]),
        "a": random.below(3),
        "n": random.below(9),
        "s": random.pick(&["x", "y", "z"]),
        "t": [1, 2],
        "out": random.below(2),
        "x": random.below(2),
        "y": random.below(2),
        "fill": "f".repeat(length),
    });
    if let Some(ttl) = ttl {
        item["ttl"] = ttl.into();
    }
    item
}

fn play(seed: u64) -> Outcome {
    let mut random = Random(seed);
    let mut pair = Pair::new(&mut random);
    for _ in 0..20 {
        pair.write(&mut random)?;
    }
    for _ in 0..STEPS {
        match random.below(10) {
            0..=3 => pair.write(&mut random)?,
            4 => pair.litter(&mut random),
            5 => pair.pass(1 + random.below(3)),
            6 => pair.read(&mut random)?,
            7 if random.chance(10) => drop(pair.full.purge()),
            7 if random.chance(20) => pair.change_policy(&mut random),
            _ => pair.query(&mut random)?,
        }
    }
    Ok(())
}
