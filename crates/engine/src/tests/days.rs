//! Random days in the life of a container, checked against a simple model.
//!
//! The model keeps each item with a mark "dead", which is set the moment the
//! item expires under the default of that moment and is never taken away. The
//! engine may purge, restart and be killed whenever it likes; a client must
//! not be able to tell. A failure prints its seed, and the same seed always
//! plays the same day.

use std::collections::BTreeMap;

use dayfly_model::ErrorKind;
use serde_json::{Value, json};

use super::server::{Kind, Server};

const UNIQUE: &[&str] = &["/email"];

#[derive(Clone, Debug)]
struct Item {
    ts: u64,
    ttl: Option<i64>,
    email: u64,
    dead: bool,
}

/// Items by partition key and id.
type Items = BTreeMap<(String, String), Item>;

struct Day {
    server: Server,
    random: Random,
    items: Items,
    default: Option<i64>,
    wall: u64,
    now: u64,
}

pub(super) fn play(seed: u64, kind: Kind) {
    let mut server = Server::new(kind);
    server.make_container(None, UNIQUE);
    let mut day = Day {
        server,
        random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
        items: Items::new(),
        default: None,
        wall: 1000,
        now: 1000,
    };
    for step in 0..80 {
        let told = format!("seed {seed} step {step} {kind:?}");
        day.step(&told, kind);
        day.check(&told);
    }
}

impl Day {
    fn step(&mut self, told: &str, kind: Kind) {
        match self.random.below(16) {
            0..=7 => self.write(told),
            8 => self.delete(told),
            9..=11 => {
                let forward = self.random.below(6);
                self.wall =
                    if self.random.below(5) == 0 { self.wall - 3 } else { self.wall + forward };
                self.server.clock(self.wall);
            }
            12 if matches!(kind, Kind::Watched { .. }) => {
                self.server.turns();
                self.pass_time();
                let alive = self.items.values().filter(|item| !item.dead).count();
                assert_eq!(self.server.stored_items(), alive, "{told}: the purge missed something");
            }
            12 => {
                self.server.purge();
            }
            13 => {
                self.default = self.random.pick(&[None, Some(-1), Some(3), Some(8)]);
                self.server.set_default(self.default, UNIQUE);
            }
            14 => self.server.restart(),
            _ => self.server.crash(),
        }
        self.pass_time();
    }

    /// Time never runs back, and what it ends stays ended.
    fn pass_time(&mut self) {
        let now = self.server.now().0;
        assert!(now >= self.now, "time ran back from {} to {now}", self.now);
        self.now = now;
        for item in self.items.values_mut() {
            let lives = match (self.default, item.ttl) {
                (None, _) | (_, Some(-1)) => None,
                (_, Some(ttl)) => Some(ttl),
                (Some(-1), None) => None,
                (Some(default), None) => Some(default),
            };
            let expired = lives.is_some_and(|ttl| item.ts + ttl.unsigned_abs() <= now);
            item.dead = item.dead || expired;
        }
    }

    fn alive(&self, place: &(String, String)) -> bool {
        self.items.get(place).is_some_and(|item| !item.dead)
    }

    fn write(&mut self, told: &str) {
        let place = self.random.place();
        let email = self.random.below(3);
        let ttl = self.random.pick(&[None, None, Some(-1), Some(2), Some(5)]);
        let mut item = json!({"id": place.1, "pk": place.0, "email": email});
        if let Some(ttl) = ttl {
            item["ttl"] = ttl.into();
        }
        let alive = self.alive(&place);
        let taken = self.items.iter().any(|(other, item)| {
            other.0 == place.0 && other.1 != place.1 && item.email == email && !item.dead
        });
        let (outcome, expected) = match self.random.below(3) {
            0 if alive => (self.server.create(item), Err(ErrorKind::Conflict)),
            1 if !alive => (self.server.replace(item), Err(ErrorKind::NotFound)),
            act => {
                let outcome = match act {
                    0 => self.server.create(item),
                    1 => self.server.replace(item),
                    _ => self.server.upsert(item),
                };
                (outcome, if taken { Err(ErrorKind::Conflict) } else { Ok(()) })
            }
        };
        assert_eq!(outcome.as_ref().map(|_| ()).map_err(|kind| *kind), expected, "{told}");
        if let Ok(body) = outcome {
            let ts = body["_ts"].as_u64().unwrap();
            assert!(ts >= self.now, "{told}: a write before the time");
            self.items.insert(place, Item { ts, ttl, email, dead: false });
        }
    }

    fn delete(&mut self, told: &str) {
        let place = self.random.place();
        let outcome = self.server.delete(&place.1, &place.0).map(|_| ());
        let expected = if self.alive(&place) { Ok(()) } else { Err(ErrorKind::NotFound) };
        assert_eq!(outcome, expected, "{told}");
        if outcome.is_ok() {
            self.items.remove(&place);
        }
    }

    /// What a client sees is what the model says.
    fn check(&mut self, told: &str) {
        let mut alive = Vec::new();
        for place in places() {
            let seen = self.server.read(&place.1, &place.0);
            match self.items.get(&place).filter(|item| !item.dead) {
                Some(item) => {
                    let seen = seen.unwrap_or_else(|kind| panic!("{told}: {place:?} is {kind:?}"));
                    assert_eq!(seen["_ts"], item.ts, "{told}: {place:?}");
                    assert_eq!(seen["email"], item.email, "{told}: {place:?}");
                    alive.push(place);
                }
                None => assert_eq!(seen, Err(ErrorKind::NotFound), "{told}: {place:?}"),
            }
        }
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let limit = usize::try_from(self.random.below(4)).unwrap() + 1;
        let mut listed: Vec<_> = self
            .server
            .list(limit)
            .iter()
            .map(|item| (text(&item["pk"]), text(&item["id"])))
            .collect();
        self.server.check();
        listed.sort();
        alive.sort();
        assert_eq!(listed, alive, "{told}");
    }
}

fn places() -> impl Iterator<Item = (String, String)> {
    ["x", "y"]
        .into_iter()
        .flat_map(|key| ["a", "b", "c"].into_iter().map(move |id| (key.to_owned(), id.to_owned())))
}

/// Numbers that look random and are always the same.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        let number = self.below(choices.len() as u64);
        choices[usize::try_from(number).unwrap()].clone()
    }

    fn place(&mut self) -> (String, String) {
        self.pick(&places().collect::<Vec<_>>())
    }
}
