//! A throughput that is enforced: who asks for more waits, and tries again.

use azure_data_cosmos::ResourceIdentity;
use dayfly_sdk_tests::{World, find, over_http_and_https, properties};
use serde_json::json;

over_http_and_https! {
    who_asks_for_too_much_waits_and_tries_again,
}

async fn who_asks_for_too_much_waits_and_tries_again(world: &World) {
    let ResourceIdentity::Name(database) = world.database.id() else { panic!("it has a name") };
    let properties = properties();
    let call = format!("containers/{database}/{}/throughput", properties.id);
    let container = world.container_like(properties).await;
    world.put_admin(&call, json!({"mode": "enforced"})).await;
    // What it costs is taken when it is done, and is more than there is for two seconds: a clock
    // that runs again may be anywhere in its second.
    let large = json!({"id": "large", "pk": "x", "text": "x".repeat(1_900_000)});
    container.create_item("x", "large", large, None).await.unwrap();
    world
        .while_time_passes(async {
            let small = json!({"id": "small", "pk": "x"});
            container.create_item("x", "small", small, None).await.unwrap();
        })
        .await;
    let told = world.read_admin(&format!("{call}?seconds=1")).await;
    assert!(told["total"]["throttled"].as_u64().unwrap() > 0, "{told}");
    world.advance(5).await;
    for id in ["large", "small"] {
        assert!(find(&container, "x", id).await.is_some(), "{id}");
    }
}
