//! The change feed: the latest versions, and all of them with what was deleted or expired.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use azure_data_cosmos::CosmosError;
use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::{ChangeFeedPageIterator, ContinuationToken, FeedScope};
use azure_data_cosmos::models::{
    ChangeFeedItem, ChangeFeedOperationType, ChangeFeedPolicy, ContainerProperties,
    ThroughputProperties, TimeToLive,
};
use azure_data_cosmos::options::{
    ChangeFeedMode, ChangeFeedOptions, ChangeFeedStartFrom, MaxItemCountHint,
};
use dayfly_sdk_tests::{World, over_http_and_https, properties, refused};
use futures::StreamExt;
use serde_json::{Value, json};
use time::OffsetDateTime;

over_http_and_https! {
    the_latest_versions_come_once,
    pages_have_as_many_as_they_may,
    from_a_time_come_the_later_ones,
    a_partition_has_its_own_changes,
    what_has_expired_is_in_no_page,
    every_version_and_its_end,
    every_version_is_told_without_a_policy,
    an_expiry_is_told_once,
    every_version_is_told_from_now_on_only,
    the_latest_versions_go_on_where_ranges_divide,
    every_version_goes_on_where_ranges_divide,
}

/// So many pages with nothing in a row are the end: each range may have one.
const EMPTY_PAGES: usize = 10;

/// Longer than the background takes to tell of an expiry.
const PATIENCE: Duration = Duration::from_secs(20);

async fn the_latest_versions_come_once(world: &World) {
    let container = world.container().await;
    let mut feed = Feed::latest(&container);
    assert_eq!(ids(&feed.read().await), [""; 0]);
    for n in 0..5 {
        put(&container, "x", &n.to_string(), 0).await;
    }
    put(&container, "x", "1", 1).await;
    container.delete_item("x", "2", None).await.unwrap();
    let changes = feed.read().await;
    assert_eq!(ids(&changes), ["0", "3", "4", "1"]);
    assert_eq!(changes[3].current().unwrap()["n"], 1);
    let lsns: Vec<_> = changes.iter().map(lsn).collect();
    assert!(lsns.is_sorted() && lsns[0] > 0);
    assert_eq!(ids(&feed.read().await), [""; 0]);
    put(&container, "y", "5", 0).await;
    assert_eq!(ids(&feed.read().await), ["5"]);
    assert_eq!(ids(&Feed::latest(&container).read().await), ["0", "3", "4", "1", "5"]);
    let mut later = Feed { start: ChangeFeedStartFrom::Now, ..Feed::latest(&container) };
    assert_eq!(ids(&later.read().await), [""; 0]);
    put(&container, "y", "6", 0).await;
    assert_eq!(ids(&later.read().await), ["6"]);
}

async fn pages_have_as_many_as_they_may(world: &World) {
    let container = world.container().await;
    for n in 0..5 {
        put(&container, "x", &n.to_string(), 0).await;
    }
    let mut feed = Feed::latest(&container);
    feed.size = 2;
    let mut sizes = Vec::new();
    for _ in 0..4 {
        sizes.push(feed.page().await.unwrap().len());
    }
    assert_eq!(sizes, [2, 2, 1, 0]);
}

async fn from_a_time_come_the_later_ones(world: &World) {
    let container = world.container().await;
    put(&container, "x", "before", 0).await;
    world.advance(10).await;
    put(&container, "x", "after", 0).await;
    let now = i64::try_from(world.now().await).unwrap();
    for (second, expected) in [(now, vec!["after"]), (now + 60, vec![])] {
        let time = OffsetDateTime::from_unix_timestamp(second).unwrap();
        let start = ChangeFeedStartFrom::PointInTime(time);
        let mut feed = Feed { start, ..Feed::latest(&container) };
        assert_eq!(ids(&feed.read().await), expected);
    }
}

async fn a_partition_has_its_own_changes(world: &World) {
    let container = world.wide_container().await;
    for (pk, id) in [("x", "a"), ("y", "b"), ("x", "c")] {
        put(&container, pk, id, 0).await;
    }
    let mut feed = Feed { scope: FeedScope::partition("x"), ..Feed::latest(&container) };
    assert_eq!(ids(&feed.read().await), ["a", "c"]);
    put(&container, "y", "d", 0).await;
    put(&container, "x", "a", 1).await;
    assert_eq!(ids(&feed.read().await), ["a"]);
}

async fn what_has_expired_is_in_no_page(world: &World) {
    let container = mortal_container(world).await;
    let mut behind = Feed::latest(&container);
    behind.read().await;
    let mortal = json!({"id": "mortal", "pk": "x", "ttl": 5});
    container.create_item("x", "mortal", mortal, None).await.unwrap();
    put(&container, "x", "eternal", 0).await;
    world.advance(4).await;
    assert_eq!(ids(&Feed::latest(&container).read().await), ["mortal", "eternal"]);
    world.advance(1).await;
    assert_eq!(ids(&Feed::latest(&container).read().await), ["eternal"]);
    assert_eq!(ids(&behind.read().await), ["eternal"]);
}

async fn every_version_and_its_end(world: &World) {
    let policy = ChangeFeedPolicy::default().with_retention_duration(Duration::from_secs(3600));
    tell_every_version(world, properties().with_change_feed_policy(policy)).await;
}

async fn every_version_is_told_without_a_policy(world: &World) {
    tell_every_version(world, properties()).await;
}

async fn tell_every_version(world: &World, properties: ContainerProperties) {
    let container = world.container_like(properties).await;
    let mut feed = Feed::versions(&container);
    assert_eq!(ids(&feed.read().await), [""; 0]);
    put(&container, "x", "a", 0).await;
    put(&container, "x", "a", 1).await;
    container.delete_item("x", "a", None).await.unwrap();
    let changes = feed.read().await;
    assert_eq!(told(&changes), ["create a", "replace a", "delete a"]);
    let [create, replace, delete] = changes.try_into().unwrap();
    assert_eq!(previous_lsn(&create), None);
    assert_eq!(previous_lsn(&replace), Some(lsn(&create)));
    assert_eq!(previous_lsn(&delete), Some(lsn(&replace)));
    assert!(delete.current().is_none());
    assert_eq!(delete.previous().unwrap()["n"], 1);
    assert_eq!(delete.metadata().unwrap().partition_key(), Some(&json!({"pk": "x"})));
    assert_ne!(delete.metadata().unwrap().time_to_live_expired(), Some(true));
    assert_eq!(ids(&feed.read().await), [""; 0]);
}

async fn an_expiry_is_told_once(world: &World) {
    let container = mortal_container(world).await;
    let mut feed = Feed::versions(&container);
    feed.read().await;
    let mortal = json!({"id": "a", "pk": "x", "ttl": 5});
    container.create_item("x", "a", &mortal, None).await.unwrap();
    assert_eq!(told(&feed.read().await), ["create a"]);
    world.advance(5).await;
    let began = Instant::now();
    let mut changes = Vec::new();
    while changes.is_empty() {
        assert!(began.elapsed() < PATIENCE, "the expiry was not told");
        changes = feed.read().await;
    }
    assert_eq!(told(&changes), ["delete a by its ttl"]);
    assert!(changes[0].previous().is_none());
    container.create_item("x", "a", &mortal, None).await.unwrap();
    assert_eq!(told(&feed.read().await), ["create a"]);
    // Whoever takes the id first tells of its end in the same commit.
    world.advance(5).await;
    container.create_item("x", "a", &mortal, None).await.unwrap();
    assert_eq!(told(&feed.read().await), ["delete a by its ttl", "create a"]);
}

async fn every_version_is_told_from_now_on_only(world: &World) {
    let container = world.container().await;
    let time = OffsetDateTime::from_unix_timestamp(1_700_000_000).unwrap();
    for start in [ChangeFeedStartFrom::Beginning, ChangeFeedStartFrom::PointInTime(time)] {
        let mut feed = Feed { start, ..Feed::versions(&container) };
        assert_eq!(refused(feed.page().await), 400);
    }
}

async fn the_latest_versions_go_on_where_ranges_divide(world: &World) {
    let container = world.container().await;
    fill(&container).await;
    let mut feed = Feed::latest(&container);
    feed.size = 7;
    let mut changes = feed.page().await.unwrap();
    assert_eq!(ids(&changes), numbered(0..7));
    divide(&container, 25000).await;
    changes.extend(feed.read().await);
    assert_eq!(sorted(ids(&changes)), sorted(numbered(0..40)));
    for n in [3, 20, 39] {
        put(&container, &format!("p{}", n % 15), &format!("i{n}"), 100).await;
    }
    divide(&container, 60000).await;
    assert_eq!(sorted(ids(&feed.read().await)), ["i20", "i3", "i39"]);
    assert_eq!(ids(&feed.read().await), [""; 0]);
}

async fn every_version_goes_on_where_ranges_divide(world: &World) {
    let container = world.container().await;
    let mut feed = Feed::versions(&container);
    feed.read().await;
    fill(&container).await;
    feed.size = 7;
    let mut changes = feed.page().await.unwrap();
    assert_eq!(ids(&changes), numbered(0..7));
    divide(&container, 25000).await;
    container.delete_item("p3", "i3", None).await.unwrap();
    changes.extend(feed.read().await);
    let expected = numbered(0..40).into_iter().map(|id| format!("create {id}"));
    let expected = sorted(expected.chain(["delete i3".to_owned()]).collect());
    assert_eq!(sorted(told(&changes)), expected);
    assert_eq!(ids(&feed.read().await), [""; 0]);
}

type Change = ChangeFeedItem<Value>;

/// Somebody who reads a feed, and each time begins anew with a token.
struct Feed<'a> {
    container: &'a ContainerClient,
    scope: FeedScope,
    mode: ChangeFeedMode,
    start: ChangeFeedStartFrom,
    size: u32,
    token: Option<String>,
}

impl Feed<'_> {
    fn latest(container: &ContainerClient) -> Feed<'_> {
        Feed {
            container,
            scope: FeedScope::full_container(),
            mode: ChangeFeedMode::LatestVersion,
            start: ChangeFeedStartFrom::Beginning,
            size: 100,
            token: None,
        }
    }

    fn versions(container: &ContainerClient) -> Feed<'_> {
        let mode = ChangeFeedMode::AllVersionsAndDeletes;
        Feed { mode, start: ChangeFeedStartFrom::Now, ..Feed::latest(container) }
    }

    async fn pages(&self) -> Result<ChangeFeedPageIterator<Change>, CosmosError> {
        let size = MaxItemCountHint::Limit(NonZeroU32::new(self.size).unwrap());
        let mut options =
            ChangeFeedOptions::default().with_mode(self.mode).with_max_item_count(size);
        if let Some(token) = &self.token {
            options =
                options.with_continuation_token(ContinuationToken::from_string(token.clone()));
        }
        let changes =
            self.container.query_change_feed(self.scope.clone(), self.start.clone(), Some(options));
        changes.await
    }

    fn keep(&mut self, pages: &ChangeFeedPageIterator<Change>) {
        self.token = Some(pages.to_continuation_token().unwrap().as_str().to_owned());
    }

    /// The next page, which may have nothing.
    async fn page(&mut self) -> Result<Vec<Change>, CosmosError> {
        let mut pages = self.pages().await?;
        let page = pages.next().await.unwrap()?;
        self.keep(&pages);
        Ok(page.into_items())
    }

    /// All that comes, until nothing comes any more.
    async fn read(&mut self) -> Vec<Change> {
        let mut pages = self.pages().await.unwrap();
        let (mut changes, mut empty) = (Vec::new(), 0);
        while empty < EMPTY_PAGES {
            let page = pages.next().await.unwrap().unwrap().into_items();
            empty = if page.is_empty() { empty + 1 } else { 0 };
            changes.extend(page);
        }
        self.keep(&pages);
        changes
    }
}

async fn put(container: &ContainerClient, pk: &str, id: &str, n: u64) {
    let item = json!({"id": id, "pk": pk, "n": n});
    container.upsert_item(pk.to_owned(), id, item, None).await.unwrap();
}

/// Forty items in fifteen partitions.
async fn fill(container: &ContainerClient) {
    for n in 0..40 {
        put(container, &format!("p{}", n % 15), &format!("i{n}"), n).await;
    }
}

/// Raises the throughput, which divides the ranges.
async fn divide(container: &ContainerClient, throughput: usize) {
    let throughput = ThroughputProperties::manual(throughput.try_into().unwrap());
    container.begin_replace_throughput(throughput, None).await.unwrap().await.unwrap();
}

async fn mortal_container(world: &World) -> ContainerClient {
    world.container_like(properties().with_default_ttl(TimeToLive::NoDefault)).await
}

fn ids(changes: &[Change]) -> Vec<String> {
    let ids = changes.iter().map(|change| match change.current() {
        Some(current) => current["id"].as_str().unwrap(),
        None => change.metadata().unwrap().id().unwrap(),
    });
    ids.map(str::to_owned).collect()
}

/// What happened to which item.
fn told(changes: &[Change]) -> Vec<String> {
    let told = changes.iter().zip(ids(changes)).map(|(change, id)| {
        let operation = match change.operation_type() {
            Some(ChangeFeedOperationType::Create) => "create",
            Some(ChangeFeedOperationType::Replace) => "replace",
            Some(ChangeFeedOperationType::Delete) => "delete",
            other => panic!("{other:?}"),
        };
        let expired = change.metadata().unwrap().time_to_live_expired() == Some(true);
        format!("{operation} {id}{}", if expired { " by its ttl" } else { "" })
    });
    told.collect()
}

fn lsn(change: &Change) -> i64 {
    change.metadata().unwrap().lsn().unwrap().value()
}

fn previous_lsn(change: &Change) -> Option<i64> {
    change.metadata().unwrap().previous_image_lsn().map(|lsn| lsn.value())
}

fn numbered(numbers: std::ops::Range<u64>) -> Vec<String> {
    numbers.map(|n| format!("i{n}")).collect()
}

fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort();
    ids
}
