//! Items: create, read, upsert, replace, delete, and what may go wrong.

use azure_data_cosmos::models::{
    ContainerProperties, ItemResponse, PatchInstructions, PatchOperation, UniqueKey,
    UniqueKeyPolicy,
};
use azure_data_cosmos::options::{ItemReadOptions, PatchItemOptions, PatchStrategy, Precondition};
use dayfly_sdk_tests::{
    World, create_database, find, only_if, over_http_and_https, properties, refused, status,
    with_body,
};
use serde_json::{Value, json};

over_http_and_https! {
    an_item_is_created_read_replaced_and_deleted,
    an_upsert_creates_and_then_replaces,
    an_item_comes_back_as_it_was_sent,
    a_large_item_comes_back,
    an_item_has_its_system_properties,
    a_missing_item_is_not_found,
    an_id_can_be_used_once_in_a_partition,
    an_old_etag_stops_replace_upsert_and_delete,
    the_current_etag_lets_a_write_through,
    an_item_is_patched_by_the_server,
    an_unchanged_item_is_not_sent_again,
    a_write_sends_its_item_back_only_when_asked,
    an_id_may_hold_special_characters,
    databases_and_containers_may_have_special_names,
    the_response_headers_tell_about_the_request,
    every_write_moves_the_session_token,
    a_unique_key_is_unique_in_its_partition,
}

async fn an_item_is_created_read_replaced_and_deleted(world: &World) {
    let container = world.container().await;
    let red = json!({"id": "a", "pk": "x", "colour": "red"});
    let created = container.create_item("x", "a", red, None).await.unwrap();
    assert_eq!(status(&created), 201);
    assert_eq!(find(&container, "x", "a").await.unwrap()["colour"], "red");

    let blue = json!({"id": "a", "pk": "x", "colour": "blue"});
    let replaced = container.replace_item("x", "a", blue, None).await.unwrap();
    assert_eq!(status(&replaced), 200);
    assert_eq!(find(&container, "x", "a").await.unwrap()["colour"], "blue");

    let deleted = container.delete_item("x", "a", None).await.unwrap();
    assert_eq!(status(&deleted), 204);
    assert_eq!(find(&container, "x", "a").await, None);
}

async fn an_upsert_creates_and_then_replaces(world: &World) {
    let container = world.container().await;
    for (colour, expected) in [("red", 201), ("blue", 200)] {
        let item = json!({"id": "a", "pk": "x", "colour": colour});
        let written = container.upsert_item("x", "a", item, None).await.unwrap();
        assert_eq!(status(&written), expected);
    }
    assert_eq!(find(&container, "x", "a").await.unwrap()["colour"], "blue");
}

async fn an_item_comes_back_as_it_was_sent(world: &World) {
    let container = world.container().await;
    let item = json!({
        "id": "a",
        "pk": "x",
        "text": "Zoë 你好 🪰 \" \\ \n \u{1}",
        "longer text": "ä".repeat(100),
        "numbers": [0, 31, 32, -1, 1.5, 1e21, 1_i64 << 53, -(1_i64 << 31), i64::MAX],
        "nothing": null,
        "flags": [true, false],
        "nested": {"empty": {}, "list": [[], [1, [2]]], "": "no name"},
        "many": (0..300).collect::<Vec<_>>(),
    });
    container.create_item("x", "a", &item, None).await.unwrap();

    let mut read = find(&container, "x", "a").await.unwrap();
    read.as_object_mut().unwrap().retain(|name, _| !name.starts_with('_'));
    assert_eq!(read, item);
}

async fn a_large_item_comes_back(world: &World) {
    let container = world.container().await;
    let text = "ä".repeat(500_000);
    let item = json!({"id": "a", "pk": "x", "text": text});
    container.create_item("x", "a", item, None).await.unwrap();
    assert!(find(&container, "x", "a").await.unwrap()["text"] == text);
}

async fn an_item_has_its_system_properties(world: &World) {
    let container = world.container().await;
    let item = json!({"id": "a", "pk": "x"});
    let written = container.create_item("x", "a", item, with_body()).await.unwrap();
    let written: Value = written.into_model().unwrap();

    assert_eq!(written["_ts"], world.now().await);
    assert_eq!(written["_attachments"], "attachments/");
    assert!(
        written["_self"]
            .as_str()
            .unwrap()
            .ends_with(&format!("/docs/{}/", written["_rid"].as_str().unwrap()))
    );
    assert!(written["_etag"].as_str().unwrap().starts_with('"'));
    assert_eq!(find(&container, "x", "a").await, Some(written));
}

async fn a_missing_item_is_not_found(world: &World) {
    let container = world.container().await;
    let item = json!({"id": "a", "pk": "x"});
    assert_eq!(refused(container.read_item("x", "a", None).await), 404);
    assert_eq!(refused(container.replace_item("x", "a", item, None).await), 404);
    assert_eq!(refused(container.delete_item("x", "a", None).await), 404);
}

async fn an_id_can_be_used_once_in_a_partition(world: &World) {
    let container = world.container().await;
    let in_x = json!({"id": "a", "pk": "x"});
    container.create_item("x", "a", &in_x, None).await.unwrap();
    assert_eq!(refused(container.create_item("x", "a", &in_x, None).await), 409);
    container.create_item("y", "a", json!({"id": "a", "pk": "y"}), None).await.unwrap();
}

async fn an_old_etag_stops_replace_upsert_and_delete(world: &World) {
    let container = world.container().await;
    let version = |number| json!({"id": "a", "pk": "x", "version": number});
    let created = container.create_item("x", "a", version(1), None).await.unwrap();
    let old = etag(&created);
    let replaced = container.replace_item("x", "a", version(2), None).await.unwrap();
    assert_ne!(etag(&replaced), old);

    let third = version(3);
    assert_eq!(refused(container.replace_item("x", "a", &third, only_if(&old)).await), 412);
    assert_eq!(refused(container.upsert_item("x", "a", &third, only_if(&old)).await), 412);
    assert_eq!(refused(container.delete_item("x", "a", only_if(&old)).await), 412);
    assert_eq!(find(&container, "x", "a").await.unwrap()["version"], 2);
}

async fn the_current_etag_lets_a_write_through(world: &World) {
    let container = world.container().await;
    let item = json!({"id": "a", "pk": "x"});
    let created = container.create_item("x", "a", &item, None).await.unwrap();
    let replaced = container.replace_item("x", "a", &item, only_if(&etag(&created))).await.unwrap();
    container.delete_item("x", "a", only_if(&etag(&replaced))).await.unwrap();
    assert_eq!(find(&container, "x", "a").await, None);
}

async fn an_item_is_patched_by_the_server(world: &World) {
    let container = world.container().await;
    container.create_item("x", "a", json!({"id": "a", "pk": "x", "n": 1}), None).await.unwrap();
    let server_side = || Some(PatchItemOptions::default().with_strategy(PatchStrategy::ServerSide));
    let more = || {
        PatchInstructions::new()
            .with_operation(PatchOperation::increment("/n", 2i64))
            .with_operation(PatchOperation::set("/colour", json!("red")))
            .with_operation(PatchOperation::move_value("/colour", "/paint"))
    };
    let patched = container.patch_item("x", "a", more(), server_side()).await.unwrap();
    assert_eq!(status(&patched), 200);
    let item = find(&container, "x", "a").await.unwrap();
    assert_eq!(
        (&item["n"], &item["paint"], &item["colour"]),
        (&json!(3), &json!("red"), &Value::Null)
    );
    assert_eq!(refused(container.patch_item("x", "b", more(), server_side()).await), 404);
    let none = PatchInstructions::new().with_operation(PatchOperation::replace("/no", json!(1)));
    assert_eq!(refused(container.patch_item("x", "a", none, server_side()).await), 400);
}

async fn an_unchanged_item_is_not_sent_again(world: &World) {
    let container = world.container().await;
    let item = json!({"id": "a", "pk": "x"});
    let created = container.create_item("x", "a", &item, None).await.unwrap();
    let changed = Precondition::if_none_match(etag(&created));
    let only_if_changed = || Some(ItemReadOptions::default().with_precondition(changed.clone()));

    let unchanged = container.read_item("x", "a", only_if_changed()).await.unwrap();
    assert_eq!(status(&unchanged), 304);
    assert!(unchanged.into_body().is_empty());

    container.replace_item("x", "a", &item, None).await.unwrap();
    let read = container.read_item("x", "a", only_if_changed()).await.unwrap();
    assert_eq!(status(&read), 200);
}

async fn a_write_sends_its_item_back_only_when_asked(world: &World) {
    let container = world.container().await;
    let item = json!({"id": "a", "pk": "x"});
    let without = container.create_item("x", "a", &item, None).await.unwrap();
    assert!(!etag(&without).is_empty());
    assert!(without.into_body().is_empty());

    let with = container.replace_item("x", "a", &item, with_body()).await.unwrap();
    let replaced: Value = with.into_model().unwrap();
    assert_eq!(replaced["id"], "a");
}

async fn an_id_may_hold_special_characters(world: &World) {
    for id in [
        "with space",
        "plus+and&ampersand",
        "percent%20 and 100%",
        "\"quotes\" and 'more'",
        "Zoë 你好 🪰",
        "semi;colon:comma,at@equals=",
        "(brackets)[]{}<>|^`~",
        "$dollar!star*",
        "dots..and.dots",
        "-_-",
        &"a".repeat(255),
    ] {
        let container = world.container().await;
        let item = json!({"id": id, "pk": "x"});
        container.create_item("x", id, &item, None).await.unwrap();
        assert_eq!(find(&container, "x", id).await.unwrap()["id"], id);

        container.replace_item("x", id, &item, None).await.unwrap();
        let twice = json!({"id": id, "pk": "x", "replaced": "twice"});
        container.upsert_item("x", id, twice, None).await.unwrap();
        assert_eq!(find(&container, "x", id).await.unwrap()["replaced"], "twice");

        container.delete_item("x", id, None).await.unwrap();
        assert_eq!(find(&container, "x", id).await, None);
    }
}

async fn databases_and_containers_may_have_special_names(world: &World) {
    for name in ["with space", "Zoë 你好", "plus+percent%25", "quote'quote\""] {
        let database = create_database(&world.client, name).await;
        let properties = ContainerProperties::new(name, "/pk".into());
        database.create_container(properties, None).await.unwrap();

        let container = database.container_client(name, None).await.unwrap();
        let item = json!({"id": name, "pk": name});
        container.create_item(name, name, item, None).await.unwrap();
        assert_eq!(find(&container, name, name).await.unwrap()["pk"], name);
        database.delete(None).await.unwrap();
    }
}

async fn the_response_headers_tell_about_the_request(world: &World) {
    let container = world.container().await;
    let item = json!({"id": "a", "pk": "x"});
    let created = container.create_item("x", "a", item, with_body()).await.unwrap();
    let read = container.read_item("x", "a", None).await.unwrap();

    for response in [created, read] {
        let headers = response.headers();
        assert!(headers.request_charge().unwrap().value() > 0.0);
        assert!(!headers.activity_id().unwrap().as_str().is_empty());
        assert!(headers.session_token().unwrap().as_str().starts_with("0:"));
        assert!(headers.server_duration().is_some());
        assert!(headers.lsn().unwrap() > 0);
        assert!(headers.item_lsn().unwrap() > 0);
        assert_eq!(headers.partition_key_range_id(), Some("0"));

        let etag = etag(&response);
        assert_eq!(response.into_model::<Value>().unwrap()["_etag"], etag);
    }
}

async fn every_write_moves_the_session_token(world: &World) {
    let container = world.container().await;
    let item = json!({"id": "a", "pk": "x"});
    let created = container.create_item("x", "a", &item, None).await.unwrap();
    let replaced = container.replace_item("x", "a", &item, None).await.unwrap();
    let read = container.read_item("x", "a", None).await.unwrap();

    assert!(lsn(&replaced) > lsn(&created));
    assert!(lsn(&read) >= lsn(&replaced));
}

async fn a_unique_key_is_unique_in_its_partition(world: &World) {
    let email = UniqueKey::default().with_path("/email");
    let unique = UniqueKeyPolicy::default().with_unique_key(email);
    let container = world.container_like(properties().with_unique_key_policy(unique)).await;
    let item = |id, pk| json!({"id": id, "pk": pk, "email": "zoe@example.com"});

    container.create_item("x", "a", item("a", "x"), None).await.unwrap();
    assert_eq!(refused(container.create_item("x", "b", item("b", "x"), None).await), 409);
    container.create_item("y", "b", item("b", "y"), None).await.unwrap();

    container.delete_item("x", "a", None).await.unwrap();
    container.create_item("x", "b", item("b", "x"), None).await.unwrap();
}

fn etag(response: &ItemResponse) -> String {
    response.headers().etag().unwrap().to_string()
}

fn lsn(response: &ItemResponse) -> u64 {
    let token = response.headers().session_token().unwrap().as_str();
    token.rsplit_once('#').unwrap().1.parse().unwrap()
}
