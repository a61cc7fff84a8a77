//! Where the ranges are: what clients ask over http before they speak directly, and the one
//! port on which they find everything.

use serde_json::{Value as Json, json};

use super::client::{Channel, Place, Wire, authorization, context, date, key_of, signature};
use super::common::{Answer, Server, admin, send};

/// What clients ask for, in the form of .NET.
fn path(resolve_for: &str, ranges: &str) -> String {
    let asked = resolve_for.replace('/', "%2f").replace('=', "%3d");
    let path = format!("//addresses/?$resolveFor={asked}&$filter=protocol%20eq%20rntbd");
    if ranges.is_empty() { path } else { format!("{path}&$partitionKeyRangeIds={ranges}") }
}

/// Asks, as a client that came by `host`.
fn get(server: &Server, host: &str, path: &str, signature: &str, date: &str) -> Answer {
    let mut client = server.connect();
    client.send(format!(
        "GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: {}\r\nx-ms-date: {date}\r\n\
         x-ms-version: 2020-07-15\r\nx-ms-force-refresh: True\r\n\r\n",
        authorization(signature)
    ));
    client.answer()
}

/// The same with a good signature of this type and link.
fn signed(server: &Server, host: &str, path: &str, kind: &str, link: &str) -> Answer {
    let date = date(0);
    get(server, host, path, &signature(&key_of(server), "get", kind, link, &date), &date)
}

fn master(server: &Server) -> Answer {
    signed(server, &host(server), &path("dbs", ""), "dbs", "")
}

fn host(server: &Server) -> String {
    format!("127.0.0.1:{}", server.port)
}

/// What is asked for a container.
fn docs(place: &Place) -> String {
    format!("dbs/{}/colls/{}/docs", place.database_rid, place.rid)
}

fn of(server: &Server, place: &Place, ranges: &str) -> Answer {
    signed(server, &host(server), &path(&docs(place), ranges), "docs", &place.rid.to_lowercase())
}

/// Checks that the answer has two addresses for each of these ranges in turn, at this host,
/// and nothing else.
#[track_caller]
fn names(answer: &Answer, rid: &str, host: &str, ranges: &[&str]) {
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let body: Json = serde_json::from_str(&answer.body).unwrap();
    let addresses = body["Addresss"].as_array().unwrap();
    assert_eq!(addresses.len(), 2 * ranges.len(), "{body}");
    let mut expected = Vec::new();
    for (address, place) in addresses.iter().zip(0..) {
        let is_primary = place % 2 == 0;
        let range = ranges[place / 2];
        let uri = address["physcialUri"].as_str().unwrap();
        let end = if is_primary { "p/" } else { "s/" };
        let path = uri.strip_prefix(&format!("rntbd://{host}/apps/")).unwrap();
        let parts: Vec<&str> = path.split('/').collect();
        let [_, "services", _, "partitions", partition, "replicas", _, ""] = parts[..] else {
            panic!("{uri}")
        };
        assert!(partition.ends_with(&format!("-{range}")) && uri.ends_with(end), "{uri}");
        expected.push(json!({
            "isPrimary": is_primary,
            "isAuxiliary": false,
            "protocol": "rntbd",
            "logicalUri": uri,
            "physcialUri": uri,
            "partitionIndex": range,
            "partitionKeyRangeId": range,
        }));
    }
    assert_eq!(body, json!({"_rid": rid, "Addresss": expected, "_count": expected.len()}));
}

#[test]
fn the_master_has_two_addresses() {
    let server = Server::start(&[]);
    names(&master(&server), "", &host(&server), &["M"]);
}

#[test]
fn each_range_that_is_asked_for_has_two_addresses() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    names(&of(&server, &place, "0"), &place.rid, &host(&server), &["0"]);
    let wide = Place::make_wide(&server, "d", "wide");
    names(&of(&server, &wide, "2"), &wide.rid, &host(&server), &["2"]);
    for ranges in ["0,1,3", "0%2c1%2C3"] {
        names(&of(&server, &wide, ranges), &wide.rid, &host(&server), &["0", "1", "3"]);
    }
}

#[test]
fn a_range_that_is_not_there_is_left_out() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    names(&of(&server, &place, "7"), &place.rid, &host(&server), &[]);
    names(&of(&server, &place, "7,0,x"), &place.rid, &host(&server), &["0"]);
}

#[test]
fn a_range_that_was_divided_is_left_out_and_its_halves_are_there() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    admin(&server, "containers/d/c/split", "");
    names(&of(&server, &place, "0"), &place.rid, &host(&server), &[]);
    names(&of(&server, &place, "0,1,2"), &place.rid, &host(&server), &["1", "2"]);
}

#[test]
fn a_container_that_is_not_there_is_not_found() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let other = Place::make(&server, "d", "other");
    assert_eq!(send(&server, "DELETE", "/dbs/d/colls/other", "").status, 204);
    of(&server, &other, "0").is_error(404, "NotFound");
    // A container of another database has another id.
    let stray = Place { database_rid: "AAAAAA==".to_owned(), ..place };
    // A RID says what it is in, so it is not signed for another.
    of(&server, &stray, "0").is_error(401, "Unauthorized");
}

#[test]
fn the_path_has_one_slash_or_more_and_its_parameters_any_order() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let usual = path(&docs(&place), "0");
    let (start, query) = usual.split_once('?').unwrap();
    assert_eq!(start, "//addresses/");
    let turned: Vec<&str> = query.split('&').rev().collect();
    for path in [
        format!("/addresses?{query}"),
        format!("/addresses/?{query}"),
        format!("//addresses?{query}"),
        format!("//addresses/?{}", turned.join("&")),
        usual.replace('$', "%24").replace("%2f", "/"),
    ] {
        let answer = signed(&server, &host(&server), &path, "docs", &place.rid.to_lowercase());
        names(&answer, &place.rid, &host(&server), &["0"]);
    }
}

#[test]
fn who_asks_with_a_wrong_signature_learns_nothing() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let rid = place.rid.to_lowercase();
    let asked = path(&docs(&place), "0");
    let wrong_for = |path: &str, kind: &str, link: &str| {
        signed(&server, &host(&server), path, kind, link).is_error(401, "Unauthorized");
    };
    wrong_for(&asked, "addresses", &rid);
    wrong_for(&asked, "dbs", "");
    wrong_for(&asked, "docs", "aaaaaaaaaaa=");
    wrong_for(&path("dbs", ""), "docs", &rid);
    // Also about what is not there.
    wrong_for(&path("dbs/AAAAAA==/colls/AAAAAAAAAAA=/docs", "0"), "docs", "x");
    let mut client = server.connect();
    client.send(format!("GET {asked} HTTP/1.1\r\nhost: localhost\r\n\r\n"));
    client.answer().is_error(401, "Unauthorized");
}

#[test]
fn the_host_is_the_one_that_the_client_came_by() {
    let server = Server::start(&["--tls-san", "db.test", "--allow-host", "db.test"]);
    let place = Place::make(&server, "d", "c");
    let rid = place.rid.to_lowercase();
    for (host, named) in [
        // As the account says it: who came by IPv4 finds nobody by another name's first address.
        ("localhost:9999", "127.0.0.1:9999"),
        ("127.0.0.1:8081", "127.0.0.1:8081"),
        ("db.test:443", "db.test:443"),
        // What has no port came by that of http.
        ("db.test", "db.test:80"),
        ("localhost", "127.0.0.1:80"),
        // Clients take an address with a bracket for none that can be written to.
        ("[::1]:8081", "localhost:8081"),
    ] {
        let master = signed(&server, host, &path("dbs", ""), "dbs", "");
        names(&master, "", named, &["M"]);
        let container = signed(&server, host, &path(&docs(&place), "0"), "docs", &rid);
        names(&container, &place.rid, named, &["0"]);
    }
}

/// Where a client is sent, it has to believe whom it finds.
#[test]
fn the_host_that_is_named_is_in_the_certificate() {
    let server = Server::start(&["--tls-san", "db.test", "--allow-host", "db.test"]);
    let machine = rustix::system::uname();
    let machine = machine.nodename().to_str().unwrap();
    for host in ["localhost:9999", "127.0.0.1", "[::1]:8081", "db.test:443", machine] {
        let answer = signed(&server, host, &path("dbs", ""), "dbs", "");
        let body: Json = serde_json::from_str(&answer.body).unwrap();
        let uri = body["Addresss"][0]["physcialUri"].as_str().unwrap();
        let (named, _) = uri["rntbd://".len()..].split_once(':').unwrap();
        let mut wire = Wire::to(&server, named, &[]).unwrap();
        wire.write(&context(1));
        assert!(wire.frame(|_| false).is_some(), "{host}");
    }
    assert!(Wire::to(&server, "other.test", &[]).is_err());
}

/// What an emulator is told to be called by stands in all that it says of itself.
#[test]
fn the_public_name_of_an_emulator_is_in_its_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let command = &mut super::common::dayfly(&["--emulator", "--listen", "127.0.0.1:0"]);
    command.args(["--compute-listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0"]);
    command.arg("--tls-dir").arg(folder.path()).arg("--memory");
    let server = Server::spawn(command.env("GATEWAY_PUBLIC_ENDPOINT", "cosmos.test:1234"));
    names(&master(&server), "", "cosmos.test:1234", &["M"]);
    assert!(Wire::to(&server, "cosmos.test", &[]).is_ok());
    assert!(Wire::to(&server, "other.test", &[]).is_err());
}

#[test]
fn the_same_is_said_over_https() {
    let server = Server::start(&[]);
    let date = date(0);
    let signature = signature(&key_of(&server), "get", "dbs", "", &date);
    let asked_by = |host: &str| {
        let mut wire = Wire::open(&server);
        wire.write(
            format!(
                "GET {} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\nauthorization: {}\r\n\
                 x-ms-date: {date}\r\n\r\n",
                path("dbs", ""),
                authorization(&signature)
            )
            .as_bytes(),
        );
        let said = String::from_utf8(wire.rest()).unwrap();
        said.split_once("\r\n\r\n").unwrap().1.to_owned()
    };
    assert_eq!(asked_by(&host(&server)), master(&server).body);
    // Here what has no port came by that of https.
    assert!(asked_by("localhost").contains("rntbd://127.0.0.1:443/"));
}

/// What old clients speak directly is https.
#[test]
fn who_wants_https_is_told_what_else_there_is() {
    let server = Server::start(&[]);
    let path = path("dbs", "").replace("rntbd", "https");
    let refused = signed(&server, &host(&server), &path, "dbs", "");
    refused.is_error(400, "BadRequest");
    assert!(refused.body.to_lowercase().contains("gateway"), "{refused:?}");
}

#[test]
fn a_server_without_direct_mode_names_gateway_mode_to_everybody() {
    let server = Server::start(&["--no-direct"]);
    let place = Place::make(&server, "d", "c");
    for (path, kind, link) in [
        (path("dbs", ""), "dbs", String::new()),
        (path("dbs", ""), "wrong", String::new()),
        (path("dbs", "").replace("rntbd", "https"), "dbs", String::new()),
        (path(&docs(&place), "0"), "docs", place.rid.to_lowercase()),
        (path(&docs(&place), "0"), "docs", "wrong".to_owned()),
        (path("dbs/AAAAAA==/colls/AAAAAAAAAAA=/docs", "0"), "docs", "wrong".to_owned()),
    ] {
        let refused = signed(&server, &host(&server), &path, kind, &link);
        refused.is_error(400, "BadRequest");
        assert!(refused.body.to_lowercase().contains("gateway"), "{refused:?}");
    }
    // Who greets all the same is taken for one of HTTP.
    let mut wire = Wire::open(&server);
    wire.write(&context(1));
    let said = wire.rest();
    assert!(said.starts_with(b"HTTP/1.1 400 "), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn a_replica_set_is_of_one() {
    let server = Server::start(&[]);
    let account: Json = serde_json::from_str(&send(&server, "GET", "/", "").body).unwrap();
    for policy in ["userReplicationPolicy", "systemReplicationPolicy"] {
        assert_eq!(account[policy]["maxReplicasetSize"], 1, "{account}");
        assert_eq!(account[policy]["minReplicaSetSize"], 1, "{account}");
    }
    assert_eq!(account["addresses"], "//addresses/");
}

#[test]
fn one_port_speaks_everything() {
    let server = Server::start(&[]);
    let mut direct = Channel::open(&server);
    direct.is_alive();
    let metrics = server.get("/metrics").body;
    assert!(metrics.contains("{protocol=\"direct\"} 1\n"), "{metrics}");

    assert_eq!(server.get("/alive").status, 200);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let mut clear = server.connect();
    clear.send(preface);
    assert!(!clear.is_turned_away());
    for protocols in [&[][..], &["http/1.1"]] {
        let mut wire = Wire::open_as(&server, protocols);
        wire.write(b"GET /alive HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        assert!(wire.rest().starts_with(b"HTTP/1.1 200 "), "{protocols:?}");
    }
    let mut wire = Wire::open_as(&server, &["h2"]);
    wire.write(preface);
    let settings: [u8; 9] = wire.read();
    assert_eq!(settings[3], 4, "settings come first: {settings:?}");

    direct.is_alive();
    Channel::open(&server).is_alive();
}

/// What is too short for a frame may still be a request.
#[test]
fn a_short_request_over_tls_is_http() {
    let server = Server::start(&["--header-timeout-ms", "300"]);
    let mut wire = Wire::open(&server);
    wire.write(b"GET");
    wire.write(b" /ali");
    wire.write(b"ve HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    assert!(wire.rest().starts_with(b"HTTP/1.1 200 "));
}
