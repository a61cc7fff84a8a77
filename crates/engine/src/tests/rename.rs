//! A write by RID beside a replace that gives the item another id.

use std::task::{Context, Poll, Waker};

use dayfly_model::ErrorKind;
use serde_json::json;

use super::server::{Kind, Server, Setup, Ticket, at, partition_key, text, write};
use crate::operation::{Act, Condition, ContainerScope, Indexing, Operation, WriteItem};

fn answer(mut ticket: Ticket) -> Result<u16, ErrorKind> {
    match ticket.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(reply) => {
            reply.outcome.map(|success| success.status).map_err(|error| error.kind)
        }
        Poll::Pending => panic!("not answered"),
    }
}

#[test]
fn an_item_that_gets_another_id_is_never_missing() {
    let cache_bytes = 1 << 20;
    let kind = Kind::Memory { slices: 1 };
    let mut server = Server::with(Setup { stepped: true, cache_bytes, ..Setup::of(kind) });
    server.make_container(None, &[]);
    let made = server.create(json!({"id": "a", "pk": "x"})).unwrap();
    let link: Vec<&str> = made["_self"].as_str().unwrap().split('/').collect();
    let [_, database, _, container, _, rid, _] = link[..] else { panic!("{link:?}") };
    let by_rid = |act: Act| {
        Operation::WriteItem(WriteItem {
            at: ContainerScope {
                database: database.to_owned(),
                container: container.to_owned(),
                ..at()
            },
            act,
            partition_key: Some(partition_key("x")),
            condition: Condition::default(),
            minimal: false,
            indexing: Indexing::default(),
        })
    };
    let renamed = Act::Replace("a".to_owned(), text(&json!({"id": "b", "pk": "x"})));
    let rename = server.hand_in(write(renamed, "\"x\""));
    let deletion = server.hand_in(by_rid(Act::Delete(rid.to_owned())));
    server.begin();
    server.publish();
    assert_eq!(answer(rename), Ok(200));
    assert_eq!(answer(deletion), Err(ErrorKind::RetryWith), "it is there");
    let again = server.hand_in(by_rid(Act::Delete(rid.to_owned())));
    let twice = server.hand_in(by_rid(Act::Delete(rid.to_owned())));
    server.begin();
    server.publish();
    assert_eq!(answer(again), Ok(204));
    assert_eq!(answer(twice), Err(ErrorKind::NotFound), "it is not");
    server.check();
}
