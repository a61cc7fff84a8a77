//! Transactional batches: all of it or nothing, in one partition and one second.

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::models::{TimeToLive, TransactionalBatchOperationResult};
use azure_data_cosmos::options::{
    BatchDeleteOptions, BatchOptions, BatchReplaceOptions, ContentResponseOnWrite,
    OperationOptions, Precondition, QueryOptions,
};
use azure_data_cosmos::{PartitionKey, TransactionalBatch};
use dayfly_sdk_tests::{World, ask, find, over_http_and_https, properties, refused};
use serde_json::{Value, json};

over_http_and_https! {
    every_kind_of_operation,
    an_operation_sees_those_before_it,
    one_that_fails_takes_all_with_it,
    the_version_that_is_meant_is_replaced,
    one_to_a_hundred_operations_of_two_megabytes,
    content_is_shown_if_asked,
    partitions_of_every_kind,
    items_expire_exactly,
}

async fn every_kind_of_operation(world: &World) {
    let container = world.container().await;
    create(&container, json!({"id": "old", "pk": "x"})).await;
    let batch = batch()
        .create_item(json!({"id": "a", "pk": "x", "n": 1}))
        .and_then(|batch| batch.upsert_item(json!({"id": "b", "pk": "x"}), None))
        .and_then(|batch| batch.replace_item("old", json!({"id": "old", "pk": "x", "n": 2}), None))
        .unwrap()
        .read_item("a", None)
        .delete_item("b", None);
    let results = run(&container, batch).await;
    assert_eq!(statuses(&results), [201, 201, 200, 200, 204]);
    assert_eq!(item(&results[3]).unwrap()["n"], 1);
    assert_eq!(ids(&container).await, ["a", "old"]);
    let old = find(&container, "x", "old").await.unwrap();
    assert_eq!(old["_etag"], results[2].etag().unwrap());
}

async fn an_operation_sees_those_before_it(world: &World) {
    let container = world.container().await;
    let batch = batch()
        .create_item(json!({"id": "a", "pk": "x", "n": 1}))
        .and_then(|batch| batch.replace_item("a", json!({"id": "a", "pk": "x", "n": 2}), None))
        .unwrap()
        .read_item("a", None)
        .delete_item("a", None)
        .upsert_item(json!({"id": "a", "pk": "x", "n": 3}), None)
        .unwrap();
    let results = run(&container, batch).await;
    assert_eq!(statuses(&results), [201, 200, 200, 204, 201]);
    assert_eq!(item(&results[2]).unwrap()["n"], 2);
    assert_eq!(find(&container, "x", "a").await.unwrap()["n"], 3);
}

async fn one_that_fails_takes_all_with_it(world: &World) {
    let container = world.container().await;
    create(&container, json!({"id": "old", "pk": "x"})).await;
    let changed = BatchDeleteOptions::default().with_precondition(if_match("wrong"));
    let first = || batch().create_item(json!({"id": "a", "pk": "x"})).unwrap();
    for (status, batch) in [
        (409, first().create_item(json!({"id": "old", "pk": "x"})).unwrap()),
        (404, first().read_item("nobody", None)),
        (404, first().delete_item("nobody", None)),
        (400, first().create_item(json!({"id": "b", "pk": "y"})).unwrap()),
        (400, first().create_item(json!({"id": "b", "pk": "x", "ttl": 0})).unwrap()),
        (412, first().delete_item("old", Some(changed))),
    ] {
        let batch = batch.create_item(json!({"id": "c", "pk": "x"})).unwrap();
        assert_eq!(statuses(&run(&container, batch).await), [424, status, 424]);
        assert_eq!(ids(&container).await, ["old"]);
    }
}

async fn the_version_that_is_meant_is_replaced(world: &World) {
    let container = world.container().await;
    create(&container, json!({"id": "a", "pk": "x"})).await;
    let before = find(&container, "x", "a").await.unwrap();
    for status in [200, 412] {
        let unchanged = if_match(before["_etag"].as_str().unwrap());
        let options = BatchReplaceOptions::default().with_precondition(unchanged);
        let next = json!({"id": "a", "pk": "x", "n": status});
        let batch = batch().replace_item("a", next, Some(options)).unwrap();
        assert_eq!(statuses(&run(&container, batch).await), [status]);
    }
    assert_eq!(find(&container, "x", "a").await.unwrap()["n"], 200);
}

async fn one_to_a_hundred_operations_of_two_megabytes(world: &World) {
    let container = world.container().await;
    let create = |batch: TransactionalBatch, id: usize| {
        batch.create_item(json!({"id": id.to_string(), "pk": "x"})).unwrap()
    };
    let hundred = (0..100).fold(batch(), create);
    let more = create(hundred.clone(), 100);
    assert_eq!(refused(container.execute_transactional_batch(more, None).await), 400);
    let text = "x".repeat(2_300_000);
    let large = batch().create_item(json!({"id": "a", "pk": "x", "text": text})).unwrap();
    assert_eq!(refused(container.execute_transactional_batch(large, None).await), 413);
    assert!(ids(&container).await.is_empty());
    assert_eq!(statuses(&run(&container, hundred).await), [201; 100]);
}

async fn content_is_shown_if_asked(world: &World) {
    let container = world.container().await;
    for (asked, is_shown) in
        [(ContentResponseOnWrite::Enabled, true), (ContentResponseOnWrite::Disabled, false)]
    {
        let batch = batch().upsert_item(json!({"id": "a", "pk": "x"}), None).unwrap();
        let batch = batch.read_item("a", None);
        let mut operation = OperationOptions::default();
        operation.content_response_on_write = Some(asked);
        let options = BatchOptions::default().with_operation_options(operation);
        let response = container.execute_transactional_batch(batch, Some(options)).await.unwrap();
        let response = response.into_model().unwrap();
        let [written, read] = response.results() else { panic!("not two results") };
        assert_eq!(item(written).is_some(), is_shown);
        assert_eq!(item(read).unwrap()["id"], "a");
        assert_eq!(written.etag(), read.etag());
    }
}

async fn partitions_of_every_kind(world: &World) {
    let flat = world.container().await;
    let mut definition = properties();
    definition.partition_key = ("/tenant", "/user").into();
    let deep = world.container_like(definition).await;
    for (container, key, item) in [
        (&flat, PartitionKey::from(7), json!({"id": "a", "pk": 7})),
        (&flat, PartitionKey::from(true), json!({"id": "a", "pk": true})),
        (&flat, PartitionKey::from(None::<String>), json!({"id": "a", "pk": null})),
        (&deep, PartitionKey::from(("t", 7)), json!({"id": "a", "tenant": "t", "user": 7})),
    ] {
        let batch = TransactionalBatch::new(key).create_item(item).unwrap().read_item("a", None);
        assert_eq!(statuses(&run(container, batch).await), [201, 200]);
    }
}

async fn items_expire_exactly(world: &World) {
    let definition = properties().with_default_ttl(TimeToLive::Seconds(100));
    let container = world.container_like(definition).await;
    let items = [
        json!({"id": "default", "pk": "x"}),
        json!({"id": "never", "pk": "x", "ttl": -1}),
        json!({"id": "short", "pk": "x", "ttl": 10}),
    ];
    let creates = items.iter().fold(batch(), |batch, item| batch.create_item(item).unwrap());
    run(&container, creates).await;
    world.advance(9).await;
    assert_eq!(ids(&container).await, ["default", "never", "short"]);
    world.advance(1).await;
    assert_eq!(ids(&container).await, ["default", "never"]);

    let late = batch().create_item(json!({"id": "b", "pk": "x"})).unwrap();
    let late = late.read_item("short", None);
    assert_eq!(statuses(&run(&container, late).await), [424, 404]);
    world.advance(90).await;
    assert_eq!(ids(&container).await, ["never"]);
}

/// A batch of the partition `x`.
fn batch() -> TransactionalBatch {
    TransactionalBatch::new("x")
}

async fn run(
    container: &ContainerClient,
    batch: TransactionalBatch,
) -> Vec<TransactionalBatchOperationResult> {
    let response = container.execute_transactional_batch(batch, None).await.unwrap();
    response.into_model().unwrap().results().to_vec()
}

fn statuses(results: &[TransactionalBatchOperationResult]) -> Vec<u16> {
    results.iter().map(TransactionalBatchOperationResult::status_code).collect()
}

fn item(result: &TransactionalBatchOperationResult) -> Option<Value> {
    result.into_model().unwrap()
}

fn if_match(etag: &str) -> Precondition {
    Precondition::if_match(etag.to_owned())
}

async fn create(container: &ContainerClient, item: Value) {
    let id = item["id"].as_str().unwrap().to_owned();
    container.create_item("x", &id, item, None).await.unwrap();
}

/// The ids of the partition `x`, in order.
async fn ids(container: &ContainerClient) -> Vec<Value> {
    let scope = FeedScope::partition("x");
    let query = "SELECT VALUE c.id FROM c ORDER BY c.id";
    ask(container, query, scope, QueryOptions::default()).await.unwrap()
}
