//! Time to live, second by second. No test waits: each moves the server's clock.

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::models::{TimeToLive, UniqueKey, UniqueKeyPolicy};
use azure_data_cosmos::options::QueryOptions;
use dayfly_sdk_tests::{
    DAY, NINETY_DAYS, World, YEAR, ask, create_wide_container, find, over_http_and_https,
    properties, refused, status, with_body,
};
use serde_json::{Value, json};

over_http_and_https! {
    an_item_expires_90_days_after_its_write_by_the_containers_default,
    an_item_expires_90_days_after_its_write_by_its_own_ttl,
    every_write_extends_an_items_life,
    reading_extends_nothing,
    a_ttl_can_be_changed,
    a_removed_ttl_leaves_the_containers_default,
    a_ttl_of_minus_one_never_expires,
    an_item_that_was_due_to_expire_can_be_kept_for_ever,
    disabling_ttl_stops_expiry_and_brings_nothing_back,
    nothing_expires_while_ttl_is_off,
    a_default_of_minus_one_expires_only_items_with_a_ttl,
    a_new_default_counts_for_items_that_are_already_there,
    no_operation_finds_an_expired_item,
    an_upsert_over_an_expired_item_creates,
    an_expired_item_frees_its_unique_key,
    a_wrong_ttl_is_refused_with_the_services_text,
    the_largest_ttl_is_accepted,
    an_expired_item_is_in_no_query_of_its_partition_from_its_second_on,
    an_expired_item_is_in_no_query_of_all_ranges_from_its_second_on,
}

/// When the items `a`, `b` and `c` of [`three_lives`] live.
const LIVES: [(u32, &[&str]); 4] =
    [(49, &["a", "b", "c"]), (1, &["b", "c"]), (49, &["b", "c"]), (1, &["c"])];

async fn an_item_expires_90_days_after_its_write_by_the_containers_default(world: &World) {
    let container = container_with_ttl(world, TimeToLive::Seconds(NINETY_DAYS)).await;
    create(&container, json!({"id": "a", "pk": "x"})).await;

    world.advance(NINETY_DAYS - 1).await;
    assert!(lives(&container).await);
    world.advance(1).await;
    assert!(!lives(&container).await);
}

async fn an_item_expires_90_days_after_its_write_by_its_own_ttl(world: &World) {
    let container = container_with_ttl(world, TimeToLive::NoDefault).await;
    create(&container, json!({"id": "a", "pk": "x", "ttl": NINETY_DAYS})).await;

    world.advance(NINETY_DAYS - 1).await;
    assert!(lives(&container).await);
    world.advance(1).await;
    assert!(!lives(&container).await);
}

async fn every_write_extends_an_items_life(world: &World) {
    let container = container_with_ttl(world, TimeToLive::Seconds(DAY)).await;
    let item = json!({"id": "a", "pk": "x", "ttl": 100});
    create(&container, item.clone()).await;

    world.advance(99).await;
    let replaced = container.replace_item("x", "a", &item, with_body()).await.unwrap();
    assert_eq!(replaced.into_model::<Value>().unwrap()["_ts"], world.now().await);
    world.advance(99).await;
    let upserted = container.upsert_item("x", "a", &item, with_body()).await.unwrap();
    assert_eq!(upserted.into_model::<Value>().unwrap()["_ts"], world.now().await);

    world.advance(99).await;
    assert!(lives(&container).await);
    world.advance(1).await;
    assert!(!lives(&container).await);
}

async fn reading_extends_nothing(world: &World) {
    let container = container_with_ttl(world, TimeToLive::Seconds(100)).await;
    create(&container, json!({"id": "a", "pk": "x"})).await;

    world.advance(99).await;
    assert!(lives(&container).await);
    world.advance(1).await;
    assert!(!lives(&container).await);
}

async fn a_ttl_can_be_changed(world: &World) {
    let container = container_with_ttl(world, TimeToLive::Seconds(DAY)).await;
    create(&container, json!({"id": "a", "pk": "x", "ttl": 100})).await;

    let mut item = find(&container, "x", "a").await.unwrap();
    item["ttl"] = 2000.into();
    container.replace_item("x", "a", item, None).await.unwrap();

    world.advance(1999).await;
    assert_eq!(find(&container, "x", "a").await.unwrap()["ttl"], 2000);
    world.advance(1).await;
    assert!(!lives(&container).await);
}

async fn a_removed_ttl_leaves_the_containers_default(world: &World) {
    let container = container_with_ttl(world, TimeToLive::Seconds(1000)).await;
    create(&container, json!({"id": "a", "pk": "x", "ttl": 100})).await;

    let mut item = find(&container, "x", "a").await.unwrap();
    item.as_object_mut().unwrap().remove("ttl");
    container.replace_item("x", "a", item, None).await.unwrap();

    world.advance(999).await;
    assert_eq!(find(&container, "x", "a").await.unwrap().get("ttl"), None);
    world.advance(1).await;
    assert!(!lives(&container).await);
}

async fn a_ttl_of_minus_one_never_expires(world: &World) {
    let container = container_with_ttl(world, TimeToLive::Seconds(100)).await;
    create(&container, json!({"id": "a", "pk": "x", "ttl": -1})).await;
    create(&container, json!({"id": "b", "pk": "x"})).await;

    world.advance(10 * YEAR).await;
    assert!(lives(&container).await);
    assert_eq!(find(&container, "x", "b").await, None);
}

async fn an_item_that_was_due_to_expire_can_be_kept_for_ever(world: &World) {
    let container = container_with_ttl(world, TimeToLive::Seconds(100)).await;
    create(&container, json!({"id": "a", "pk": "x"})).await;

    world.advance(99).await;
    let kept = json!({"id": "a", "pk": "x", "ttl": -1});
    container.replace_item("x", "a", kept, None).await.unwrap();
    world.advance(10 * YEAR).await;
    assert!(lives(&container).await);
}

async fn disabling_ttl_stops_expiry_and_brings_nothing_back(world: &World) {
    let container = container_with_ttl(world, TimeToLive::Seconds(1000)).await;
    create(&container, json!({"id": "expired", "pk": "x", "ttl": 10})).await;
    create(&container, json!({"id": "a", "pk": "x"})).await;
    create(&container, json!({"id": "own ttl", "pk": "x", "ttl": 100})).await;
    world.advance(10).await;

    set_default_ttl(&container, TimeToLive::Forever).await;
    world.advance(10 * YEAR).await;
    assert!(lives(&container).await);
    assert!(find(&container, "x", "own ttl").await.is_some());
    assert_eq!(find(&container, "x", "expired").await, None);
}

async fn nothing_expires_while_ttl_is_off(world: &World) {
    let container = world.container().await;
    create(&container, json!({"id": "a", "pk": "x", "ttl": 1})).await;

    world.advance(10 * YEAR).await;
    assert_eq!(find(&container, "x", "a").await.unwrap()["ttl"], 1);
}

async fn a_default_of_minus_one_expires_only_items_with_a_ttl(world: &World) {
    let container = container_with_ttl(world, TimeToLive::NoDefault).await;
    create(&container, json!({"id": "a", "pk": "x"})).await;
    create(&container, json!({"id": "b", "pk": "x", "ttl": 10})).await;

    world.advance(10).await;
    assert!(lives(&container).await);
    assert_eq!(find(&container, "x", "b").await, None);
}

async fn a_new_default_counts_for_items_that_are_already_there(world: &World) {
    let container = world.container().await;
    create(&container, json!({"id": "a", "pk": "x"})).await;
    world.advance(500).await;

    set_default_ttl(&container, TimeToLive::Seconds(501)).await;
    assert!(lives(&container).await);
    world.advance(1).await;
    assert!(!lives(&container).await);
    set_default_ttl(&container, TimeToLive::Seconds(YEAR)).await;
    assert!(!lives(&container).await);
}

async fn no_operation_finds_an_expired_item(world: &World) {
    let container = container_with_ttl(world, TimeToLive::Seconds(10)).await;
    let item = json!({"id": "a", "pk": "x"});
    create(&container, item.clone()).await;
    let old = find(&container, "x", "a").await.unwrap();
    world.advance(10).await;

    assert_eq!(refused(container.read_item("x", "a", None).await), 404);
    assert_eq!(refused(container.replace_item("x", "a", &item, None).await), 404);
    assert_eq!(refused(container.delete_item("x", "a", None).await), 404);

    create(&container, item).await;
    let new = find(&container, "x", "a").await.unwrap();
    assert_ne!(new["_etag"], old["_etag"]);
    assert_eq!(new["_ts"], world.now().await);
}

async fn an_upsert_over_an_expired_item_creates(world: &World) {
    let container = container_with_ttl(world, TimeToLive::Seconds(10)).await;
    let item = json!({"id": "a", "pk": "x"});
    create(&container, item.clone()).await;
    let old = find(&container, "x", "a").await.unwrap();
    world.advance(10).await;

    let upserted = container.upsert_item("x", "a", item, with_body()).await.unwrap();
    assert_eq!(status(&upserted), 201);
    assert_ne!(upserted.into_model::<Value>().unwrap()["_rid"], old["_rid"]);
}

async fn an_expired_item_frees_its_unique_key(world: &World) {
    let email = UniqueKey::default().with_path("/email");
    let container = world
        .container_like(
            properties()
                .with_default_ttl(TimeToLive::Seconds(10))
                .with_unique_key_policy(UniqueKeyPolicy::default().with_unique_key(email)),
        )
        .await;
    let item = |id| json!({"id": id, "pk": "x", "email": "zoe@example.com"});
    create(&container, item("a")).await;
    assert_eq!(refused(container.create_item("x", "b", item("b"), None).await), 409);

    world.advance(10).await;
    create(&container, item("b")).await;
}

async fn a_wrong_ttl_is_refused_with_the_services_text(world: &World) {
    let container = container_with_ttl(world, TimeToLive::NoDefault).await;
    for ttl in [json!(0), json!(-10), json!(1_u64 << 31), json!(null), json!("10"), json!(1.5)] {
        let item = json!({"id": "a", "pk": "x", "ttl": ttl});
        let error = container.create_item("x", "a", item, None).await.unwrap_err();

        assert!(error.status().is_bad_request(), "{error}");
        let text = error.to_string().replace(r#"\""#, r#"""#);
        let expected = format!(
            "The input ttl '{ttl}' is invalid. Ensure to provide a nonzero positive integer less \
             than or equal to '2147483647', or '-1' which means never expire."
        );
        assert!(text.contains(&expected), "{text}");
    }
    assert!(!lives(&container).await);
}

async fn the_largest_ttl_is_accepted(world: &World) {
    let largest = i32::MAX as u32;
    let container = container_with_ttl(world, TimeToLive::Seconds(largest)).await;
    create(&container, json!({"id": "a", "pk": "x", "ttl": largest})).await;
    world.advance(30 * YEAR).await;
    assert!(lives(&container).await);
}

async fn an_expired_item_is_in_no_query_of_its_partition_from_its_second_on(world: &World) {
    let container = three_lives(world, |_| "x".to_owned()).await;
    for (seconds, living) in LIVES {
        world.advance(seconds).await;
        for (query, expected) in [
            ("SELECT VALUE c.id FROM c ORDER BY c.id", json!(living)),
            ("SELECT VALUE c.id FROM c WHERE c.n >= 0 ORDER BY c.n", json!(living)),
            ("SELECT VALUE COUNT(1) FROM c", json!([living.len()])),
            ("SELECT VALUE MIN(c.id) FROM c", json!(living[..1])),
            (
                "SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk",
                json!([
                    {"pk": "x", "n": living.len()}
                ]),
            ),
        ] {
            let partition = FeedScope::partition("x");
            let rows = ask(&container, query, partition, QueryOptions::default()).await.unwrap();
            assert_eq!(Value::from(rows), expected, "{query}");
        }
    }
}

async fn an_expired_item_is_in_no_query_of_all_ranges_from_its_second_on(world: &World) {
    let container = three_lives(world, |n| format!("pk-{n}")).await;
    for (seconds, living) in LIVES {
        world.advance(seconds).await;
        for query in [
            "SELECT VALUE c.id FROM c ORDER BY c.id",
            "SELECT TOP 3 VALUE c.id FROM c WHERE c.n >= 0 ORDER BY c.n",
            "SELECT DISTINCT VALUE c.id FROM c ORDER BY c.id",
            "SELECT VALUE c.id FROM c ORDER BY c.id OFFSET 0 LIMIT 5",
        ] {
            let everywhere = FeedScope::full_container();
            let rows = ask(&container, query, everywhere, QueryOptions::default()).await.unwrap();
            assert_eq!(rows, living, "{query}");
        }
    }
}

/// Items that expire after 50 seconds, after 100, and never, in four ranges.
async fn three_lives(world: &World, pk: impl Fn(usize) -> String) -> ContainerClient {
    let properties = properties().with_default_ttl(TimeToLive::Seconds(100));
    let container = create_wide_container(&world.database, properties).await;
    for (n, ttl) in [json!({"ttl": 50}), json!({}), json!({"ttl": -1})].into_iter().enumerate() {
        let (id, pk, mut item) = (["a", "b", "c"][n], pk(n), ttl);
        item["id"] = json!(id);
        item["pk"] = json!(pk);
        item["n"] = json!(n);
        container.create_item(pk, id, item, None).await.unwrap();
    }
    container
}

async fn container_with_ttl(world: &World, ttl: TimeToLive) -> ContainerClient {
    world.container_like(properties().with_default_ttl(ttl)).await
}

/// Reads the container, changes its default and replaces it.
async fn set_default_ttl(container: &ContainerClient, ttl: TimeToLive) {
    let definition = container.read(None).await.unwrap().into_model().unwrap();
    container.replace(definition.with_default_ttl(ttl), None).await.unwrap();
}

/// Creates an item in the partition `x`.
async fn create(container: &ContainerClient, item: Value) {
    let id = item["id"].as_str().unwrap().to_owned();
    container.create_item("x", &id, item, None).await.unwrap();
}

/// Whether the item `a` is there.
async fn lives(container: &ContainerClient) -> bool {
    find(container, "x", "a").await.is_some()
}
