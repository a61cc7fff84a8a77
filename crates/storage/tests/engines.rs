//! Every engine keeps the contract.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use dayfly_storage::{Local, LocalOptions, suite};

#[test]
fn memory_keeps_the_contract() {
    suite::run(&|setup| Box::new(Local::memory(setup.local()).unwrap()));
}

#[test]
fn memory_keeps_the_contract_without_a_cache() {
    suite::run(&|setup| {
        let options = LocalOptions { cache_bytes: 0, ..setup.local() };
        Box::new(Local::memory(options).unwrap())
    });
}

#[test]
fn the_embedded_engine_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let number = std::cell::Cell::new(0);
    suite::run(&|setup| {
        number.set(number.get() + 1);
        let path = folder.path().join(number.get().to_string());
        Box::new(Local::open(path, setup.local()).unwrap())
    });
}
