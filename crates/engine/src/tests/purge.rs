//! The purge in the background, turn by turn.

use std::sync::atomic::Ordering;
use std::time::Duration;

use dayfly_model::{ErrorKind, Timestamp};
use dayfly_storage::Error;
use serde_json::json;

use super::server::{Crash, Kind, Server, creation};
use super::watched::Landed;
use crate::operation::Operation;
use crate::{PurgeState, keys, purge};

const SECOND: Duration = Duration::from_secs(1);

/// A server with a container whose buckets all had their first look.
fn server(default: Option<i64>) -> Server {
    let mut server = Server::new(Kind::Watched { slices: 1 });
    server.make_container(default, &[]);
    server.turns();
    server
}

fn create(server: &Server, ids: std::ops::Range<u64>, ttl: Option<i64>) {
    for id in ids {
        let mut item = json!({"id": id.to_string(), "pk": id});
        if let Some(ttl) = ttl {
            item["ttl"] = ttl.into();
        }
        server.create(item).unwrap();
    }
}

/// When the purge looks next.
fn next_look(server: &Server) -> Option<u64> {
    server.engine().shared.deadlines.waiting().0
}

fn run(container: Option<(&str, &str)>) -> Operation {
    let container = container.map(|(database, name)| (database.to_owned(), name.to_owned()));
    Operation::RunPurge { container }
}

fn body(server: &Server, operation: Operation) -> String {
    String::from_utf8(server.run(operation).unwrap().body.to_vec()).unwrap()
}

#[test]
fn when_nothing_is_due_the_purge_only_glances_at_the_clock() {
    let mut server = server(Some(100));
    create(&server, 0..1, None);
    create(&server, 1..2, Some(200));
    let (snapshots, commits) = (server.watched().snapshots(), server.commits());
    for second in [1001, 1050, 1099] {
        server.clock(second);
        assert_eq!(server.turn(), SECOND);
    }
    assert_eq!((server.watched().snapshots(), server.commits()), (snapshots, commits));

    server.clock(1100);
    assert_eq!(server.turns(), 1);
    assert_eq!(next_look(&server), Some(1200));
    server.clock(1200);
    assert_eq!(server.turns(), 1);
    assert_eq!(next_look(&server), None);
}

#[test]
fn the_first_look_is_at_the_first_turn() {
    let mut server = server(Some(100));
    create(&server, 0..3, None);
    server.restart();
    let deadlines = |server: &Server| server.engine().shared.deadlines.waiting();
    assert_eq!(deadlines(&server), (None, 0));
    server.turns();
    assert_eq!(deadlines(&server), (Some(1100), 1));
    server.clock(1100);
    assert_eq!(server.turns(), 3);
}

#[test]
fn a_touch_between_the_look_and_the_commit_wins() {
    let mut server = server(Some(10));
    create(&server, 0..2, None);
    server.clock(1010);
    server.watched().park_rider();
    std::thread::scope(|scope| {
        scope.spawn(|| server.turn());
        server.watched().before_parked(|| {
            server.upsert(json!({"id": "0", "pk": 0, "n": 2})).unwrap();
        });
    });
    server.turns();
    assert_eq!(server.engine().purged_items(), 1);
    assert_eq!(server.read_at("0", "0").unwrap()["n"], 2);
    server.check();
    assert_eq!(next_look(&server), Some(1020));
}

#[test]
fn a_restart_does_not_look_again_at_what_was_done() {
    let mut server = server(Some(5));
    create(&server, 0..300, Some(-1));
    create(&server, 300..400, None);
    server.clock(1005);
    assert_eq!(server.turns(), 100);
    server.restart();
    server.turns();
    assert!(server.watched().rows_read() < 10, "{}", server.watched().rows_read());
}

#[test]
fn a_look_that_steps_over_rows_keeps_its_place() {
    let mut server = server(Some(5));
    create(&server, 0..300, Some(-1));
    server.clock(1005);
    // Something else is due, so the bucket gets its look.
    server.engine().shared.deadlines.tell(keys::bucket(1, 0), 1005);
    let commits = server.commits();
    assert_eq!(server.turns(), 0);
    assert_eq!(server.commits(), commits + 1);
    server.restart();
    server.turns();
    assert!(server.watched().rows_read() < 10, "{}", server.watched().rows_read());
}

#[test]
fn what_was_dead_when_time_to_live_was_switched_off_is_removed() {
    let mut server = server(Some(5));
    create(&server, 0..20, None);
    create(&server, 20..40, Some(5));
    server.clock(1003);
    create(&server, 40..50, None);
    create(&server, 50..60, Some(5));
    server.clock(1005);
    server.set_default(None, &[]);
    assert_eq!(server.turns(), 40);
    server.clock(9999);
    assert_eq!(server.turns(), 0);
    assert_eq!(next_look(&server), None);
    server.set_default(Some(-1), &[]);
    assert_eq!(server.turns(), 10);
}

#[test]
fn a_short_ttl_under_a_long_one_is_not_missed() {
    let mut server = server(Some(1000));
    create(&server, 0..1, None);
    server.turns();
    assert_eq!(next_look(&server), Some(2000));
    create(&server, 1..2, Some(7));
    assert_eq!(next_look(&server), Some(1007));
    server.clock(1007);
    assert_eq!(server.turns(), 1);
    assert_eq!(next_look(&server), Some(2000));
}

#[test]
fn a_write_whose_client_went_away_is_not_missed() {
    let mut server = server(Some(1000));
    drop(server.engine().run(creation(&json!({"id": "a", "pk": 1, "ttl": 3}))));
    assert_eq!(next_look(&server), Some(1003));
    server.clock(1003);
    assert_eq!(server.turns(), 1);
}

#[test]
fn a_write_beside_a_look_is_not_missed() {
    let mut server = server(Some(1000));
    create(&server, 0..1, Some(5));
    server.clock(1005);
    server.watched().park_rider();
    std::thread::scope(|scope| {
        scope.spawn(|| server.turn());
        // The look that this unit comes from does not show the new item.
        server.watched().before_parked(|| create(&server, 1..2, Some(3)));
    });
    assert_eq!(next_look(&server), Some(1008));
    server.clock(1008);
    assert_eq!(server.turns(), 1);
}

#[test]
fn a_shorter_default_is_not_missed() {
    let mut server = server(Some(1000));
    create(&server, 0..3, None);
    server.clock(1100);
    server.set_default(Some(50), &[]);
    assert_eq!(server.turns(), 3);
    assert_eq!(server.engine().purge_figures().lag.sum_seconds, 0);
    create(&server, 3..4, None);
    server.clock(1150);
    assert_eq!(server.turns(), 1);
}

#[test]
fn a_change_of_the_default_whose_outcome_is_not_known_is_not_missed() {
    for landed in [Landed::Yes, Landed::No] {
        let mut server = server(None);
        create(&server, 0..3, None);
        server.clock(1100);
        server.watched().doubt(keys::bucket(1, 0), landed);
        server.try_default(Some(50), &[]).unwrap_err();
        assert_eq!(server.turns(), 3, "{landed:?}");
        server.check();
    }
}

#[test]
fn a_unit_that_fails_is_tried_again() {
    let mut server = server(Some(5));
    create(&server, 0..3, None);
    server.clock(1005);
    server.watched().fail_rider(Error::Unknown("the disk is on fire".to_owned()));
    assert_eq!(server.turns(), 0);
    let status = server.engine().purge_status(1);
    assert_eq!(status.state, PurgeState::Idle);
    assert!(status.reason.unwrap().contains("on fire"));
    server.clock(1006);
    assert_eq!(server.turns(), 3);
    assert_eq!(server.engine().purge_status(1).reason, None);
}

#[test]
fn buckets_that_are_due_take_turns() {
    let mut server = Server::new(Kind::Watched { slices: 4 });
    server.make_container(Some(5), &[]);
    create(&server, 0..400, None);
    server.turns();
    let items = |server: &Server, slice| {
        let bucket = keys::bucket(1, slice);
        let snapshot = server.engine().shared.store.snapshot().unwrap();
        let all = keys::everything();
        let pairs = snapshot.scan(bucket, &all, dayfly_storage::Direction::Forward, 10_000);
        pairs.unwrap().iter().filter(|(key, _)| keys::item_number(key).is_some()).count()
    };
    let before: Vec<usize> = (0..4).map(|slice| items(&server, slice)).collect();
    server.clock(1005);
    for _ in 0..4 {
        server.turn();
    }
    for (slice, before) in before.into_iter().enumerate() {
        let gone = before - items(&server, slice);
        assert!((1..=16).contains(&gone), "{gone} of slice {slice}");
    }
    server.turns();
    assert_eq!(server.engine().purged_items(), 400);
}

#[test]
fn both_queues_of_a_bucket_get_their_share() {
    let mut server = server(Some(5));
    create(&server, 0..100, None);
    create(&server, 100..200, Some(5));
    server.clock(1005);
    server.turn();
    let figures = server.engine().purge_figures();
    let rows = server.dump();
    let queued = rows.iter().filter(|(key, _)| keys::due_second(key).is_some()).count();
    let buried_with_ttl = 100 - u64::try_from(queued).unwrap();
    assert!(buried_with_ttl > 0 && buried_with_ttl < figures.purged_items);
}

#[test]
fn a_unit_of_large_items_is_small() {
    let mut server = server(Some(5));
    for id in 0..16 {
        let text = "x".repeat(30_000);
        server.create(json!({"id": id.to_string(), "pk": id, "text": text})).unwrap();
    }
    server.clock(1005);
    server.turn();
    // How small it is depends on what users did lately.
    let first = server.engine().purged_items();
    assert!((1..16).contains(&first), "{first}");
    assert_eq!(server.turns(), 16 - first);
    server.check();
}

#[test]
fn a_paused_purge_rests_until_it_is_resumed() {
    let one = || Some(("d".to_owned(), "c".to_owned()));
    for container in [None, one()] {
        let mut server = server(Some(5));
        create(&server, 0..3, None);
        let (pause, resume) = (
            Operation::PausePurge { container: container.clone() },
            Operation::ResumePurge { container: container.clone() },
        );
        assert_eq!(body(&server, pause), r#"{"paused":true}"#);
        server.clock(1005);
        assert_eq!(server.turns(), 0);
        assert_eq!(server.engine().purge_status(1).state, PurgeState::Paused);
        assert_eq!(body(&server, resume), r#"{"paused":false}"#);
        assert_eq!(server.turns(), 3);
        assert_eq!(server.engine().purge_status(1).state, PurgeState::Idle);
    }
}

#[test]
fn one_container_is_not_resumed_while_all_are_paused() {
    let server = server(Some(5));
    server.run(Operation::PausePurge { container: None }).unwrap();
    let container = Some(("d".to_owned(), "c".to_owned()));
    assert_eq!(body(&server, Operation::ResumePurge { container }), r#"{"paused":true}"#);
}

#[test]
fn who_asks_for_a_purge_is_answered_when_it_is_done() {
    let mut server = server(Some(5));
    create(&server, 0..700, None);
    server.run(Operation::PausePurge { container: None }).unwrap();
    server.clock(1005);
    assert_eq!(body(&server, run(Some(("d", "c")))), r#"{"purgedItems":700}"#);
    assert_eq!(body(&server, run(None)), r#"{"purgedItems":0}"#);
    assert_eq!(server.run(run(Some(("d", "x")))).unwrap_err(), ErrorKind::NotFound);
    assert_eq!(server.run(run(Some(("x", "c")))).unwrap_err(), ErrorKind::OwnerNotFound);
}

#[test]
fn two_queues_that_are_too_much_for_one_unit_together_are_both_emptied() {
    let mut server = server(Some(5));
    create(&server, 0..200, None);
    server.clock(1003);
    create(&server, 200..600, Some(2));
    server.clock(1005);
    assert_eq!(server.purge(), 600);
    assert_eq!(server.stored_items(), 0);
}

#[test]
fn a_purge_that_was_asked_for_does_not_chase_what_falls_due_later() {
    let mut server = server(Some(5));
    create(&server, 0..2, None);
    create(&server, 2..4, Some(6));
    server.clock(1006);
    let reply = purge::run(&server.engine().purge, None, Timestamp(1005));
    assert_eq!(reply.outcome.unwrap().body.to_vec(), br#"{"purgedItems":2}"#);
}

#[test]
fn a_purge_that_was_asked_for_ends_when_the_server_stops() {
    let mut server = server(Some(5));
    create(&server, 0..700, None);
    server.clock(1005);
    server.engine().purge.stop();
    assert_eq!(server.run(run(None)).unwrap_err(), ErrorKind::ServiceUnavailable);
    assert!(server.engine().purged_items() < 700);
}

#[test]
fn nothing_is_purged_while_the_clock_may_be_wrong() {
    let mut server = server(Some(5));
    create(&server, 0..3, None);
    server.clock(1005);
    server.watched().held.store(true, Ordering::SeqCst);
    assert_eq!(server.turns(), 0);
    assert_eq!(server.engine().purge_status(1).state, PurgeState::Held);
    assert_eq!(server.run(run(None)).unwrap_err(), ErrorKind::ServiceUnavailable);
    server.watched().held.store(false, Ordering::SeqCst);
    assert_eq!(server.turns(), 3);
}

#[test]
fn a_deleted_container_is_cleared_in_turns_and_then_forgotten() {
    let mut server = server(Some(5));
    create(&server, 0..200, None);
    server.delete_container();
    assert!(server.turn() < SECOND);
    assert!(server.rows() > 0);
    server.turns();
    assert_eq!((server.rows(), server.heads()), (0, 0));
    let snapshots = server.watched().snapshots();
    assert_eq!(server.turn(), SECOND);
    assert_eq!(server.watched().snapshots(), snapshots);
}

#[test]
fn nothing_is_kept_of_a_deleted_container_that_was_paused() {
    let mut server = server(Some(5));
    create(&server, 0..3, None);
    let container = Some(("d".to_owned(), "c".to_owned()));
    server.run(Operation::PausePurge { container }).unwrap();
    server.delete_container();
    server.turns();
    assert_eq!(server.rows(), 0);
    assert_eq!(server.engine().purge_status(1).state, PurgeState::Idle);
    assert_eq!(server.engine().shared.deadlines.waiting(), (None, 0));
}

#[test]
fn a_deleted_container_is_cleared_after_a_restart_too() {
    let mut server = server(Some(5));
    create(&server, 0..200, None);
    server.delete_container();
    server.crash(Crash::Kill);
    server.turns();
    assert_eq!((server.rows(), server.heads()), (0, 0));
}

#[test]
fn what_was_purged_is_counted() {
    let mut server = server(Some(5));
    create(&server, 0..3, None);
    create(&server, 3..4, Some(10));
    server.clock(1013);
    assert_eq!(server.turns(), 4);
    let figures = server.engine().purge_figures();
    assert_eq!(figures.purged_items, 4);
    assert_eq!((figures.lag.count, figures.lag.sum_seconds), (4, 3 * 8 + 3));
    // As their deletes, with one term of the index each.
    assert!((figures.ru_spent - 4.0 * 5.15).abs() < 1e-9, "{figures:?}");
    let status = server.engine().purge_status(1);
    assert_eq!((status.state, status.purged_items), (PurgeState::Idle, 4));
    assert!((status.items_per_second - 0.4).abs() < 1e-9);
}

#[test]
fn scans_leap_over_what_was_purged_in_a_row() {
    let mut server = server(Some(5));
    // `n`, the key, the feed and the items rise with time, `mixed` and the id do not.
    for id in 0..100 {
        server.clock(1000 + id / 20);
        let (id_text, mixed) = (id.to_string(), id * 37 % 100);
        server.create(json!({"id": id_text, "pk": id, "n": id, "mixed": mixed})).unwrap();
    }
    assert_eq!(server.engine().figures().empty_stretches, 0);
    server.clock(1007);
    assert_eq!(server.turns(), 60);
    let stretches = server.engine().figures().empty_stretches;
    assert_eq!(stretches, 4, "among the entries of `n` and of `pk`, in the feed, among items");

    let first = "SELECT TOP 1 VALUE c.n FROM c ORDER BY c.n";
    assert_eq!(server.page(first, 10, None).0, [json!(60)]);
    server.create(json!({"id": "again", "pk": 0, "n": 7})).unwrap();
    assert_eq!(server.page(first, 10, None).0, [json!(7)]);
}

/// More items than one unit takes, so that units are read ahead; and so large that
/// some are cut short, and what was read ahead is of no use.
#[test]
fn what_needs_many_units_goes_whole() {
    for (count, bytes) in [(1300, 10), (700, 6000)] {
        for by_run in [false, true] {
            let mut server = server(Some(5));
            for id in 0..count {
                let text = "x".repeat(bytes);
                let mut item = json!({"id": id.to_string(), "pk": id % 7, "text": text});
                if id % 3 == 0 {
                    item["ttl"] = 6.into();
                }
                server.create(item).unwrap();
            }
            server.clock(1006);
            if by_run {
                assert_eq!(body(&server, run(None)), json!({"purgedItems": count}).to_string());
            } else {
                assert_eq!(server.purge(), count);
            }
            assert_eq!(server.stored_items(), 0, "{count} items of {bytes} bytes");
            server.check();
        }
    }
}

#[test]
fn while_the_clock_may_be_wrong_nothing_is_purged() {
    let mut server = server(Some(-1));
    create(&server, 0..1, Some(5));
    // Another boot: nobody knows what happened meanwhile.
    server.wall().reboot(10_000_000);
    server.crash(Crash::Kill);
    assert_eq!(server.turns(), 0);
    let status = server.engine().purge_status(1);
    assert_eq!(status.state, PurgeState::Held);
    server.clock(10_000_600);
    assert_eq!(server.turns(), 1);
}
