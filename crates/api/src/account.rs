//! The account, as `GET /` shows it.
//!
//! SDKs send all later requests to the endpoint they read here, so it is the
//! one the client came by: the request's host and scheme. Only `localhost` is told as
//! `127.0.0.1`, as emulators do: clients that look the name up for each connection
//! may come to an address first where nobody listens.

use std::borrow::Cow;

use serde_json::{Value, json};

/// The account's name. With `localhost` the JavaScript SDK would read the
/// account before each request.
const ID: &str = "dayfly";

/// The account for a client that came by `host`.
pub(crate) fn describe(host: &str, secure: bool, on_ipv4: bool) -> Value {
    let host = if on_ipv4 { by_address(host) } else { host.into() };
    let scheme = if secure { "https" } else { "http" };
    let location = json!([{
        "name": "South Central US",
        "databaseAccountEndpoint": format!("{scheme}://{host}/"),
    }]);
    json!({
        "id": ID,
        "_rid": format!("{ID}.sql.cosmos.azure.com"),
        "_self": "",
        "media": "//media/",
        "addresses": "//addresses/",
        "_dbs": "//dbs/",
        "writableLocations": location,
        "readableLocations": location,
        "enableMultipleWriteLocations": false,
        "enablePerPartitionFailoverBehavior": false,
        "continuousBackupEnabled": false,
        "enableNRegionSynchronousCommit": false,
        "disableCrossRegionalHedging": false,
        "userReplicationPolicy": {
            "asyncReplication": false, "minReplicaSetSize": 1, "maxReplicasetSize": 1,
        },
        "userConsistencyPolicy": {"defaultConsistencyLevel": "Session"},
        "systemReplicationPolicy": {"minReplicaSetSize": 1, "maxReplicasetSize": 1},
        "readPolicy": {"primaryReadCoefficient": 1, "secondaryReadCoefficient": 1},
        "queryEngineConfiguration": query_engine().to_string(),
    })
}

/// `localhost` as an address.
pub(crate) fn by_address(host: &str) -> Cow<'_, str> {
    let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
    if name.eq_ignore_ascii_case("localhost") {
        return format!("127.0.0.1{port}").into();
    }
    host.into()
}

/// A text with JSON in it: .NET and Java read it so.
fn query_engine() -> Value {
    json!({
        "maxSqlQueryInputLength": 524_288,
        "maxJoinsPerSqlQuery": 10,
        "maxLogicalAndPerSqlQuery": 2_147_483_647,
        "maxLogicalOrPerSqlQuery": 2_147_483_647,
        "maxUdfRefPerSqlQuery": 10,
        "maxInExpressionItemsCount": 2_147_483_647,
        "queryMaxInMemorySortDocumentCount": -1000,
        "maxQueryRequestTimeoutFraction": 0.9,
        "sqlAllowNonFiniteNumbers": false,
        "sqlAllowAggregateFunctions": true,
        "sqlAllowSubQuery": true,
        "sqlAllowScalarSubQuery": true,
        "allowNewKeywords": true,
        "sqlAllowLike": true,
        "sqlAllowGroupByClause": true,
        "sqlAllowTop": true,
        "maxSpatialQueryCells": 2_147_483_647,
        "spatialMaxGeometryPointCount": 256,
        "sqlDisableOptimizationFlags": 0,
        "enableSpatialIndexing": true,
        "clientDisableOptimisticDirectExecution": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_is_the_one_the_client_came_by() {
        for (host, secure, on_ipv4, endpoint) in [
            ("db.example:8443", true, true, "https://db.example:8443/"),
            ("db.example", true, true, "https://db.example/"),
            ("localhost:8081", true, true, "https://127.0.0.1:8081/"),
            ("LocalHost", false, true, "http://127.0.0.1/"),
            ("localhost:8081", false, false, "http://localhost:8081/"),
            ("localhost.example:1", false, true, "http://localhost.example:1/"),
            ("127.0.0.1:8081", false, true, "http://127.0.0.1:8081/"),
            ("[::1]:8081", false, true, "http://[::1]:8081/"),
        ] {
            let account = describe(host, secure, on_ipv4);
            for locations in ["writableLocations", "readableLocations"] {
                assert_eq!(account[locations][0]["databaseAccountEndpoint"], endpoint);
            }
            assert_ne!(account["id"], "localhost");
        }
    }

    #[test]
    fn the_query_engine_configuration_is_a_text() {
        let account = describe("localhost", false, true);
        let text = account["queryEngineConfiguration"].as_str().unwrap();
        assert!(serde_json::from_str::<Value>(text).unwrap().is_object());
    }
}
