//! Containers that are known: used again without a look into the catalog, and never when
//! they are something else by now, or gone.

use dayfly_model::ErrorKind;
use dayfly_model::rid::{ContainerRid, DatabaseRid};
use dayfly_storage::{Batch, Draft, Plan, View, commit};
use serde_json::{Value, json};

use super::server::{Kind, Server, at};
use super::watched::Landed;
use crate::catalog::{self, Database};
use crate::keys::{self, CATALOG};
use crate::operation::{Condition, ContainerScope, ContainerWishes, Operation, Showing};

/// How often the catalog was read by these.
fn catalog_reads(server: &Server, operations: &mut dyn FnMut(&Server)) -> usize {
    server.reads.take();
    operations(server);
    server.reads.take().calls.get(&CATALOG).copied().unwrap_or_default()
}

fn make_database(server: &Server, id: &str) {
    server.run(Operation::CreateDatabase { id: id.to_owned(), throughput: None }).unwrap();
}

fn make_container(server: &Server, database: &str) {
    let definition = br#"{"id":"c","partitionKey":{"paths":["/pk"]}}"#.to_vec();
    let (database, showing) = (database.to_owned(), Showing::Whole);
    let operation = Operation::CreateContainer { database, definition, throughput: None, showing };
    server.run(operation).unwrap();
}

fn delete_database(server: &Server, id: &str) -> Result<(), ErrorKind> {
    let (database, condition) = (id.to_owned(), Condition::default());
    server.run(Operation::DeleteDatabase { database, condition }).map(|_| ())
}

fn delete_container(server: &Server) -> Result<(), ErrorKind> {
    let operation = Operation::DeleteContainer { at: at(), condition: Condition::default() };
    server.run(operation).map(|_| ())
}

/// The container that these names lead to: its number.
fn number(server: &Server, database: &str, container: &str) -> Result<u32, ErrorKind> {
    let named = (database.to_owned(), container.to_owned());
    let at = ContainerScope { database: named.0, container: named.1, ..ContainerScope::default() };
    let opened = server.engine().shared.enter(&at, ErrorKind::NotFound);
    opened.map(|opened| opened.container.number).map_err(|reply| reply.outcome.unwrap_err().kind)
}

/// What is shown as its default.
fn shown_default(server: &Server, database: &str, container: &str) -> Value {
    let named = (database.to_owned(), container.to_owned());
    let at = ContainerScope { database: named.0, container: named.1, ..ContainerScope::default() };
    let (condition, wishes) = (Condition::default(), ContainerWishes::default());
    let success = server.run(Operation::ReadContainer { at, condition, wishes }).unwrap();
    let body: Value = serde_json::from_slice(&success.body.to_vec()).unwrap();
    body["defaultTtl"].clone()
}

fn rid(database: u32) -> String {
    DatabaseRid(database).encode()
}

fn container_rid(database: u32, container: u32) -> String {
    ContainerRid { database, container }.encode()
}

fn is_settled(server: &Server) -> bool {
    server.engine().shared.catalog.unfinished.is_none()
}

#[test]
fn a_commit_of_the_catalog_elsewhere_leaves_a_container_known() {
    for slices in [1, 4] {
        let mut server = Server::new(Kind::Far { slices });
        server.make_container(Some(100), &[]);
        server.create(json!({"id": "a", "pk": "x"})).unwrap();
        let read = &mut |server: &Server| {
            server.read("a", "x").unwrap();
            assert_eq!(number(server, &rid(1), &container_rid(1, 1)), Ok(1));
        };
        read(&server);
        make_database(&server, "other");
        make_container(&server, "other");
        delete_database(&server, "other").unwrap();
        assert_eq!(catalog_reads(&server, read), 0);
        server.set_default(Some(50), &[]);
        assert!(catalog_reads(&server, read) > 0, "it is another one now");
        assert_eq!(catalog_reads(&server, read), 0);
        // That there is nothing is not known.
        let missing = &mut |server: &Server| {
            assert_eq!(number(server, "d", "none"), Err(ErrorKind::NotFound));
        };
        missing(&server);
        assert!(catalog_reads(&server, missing) > 0);
    }
}

#[test]
fn a_changed_definition_is_seen_at_once_by_name_and_by_rid() {
    let mut server = Server::new(Kind::Memory { slices: 4 });
    server.make_container(Some(100), &[]);
    let (database, container) = (rid(1), container_rid(1, 1));
    for default in [Some(50), None, Some(7)] {
        server.set_default(default, &[]);
        assert_eq!(shown_default(&server, "d", "c"), json!(default));
        assert_eq!(shown_default(&server, &database, &container), json!(default));
    }
}

#[test]
fn a_container_that_is_made_again_is_another_one() {
    let mut server = Server::new(Kind::Memory { slices: 4 });
    server.make_container(None, &[]);
    for round in 1..4 {
        server.create(json!({"id": "a", "pk": "x"})).unwrap();
        assert_eq!(number(&server, "d", "c"), Ok(round));
        if round == 2 {
            delete_database(&server, "d").unwrap();
            assert_eq!(number(&server, "d", "c"), Err(ErrorKind::OwnerNotFound));
            make_database(&server, "d");
        } else {
            delete_container(&server).unwrap();
            assert_eq!(number(&server, "d", "c"), Err(ErrorKind::NotFound));
        }
        make_container(&server, "d");
        assert_eq!(server.read("a", "x"), Err(ErrorKind::NotFound));
        assert_eq!(number(&server, "d", "c"), Ok(round + 1));
    }
    // Nor does a RID of before lead there.
    assert_eq!(number(&server, &rid(2), &container_rid(2, 3)), Err(ErrorKind::NotFound));
    assert_eq!(number(&server, &rid(1), &container_rid(1, 1)), Err(ErrorKind::OwnerNotFound));
}

/// A database that is called like a RID has it to itself as long as it is there; then
/// somebody else may get it.
#[test]
fn a_name_that_looks_like_a_rid_leads_elsewhere_once_it_is_gone() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(None, &[]);
    let name = rid(4);
    make_database(&server, &name);
    make_container(&server, &name);
    assert_eq!(number(&server, &name, "c"), Ok(2));
    for other in ["e", "f"] {
        make_database(&server, other);
    }
    assert_eq!(number(&server, &name, "c"), Ok(2), "nobody got its name as a RID");
    delete_database(&server, &name).unwrap();
    assert_eq!(number(&server, &name, "c"), Err(ErrorKind::OwnerNotFound));
    // The numbers 3 and 5 are those of e and f, and 4 was passed over.
    make_database(&server, &name);
    make_container(&server, &name);
    assert_eq!(number(&server, &name, "c"), Ok(3));
    assert_eq!(number(&server, &rid(5), "c"), Err(ErrorKind::NotFound));
}

/// Rows of the catalog, as an older version may have left them.
struct Rows(Vec<(Vec<u8>, Option<Vec<u8>>)>);

impl Plan for Rows {
    type Done = ();
    type Refusal = dayfly_storage::Error;

    fn draft(&self, _: &View<'_>) -> dayfly_storage::Result<Draft<()>> {
        let rows = self.0.clone();
        Ok(Draft::new(move |_, batch: &mut Batch| {
            for (key, row) in rows {
                match row {
                    Some(row) => batch.put(key, row),
                    None => batch.delete(key),
                }
            }
        }))
    }
}

#[test]
fn a_name_that_is_the_rid_of_another_leads_to_its_own_when_that_one_is_gone() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(None, &[]);
    make_database(&server, "x");
    make_container(&server, "x");
    let name = rid(1);
    let database = Database { id: name.clone(), number: 2, ts: 1, version: 1, opened: 1 };
    let rows = Rows(vec![
        (keys::database("x"), None),
        (keys::database(&name), Some(catalog::encode(&database))),
        (keys::database_name(2), Some(name.clone().into_bytes())),
    ]);
    commit(&*server.engine().shared.store, CATALOG, rows).wait().unwrap();
    assert_eq!(number(&server, &name, &container_rid(1, 1)), Ok(1));
    assert_eq!(number(&server, &name, "c"), Err(ErrorKind::NotFound));
    delete_database(&server, "d").unwrap();
    assert_eq!(number(&server, &name, &container_rid(1, 1)), Err(ErrorKind::NotFound));
    assert_eq!(number(&server, &name, "c"), Ok(2));
}

#[test]
fn a_definition_that_was_cut_off_on_its_way_is_shown_as_the_catalog_has_it() {
    for behind in [0, 1] {
        for landed in [Landed::No, Landed::Yes] {
            let mut server = Server::new(Kind::Watched { slices: 2 });
            server.make_container(None, &[]);
            assert_eq!(shown_default(&server, "d", "c"), Value::Null);
            server.watched().doubt(keys::bucket(1, behind), landed);
            server.try_default(Some(10), &[]).unwrap_err();
            // Known by this name, and not by the other.
            assert_eq!(shown_default(&server, "d", "c"), json!(10));
            assert_eq!(shown_default(&server, &rid(1), &container_rid(1, 1)), json!(10));
            make_database(&server, "other");
            assert_eq!(shown_default(&server, "d", "c"), json!(10));
            assert!(!is_settled(&server));
            server.turns();
            assert!(is_settled(&server));
            assert_eq!(shown_default(&server, "d", "c"), json!(10));
            server.check();
        }
    }
}

#[test]
fn a_definition_that_may_have_landed_is_shown_as_the_catalog_has_it() {
    for (landed, shown) in [(Landed::No, Value::Null), (Landed::Yes, json!(10))] {
        let mut server = Server::new(Kind::Watched { slices: 1 });
        server.make_container(None, &[]);
        assert_eq!(shown_default(&server, "d", "c"), Value::Null);
        server.watched().doubt(CATALOG, landed);
        server.try_default(Some(10), &[]).unwrap_err();
        for _ in 0..2 {
            assert_eq!(shown_default(&server, "d", "c"), shown);
            server.turns();
        }
        assert!(is_settled(&server));
        server.check();
    }
}

#[test]
fn a_deleted_container_whose_head_was_not_closed_is_gone_all_the_same() {
    for whole_database in [false, true] {
        let mut server = Server::new(Kind::Watched { slices: 2 });
        server.make_container(None, &[]);
        server.create(json!({"id": "a", "pk": "x"})).unwrap();
        server.read("a", "x").unwrap();
        server.watched().doubt(keys::bucket(1, 0), Landed::No);
        if whole_database {
            delete_database(&server, "d").unwrap();
            make_database(&server, "d");
        } else {
            delete_container(&server).unwrap();
        }
        assert_eq!(number(&server, "d", "c"), Err(ErrorKind::NotFound));
        make_container(&server, "d");
        assert_eq!(number(&server, "d", "c"), Ok(2));
        assert_eq!(server.read("a", "x"), Err(ErrorKind::NotFound));
        assert!(!is_settled(&server));
        server.turns();
        assert!(is_settled(&server));
        assert_eq!(server.heads(), 2, "those of the new one");
        server.check();
    }
}

#[test]
fn a_delete_that_may_have_landed_is_as_the_catalog_has_it() {
    for (landed, expected) in [(Landed::No, Ok(1)), (Landed::Yes, Err(ErrorKind::NotFound))] {
        let mut server = Server::new(Kind::Watched { slices: 1 });
        server.make_container(None, &[]);
        assert_eq!(number(&server, "d", "c"), Ok(1));
        server.watched().doubt(CATALOG, landed);
        delete_container(&server).unwrap_err();
        for _ in 0..2 {
            assert_eq!(number(&server, "d", "c"), expected);
            server.turns();
        }
        assert!(is_settled(&server));
        server.check();
    }
}

/// A request may look what is known, and take its snapshot much later.
#[test]
fn what_was_recalled_is_judged_by_the_snapshot() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(None, &[]);
    let recall = |server: &Server| {
        assert_eq!(number(server, "d", "c"), Ok(1));
        server.engine().shared.catalog.recall("d", "c")
    };
    let open = |server: &Server, recalled| {
        let shared = &server.engine().shared;
        let snapshot = shared.store.snapshot().unwrap();
        let opened = shared.catalog.open(&*snapshot, recalled, ("d", "c"), ErrorKind::NotFound);
        opened.map(|found| found.value.definition().ttl.to_json()).map_err(|error| error.kind)
    };
    let recalled = recall(&server);
    server.set_default(Some(5), &[]);
    assert_eq!(open(&server, recalled), Ok(Some(5)));
    let recalled = recall(&server);
    delete_container(&server).unwrap();
    assert_eq!(open(&server, recalled), Err(ErrorKind::NotFound));
    // The same while its buckets are removed, and after that.
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(None, &[]);
    let recalled = recall(&server);
    delete_container(&server).unwrap();
    server.purge();
    assert_eq!(server.heads(), 0);
    assert_eq!(open(&server, recalled), Err(ErrorKind::NotFound));
}

/// What was found while a change was on its way is not trusted by its head.
#[test]
fn a_container_that_is_being_changed_is_as_the_catalog_has_it() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(None, &[]);
    assert_eq!(number(&server, "d", "c"), Ok(1));
    let unfinished = &server.engine().shared.catalog.unfinished;
    unfinished.begin();
    let rows = vec![(keys::container(1, "c"), None)];
    commit(&*server.engine().shared.store, CATALOG, Rows(rows)).wait().unwrap();
    assert_eq!(number(&server, "d", "c"), Err(ErrorKind::NotFound));
}
