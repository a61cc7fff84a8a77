//! Databases and containers.

use azure_data_cosmos::ResourceId;
use azure_data_cosmos::models::{ContainerProperties, TimeToLive};
use dayfly_sdk_tests::{
    NINETY_DAYS, World, create_database, find, over_http_and_https, properties, refused,
    throughput, unique,
};
use serde_json::json;

over_http_and_https! {
    a_database_is_created_read_and_deleted,
    a_database_name_can_be_used_once,
    a_container_keeps_its_default_ttl,
    a_container_keeps_its_throughput,
    a_container_made_without_throughput_can_be_asked_for_it,
    a_large_throughput_spreads_the_container_over_ranges,
    a_containers_definition_comes_back_with_its_defaults,
    a_container_name_can_be_used_once,
    a_container_is_replaced,
    a_containers_partition_key_cannot_be_replaced,
    a_deleted_container_is_gone_with_its_items,
    a_default_ttl_is_minus_one_or_positive,
    databases_and_containers_can_be_addressed_by_their_rids,
    a_wrong_key_is_refused,
}

async fn a_database_is_created_read_and_deleted(world: &World) {
    let id = unique("db");
    let database = create_database(&world.client, &id).await;
    assert_eq!(database.read(None).await.unwrap().into_model().unwrap().id, Some(id));

    database.delete(None).await.unwrap();
    assert_eq!(refused(database.read(None).await), 404);
}

async fn a_database_name_can_be_used_once(world: &World) {
    let id = world.database.name().unwrap();
    assert_eq!(refused(world.client.create_database(id, None).await), 409);
}

async fn a_container_keeps_its_default_ttl(world: &World) {
    for ttl in [TimeToLive::Forever, TimeToLive::NoDefault, TimeToLive::Seconds(NINETY_DAYS)] {
        let container = world.container_like(properties().with_default_ttl(ttl.clone())).await;
        let definition = container.read(None).await.unwrap().into_model().unwrap();
        assert_eq!(definition.default_ttl, ttl);
    }
}

async fn a_container_keeps_its_throughput(world: &World) {
    let orders = ContainerProperties::new("orders", "/customerId".into())
        .with_default_ttl(TimeToLive::Seconds(NINETY_DAYS));
    world.database.create_container(orders, throughput(20000)).await.unwrap();

    let orders = world.database.container_client("orders", None).await.unwrap();
    let offer = orders.read_throughput(None).await.unwrap().unwrap();
    assert_eq!(offer.throughput(), Some(20000));
    let definition = orders.read(None).await.unwrap().into_model().unwrap();
    assert_eq!(definition.partition_key.paths(), ["/customerId"]);
}

async fn a_container_made_without_throughput_can_be_asked_for_it(world: &World) {
    world.container().await.read_throughput(None).await.unwrap();
}

async fn a_large_throughput_spreads_the_container_over_ranges(world: &World) {
    let wide = world.wide_container().await;
    assert_eq!(wide.read_feed_ranges(None).await.unwrap().len(), 4);
    for number in 0..40 {
        let id = format!("item-{number}");
        wide.create_item(&id, &id, json!({"id": id, "pk": id}), None).await.unwrap();
        assert!(find(&wide, &id, &id).await.is_some());
    }
}

async fn a_containers_definition_comes_back_with_its_defaults(world: &World) {
    let container = world.container().await;
    let definition = container.read(None).await.unwrap().into_body();
    let definition: serde_json::Value = definition.into_single().unwrap();

    assert_eq!(definition["partitionKey"], json!({"paths": ["/pk"], "kind": "Hash", "version": 2}));
    assert_eq!(definition["indexingPolicy"]["indexingMode"], "consistent");
    assert_eq!(definition["indexingPolicy"]["includedPaths"], json!([{"path": "/*"}]));
    assert!(definition["_self"].as_str().unwrap().starts_with("dbs/"));
    for name in ["_etag", "_rid", "_ts"] {
        assert!(definition.get(name).is_some(), "{name} is missing");
    }
}

async fn a_container_name_can_be_used_once(world: &World) {
    let twice = properties();
    world.database.create_container(twice.clone(), None).await.unwrap();
    assert_eq!(refused(world.database.create_container(twice, None).await), 409);
}

async fn a_container_is_replaced(world: &World) {
    let container = world.container().await;

    for ttl in [TimeToLive::Seconds(3600), TimeToLive::Forever] {
        let definition = container.read(None).await.unwrap().into_model().unwrap();
        container.replace(definition.with_default_ttl(ttl.clone()), None).await.unwrap();
        let definition = container.read(None).await.unwrap().into_model().unwrap();
        assert_eq!(definition.default_ttl, ttl);
    }
}

async fn a_containers_partition_key_cannot_be_replaced(world: &World) {
    let made = properties();
    let other = ContainerProperties::new(made.id.clone(), "/other".into());
    let container = world.container_like(made).await;
    assert_eq!(refused(container.replace(other, None).await), 400);
}

async fn a_deleted_container_is_gone_with_its_items(world: &World) {
    let made = properties();
    let container = world.container_like(made.clone()).await;
    container.create_item("x", "a", json!({"id": "a", "pk": "x"}), None).await.unwrap();

    container.delete(None).await.unwrap();
    assert_eq!(refused(container.read(None).await), 404);
    assert_eq!(refused(container.read_item("x", "a", None).await), 404);

    let container = world.container_like(made).await;
    assert_eq!(find(&container, "x", "a").await, None);
}

async fn a_default_ttl_is_minus_one_or_positive(world: &World) {
    let zero = properties().with_default_ttl(TimeToLive::Seconds(0));
    assert_eq!(refused(world.database.create_container(zero, None).await), 400);
}

async fn databases_and_containers_can_be_addressed_by_their_rids(world: &World) {
    let named = world.database.read(None).await.unwrap().into_model().unwrap();
    let rid = ResourceId::from(named.system_properties.resource_id.unwrap());
    let database = world.client.database_client(rid);
    assert_eq!(database.read(None).await.unwrap().into_model().unwrap().id, named.id);

    let named = world.container().await.read(None).await.unwrap().into_model().unwrap();
    let rid = ResourceId::from(named.system_properties.resource_id.unwrap());
    let container = database.container_client(rid, None).await.unwrap();
    assert_eq!(container.read(None).await.unwrap().into_model().unwrap().id, named.id);
}

async fn a_wrong_key_is_refused(world: &World) {
    let wrong_key = "d3Jvbmcga2V5IHdyb25nIGtleSB3cm9uZyBrZXk=";
    assert_eq!(refused(world.connect_with_key(wrong_key).await), 401);
}
