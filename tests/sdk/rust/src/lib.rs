//! A dayfly server for the tests to talk to, its clock, and a client.
//!
//! All tests run twice: over http with a server that keeps its data in memory,
//! and over https with one that keeps it on disk. The tests of one server take
//! turns, because they share its clock.

mod server;

use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError};

use azure_data_cosmos::clients::{ContainerClient, DatabaseClient};
use azure_data_cosmos::feed::{ContinuationToken, FeedScope};
use azure_data_cosmos::models::{ContainerProperties, ItemResponse, ThroughputProperties};
use azure_data_cosmos::options::{
    ConnectionPoolOptions, ContentResponseOnWrite, CreateContainerOptions, ItemWriteOptions,
    Precondition, QueryOptions, ServerCertificateValidation,
};
use azure_data_cosmos::{
    AccountReference, CosmosClient, CosmosError, CosmosRuntime, PartitionKey, Query,
    RoutingStrategy,
};
use futures::{StreamExt, TryStreamExt};
use serde_json::Value;
use tokio::runtime::Runtime;
use uuid::Uuid;

use server::Server;

pub const DAY: u32 = 24 * 60 * 60;
pub const NINETY_DAYS: u32 = 90 * DAY;
pub const YEAR: u32 = 365 * DAY;

/// Makes two tests, one for each scheme, of every function named.
#[macro_export]
macro_rules! over_http_and_https {
    ($($test:ident,)*) => {
        mod http {
            $(#[test] fn $test() { $crate::run(&$crate::HTTP, super::$test) })*
        }
        mod https {
            $(#[test] fn $test() { $crate::run(&$crate::HTTPS, super::$test) })*
        }
    };
}

/// What a test works with.
pub struct World {
    pub client: CosmosClient,
    /// A database of the test's own.
    pub database: DatabaseClient,
    station: &'static Station,
}

/// A server and a client that tests share.
pub struct Station {
    server: Server,
    scheme: &'static str,
    client: CosmosClient,
    turn: Mutex<()>,
}

/// Data in memory, clear text.
pub static HTTP: LazyLock<Station> = LazyLock::new(|| Station::new("http", "--memory"));
/// Data on disk, encrypted.
pub static HTTPS: LazyLock<Station> = LazyLock::new(|| Station::new("https", "--on-disk"));

/// One runtime for all tests: the SDK keeps its connections in it.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

/// Runs one test in a world of its own.
pub fn run(station: &'static Station, test: impl AsyncFnOnce(&World)) {
    let _my_turn = station.turn.lock().unwrap_or_else(PoisonError::into_inner);
    RUNTIME.block_on(async {
        let client = station.client.clone();
        let database = create_database(&client, &unique("db")).await;
        let world = World { client, database, station };
        test(&world).await;
        world.database.delete(None).await.unwrap();
    });
}

impl Station {
    fn new(scheme: &'static str, storage: &str) -> Self {
        let server = Server::start(&[storage]);
        let client = RUNTIME.block_on(async {
            server.freeze_clock().await;
            connect(&server.endpoint(scheme), &server.key).await.unwrap()
        });
        Self { server, scheme, client, turn: Mutex::new(()) }
    }
}

impl World {
    /// Moves the server's clock forward, without waiting.
    pub async fn advance(&self, seconds: u32) {
        self.station.server.advance(seconds).await;
    }

    /// Lets the server's clock run while something is done.
    pub async fn while_time_passes(&self, what: impl Future<Output = ()>) {
        self.station.server.while_time_passes(what).await;
    }

    /// What the admin API says.
    pub async fn read_admin(&self, call: &str) -> Value {
        self.station.server.read_admin(call).await
    }

    /// Changes something by the admin API.
    pub async fn put_admin(&self, call: &str, change: Value) {
        self.station.server.put_admin(call, change).await;
    }

    /// What the server's clock shows.
    pub async fn now(&self) -> u64 {
        self.station.server.now().await
    }

    /// A container like `properties`.
    pub async fn container_like(&self, properties: ContainerProperties) -> ContainerClient {
        let id = properties.id.clone().into_owned();
        self.database.create_container(properties, None).await.unwrap();
        self.database.container_client(&id, None).await.unwrap()
    }

    /// A container in which nothing expires, with the partition key `/pk`.
    pub async fn container(&self) -> ContainerClient {
        self.container_like(properties()).await
    }

    /// A container of four ranges, with the partition key `/pk`.
    pub async fn wide_container(&self) -> ContainerClient {
        create_wide_container(&self.database, properties()).await
    }

    pub fn endpoint(&self) -> String {
        self.station.server.endpoint(self.station.scheme)
    }

    pub fn key(&self) -> &str {
        &self.station.server.key
    }

    pub async fn connect_with_key(&self, key: &str) -> Result<CosmosClient, CosmosError> {
        connect(&self.endpoint(), key).await
    }

    /// Runs `body` with a server of its own, which has its data in `folder` and is
    /// killed at the end.
    pub async fn with_server(&self, folder: &Path, body: impl AsyncFnOnce(&CosmosClient)) {
        let server = Server::start(&["--data", folder.to_str().unwrap()]);
        server.freeze_clock().await;
        let endpoint = server.endpoint(self.station.scheme);
        body(&connect(&endpoint, &server.key).await.unwrap()).await;
        server.stop();
    }
}

async fn connect(endpoint: &str, key: &str) -> Result<CosmosClient, CosmosError> {
    let pool = ConnectionPoolOptions::builder()
        .with_server_certificate_validation(ServerCertificateValidation::RequiredUnlessEmulator)
        .build()?;
    let runtime = CosmosRuntime::builder().with_connection_pool(pool).build().await?;
    let account = AccountReference::with_authentication_key(endpoint.parse()?, key.to_owned());
    CosmosClient::builder()
        .with_runtime(runtime)
        .build(account, RoutingStrategy::PreferredRegions(vec![]))
        .await
}

pub async fn create_database(client: &CosmosClient, id: &str) -> DatabaseClient {
    client.create_database(id, None).await.unwrap();
    client.database_client(id.to_owned())
}

/// A container like `properties`, of four ranges.
pub async fn create_wide_container(
    database: &DatabaseClient,
    properties: ContainerProperties,
) -> ContainerClient {
    let id = properties.id.clone().into_owned();
    database.create_container(properties, throughput(20000)).await.unwrap();
    database.container_client(&id, None).await.unwrap()
}

/// Asks for a container with this throughput.
pub fn throughput(request_units: u64) -> Option<CreateContainerOptions> {
    let throughput = ThroughputProperties::manual(request_units);
    Some(CreateContainerOptions::default().with_throughput(throughput))
}

/// A container's definition, with the partition key `/pk`.
pub fn properties() -> ContainerProperties {
    ContainerProperties::new(unique("c"), "/pk".into())
}

pub fn unique(prefix: &str) -> String {
    format!("{prefix}-{}", Uuid::new_v4())
}

/// The item, if it is there.
pub async fn find(
    container: &ContainerClient,
    key: impl Into<PartitionKey>,
    id: &str,
) -> Option<Value> {
    match container.read_item(key, id, None).await {
        Ok(response) => Some(response.into_model().unwrap()),
        Err(error) if error.status().is_not_found() => None,
        Err(error) => panic!("{error}"),
    }
}

/// All rows of a query.
pub async fn ask(
    container: &ContainerClient,
    query: impl Into<Query>,
    scope: FeedScope,
    options: QueryOptions,
) -> Result<Vec<Value>, CosmosError> {
    container.query_items(query, scope, Some(options)).await?.try_collect().await
}

/// The pages of a query that have rows, and the SDK's token after each.
pub async fn ask_by_page(
    container: &ContainerClient,
    query: &str,
    scope: FeedScope,
    options: QueryOptions,
) -> Vec<(Vec<Value>, ContinuationToken)> {
    let rows = container.query_items(query, scope, Some(options)).await.unwrap();
    let mut iterator = rows.into_pages();
    let mut pages = Vec::new();
    while let Some(page) = iterator.next().await {
        let rows = page.unwrap().into_items();
        if !rows.is_empty() {
            pages.push((rows, iterator.to_continuation_token().unwrap()));
        }
    }
    pages
}

/// Asks a write to send the item back.
pub fn with_body() -> Option<ItemWriteOptions> {
    let mut options = ItemWriteOptions::default();
    options.operation.content_response_on_write = Some(ContentResponseOnWrite::Enabled);
    Some(options)
}

/// Lets a write through only if the item still has this etag.
pub fn only_if(etag: &str) -> Option<ItemWriteOptions> {
    let unchanged = Precondition::if_match(etag.to_owned());
    Some(ItemWriteOptions::default().with_precondition(unchanged))
}

/// The status of a request that must fail.
pub fn refused<T>(outcome: Result<T, CosmosError>) -> u16 {
    match outcome {
        Ok(_) => panic!("The request was not refused."),
        Err(error) => u16::from(error.status().status_code()),
    }
}

/// The status of a request that must succeed.
pub fn status(response: &ItemResponse) -> u16 {
    u16::from(response.status().status_code())
}
