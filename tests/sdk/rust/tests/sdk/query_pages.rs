//! Queries page by page: how long pages are, and how a query goes on from a token.

use std::num::NonZeroU32;

use azure_data_cosmos::clients::{ContainerClient, DatabaseClient};
use azure_data_cosmos::feed::{ContinuationToken, FeedScope};
use azure_data_cosmos::models::ContainerProperties;
use azure_data_cosmos::options::{MaxItemCountHint, QueryOptions, QueryPlanMode};
use dayfly_sdk_tests::{
    World, ask, ask_by_page, create_database, create_wide_container, over_http_and_https, unique,
};
use serde_json::{Value, json};

over_http_and_https! {
    pages_are_as_long_as_asked_for,
    a_query_of_one_partition_goes_on_from_its_token,
    a_query_of_all_ranges_goes_on_from_its_token,
    what_is_written_behind_a_page_is_not_seen_and_what_is_ahead_is,
    a_query_goes_on_after_the_server_was_killed,
}

const COUNT: u64 = 40;

/// Each kind of query keeps its place in a way of its own.
const STREAMED: &[&str] = &[
    "SELECT VALUE c.n FROM c",
    "SELECT VALUE c.n FROM c WHERE c.n % 3 = 1",
    "SELECT TOP 17 VALUE c.n FROM c",
    "SELECT VALUE c.n FROM c OFFSET 5 LIMIT 20",
];
const SORTED: &[&str] = &[
    "SELECT VALUE c.n FROM c ORDER BY c.rank",
    "SELECT VALUE c.n FROM c ORDER BY c.rank DESC",
    "SELECT VALUE c.n FROM c ORDER BY c.four",
    "SELECT TOP 17 VALUE c.n FROM c ORDER BY c.rank",
    "SELECT VALUE c.n FROM c ORDER BY c.rank OFFSET 5 LIMIT 20",
];

const MODES: [QueryPlanMode; 2] = [QueryPlanMode::LocalPreferred, QueryPlanMode::GatewayOnly];

async fn pages_are_as_long_as_asked_for(world: &World) {
    let filled = fill(&world.database, |_| "x".to_owned()).await;
    for query in ["SELECT * FROM c", "SELECT * FROM c ORDER BY c.rank"] {
        for (size, lengths) in [(9, vec![9, 9, 9, 9, 4]), (40, vec![40]), (1000, vec![40])] {
            let pages = ask_by_page(&filled, query, FeedScope::partition("x"), pages_of(size));
            let found: Vec<_> = pages.await.iter().map(|(rows, _)| rows.len()).collect();
            assert_eq!(found, lengths, "{query}");
        }
    }
}

async fn a_query_of_one_partition_goes_on_from_its_token(world: &World) {
    let filled = fill(&world.database, |_| "x".to_owned()).await;
    for query in STREAMED.iter().chain(SORTED) {
        let whole = ask(&filled, *query, FeedScope::partition("x"), pages_of(1000)).await.unwrap();
        let pages = ask_by_page(&filled, query, FeedScope::partition("x"), pages_of(3)).await;
        assert!(pages.len() > 2);
        let mut seen = Vec::new();
        for (rows, token) in pages {
            seen.extend(rows);
            let rest = rest(&filled, query, FeedScope::partition("x"), pages_of(4), token).await;
            assert_eq!([seen.clone(), rest].concat(), whole, "{query}");
        }
    }
}

async fn a_query_of_all_ranges_goes_on_from_its_token(world: &World) {
    let filled = fill(&world.database, partition).await;
    let everywhere = FeedScope::full_container;
    for query in STREAMED.iter().chain(SORTED) {
        for mode in MODES {
            let of = |size| pages_of(size).with_query_plan_mode(mode);
            let whole = ask(&filled, *query, everywhere(), of(1000)).await.unwrap();
            let pages = ask_by_page(&filled, query, everywhere(), of(3)).await;
            assert!(pages.len() > 2);
            let mut seen = Vec::new();
            for (at, (rows, token)) in pages.into_iter().enumerate() {
                seen.extend(rows);
                if at % 3 > 0 {
                    continue;
                }
                let rest = rest(&filled, query, everywhere(), of(4), token).await;
                assert_same([seen.clone(), rest].concat(), &whole, query);
            }
        }
    }
}

async fn what_is_written_behind_a_page_is_not_seen_and_what_is_ahead_is(world: &World) {
    let filled = fill(&world.database, |_| "x".to_owned()).await;
    let query = "SELECT VALUE c.rank FROM c ORDER BY c.rank";
    let scope = || FeedScope::partition("x");
    let (first, token) = ask_by_page(&filled, query, scope(), pages_of(10)).await.remove(0);
    for (id, rank) in [("behind", 2.5), ("ahead", 35.5)] {
        let item = json!({"id": id, "pk": "x", "rank": rank});
        filled.create_item("x", id, item, None).await.unwrap();
    }

    let rest = rest(&filled, query, scope(), pages_of(10), token).await;
    let mut expected: Vec<Value> = (first.len() as u64..COUNT).map(Value::from).collect();
    expected.insert(36 - first.len(), json!(35.5));
    assert_eq!(rest, expected);
}

async fn a_query_goes_on_after_the_server_was_killed(world: &World) {
    let folder = std::env::temp_dir().join(unique("dayfly"));
    let everywhere: fn() -> FeedScope = FeedScope::full_container;
    let in_x: fn() -> FeedScope = || FeedScope::partition("x");
    let all = STREAMED.iter().chain(SORTED).map(|query| (*query, everywhere));
    let asked: Vec<_> = all.chain(SORTED.iter().map(|query| (*query, in_x))).collect();
    let mut first = Vec::new();
    let server = world.with_server(&folder, async |client| {
        let half_in_x = |n| if n % 2 == 0 { "x".to_owned() } else { partition(n) };
        let filled = fill(&create_database(client, "db").await, half_in_x).await;
        for (query, scope) in &asked {
            let whole = ask(&filled, *query, scope(), pages_of(1000)).await.unwrap();
            let page = ask_by_page(&filled, query, scope(), pages_of(2)).await.remove(0);
            assert!(page.0.len() < whole.len());
            first.push((whole, page));
        }
    });
    server.await;

    let server = world.with_server(&folder, async |client| {
        let filled = client.database_client("db").container_client("filled", None).await.unwrap();
        for ((query, scope), (whole, (rows, token))) in asked.iter().zip(first) {
            let rest = rest(&filled, query, scope(), pages_of(4), token).await;
            assert_same([rows, rest].concat(), &whole, query);
        }
    });
    server.await;
    std::fs::remove_dir_all(&folder).unwrap();
}

/// 40 items in a container of four ranges.
async fn fill(database: &DatabaseClient, pk: impl Fn(u64) -> String) -> ContainerClient {
    let properties = ContainerProperties::new("filled", "/pk".into());
    let filled = create_wide_container(database, properties).await;
    for n in 0..COUNT {
        let (id, pk) = (format!("i{n}"), pk(n));
        let item = json!({"id": id, "pk": pk, "n": n, "rank": n * 11 % COUNT, "four": n % 4});
        filled.create_item(pk, &id, item, None).await.unwrap();
    }
    filled
}

fn partition(n: u64) -> String {
    format!("p{}", n % 15)
}

fn pages_of(size: u32) -> QueryOptions {
    let size = NonZeroU32::new(size).unwrap();
    QueryOptions::default().with_max_item_count(MaxItemCountHint::Limit(size))
}

/// The rows from a token on.
async fn rest(
    container: &ContainerClient,
    query: &str,
    scope: FeedScope,
    options: QueryOptions,
    token: ContinuationToken,
) -> Vec<Value> {
    // As after a restart of the client: through text.
    let token = ContinuationToken::from_string(token.as_str().to_owned());
    ask(container, query, scope, options.with_continuation_token(token)).await.unwrap()
}

/// Rows without an order come as the ranges are asked. None comes twice.
fn assert_same(rows: Vec<Value>, whole: &[Value], query: &str) {
    if query.contains("ORDER BY") {
        return assert_eq!(rows, whole, "{query}");
    }
    let mut numbers: Vec<_> = rows.iter().map(Value::as_u64).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!((rows.len(), numbers.len()), (whole.len(), whole.len()), "{query}");
}
