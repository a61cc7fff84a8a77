//! The sample of docs/sdks.md, run as the page has it.

use std::process::Command;

use dayfly_sdk_tests::{World, over_http_and_https};

over_http_and_https! {
    the_sample_of_the_page_runs,
}

async fn the_sample_of_the_page_runs(world: &World) {
    let sample = Command::new(env!("CARGO_BIN_EXE_sample"))
        .env("COSMOS_ENDPOINT", world.endpoint())
        .env("COSMOS_KEY", world.key())
        .output()
        .unwrap();
    assert!(sample.status.success(), "{}", String::from_utf8_lossy(&sample.stderr));
    assert_eq!(String::from_utf8_lossy(&sample.stdout), "3\n");
    world.client.database_client("shop".to_owned()).delete(None).await.unwrap();
}
