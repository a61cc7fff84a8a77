//! An answer carries the session token of the one range that its request names, or none.
//! Every request that clients send is made here against a container of several ranges,
//! those that are refused too.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]

#[allow(dead_code, reason = "only scripts are played in frames")]
#[path = "scenarios/frames.rs"]
mod frames;
#[path = "scenarios/server.rs"]
#[allow(dead_code, reason = "the scripts use more of it")]
mod server;

use bytes::Bytes;
use dayfly_model::rid::ItemRid;
use http::Response;
use serde_json::Value;
use server::{Engine, Mode, Server};

/// In range 2 of four.
const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["redmond"]"#);
const RANGE: (&str, &str) = ("x-ms-documentdb-partitionkeyrangeid", "2");
const NO_RANGE: (&str, &str) = ("x-ms-documentdb-partitionkeyrangeid", "77");
const TWO_KEYS: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["redmond","x"]"#);
const NO_KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", "redmond");
const QUERY: (&str, &str) = ("content-type", "application/query+json");
const PLAN: (&str, &str) = ("x-ms-cosmos-is-query-plan-request", "True");
const CROSS: (&str, &str) = ("x-ms-documentdb-query-enablecrosspartition", "True");
const UPSERT: (&str, &str) = ("x-ms-documentdb-is-upsert", "True");
const BATCH: (&str, &str) = ("x-ms-cosmos-is-batch-request", "True");
const TRIGGER: (&str, &str) = ("x-ms-documentdb-pre-trigger-include", "t");
const FEED: (&str, &str) = ("a-im", "Incremental Feed");
const OTHER: (&str, &str) = ("if-match", "\"other\"");
const ANY: (&str, &str) = ("if-none-match", "*");
const NEWER: (&str, &str) = ("x-ms-session-token", "2:-1#999");
const SEVERAL: (&str, &str) = ("x-ms-session-token", "0:-1#1,2:-1#999");
const BAD_TOKEN: (&str, &str) = ("x-ms-session-token", "0:1#1,1");
const MEANT: (&str, &str) = ("x-ms-cosmos-intended-collection-rid", "other");
const BAD_COUNT: (&str, &str) = ("x-ms-max-item-count", "x");
const BAD_PAGE: (&str, &str) = ("x-ms-continuation", "x");

/// A patch that is fine.
const PATCH: &str = r#"[{"op":"incr","path":"/n","value":1}]"#;
const STRONG: (&str, &str) = ("x-ms-consistency-level", "Strong");
const ALL: &str = r#"{"query":"SELECT * FROM c"}"#;

/// The headers of a request.
type Headers<'a> = &'a [(&'a str, &'a str)];
/// Its verb, path, headers and body.
type Request<'a> = (&'a str, &'a str, Headers<'a>, &'a str);
/// A request, and the status of its answer.
type Expected<'a> = (Request<'a>, u16);

struct World {
    server: Server,
    /// `/dbs/{rid}/colls/{rid}`.
    link: String,
    /// The RID of the item `a`.
    item: String,
    /// One that no item has.
    no_item: String,
}

impl World {
    fn new(slices: usize) -> World {
        let server = Server::new(Engine::Memory { slices }, Mode::default());
        let (link, item, no_item) = Default::default();
        let mut world = World { server, link, item, no_item };
        let rid = |answer: Response<Bytes>| -> String {
            let body: Value = serde_json::from_slice(answer.body()).unwrap();
            body["_rid"].as_str().unwrap().to_owned()
        };
        let database = rid(world.send("POST", "/dbs", &[], r#"{"id":"d"}"#));
        let container =
            r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":-1}"#;
        let units = ("x-ms-offer-throughput", "20000");
        let container = rid(world.send("POST", "/dbs/d/colls", &[units], container));
        world.link = format!("/dbs/{database}/colls/{container}");
        let item = r#"{"id":"a","pk":"redmond"}"#;
        world.item = rid(world.send("POST", "/dbs/d/colls/c/docs", &[KEY], item));
        let rid = ItemRid::parse(&world.item).unwrap();
        world.no_item = ItemRid { docno: rid.docno + (1 << 20), ..rid }.encode();
        world
    }

    fn send(&self, method: &str, path: &str, headers: Headers<'_>, body: &str) -> Response<Bytes> {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        let headers: Vec<_> = headers.iter().map(owned).collect();
        self.server.send(method, path, &headers, body.as_bytes().to_vec(), "name")
    }

    /// Sends a request, and compares the status and the range of the token.
    fn check(&self, request: Request<'_>, status: u16, range: Option<&str>) {
        let (method, path, headers, body) = request;
        let answer = self.send(method, path, headers, body);
        let told = || String::from_utf8_lossy(answer.body()).into_owned();
        assert_eq!(answer.status().as_u16(), status, "{request:?} {}", told());
        let token = answer.headers().get("x-ms-session-token").map(|token| token.to_str().unwrap());
        let named = token.map(|token| token.split_once(':').unwrap());
        assert_eq!(named.map(|(range, _)| range), range, "{request:?} {token:?}");
        // The rest of a token is as clients read it: a version and a commit.
        let is_one = |(_, rest): (&str, &str)| {
            let (version, lsn) = rest.split_once('#').unwrap();
            version.parse::<u32>().is_ok() && lsn.parse::<u64>().is_ok()
        };
        assert!(named.is_none_or(is_one), "{request:?} {token:?}");
        let id = answer.headers().get("x-ms-documentdb-partitionkeyrangeid");
        assert_eq!(id.map(|id| id.to_str().unwrap()), range, "{request:?}");
    }

    /// What is about one range: the key or the range id names it.
    fn one_range(&self) {
        let docs = "/dbs/d/colls/c/docs";
        let a = "/dbs/d/colls/c/docs/a";
        let none = "/dbs/d/colls/c/docs/none";
        let by_rid = format!("{}/docs/{}", self.link, self.item);
        let gone = format!("{}/docs/{}", self.link, self.no_item);
        let item = r#"{"id":"a","pk":"redmond"}"#;
        let other = r#"{"id":"a","pk":"other"}"#;
        let bad_ttl = r#"{"id":"x","pk":"redmond","ttl":0}"#;
        let wrong = r#"{"query":"SELECT * FROM"}"#;
        let refused = r#"{"query":"SELECT * FROM c ORDER BY RANK RRF(c.a, c.b)"}"#;
        let requests: &[Expected<'_>] = &[
            (("GET", a, &[KEY], ""), 200),
            (("HEAD", a, &[KEY], ""), 200),
            (("GET", a, &[KEY, ANY], ""), 304),
            (("GET", none, &[KEY], ""), 404),
            (("GET", a, &[KEY, NEWER], ""), 404),
            (("GET", a, &[KEY, SEVERAL], ""), 404),
            (("GET", a, &[KEY, STRONG], ""), 400),
            (("GET", a, &[KEY, BAD_TOKEN], ""), 400),
            (("GET", a, &[KEY, MEANT], ""), 400),
            (("POST", docs, &[KEY, BAD_TOKEN], item), 400),
            (("PUT", a, &[KEY, MEANT], item), 400),
            (("GET", docs, &[RANGE, BAD_TOKEN], ""), 400),
            (("POST", docs, &[RANGE, QUERY, MEANT], ALL), 400),
            (("GET", &by_rid, &[KEY], ""), 200),
            (("GET", &by_rid, &[], ""), 200),
            (("GET", &gone, &[KEY], ""), 404),
            (("GET", &format!("{}/docs/x", self.link), &[KEY], ""), 404),
            (("POST", docs, &[KEY], item), 409),
            (("POST", docs, &[], item), 409),
            (("POST", docs, &[KEY, UPSERT], item), 200),
            (("POST", docs, &[KEY, UPSERT, OTHER], item), 412),
            (("POST", docs, &[KEY], other), 400),
            (("POST", docs, &[KEY], bad_ttl), 400),
            (("POST", docs, &[KEY], "{}"), 400),
            (("POST", docs, &[KEY], "nonsense"), 400),
            (("POST", docs, &[KEY, BATCH], "[]"), 400),
            (("POST", docs, &[KEY, TRIGGER], item), 501),
            (("PUT", a, &[KEY], item), 200),
            (("PUT", a, &[KEY, OTHER], item), 412),
            (("PUT", a, &[KEY], other), 400),
            (("PUT", none, &[KEY], r#"{"id":"none","pk":"redmond"}"#), 404),
            (("PUT", &gone, &[KEY], item), 404),
            (("PATCH", a, &[KEY], PATCH), 200),
            (("PATCH", a, &[KEY, OTHER], PATCH), 412),
            (("PATCH", a, &[KEY], "{}"), 400),
            (("PATCH", none, &[KEY], PATCH), 404),
            (("DELETE", none, &[KEY], ""), 404),
            (("DELETE", a, &[KEY, OTHER], ""), 412),
            (("POST", a, &[KEY], ""), 405),
            (("GET", docs, &[KEY], ""), 200),
            (("GET", docs, &[RANGE], ""), 200),
            (("GET", docs, &[KEY, NO_RANGE], ""), 410),
            (("GET", docs, &[RANGE, NEWER], ""), 404),
            (("GET", docs, &[RANGE, BAD_PAGE], ""), 400),
            (("GET", docs, &[RANGE, BAD_COUNT], ""), 400),
            (("GET", docs, &[RANGE, FEED], ""), 200),
            (("GET", docs, &[KEY, FEED], ""), 200),
            (("POST", docs, &[KEY, QUERY], ALL), 200),
            (("POST", docs, &[RANGE, QUERY], ALL), 200),
            (("POST", docs, &[RANGE, QUERY], wrong), 400),
            (("POST", docs, &[RANGE, QUERY], refused), 400),
            (("POST", docs, &[RANGE, QUERY, NEWER], ALL), 404),
            (("POST", docs, &[KEY, QUERY, BAD_PAGE], ALL), 400),
            (("POST", "/dbs/d/colls/c/sprocs/s", &[KEY], "[]"), 501),
        ];
        for &(request, status) in requests {
            self.check(request, status, Some("2"));
        }
    }

    /// What is about several ranges, or about the container, has none.
    fn no_range(&self) {
        let container = "/dbs/d/colls/c";
        let docs = "/dbs/d/colls/c/docs";
        let ranges = "/dbs/d/colls/c/pkranges";
        let conflicts = "/dbs/d/colls/c/conflicts";
        let gone = format!("{}/docs/{}", self.link, self.no_item);
        let definition = r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}"#;
        let wrong = r#"{"query":"SELECT * FROM"}"#;
        let by_filter = r#"{"query":"SELECT * FROM c WHERE c.pk = 'redmond'"}"#;
        let etag = self.send("GET", ranges, &[], "").headers()["etag"].to_str().unwrap().to_owned();
        let known = ("if-none-match", etag.as_str());
        let requests: &[Expected<'_>] = &[
            (("GET", container, &[], ""), 200),
            (("GET", container, &[ANY], ""), 304),
            (("PUT", container, &[], definition), 200),
            (("PUT", container, &[OTHER], definition), 412),
            (("PUT", container, &[], "{}"), 400),
            (("DELETE", container, &[OTHER], ""), 412),
            (("PATCH", container, &[], "{}"), 405),
            (("POST", "/dbs/d/colls", &[], definition), 409),
            (("GET", "/dbs/d/colls", &[], ""), 200),
            (("POST", "/dbs/d/colls", &[QUERY], ALL), 200),
            (("GET", "/dbs/d", &[], ""), 200),
            (("GET", ranges, &[], ""), 200),
            (("GET", ranges, &[known], ""), 304),
            (("POST", ranges, &[QUERY], ALL), 200),
            (("POST", ranges, &[QUERY], wrong), 400),
            (("GET", conflicts, &[], ""), 200),
            (("POST", conflicts, &[QUERY], ALL), 200),
            (("GET", "/dbs/d/colls/c/conflicts/x", &[], ""), 404),
            (("GET", docs, &[], ""), 200),
            (("GET", docs, &[NEWER], ""), 404),
            (("GET", docs, &[BAD_TOKEN], ""), 400),
            (("POST", docs, &[QUERY, CROSS, MEANT], ALL), 400),
            (("GET", docs, &[BAD_PAGE], ""), 400),
            (("GET", docs, &[NO_RANGE], ""), 410),
            (("GET", docs, &[FEED], ""), 200),
            (("POST", docs, &[QUERY, CROSS], ALL), 200),
            (("POST", docs, &[QUERY], ALL), 400),
            (("POST", docs, &[QUERY], by_filter), 200),
            (("POST", docs, &[QUERY, CROSS], wrong), 400),
            (("POST", docs, &[QUERY, CROSS, NEWER], ALL), 404),
            (("POST", docs, &[QUERY, NO_RANGE], ALL), 410),
            (("POST", docs, &[QUERY, PLAN], ALL), 200),
            (("POST", docs, &[QUERY, PLAN], wrong), 400),
            (("POST", docs, &[QUERY, TWO_KEYS], ALL), 400),
            (("POST", docs, &[], "{}"), 400),
            (("POST", docs, &[TWO_KEYS], r#"{"id":"x","pk":"redmond"}"#), 400),
            (("GET", "/dbs/d/colls/c/docs/a", &[], ""), 400),
            (("GET", "/dbs/d/colls/c/docs/a", &[TWO_KEYS], ""), 400),
            (("GET", "/dbs/d/colls/c/docs/a", &[NO_KEY], ""), 400),
            (("DELETE", "/dbs/d/colls/c/docs/a", &[], ""), 400),
            (("GET", &gone, &[], ""), 404),
            (("PATCH", "/dbs/d/colls/c/docs/a", &[], "{}"), 400),
            (("PATCH", "/dbs/d/colls/c/docs/a", &[], PATCH), 400),
            (("GET", "/dbs/d/colls/c/sprocs", &[], ""), 501),
            (("GET", "/dbs/d/colls/none/docs/a", &[KEY], ""), 404),
            (("PATCH", "/dbs/d/colls/none/docs/a", &[KEY], PATCH), 404),
        ];
        for &(request, status) in requests {
            self.check(request, status, None);
        }
    }
}

#[test]
fn every_answer_has_the_token_of_one_range_or_none() {
    for slices in [1, 4] {
        let world = World::new(slices);
        world.one_range();
        world.no_range();
        world.check(("DELETE", "/dbs/d/colls/c/docs/a", &[KEY], ""), 204, Some("2"));
        let item = r#"{"id":"b","pk":"redmond"}"#;
        world.check(("POST", "/dbs/d/colls/c/docs", &[], item), 201, Some("2"));
        world.check(("DELETE", "/dbs/d/colls/c", &[], ""), 204, None);
    }
}
