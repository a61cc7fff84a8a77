//! Client encryption keys: how many there may be.

use dayfly_model::ErrorKind;
use serde_json::json;

use super::server::{Kind, Server};
use crate::encryption_keys::KEYS_MAX;
use crate::operation::Operation;

/// Each database has as many, and what is refused is not there.
#[test]
fn a_database_has_only_so_many() {
    let server = Server::new(Kind::Memory { slices: 1 });
    for id in ["d", "e"] {
        server.run(Operation::CreateDatabase { id: id.to_owned(), throughput: None }).unwrap();
    }
    let create = |database: &str, number: usize| {
        let key = json!({"id": format!("k{number}")}).to_string().into_bytes();
        let made =
            server.run(Operation::CreateEncryptionKey { database: database.to_owned(), key });
        made.map(|done| done.status)
    };
    for number in 1..=KEYS_MAX {
        assert_eq!(create("d", number), Ok(201));
    }
    assert_eq!(create("d", KEYS_MAX + 1), Err(ErrorKind::BadRequest));
    assert_eq!(create("d", KEYS_MAX), Err(ErrorKind::Conflict), "it is there");
    assert_eq!(create("e", 1), Ok(201));
}
