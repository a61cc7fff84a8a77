//! The log: who pays for it, how it goes, and that each end is told once over any crash.

use dayfly_model::ErrorKind;
use serde_json::{Value, json};

use super::server::{Crash, Kind, Server, at, write};
use super::watched::Landed;
use crate::keys;
use crate::operation::{
    Act, ChangesFrom, Condition, FeedMode, Operation, Part, ReadChanges, Replacement, Showing,
};

impl Server {
    fn read_log(&self, from: ChangesFrom) -> Result<(Vec<Value>, String), ErrorKind> {
        let page = self.run(Operation::ReadChanges(ReadChanges {
            at: at(),
            part: Part::default(),
            mode: FeedMode::AllVersions,
            from,
            since: None,
            limit: Some(7),
            envelope: true,
        }))?;
        let body = page.body.to_vec();
        let changes = if page.status == 304 {
            Vec::new()
        } else {
            let body: Value = serde_json::from_slice(&body).unwrap();
            body["Documents"].as_array().unwrap().clone()
        };
        Ok((changes, page.etag.unwrap()))
    }

    /// Where the log is now; it begins, if there is none.
    pub(super) fn begin_log(&self) -> String {
        self.read_log(ChangesFrom::Now).unwrap().1
    }

    /// All that is told behind a place, as what happened to which id.
    fn told(&self, mut place: String) -> Vec<String> {
        let mut told = Vec::new();
        loop {
            let (changes, next) = self.read_log(ChangesFrom::After(place)).unwrap();
            if changes.is_empty() {
                return told;
            }
            told.extend(changes.iter().map(short));
            place = next;
        }
    }

    fn rows_of_log(&self) -> usize {
        self.dump().iter().filter(|(key, _)| keys::log_lsn(key).is_some()).count()
    }

    fn set_retention(&self, minutes: Option<u32>) {
        let mut definition = json!({"id": "c", "partitionKey": {"paths": ["/pk"]}});
        if let Some(minutes) = minutes {
            definition["changeFeedPolicy"] = json!({"retentionDuration": minutes});
        }
        self.run(Operation::ReplaceContainer(Replacement {
            at: at(),
            definition: definition.to_string().into_bytes(),
            condition: Condition::default(),
            quota: false,
            confirm_expiry: false,
            showing: Showing::Whole,
        }))
        .unwrap();
    }
}

fn short(change: &Value) -> String {
    let (current, metadata) = (&change["current"], &change["metadata"]);
    let kind = match metadata["timeToLiveExpired"] {
        Value::Bool(true) => "expire",
        _ => metadata["operationType"].as_str().unwrap(),
    };
    let id = current["id"].as_str().or(metadata["id"].as_str()).unwrap();
    format!("{kind} {id}")
}

#[test]
fn a_container_whose_log_nobody_reads_pays_nothing() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(5), &[]);
    server.create(json!({"id": "a", "pk": "x"})).unwrap();
    assert_eq!(server.rows_of_log(), 0);
    let place = server.begin_log();
    assert_eq!(server.rows_of_log(), 0);
    server.upsert(json!({"id": "a", "pk": "x"})).unwrap();
    assert_eq!((server.rows_of_log(), server.told(place)), (1, vec!["replace a".to_owned()]));
    server.check();
}

#[test]
fn what_is_too_old_is_removed_when_it_is_time() {
    for kind in [Kind::Memory { slices: 1 }, Kind::Disk { slices: 4 }] {
        let mut server = Server::new(kind);
        server.make_container(None, &[]);
        server.set_retention(Some(1));
        let place = server.begin_log();
        for id in 0..100 {
            server.create(json!({"id": id.to_string(), "pk": id})).unwrap();
        }
        server.clock(1030);
        let later = server.begin_log();
        server.create(json!({"id": "later", "pk": "x"})).unwrap();
        server.turns();
        assert_eq!((server.rows_of_log(), server.told(place.clone()).len()), (101, 101));
        server.clock(1060);
        let gone = server.read_log(ChangesFrom::After(place.clone()));
        assert_eq!(gone.unwrap_err(), ErrorKind::BadRequest);
        server.turns();
        assert_eq!(server.rows_of_log(), 1);
        server.check();
        assert_eq!(server.told(later.clone()), ["create later"]);
        assert!(server.read_log(ChangesFrom::After(place)).is_err());
        // What is left when it is switched off goes whole, and nothing stays of it.
        server.set_retention(None);
        server.turns();
        assert_eq!(server.rows_of_log(), 0);
        let keys = server.dump();
        assert!(keys.iter().all(|(key, _)| *key != keys::log_trimmed()));
        server.restart();
        assert!(server.read_log(ChangesFrom::After(later)).is_err());
        server.check();
    }
}

#[test]
fn an_expiry_is_told_once_over_a_crash_at_any_moment() {
    for crash in [Crash::Kill, Crash::PowerCut] {
        let mut server = Server::new(Kind::Disk { slices: 1 });
        server.make_container(Some(5), &[]);
        let place = server.begin_log();
        server.create(json!({"id": "a", "pk": "x"})).unwrap();
        server.create(json!({"id": "b", "pk": "x", "ttl": 5})).unwrap();
        server.crash(crash);
        server.clock(1100);
        // Between its death and its burial.
        server.crash(crash);
        assert_eq!(server.told(place.clone()), ["create a", "create b"]);
        server.turns();
        server.crash(crash);
        server.turns();
        let told = ["create a", "create b", "expire a", "expire b"];
        assert_eq!(server.told(place), told);
        server.check();
    }
}

#[test]
fn an_expiry_is_told_once_when_nobody_knows_whether_its_burial_landed() {
    for landed in [Landed::Yes, Landed::No] {
        let mut server = Server::new(Kind::Watched { slices: 1 });
        server.make_container(Some(5), &[]);
        let place = server.begin_log();
        server.create(json!({"id": "a", "pk": "x"})).unwrap();
        server.clock(1005);
        server.watched().doubt(keys::bucket(1, 0), landed);
        server.turns();
        server.clock(1010);
        server.turns();
        assert_eq!(server.told(place), ["create a", "expire a"], "{landed:?}");
        server.check();
    }
}

#[test]
fn whoever_wants_the_unique_key_of_a_dead_item_tells_its_end() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(5), &["/email"]);
    let place = server.begin_log();
    server.create(json!({"id": "a", "pk": "x", "email": 1})).unwrap();
    server.clock(1005);
    server.create(json!({"id": "b", "pk": "x", "email": 1})).unwrap();
    server.turns();
    assert_eq!(server.told(place.clone()), ["create a", "expire a", "create b"]);
    // A new id is a new version of the same item.
    server
        .run(write(
            Act::Replace(
                "b".to_owned(),
                super::server::text(&json!({
                    "id": "c", "pk": "x", "email": 1
                })),
            ),
            "\"x\"",
        ))
        .unwrap();
    assert_eq!(server.told(place).pop().unwrap(), "replace c");
    server.check();
}

#[test]
fn ends_of_many_come_page_by_page_and_none_is_torn() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(5), &[]);
    for id in 0..600 {
        server.create(json!({"id": id.to_string(), "pk": "x"})).unwrap();
    }
    let mut place = server.begin_log();
    server.clock(1005);
    server.turns();
    let mut told = 0;
    loop {
        let (changes, next) = server.read_log(ChangesFrom::After(place)).unwrap();
        if changes.is_empty() {
            break;
        }
        let commits: Vec<_> = changes.iter().map(|change| &change["metadata"]["lsn"]).collect();
        assert!(commits.is_sorted_by_key(|lsn| lsn.as_u64()));
        assert_eq!(next, format!("\"{}\"", commits.last().unwrap()));
        told += changes.len();
        place = next;
    }
    assert_eq!(told, 600);
    server.check();
}

/// What a deleted partition leaves and what expires take turns, so that nobody waits for his
/// end to be told until a hundred thousand others are gone.
#[test]
fn an_expiry_does_not_wait_for_a_deleted_partition() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(1000), &[]);
    let place = server.begin_log();
    for id in 0..3000 {
        server.create(json!({"id": id.to_string(), "pk": "gone"})).unwrap();
    }
    server.create(json!({"id": "a", "pk": "x", "ttl": 5})).unwrap();
    server.create(json!({"id": "b", "pk": "gone", "ttl": 5})).unwrap();
    server.delete_partition("gone").unwrap();
    server.clock(1005);
    let is_told = |server: &Server| server.told(place.clone()).contains(&"expire a".to_owned());
    let mut turns = 0;
    while !is_told(&server) {
        assert!(turns < 3, "{turns} turns, and it is not told");
        server.turn();
        turns += 1;
    }
    assert!(server.stored_items() > 1000, "the partition is not gone yet");
    server.turns();
    let told = server.told(place);
    let ends = told.iter().filter(|change| !change.starts_with("create")).count();
    assert_eq!((ends, told.contains(&"delete b".to_owned())), (3002, true));
    assert_eq!(server.stored_items(), 0);
    server.check();
}

/// Where every end is told, it is told while an operator rests: to be buried is to be told.
#[test]
fn a_pause_holds_back_nobody_who_is_to_be_told() {
    let one = || Some(("d".to_owned(), "c".to_owned()));
    for container in [None, one()] {
        let mut server = Server::new(Kind::Watched { slices: 1 });
        server.make_container(Some(5), &[]);
        let place = server.begin_log();
        server.turns();
        server.create(json!({"id": "a", "pk": "x"})).unwrap();
        let paused = server.run(Operation::PausePurge { container: container.clone() }).unwrap();
        let paused: Value = serde_json::from_slice(&paused.body.to_vec()).unwrap();
        assert_eq!((&paused["paused"], &paused["goesOn"]), (&json!(true), &json!(1)));
        server.clock(1005);
        assert_eq!(server.turns(), 1);
        assert_eq!(server.told(place), ["create a", "expire a"]);
        let reason = server.engine().purge_status(1).reason.unwrap();
        assert!(reason.contains("removed all the same"), "{reason}");
        server.check();
    }
}

/// A log that begins during a pause ends it for its container.
#[test]
fn whoever_reads_all_versions_during_a_pause_is_told_of_the_ends() {
    let mut server = Server::new(Kind::Watched { slices: 1 });
    server.make_container(Some(5), &[]);
    server.create(json!({"id": "a", "pk": "x"})).unwrap();
    server.run(Operation::PausePurge { container: None }).unwrap();
    server.clock(1005);
    assert_eq!(server.turns(), 0);
    let place = server.begin_log();
    assert_eq!(server.turns(), 1);
    assert_eq!(server.told(place), ["expire a"]);
}
