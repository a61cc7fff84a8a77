//! Where the ranges of a container are, for clients in direct mode.
//!
//! The answer has the names that clients read, two of them misspelt. Each range is at two
//! addresses that differ in their path only, so that clients who ask anybody but the
//! primary have somebody to ask, and open no second connection for it.

use std::net::IpAddr;
use std::sync::Arc;

use dayfly_engine::operation::ContainerScope;
use dayfly_model::{Error, ErrorKind, Result};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::account;
use crate::route::{self, parameter};

/// The range that stands for what is in no container.
const MASTER: &str = "M";

/// The protocol of direct mode.
const RNTBD: &str = "rntbd";

/// What the path of an address cannot hold as it is.
const NOT_IN_PATHS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-');

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Sought {
    /// The container, by RIDs; without one it is about databases and what else is in none.
    pub(crate) container: Option<ContainerScope>,
    /// The ids of its ranges; none for all.
    ranges: Vec<String>,
}

/// Refuses whoever cannot be served, and says which mode is: before anything else, since a
/// client that got this far has the address right.
pub(crate) fn check(query: &str, is_offered: bool) -> Result<()> {
    if !is_offered {
        return Err(Error::bad_request(
            "Direct mode is not offered. Set the client's connection mode to Gateway: \
             ConnectionMode.Gateway in .NET, gatewayMode() in Java.",
        ));
    }
    let filter = parameter(query, "$filter").unwrap_or_default().replace('+', " ");
    match filter.split_whitespace().next_back() {
        None => Ok(()),
        Some(protocol) if protocol.eq_ignore_ascii_case(RNTBD) => Ok(()),
        Some(protocol) => Err(Error::bad_request(format!(
            "Direct mode is offered over TCP, not over '{protocol}'. Set the client's protocol to \
             Tcp, or its connection mode to Gateway.",
        ))),
    }
}

/// Reads what is asked for.
pub(crate) fn read(query: &str) -> Result<Sought> {
    let unknown = || Error::new(ErrorKind::NotFound, route::UNKNOWN_PATH);
    let resolve = parameter(query, "$resolveFor").ok_or_else(|| {
        Error::bad_request("The parameter '$resolveFor' is missing; addresses are of something.")
    })?;
    let segments: Vec<&str> = resolve.split('/').filter(|segment| !segment.is_empty()).collect();
    let container = match *segments.as_slice() {
        ["dbs", database, "colls", container, ..] => Some(ContainerScope {
            database: database.to_owned(),
            container: container.to_owned(),
            ..ContainerScope::default()
        }),
        ["dbs" | "offers", ..] => None,
        _ => return Err(unknown()),
    };
    let ranges = parameter(query, "$partitionKeyRangeIds").unwrap_or_default();
    let ranges = ranges.split(',').map(str::trim).filter(|range| !range.is_empty());
    Ok(Sought { container, ranges: ranges.map(str::to_owned).collect() })
}

/// The host and port at which a client that came by `host` finds what it asks for. All of
/// it is here; where several nodes own ranges, this is where their owners are named.
///
/// No address in brackets: clients take one for no primary, and never write. Who names no
/// port came by that of the scheme, and all that there is is on one port.
pub(crate) fn home(host: &str, secure: bool, on_ipv4: bool, machine: Option<&str>) -> String {
    let mut home = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((literal, port)) => {
            let is_loopback =
                literal.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback());
            let name = machine.filter(|_| !is_loopback).unwrap_or("localhost");
            format!("{name}{port}")
        }
        None if on_ipv4 => account::by_address(host).into_owned(),
        None => host.to_owned(),
    };
    if !home.contains(':') {
        home.push_str(if secure { ":443" } else { ":80" });
    }
    home
}

/// The addresses for what is in no container.
pub(crate) fn of_master(home: &str) -> Value {
    list("", pair(home, "master", MASTER))
}

/// The addresses of the ranges of a container that are asked for. Those that there are
/// not are left out: the client looks for the ranges again then.
pub(crate) fn of_ranges(home: &str, wanted: &Sought, rid: &str, ranges: &[Arc<str>]) -> Value {
    let is_wanted = |range: &&Arc<str>| {
        wanted.ranges.is_empty() || wanted.ranges.iter().any(|id| **id == ***range)
    };
    let found = ranges.iter().filter(is_wanted);
    list(rid, found.flat_map(|range| pair(home, rid, range)))
}

fn list(rid: &str, addresses: impl IntoIterator<Item = Value>) -> Value {
    let addresses: Vec<Value> = addresses.into_iter().collect();
    json!({ "_rid": rid, "_count": addresses.len(), "Addresss": addresses })
}

fn pair(home: &str, owner: &str, range: &str) -> [Value; 2] {
    let owner = utf8_percent_encode(owner, NOT_IN_PATHS);
    [(true, "1p"), (false, "2s")].map(|(is_primary, replica)| {
        let uri = format!(
            "{RNTBD}://{home}/apps/dayfly/services/dayfly/partitions/{owner}-{range}/replicas/\
             {replica}/"
        );
        json!({
            "isPrimary": is_primary,
            "isAuxiliary": false,
            "protocol": RNTBD,
            "logicalUri": uri,
            "physcialUri": uri,
            "partitionIndex": range,
            "partitionKeyRangeId": range,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_the_one_the_client_came_by_but_never_in_brackets() {
        for (host, on_ipv4, machine, expected) in [
            ("localhost:8081", true, Some("db1"), "127.0.0.1:8081"),
            ("localhost:8081", false, Some("db1"), "localhost:8081"),
            ("db.example:8443", true, Some("db1"), "db.example:8443"),
            ("10.0.0.5:8081", true, None, "10.0.0.5:8081"),
            ("[::1]:8081", true, Some("db1"), "localhost:8081"),
            ("[2001:db8::1]:8081", true, Some("db1"), "db1:8081"),
        ] {
            for secure in [true, false] {
                assert_eq!(home(host, secure, on_ipv4, machine), expected, "{host}");
            }
        }
    }

    #[test]
    fn who_came_without_a_port_came_by_that_of_the_scheme() {
        for (host, secure, expected) in [
            ("db.example", true, "db.example:443"),
            ("db.example", false, "db.example:80"),
            ("localhost", false, "127.0.0.1:80"),
            ("[2001:db8::1]", true, "localhost:443"),
            ("[2001:db8::1]", false, "localhost:80"),
        ] {
            assert_eq!(home(host, secure, true, None), expected, "{host}");
        }
    }

    #[test]
    fn each_range_has_a_primary_and_somebody_else() {
        let wanted = read("$resolveFor=dbs%2fAAAAAg%3d%3d%2fcolls%2fAAAAAoAAAAI%3d%2fdocs&$filter=x&$partitionKeyRangeIds=0,7").unwrap();
        let at = wanted.container.as_ref().unwrap();
        assert_eq!((&*at.database, &*at.container), ("AAAAAg==", "AAAAAoAAAAI="));
        let ranges = ["0".into(), "1".into()];
        let answer = of_ranges("h:1", &wanted, &at.container, &ranges);
        let path = "rntbd://h:1/apps/dayfly/services/dayfly/partitions/AAAAAoAAAAI%3D-0/replicas";
        let addresses = answer["Addresss"].as_array().unwrap();
        assert_eq!((addresses.len(), &answer["_count"]), (2, &json!(2)));
        assert_eq!(addresses[0]["physcialUri"], format!("{path}/1p/"));
        assert_eq!(addresses[1]["physcialUri"], format!("{path}/2s/"));
        let primaries = addresses.iter().filter(|address| address["isPrimary"] == true);
        assert_eq!(primaries.count(), 1);
        assert_eq!(of_ranges("h:1", &wanted, "r", &ranges[1..])["_count"], 0);
        assert_eq!(of_master("h:1")["Addresss"][0]["partitionKeyRangeId"], MASTER);
    }

    #[test]
    fn who_cannot_be_served_learns_which_mode_can() {
        assert!(check("$filter=protocol%20eq%20rntbd", true).is_ok());
        assert!(check("", true).is_ok());
        for (query, is_offered, expected) in [
            ("$filter=protocol%20eq%20rntbd", false, "ConnectionMode.Gateway"),
            ("$filter=protocol+eq+https", true, "not over 'https'"),
        ] {
            let message = check(query, is_offered).unwrap_err().message;
            assert!(message.contains(expected), "{message}");
        }
        assert!(read("$resolveFor=media").is_err());
        assert!(read("").is_err());
    }
}
