//! Items with very many properties.

use std::task::{Context, Poll, Waker};

use serde_json::{Value, json};

use super::server::{Kind, Server, Setup, Ticket, upsert, write};
use crate::operation::Act;
use crate::reply::Reply;

/// What a ticket says now, if it says anything.
fn poll(ticket: &mut Ticket) -> Option<Reply> {
    match ticket.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(reply) => Some(reply),
        Poll::Pending => None,
    }
}

fn wide(id: &str, properties: u64, value: u64) -> Value {
    let mut item = json!({"id": id, "pk": 1});
    for property in 0..properties {
        item[format!("p{property}")] = (property + value).into();
    }
    item
}

fn stepped() -> Server {
    let kind = Kind::Memory { slices: 1 };
    let setup = Setup { stepped: true, cache_bytes: 1 << 20, ..Setup::of(kind) };
    let mut server = Server::with(setup);
    server.make_container(None, &[]);
    server
}

/// One group is committed. Returns the statuses of those who waited for it.
fn one_group(server: &Server, waiting: &mut Vec<Ticket>) -> Vec<u16> {
    server.begin();
    server.publish();
    let mut statuses = Vec::new();
    waiting.retain_mut(|ticket| match poll(ticket) {
        Some(reply) => {
            statuses.push(reply.outcome.unwrap().status);
            false
        }
        None => true,
    });
    statuses
}

/// Two writers of one item, of which the second finds that its draft does not
/// hold: it drafts again, not the committer, and both versions fit together.
#[test]
fn a_wide_item_is_drafted_again_by_who_waits_for_it() {
    let server = stepped();
    let redrafts = || server.engine().figures().redrafts;
    let before = redrafts();
    let versions = [wide("a", 2000, 0), wide("a", 2000, 1), wide("a", 1500, 2)];
    let mut waiting: Vec<Ticket> =
        versions.iter().map(|version| server.hand_in(upsert(version))).collect();
    let mut statuses = Vec::new();
    let mut groups = 0;
    while !waiting.is_empty() {
        statuses.extend(one_group(&server, &mut waiting));
        groups += 1;
        assert!(groups < 10, "{} still wait", waiting.len());
    }
    assert_eq!(statuses, [201, 200, 200]);
    assert_eq!(redrafts(), before);
    server.check();
    assert_eq!(server.stored_items(), 1);
}

/// A small write is answered while wide ones wait.
#[test]
fn a_small_write_goes_before_wide_ones() {
    let server = stepped();
    let wide = server.hand_in(upsert(&wide("wide", 2000, 0)));
    let small = server.hand_in(upsert(&json!({"id": "small", "pk": 1})));
    server.begin();
    server.publish();
    assert_eq!(server.stored_items(), 1);
    server.begin();
    server.publish();
    assert_eq!(server.stored_items(), 2);
    drop((wide, small));
    server.check();
}

/// A delete says little and reads the whole item: it, too, is drafted again by who waits for it.
#[test]
fn a_delete_of_a_long_item_is_drafted_again_by_who_waits_for_it() {
    let server = stepped();
    let long = |value: u64| json!({"id": "a", "pk": 1, "n": value, "f": "x".repeat(100_000)});
    let redrafts = || server.engine().figures().redrafts;
    let before = redrafts();
    let delete = write(Act::Delete("a".to_owned()), "1");
    let acts = [upsert(&long(0)), upsert(&long(1)), delete];
    let mut waiting: Vec<Ticket> = Vec::new();
    let mut statuses = Vec::new();
    let mut acts = acts.into_iter();
    waiting.push(server.hand_in(acts.next().unwrap()));
    statuses.extend(one_group(&server, &mut waiting));
    waiting.extend(acts.map(|act| server.hand_in(act)));
    for _ in 0..5 {
        statuses.extend(one_group(&server, &mut waiting));
    }
    assert!(waiting.is_empty(), "{} still wait", waiting.len());
    assert_eq!(statuses, [201, 200, 204]);
    assert_eq!(redrafts(), before);
    server.check();
    assert_eq!(server.stored_items(), 0);
}
