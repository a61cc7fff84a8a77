//! Queries: in one partition, and over several ranges.
//!
//! Over several ranges the SDK sends each range its part of a query and puts the
//! answers together, by a plan that it makes itself or asks the server for.

use azure_data_cosmos::Query;
use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::models::{
    CompositeIndex, CompositeIndexOrder, CompositeIndexProperty, ContainerProperties,
    IndexingPolicy,
};
use azure_data_cosmos::options::{MaxItemCountHint, QueryOptions, QueryPlanMode};
use dayfly_sdk_tests::{
    World, ask, create_wide_container, over_http_and_https, properties, refused, unique,
};
use futures::StreamExt;
use serde_json::{Value, json};

over_http_and_https! {
    a_query_of_one_partition_sees_that_partition,
    rows_are_in_order_across_ranges,
    rows_are_found_in_all_ranges,
    a_part_of_the_rows_can_be_asked_for,
    parameters_stand_for_values,
    feed_ranges_have_the_rows_of_the_container_between_them,
    the_start_of_a_hierarchical_key_finds_everything_below_it,
    a_query_tells_its_metrics_and_charge,
    a_wrong_query_is_refused_with_its_code,
}

const COUNT: u64 = 60;

async fn a_query_of_one_partition_sees_that_partition(world: &World) {
    let orders = orders(world).await;
    for (query, expected) in [
        ("SELECT VALUE c.n FROM c ORDER BY c.n DESC", json!([43, 23, 3])),
        ("SELECT VALUE c.n FROM c WHERE c.n > 3 ORDER BY c.n", json!([23, 43])),
        ("SELECT TOP 2 VALUE c.n FROM c ORDER BY c.n", json!([3, 23])),
        ("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 1 LIMIT 1", json!([23])),
        ("SELECT VALUE COUNT(1) FROM c", json!([3])),
        ("SELECT VALUE SUM(c.n) FROM c", json!([69])),
        ("SELECT c.pk, MAX(c.n) AS most FROM c GROUP BY c.pk", json!([{"pk": "p3", "most": 43}])),
        ("SELECT DISTINCT VALUE c.pk FROM c", json!(["p3"])),
        ("SELECT VALUE t FROM c JOIN t IN c.tags WHERE c.n = 23", json!(["a", "b", "c"])),
    ] {
        for size in [None, Some(1)] {
            let rows = ask(&orders, query, FeedScope::partition("p3"), pages_of(size)).await;
            assert_eq!(Value::from(rows.unwrap()), expected, "{query}");
        }
    }
    let nobody = FeedScope::partition("nobody");
    let count = ask(&orders, "SELECT VALUE COUNT(1) FROM c", nobody, pages_of(None)).await;
    assert_eq!(count.unwrap(), [0]);
}

async fn rows_are_in_order_across_ranges(world: &World) {
    let orders = orders(world).await;
    let totals = |range: std::ops::Range<u64>| range.collect::<Vec<_>>();
    let downwards = (0..COUNT).rev().collect::<Vec<_>>();
    let by_colour = "SELECT VALUE c.total FROM c ORDER BY c.colour, c.total DESC";
    let mut of_colours = Vec::new();
    for colour in 0..3 {
        of_colours.extend(downwards.iter().filter(|total| (*total * 43 % COUNT) % 3 == colour));
    }
    let cases = [
        ("SELECT VALUE c.total FROM c ORDER BY c.total", totals(0..60)),
        ("SELECT VALUE c.total FROM c ORDER BY c.total DESC", downwards),
        ("SELECT VALUE c.total FROM c WHERE c.total >= 50 ORDER BY c.total", totals(50..60)),
        (by_colour, of_colours),
        ("SELECT TOP 5 VALUE c.total FROM c ORDER BY c.total", totals(0..5)),
        ("SELECT VALUE c.total FROM c ORDER BY c.total OFFSET 10 LIMIT 4", totals(10..14)),
        ("SELECT VALUE c.total FROM c ORDER BY c.total OFFSET 58 LIMIT 10", totals(58..60)),
        ("SELECT DISTINCT VALUE c.colour FROM c ORDER BY c.colour", totals(0..3)),
    ];
    for (query, expected) in cases {
        for options in every_way() {
            let rows = ask(&orders, query, FeedScope::full_container(), options).await;
            assert_eq!(Value::from(rows.unwrap()), json!(expected), "{query}");
        }
    }
}

async fn rows_are_found_in_all_ranges(world: &World) {
    let orders = orders(world).await;
    for (condition, expected) in [
        ("true", filter(|_| true)),
        ("c.colour = 1", filter(|n| n % 3 == 1)),
        ("c.total BETWEEN 10 AND 19", filter(|n| (10..20).contains(&(n * 7 % COUNT)))),
        ("ARRAY_CONTAINS(c.tags, 'c')", filter(|n| n % 4 == 3)),
        ("EXISTS (SELECT VALUE t FROM t IN c.tags WHERE t = 'b')", filter(|n| n % 4 > 1)),
        ("c.pk = 'p3'", filter(|n| n % 20 == 3)),
        ("c.pk IN ('p3', 'p4')", filter(|n| n % 20 == 3 || n % 20 == 4)),
        ("c.total > 100", vec![]),
    ] {
        let query = format!("SELECT VALUE c.n FROM c WHERE {condition}");
        for options in every_way() {
            assert_eq!(sorted(&orders, query.as_str(), options).await, expected, "{condition}");
        }
    }
    for options in every_way() {
        let query = "SELECT DISTINCT TOP 10 VALUE c.colour FROM c";
        assert_eq!(sorted(&orders, query, options).await, [0, 1, 2]);
    }
}

async fn a_part_of_the_rows_can_be_asked_for(world: &World) {
    let orders = orders(world).await;
    for (query, count) in [
        ("SELECT TOP 5 VALUE c.n FROM c", 5),
        ("SELECT TOP 100 VALUE c.n FROM c", 60),
        ("SELECT VALUE c.n FROM c OFFSET 3 LIMIT 7", 7),
        ("SELECT VALUE c.n FROM c OFFSET 57 LIMIT 7", 3),
        ("SELECT VALUE c.n FROM c OFFSET 60 LIMIT 7", 0),
    ] {
        for options in every_way() {
            let mut rows = sorted(&orders, query, options).await;
            rows.dedup();
            assert_eq!(rows.len(), count, "{query}");
        }
    }
}

async fn parameters_stand_for_values(world: &World) {
    let orders = orders(world).await;
    for (condition, value, expected) in [
        ("c.colour = @v", json!(2), filter(|n| n % 3 == 2)),
        ("c.pk = @v", json!("p7"), filter(|n| n % 20 == 7)),
        ("(c.colour = 0) = @v", json!(true), filter(|n| n % 3 == 0)),
        ("c.tags = @v", json!(["a"]), filter(|n| n % 4 == 1)),
        ("ARRAY_CONTAINS(@v, c.n)", json!([1, 2, 100]), vec![1, 2]),
        ("c.pk = @v", json!("' OR true OR '"), vec![]),
        ("c.pk = @v", json!(null), vec![]),
    ] {
        let text = format!("SELECT VALUE c.n FROM c WHERE {condition}");
        for options in every_way() {
            let query = Query::from(text.as_str()).with_parameter("@v", &value).unwrap();
            assert_eq!(sorted(&orders, query, options).await, expected, "{condition}");
        }
    }
}

async fn feed_ranges_have_the_rows_of_the_container_between_them(world: &World) {
    let orders = orders(world).await;
    let ranges = orders.read_feed_ranges(None).await.unwrap();
    assert_eq!(ranges.len(), 4);
    let mut found = Vec::new();
    for range in ranges {
        let range = FeedScope::range(range);
        let query = "SELECT VALUE c.n FROM c ORDER BY c.n";
        let rows = ask(&orders, query, range, pages_of(Some(3))).await.unwrap();
        assert!(!rows.is_empty());
        assert!(rows.is_sorted_by_key(|row| row.as_u64()));
        found.extend(rows.iter().map(|row| row.as_u64().unwrap()));
    }
    found.sort_unstable();
    assert_eq!(found, filter(|_| true));
}

async fn the_start_of_a_hierarchical_key_finds_everything_below_it(world: &World) {
    let key = ("/tenant", "/user").into();
    let properties = ContainerProperties::new(unique("c"), key);
    let container = create_wide_container(&world.database, properties).await;
    for n in 0..24 {
        let (tenant, user) = (format!("t{}", n % 3), format!("u{n}"));
        let item = json!({"id": n.to_string(), "tenant": tenant, "user": user, "n": n});
        container.create_item((tenant, user), &n.to_string(), item, None).await.unwrap();
    }

    let query = "SELECT VALUE c.n FROM c ORDER BY c.n";
    let below = ask(&container, query, FeedScope::partition("t1"), pages_of(Some(2))).await;
    assert_eq!(below.unwrap(), [1, 4, 7, 10, 13, 16, 19, 22]);
    let one = ask(&container, query, FeedScope::partition(("t1", "u4")), pages_of(None)).await;
    assert_eq!(one.unwrap(), [4]);
}

async fn a_query_tells_its_metrics_and_charge(world: &World) {
    let orders = orders(world).await;
    let options = QueryOptions::default().with_populate_query_metrics(true);
    let query = "SELECT * FROM c WHERE c.n > 3";
    let rows = orders.query_items::<Value>(query, FeedScope::partition("p3"), Some(options));
    let page = rows.await.unwrap().into_pages().next().await.unwrap().unwrap();

    let metrics = page.query_metrics().unwrap();
    assert!(metrics.contains("outputDocumentCount=2;"), "{metrics}");
    assert!(metrics.contains("retrievedDocumentCount="), "{metrics}");
    assert!(page.headers().request_charge().unwrap().value() > 0.0);
    assert_eq!(page.items().len(), 2);
}

async fn a_wrong_query_is_refused_with_its_code(world: &World) {
    let orders = orders(world).await;
    for (query, code) in [
        ("SELECT * FORM c", "SC1001"),
        ("SELECT x.id FROM c", "SC2001"),
        ("SELECT NOSUCH(c.id) FROM c", "SC2005"),
    ] {
        let in_partition = FeedScope::partition("p3");
        let error = ask(&orders, query, in_partition, pages_of(None)).await.unwrap_err();
        assert!(error.to_string().contains(code), "{error}");
        assert_eq!(refused::<()>(Err(error)), 400);
    }
}

/// 60 orders of 20 customers, in a container of four ranges.
async fn orders(world: &World) -> ContainerClient {
    let colour = CompositeIndexProperty::new("/colour", CompositeIndexOrder::Ascending);
    let total = CompositeIndexProperty::new("/total", CompositeIndexOrder::Descending);
    let both = CompositeIndex::default().with_property(colour).with_property(total);
    let index = IndexingPolicy::default().with_included_path("/*").with_composite_index(both);
    let properties = properties().with_indexing_policy(index);
    let orders = create_wide_container(&world.database, properties).await;
    for n in 0..COUNT {
        let (id, pk) = (format!("order-{n}"), format!("p{}", n % 20));
        let tags = &["a", "b", "c"][..(n % 4) as usize];
        let mut item = json!({"id": id, "pk": pk, "n": n, "tags": tags});
        item["total"] = json!(n * 7 % COUNT);
        item["colour"] = json!(n % 3);
        orders.create_item(pk, &id, item, None).await.unwrap();
    }
    orders
}

fn filter(condition: impl Fn(u64) -> bool) -> Vec<u64> {
    (0..COUNT).filter(|n| condition(*n)).collect()
}

fn pages_of(size: Option<u32>) -> QueryOptions {
    match size.and_then(std::num::NonZero::new) {
        Some(size) => QueryOptions::default().with_max_item_count(MaxItemCountHint::Limit(size)),
        None => QueryOptions::default(),
    }
}

/// Plans of the SDK and of the server, with pages of several lengths.
fn every_way() -> impl Iterator<Item = QueryOptions> {
    [QueryPlanMode::LocalPreferred, QueryPlanMode::GatewayOnly].into_iter().flat_map(|mode| {
        let sizes = [None, Some(1), Some(7)].into_iter();
        sizes.map(move |size| pages_of(size).with_query_plan_mode(mode))
    })
}

/// The numbers that a query of the whole container shows, in their order.
async fn sorted(
    container: &ContainerClient,
    query: impl Into<Query>,
    options: QueryOptions,
) -> Vec<u64> {
    let rows = ask(container, query, FeedScope::full_container(), options).await.unwrap();
    let mut numbers: Vec<u64> = rows.iter().map(|row| row.as_u64().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}
