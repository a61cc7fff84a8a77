//! Partition keys of every kind the SDK can send.

use azure_data_cosmos::PartitionKey;
use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::models::{
    ContainerProperties, PartitionKeyDefinition, PartitionKeyValue, PartitionKeyVersion,
};
use dayfly_sdk_tests::{World, find, over_http_and_https, refused, unique};
use serde_json::{Value, json};

over_http_and_https! {
    a_key_may_be_any_string,
    a_key_may_be_any_number,
    a_key_may_be_a_boolean,
    a_key_may_be_null,
    a_key_may_be_missing,
    a_key_may_be_nested,
    a_key_path_may_be_quoted,
    a_key_may_be_hierarchical,
    a_key_may_be_of_version_1,
    the_same_id_in_every_kind_of_partition_is_another_item,
    an_item_is_not_found_under_another_key,
    a_hierarchical_key_must_be_complete,
}

async fn a_key_may_be_any_string(world: &World) {
    let container = world.container().await;
    for value in ["x", "", "Zoë 你好 🪰", "\"quoted\" \\ 'text'", &"a".repeat(500)] {
        assert_item_lives(&container, json!({"id": "a", "pk": value}), value.to_owned()).await;
    }
}

async fn a_key_may_be_any_number(world: &World) {
    let container = world.container().await;
    for value in [0, 1, -7, 1_i64 << 53] {
        assert_item_lives(&container, json!({"id": "a", "pk": value}), value).await;
    }
    for value in [1.5, -0.25, 1e300] {
        let key = PartitionKeyValue::try_from(value).unwrap();
        assert_item_lives(&container, json!({"id": "a", "pk": value}), key).await;
    }
}

async fn a_key_may_be_a_boolean(world: &World) {
    let container = world.container().await;
    for value in [true, false] {
        assert_item_lives(&container, json!({"id": "a", "pk": value}), value).await;
    }
}

async fn a_key_may_be_null(world: &World) {
    let container = world.container().await;
    assert_item_lives(&container, json!({"id": "a", "pk": null}), PartitionKey::NULL).await;
}

async fn a_key_may_be_missing(world: &World) {
    let container = world.container().await;
    assert_item_lives(&container, json!({"id": "a"}), PartitionKey::UNDEFINED).await;
}

async fn a_key_may_be_nested(world: &World) {
    let container = container_with_key(world, "/address/city".into()).await;
    let item = json!({"id": "a", "address": {"city": "Bern"}});
    assert_item_lives(&container, item, "Bern").await;
    let item = json!({"id": "a", "address": "none"});
    assert_item_lives(&container, item, PartitionKey::UNDEFINED).await;
}

async fn a_key_path_may_be_quoted(world: &World) {
    let container = container_with_key(world, r#"/"postal code""#.into()).await;
    assert_item_lives(&container, json!({"id": "a", "postal code": 3000}), 3000).await;
}

async fn a_key_may_be_hierarchical(world: &World) {
    let paths = ("/tenant", "/user", "/session/id");
    let container = container_with_key(world, paths.into()).await;
    let item = json!({"id": "a", "tenant": "t", "user": 7, "session": {"id": "s"}});
    assert_item_lives(&container, item, ("t", 7, "s")).await;
}

async fn a_key_may_be_of_version_1(world: &World) {
    let path = PartitionKeyDefinition::from("/pk").with_version(PartitionKeyVersion::V1);
    let container = container_with_key(world, path).await;
    assert_item_lives(&container, json!({"id": "a", "pk": "x"}), "x").await;
    assert_item_lives(&container, json!({"id": "a", "pk": 1}), 1).await;

    let definition = container.read(None).await.unwrap().into_model().unwrap();
    assert_eq!(definition.partition_key.version(), PartitionKeyVersion::V1);
}

async fn the_same_id_in_every_kind_of_partition_is_another_item(world: &World) {
    let container = world.container().await;
    let kinds: [(Value, PartitionKey); 5] = [
        (json!({"id": "a", "kind": "string", "pk": "1"}), "1".into()),
        (json!({"id": "a", "kind": "number", "pk": 1}), 1.into()),
        (json!({"id": "a", "kind": "true", "pk": true}), true.into()),
        (json!({"id": "a", "kind": "null", "pk": null}), PartitionKey::NULL.into()),
        (json!({"id": "a", "kind": "missing"}), PartitionKey::UNDEFINED.into()),
    ];
    for (item, key) in &kinds {
        container.create_item(key.clone(), "a", item, None).await.unwrap();
    }
    for (item, key) in &kinds {
        let found = find(&container, key.clone(), "a").await.unwrap();
        assert_eq!(found["kind"], item["kind"]);
    }
}

async fn an_item_is_not_found_under_another_key(world: &World) {
    let container = world.container().await;
    container.create_item("x", "a", json!({"id": "a", "pk": "x"}), None).await.unwrap();
    assert_eq!(find(&container, "y", "a").await, None);
    assert_eq!(refused(container.delete_item("y", "a", None).await), 404);
}

async fn a_hierarchical_key_must_be_complete(world: &World) {
    let container = container_with_key(world, ("/tenant", "/user").into()).await;
    let item = json!({"id": "a", "tenant": "t", "user": "u"});
    container.create_item(("t", "u"), "a", item, None).await.unwrap();
    assert_eq!(refused(container.read_item("t", "a", None).await), 400);
}

async fn container_with_key(world: &World, key: PartitionKeyDefinition) -> ContainerClient {
    world.container_like(ContainerProperties::new(unique("c"), key)).await
}

/// Takes the item through all point operations under its partition key.
async fn assert_item_lives(
    container: &ContainerClient,
    mut item: Value,
    key: impl Into<PartitionKey>,
) {
    let key = key.into();
    container.create_item(key.clone(), "a", &item, None).await.unwrap();
    assert_eq!(find(container, key.clone(), "a").await.unwrap()["id"], "a");

    container.replace_item(key.clone(), "a", &item, None).await.unwrap();
    item["replaced"] = "twice".into();
    container.upsert_item(key.clone(), "a", &item, None).await.unwrap();
    assert_eq!(find(container, key.clone(), "a").await.unwrap()["replaced"], "twice");

    container.delete_item(key.clone(), "a", None).await.unwrap();
    assert_eq!(find(container, key, "a").await, None);
}
