//! Throughput that is enforced: who is refused, with what, and when no more. Rows B19 to B30.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]
#![allow(dead_code, reason = "this test uses a part of the scenarios' server")]

#[allow(dead_code, reason = "only scripts are played in frames")]
#[path = "scenarios/frames.rs"]
mod frames;
#[path = "scenarios/server.rs"]
mod server;

use bytes::Bytes;
use dayfly_engine::{EngineSettings, ThroughputMode};
use http::Response;
use serde_json::{Value, json};
use server::{Engine, Mode, Server};

/// An item without index terms costs this to create, if it has no more than 1 KB.
const CREATE: &str = "4.95";

type Answer = Response<Bytes>;

/// A server with the database `d`, at second 1000.
struct World(Server);

impl World {
    fn new(throughput: ThroughputMode) -> World {
        World::with(EngineSettings { throughput, ..EngineSettings::default() })
    }

    fn with(engine: EngineSettings) -> World {
        let mode = Mode { engine, ..Mode::default() };
        let world = World(Server::new(Engine::Memory { slices: 1 }, mode));
        world.0.clock(1000);
        assert_eq!(world.send("POST", "/dbs", r#"{"id":"d"}"#, &[]).status(), 201);
        world
    }

    fn send(&self, method: &str, path: &str, body: &str, headers: &[(&str, &str)]) -> Answer {
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.0.send(method, path, &headers, body.into(), "name")
    }

    /// A container without an index, with this throughput, unless it shares one.
    fn container(&self, id: &str, throughput: Option<u32>) {
        let body = json!({
            "id": id,
            "partitionKey": {"paths": ["/pk"], "version": 2},
            "indexingPolicy": {"indexingMode": "none", "automatic": false},
        });
        let throughput = throughput.map(|throughput| throughput.to_string());
        let headers = throughput.as_deref().map(|given| [("x-ms-offer-throughput", given)]);
        let headers = headers.as_ref().map_or(&[][..], |headers| &headers[..]);
        let answer = self.send("POST", "/dbs/d/colls", &body.to_string(), headers);
        assert_eq!(answer.status(), 201, "{answer:?}");
    }

    fn create_in(&self, container: &str, id: &str, pk: &str, more: &[(&str, &str)]) -> Answer {
        let key = format!("[\"{pk}\"]");
        let headers = [&[("x-ms-documentdb-partitionkey", &*key)], more].concat();
        let body = json!({"id": id, "pk": pk}).to_string();
        self.send("POST", &format!("/dbs/d/colls/{container}/docs"), &body, &headers)
    }

    fn create(&self, id: &str) -> Answer {
        self.create_in("c", id, "x", &[])
    }

    fn read(&self, id: &str, pk: &str, more: &[(&str, &str)]) -> Answer {
        let key = format!("[\"{pk}\"]");
        let headers = [&[("x-ms-documentdb-partitionkey", &*key)], more].concat();
        self.send("GET", &format!("/dbs/d/colls/c/docs/{id}"), "", &headers)
    }

    /// Creates items until one is refused; says how many were created.
    fn exhaust(&self, container: &str, pk: &str, more: &[(&str, &str)]) -> usize {
        let id = |number: usize| format!("{pk}{number}-{}", self.0.wall_second());
        (0..100_000)
            .take_while(|number| {
                let answer = self.create_in(container, &id(*number), pk, more);
                assert!([201, 429].contains(&answer.status().as_u16()), "{answer:?}");
                answer.status() == 201
            })
            .count()
    }

    fn admin(&self, method: &str, path: &str, body: &str) -> Value {
        let answer = self.send(method, &format!("/_admin/v1/containers/d/{path}"), body, &[]);
        assert_eq!(answer.status(), 200, "{answer:?}");
        serde_json::from_slice(answer.body()).unwrap()
    }
}

fn header<'a>(answer: &'a Answer, name: &str) -> &'a str {
    answer.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

/// Status, substatus and the time to wait.
fn refusal(answer: &Answer) -> (u16, &str, u64) {
    let wait = header(answer, "x-ms-retry-after-ms").parse().unwrap_or(0);
    (answer.status().as_u16(), header(answer, "x-ms-substatus"), wait)
}

/// Rows B19 to B21: 81 creates of 4.95 leave −0.95 of 400.
#[test]
fn who_asks_for_more_is_refused_until_there_is_something_again() {
    let world = World::new(ThroughputMode::Enforced);
    world.container("c", Some(400));
    let first = world.create("a");
    assert_eq!(header(&first, "x-ms-request-charge"), CREATE);
    assert_eq!(world.exhaust("c", "x", &[]), 80);
    let refused = world.create("late");
    assert_eq!(refusal(&refused), (429, "3200", 5));
    assert_eq!(header(&refused, "x-ms-request-charge"), "0");
    let body: Value = serde_json::from_slice(refused.body()).unwrap();
    assert_eq!(body["code"], "TooManyRequests");
    assert!(
        body["message"].as_str().unwrap().starts_with(
            "Message: {\"Errors\":[\"Request rate is large. More Request Units may be needed, so \
             no changes were made."
        ),
        "{body}"
    );
    // Nothing was written. While nothing is left whoever comes is refused: 0.15 are missing in
    // the second millisecond. When they were told to come there is a unit.
    for wait in [4, 3] {
        world.0.wall.pass_milliseconds(1);
        assert_eq!(refusal(&world.read("late", "x", &[])), (429, "3200", wait));
    }
    world.0.wall.pass_milliseconds(3);
    for _ in 0..2 {
        assert_eq!(world.read("late", "x", &[]).status(), 404, "1.05, then 0.05 are left");
    }
    assert_eq!(world.create("late").status(), 429);
    world.0.wall.pass_milliseconds(1000);
    assert_eq!(world.create("late").status(), 201);
}

/// Row B26.
#[test]
fn what_is_no_item_is_never_metered() {
    let world = World::new(ThroughputMode::Enforced);
    world.container("c", Some(400));
    world.exhaust("c", "x", &[]);
    for path in ["/", "/dbs", "/dbs/d", "/dbs/d/colls/c", "/dbs/d/colls/c/pkranges", "/offers"] {
        for _ in 0..300 {
            assert_eq!(world.send("GET", path, "", &[]).status(), 200, "{path}");
        }
    }
    let plan = [
        ("x-ms-cosmos-is-query-plan-request", "true"),
        ("x-ms-cosmos-supported-query-features", "Aggregate"),
        ("content-type", "application/query+json"),
    ];
    let query = r#"{"query":"SELECT * FROM c"}"#;
    assert_eq!(world.send("POST", "/dbs/d/colls/c/docs", query, &plan).status(), 200);
    assert_eq!(world.create("b").status(), 429);
}

/// A request that is refused for what is in it is one as well: it is paid for, and where nothing
/// is left it is told to come again, and counted once.
#[test]
fn what_is_refused_for_itself_is_metered_too() {
    let world = World::new(ThroughputMode::Enforced);
    world.container("c", Some(400));
    let odd = || world.read("a", "x", &[("x-ms-cosmos-priority-level", "Medium")]);
    let status = odd().status().as_u16();
    let total = || world.admin("GET", "c/throughput", "")["total"].clone();
    assert_eq!((status, &total()["used"]), (400, &json!(1.0)));
    world.exhaust("c", "x", &[]);
    let before = total()["throttled"].as_u64().unwrap();
    assert_eq!(refusal(&odd()).0, 429);
    assert_eq!(total()["throttled"], before + 1);
}

/// Who names no partition key has it in the body, and takes from that range alone.
#[test]
fn a_key_in_the_body_leads_to_its_range() {
    let world = World::new(ThroughputMode::Enforced);
    world.container("c", Some(12_000));
    world.exhaust("c", "x", &[]);
    let create = |id: &str, pk: &str| {
        let body = json!({"id": id, "pk": pk}).to_string();
        world.send("POST", "/dbs/d/colls/c/docs", &body, &[]).status().as_u16()
    };
    assert_eq!(create("late", "x"), 429);
    let other = ('a'..='w').map(String::from).find(|pk| create("1", pk) == 201).unwrap();
    let levels = || {
        let told = world.admin("GET", "c/throughput", "")["ranges"].clone();
        [0, 1].map(|range| told[range]["level"].as_f64().unwrap())
    };
    let before = levels();
    assert_eq!(create("2", &other), 201);
    let mut spent: Vec<f64> =
        before.iter().zip(levels()).map(|(before, after)| (before - after).round()).collect();
    spent.sort_by(f64::total_cmp);
    assert_eq!(spent, [0.0, 5.0]);
}

/// Row B23.
#[test]
fn where_it_is_measured_nobody_is_refused() {
    let world = World::new(ThroughputMode::Measured);
    world.container("c", Some(400));
    for number in 0..1000 {
        assert_eq!(world.create(&number.to_string()).status(), 201);
    }
    let told = world.admin("GET", "c/throughput", "");
    assert_eq!(told["mode"], "measured");
    assert_eq!(told["total"]["throttled"], 1000 - 81);
    assert_eq!(told["total"]["used"], 4950.0);
    assert_eq!(told["ranges"][0]["level"], -0.95);
    let second = &told["seconds"][0];
    assert_eq!((&second["second"], &second["provisioned"]), (&json!(1000), &json!(400)));
    assert_eq!((&second["used"], &second["throttled"]), (&json!(4950.0), &json!(919)));
}

/// Rows B24 and B25.
#[test]
fn each_range_has_its_part() {
    let world = World::new(ThroughputMode::Enforced);
    world.container("c", Some(12_000));
    let ranges = world.admin("GET", "c/throughput", "")["ranges"].clone();
    assert_eq!(ranges.as_array().unwrap().len(), 2);
    assert_eq!(ranges[0]["rate"], 6000.0);
    // 6,000 / 4.95
    assert_eq!(world.exhaust("c", "x", &[]), 1213);
    let other = ('a'..='w').map(String::from);
    let mut other = other.filter(|pk| world.create_in("c", "1", pk, &[]).status() == 201);
    let other = other.next().unwrap();
    assert_eq!(world.read("1", &other, &[]).status(), 200);
    let query = [
        ("content-type", "application/query+json"),
        ("x-ms-documentdb-isquery", "true"),
        ("x-ms-documentdb-query-enablecrosspartition", "true"),
        ("x-ms-documentdb-query-enable-scan", "true"),
    ];
    let all = r#"{"query":"SELECT * FROM c WHERE c.id = '1'"}"#;
    assert_eq!(world.send("POST", "/dbs/d/colls/c/docs", all, &query).status(), 429);
    assert_eq!(world.send("GET", "/dbs/d/colls/c/docs", "", &[]).status(), 429);
    world.0.clock(1001);
    let before = world.admin("GET", "c/throughput", "")["ranges"].clone();
    let answer = world.send("POST", "/dbs/d/colls/c/docs", all, &query);
    assert_eq!(answer.status(), 200);
    let charge: f64 = header(&answer, "x-ms-request-charge").parse().unwrap();
    let after = world.admin("GET", "c/throughput", "")["ranges"].clone();
    for range in 0..2 {
        let level = |ranges: &Value| ranges[range]["level"].as_f64().unwrap();
        assert!((level(&before) - level(&after) - charge / 2.0).abs() < 0.011, "{before} {after}");
    }
}

/// Row B22: a query is one request, and may take more than is left.
#[test]
fn one_large_request_is_admitted_and_leaves_a_debt() {
    let world = World::new(ThroughputMode::Enforced);
    world.container("c", Some(400));
    world.exhaust("c", "x", &[]);
    world.0.wall.pass_milliseconds(5);
    let list = [("x-ms-documentdb-partitionkey", "[\"x\"]")];
    let listed = world.send("GET", "/dbs/d/colls/c/docs", "", &list);
    assert_eq!(header(&listed, "x-ms-request-charge"), "81");
    let (status, _, wait) = refusal(&world.read("x0", "x", &[]));
    assert_eq!((status, wait), (429, 203));
}

/// Row B27.
#[test]
fn who_has_low_priority_is_refused_first() {
    let world = World::new(ThroughputMode::Enforced);
    world.container("c", Some(400));
    let low = [("x-ms-cosmos-priority-level", "low")];
    assert_eq!(world.exhaust("c", "x", &low), 41);
    let refused = world.create_in("c", "b", "x", &low);
    let (status, substatus, wait) = refusal(&refused);
    assert_eq!((status, substatus, wait), (429, "3200", 10));
    assert_eq!(world.create("b").status(), 201);
    world.0.wall.pass_milliseconds(wait);
    assert_eq!(world.create_in("c", "d", "x", &low).status(), 429, "another came before");
    world.0.wall.pass_milliseconds(20);
    assert_eq!(world.create_in("c", "d", "x", &low).status(), 201);
}

/// Row B29.
#[test]
fn a_throughput_bucket_has_no_more_than_its_share() {
    let world = World::new(ThroughputMode::Enforced);
    world.container("c", Some(400));
    let told =
        world.admin("PUT", "c/throughput/buckets", r#"[{"id":2,"maxThroughputPercentage":20}]"#);
    assert_eq!(told["buckets"], json!([{"id": 2, "maxThroughputPercentage": 20}]));
    let second = [("x-ms-cosmos-throughput-bucket", "2")];
    assert_eq!(world.exhaust("c", "x", &second), 17);
    assert_eq!(refusal(&world.create_in("c", "b", "x", &second)), (429, "3212", 65));
    let third = [("x-ms-cosmos-throughput-bucket", "3")];
    assert_eq!(world.create_in("c", "b", "x", &third).status(), 201);
    assert_eq!(world.create("d").status(), 201);
    for wrong in [
        "{}",
        r#"[{"id":0,"maxThroughputPercentage":20}]"#,
        r#"[{"id":6,"maxThroughputPercentage":20}]"#,
        r#"[{"id":1,"maxThroughputPercentage":0}]"#,
        r#"[{"id":1,"maxThroughputPercentage":101}]"#,
        r#"[{"id":1}]"#,
        r#"[{"id":1,"maxThroughputPercentage":20,"x":1}]"#,
        r#"[{"id":1,"maxThroughputPercentage":20},{"id":1,"maxThroughputPercentage":30}]"#,
    ] {
        let path = "/_admin/v1/containers/d/c/throughput/buckets";
        assert_eq!(world.send("PUT", path, wrong, &[]).status(), 400, "{wrong}");
    }
}

/// Row B30, with 300 RU/s in each tenth of a second.
#[test]
fn what_nobody_used_can_be_spent_in_a_burst() {
    let world = World::with(EngineSettings {
        throughput: ThroughputMode::Enforced,
        burst: true,
        ..EngineSettings::default()
    });
    world.container("c", Some(400));
    world.0.clock(1300);
    let text = "x".repeat(150_000);
    let body = json!({"id": "a", "pk": "x", "text": text}).to_string();
    let headers =
        [("x-ms-documentdb-partitionkey", "[\"x\"]"), ("x-ms-documentdb-is-upsert", "true")];
    let upsert = || world.send("POST", "/dbs/d/colls/c/docs", &body, &headers);
    let charge = |answer: &Answer| header(answer, "x-ms-request-charge").parse::<f64>().unwrap();
    let first = upsert();
    assert_eq!(first.status(), 201);
    let mut spent = charge(&first);
    let mut tenths = 0;
    'load: loop {
        while spent < 300.0 * f64::from(tenths + 1) {
            let answer = upsert();
            if answer.status() == 429 {
                break 'load;
            }
            spent += charge(&answer);
        }
        tenths += 1;
        world.0.wall.pass_milliseconds(100);
    }
    assert!((460..465).contains(&tenths), "{tenths}");
}

#[test]
fn containers_that_share_a_throughput_share_a_meter() {
    let world = World::new(ThroughputMode::Enforced);
    let shared = [("x-ms-offer-throughput", "400")];
    assert_eq!(world.send("DELETE", "/dbs/d", "", &[]).status(), 204);
    assert_eq!(world.send("POST", "/dbs", r#"{"id":"d"}"#, &shared).status(), 201);
    world.container("c", None);
    world.container("e", None);
    world.container("own", Some(400));
    assert_eq!(world.exhaust("c", "x", &[]), 81);
    assert_eq!(world.create_in("e", "a", "x", &[]).status(), 429);
    assert_eq!(world.create_in("own", "a", "x", &[]).status(), 201);
    assert_eq!(world.admin("GET", "e/throughput", "")["owner"], "database");
    assert_eq!(world.admin("GET", "own/throughput", "")["owner"], "container");
}

#[test]
fn one_container_is_enforced_while_the_server_runs() {
    let world = World::new(ThroughputMode::Measured);
    world.container("c", Some(400));
    world.container("e", Some(400));
    for number in 0..200 {
        assert_eq!(world.create(&number.to_string()).status(), 201);
    }
    let told = world.admin("PUT", "c/throughput", r#"{"mode":"enforced"}"#);
    assert_eq!((&told["mode"], &told["ranges"][0]["level"]), (&json!("enforced"), &json!(400.0)));
    assert_eq!(world.exhaust("c", "x", &[]), 81);
    for number in 0..200 {
        assert_eq!(world.create_in("e", &number.to_string(), "x", &[]).status(), 201);
    }
    assert_eq!(world.admin("PUT", "c/throughput", r#"{"mode":null}"#)["mode"], "measured");
    assert_eq!(world.create("late").status(), 201);
    for wrong in ["", "{}", r#"{"mode":1}"#, r#"{"mode":"strict"}"#, r#"{"mode":null,"x":1}"#] {
        let path = "/_admin/v1/containers/d/c/throughput";
        assert_eq!(world.send("PUT", path, wrong, &[]).status(), 400, "{wrong}");
    }
}

#[test]
fn a_change_of_the_offer_counts_at_once() {
    let world = World::new(ThroughputMode::Enforced);
    world.container("c", Some(400));
    assert_eq!(world.exhaust("c", "x", &[]), 81);
    let offers: Value =
        serde_json::from_slice(world.send("GET", "/offers", "", &[]).body()).unwrap();
    let mut offer = offers["Offers"][0].clone();
    let path = format!("/{}", offer["_self"].as_str().unwrap().trim_end_matches('/'));
    offer["content"] = json!({"offerThroughput": 1000});
    let sign = |body: &Value| {
        let sent = body.to_string().into_bytes();
        world.0.send("PUT", &path, &[], sent, "rid").status()
    };
    assert_eq!(sign(&offer), 200);
    let told = world.admin("GET", "c/throughput", "");
    assert_eq!((&told["provisioned"], &told["ranges"][0]["level"]), (&json!(1000), &json!(599.05)));
    assert_eq!(world.create("more").status(), 201);
}

/// In direct mode the time to wait stands in a token of its own.
#[test]
fn a_frame_is_refused_alike() {
    let mode = Mode {
        engine: EngineSettings {
            throughput: ThroughputMode::Enforced,
            ..EngineSettings::default()
        },
        ..Mode::default()
    };
    let world = World(Server::new(Engine::Frames, mode));
    world.0.clock(1000);
    assert_eq!(world.send("POST", "/dbs", r#"{"id":"d"}"#, &[]).status(), 201);
    world.container("c", Some(400));
    world.exhaust("c", "x", &[]);
    let key = ("x-ms-documentdb-partitionkey".to_owned(), "[\"x\"]".to_owned());
    let framed = world.0.send_framed("GET", "/dbs/d/colls/c/docs/x0", &[key], &[], "name");
    assert_eq!(refusal(&framed.unwrap().unwrap()), (429, "3200", 5));
}

impl World {
    /// A container without index terms that scales up to so much.
    fn scaling_container(&self, id: &str, max: u32) {
        let body = json!({
            "id": id,
            "partitionKey": {"paths": ["/pk"], "version": 2},
            "defaultTtl": 5,
            "indexingPolicy": {"excludedPaths": [{"path": "/*"}]},
        });
        let settings = json!({"maxThroughput": max}).to_string();
        let headers = [("x-ms-cosmos-offer-autopilot-settings", &*settings)];
        let answer = self.send("POST", "/dbs/d/colls", &body.to_string(), &headers);
        assert_eq!(answer.status(), 201, "{answer:?}");
    }

    /// What the only offer gives just now, as clients are shown it.
    fn offered(&self) -> Value {
        let answer = self.send("GET", "/offers", "", &[]);
        let body: Value = serde_json::from_slice(answer.body()).unwrap();
        body["Offers"][0]["content"].clone()
    }
}

/// One that scales admits up to its maximum, and what it came to is told: the most that was used
/// in a second of the last hour, but a tenth of the maximum at least.
#[test]
fn what_scales_tells_how_far_it_did() {
    let world = World::new(ThroughputMode::Enforced);
    world.scaling_container("c", 4000);
    let scaled = || {
        let told = world.admin("GET", "c/throughput?seconds=3600", "");
        assert_eq!((&told["autoscale"], &told["provisioned"]), (&json!(true), &json!(4000)));
        assert_eq!(told["ranges"][0]["rate"], 4000.0);
        (told["highest"].as_f64().unwrap(), told["scaledTo"].as_f64().unwrap())
    };
    assert_eq!(scaled(), (0.0, 400.0));
    for number in 0..200 {
        assert_eq!(world.create(&number.to_string()).status(), 201);
    }
    assert_eq!(scaled(), (990.0, 990.0));
    // 809 creates of 4.95 leave -4.55 of 4,000.
    world.0.wall.pass_milliseconds(1000);
    assert_eq!(world.exhaust("c", "x", &[]), 809);
    assert_eq!(refusal(&world.create("late")), (429, "3200", 2));
    assert_eq!(scaled(), (4004.55, 4000.0));
    // What it costs does not change with it, nor does what is shown of the offer.
    assert_eq!(world.offered()["offerThroughput"], 400);
    world.0.wall.pass_milliseconds(3_598_000);
    assert_eq!(scaled(), (4004.55, 4000.0));
    world.0.wall.pass_milliseconds(2_000);
    assert_eq!(scaled(), (0.0, 400.0));
}

/// Row B40: the purge lives on what is left over of the maximum, and scales nothing.
#[test]
fn the_purge_scales_nothing() {
    const ITEMS: u64 = 5_000;
    let world = World::new(ThroughputMode::Measured);
    world.scaling_container("c", 4000);
    for number in 0..ITEMS {
        assert_eq!(world.create(&number.to_string()).status(), 201);
        if number % 500 == 499 {
            world.0.wall.pass_milliseconds(1);
        }
    }
    let told = |path: &str| world.admin("GET", path, "");
    let backlog = || told("c/ttl")["backlog"]["items"].as_u64().unwrap();
    // The hour that tells of the creates is over.
    world.0.wall.pass_milliseconds(3_605_000);
    world.admin("PUT", "c/throughput", r#"{"mode":"enforced"}"#);
    assert_eq!(backlog(), ITEMS);
    let mut seconds = 0;
    while backlog() > 0 {
        let before = backlog();
        world.0.wall.pass_milliseconds(1000);
        world.0.background();
        seconds += 1;
        // 4,000 RU/s at 4.95 an item.
        assert!((1..=809).contains(&(before - backlog())), "{before} {}", backlog());
        assert_eq!(world.offered()["offerThroughput"], 400);
        assert_eq!(world.offered()["offerAutopilotSettings"]["maxThroughput"], 4000);
        let told = told("c/throughput");
        assert_eq!((&told["highest"], &told["scaledTo"]), (&json!(0.0), &json!(400.0)), "{told}");
    }
    assert!((6..=8).contains(&seconds), "{seconds}");
    assert_eq!(told("c/throughput")["total"]["purge"], 24_750.0);
}

/// Row B12: what a database shares must be enough for the containers that share it.
#[test]
fn what_is_shared_grows_with_the_containers() {
    for (headers, least, too_little) in [
        (("x-ms-offer-throughput", "1000"), "900", json!({"offerThroughput": 800})),
        (
            ("x-ms-cosmos-offer-autopilot-settings", r#"{"maxThroughput":10000}"#),
            "6000",
            json!({"offerAutopilotSettings": {"maxThroughput": 5000}}),
        ),
    ] {
        let world = World::new(ThroughputMode::Measured);
        let made = world.send("POST", "/dbs", r#"{"id":"shared"}"#, &[headers]);
        assert_eq!(made.status(), 201, "{made:?}");
        let container = |id: usize, headers: &[(&str, &str)]| {
            let body = json!({"id": id.to_string(), "partitionKey": {"paths": ["/pk"]}});
            let made = world.send("POST", "/dbs/shared/colls", &body.to_string(), headers);
            assert_eq!(made.status(), 201, "{made:?}");
        };
        let list = world.send("GET", "/offers", "", &[]);
        let list: Value = serde_json::from_slice(list.body()).unwrap();
        let offer = format!("/offers/{}", list["Offers"][0]["_rid"].as_str().unwrap());
        let minimum = |expected: &str| {
            let answer = world.send("GET", &offer, "", &[]);
            assert_eq!(header(&answer, "x-ms-cosmos-min-throughput"), expected);
        };
        (0..25).for_each(|id| container(id, &[]));
        minimum(if least == "900" { "400" } else { "1000" });
        (25..30).for_each(|id| container(id, &[]));
        minimum(least);
        // One with a throughput of its own has no part in it.
        container(30, &[("x-ms-offer-throughput", "400")]);
        minimum(least);
        let body = json!({"content": too_little}).to_string();
        let refused = world.send("PUT", &offer, &body, &[]);
        assert_eq!(refused.status(), 400);
        let told = String::from_utf8(refused.body().to_vec()).unwrap();
        assert!(told.contains(&format!("between {least} and 1000000")), "{told}");
    }
}
