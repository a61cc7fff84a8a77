//! By which names a server of this machine may be called.
//!
//! A web page can give a name of its own the address 127.0.0.1 and have the browser ask
//! there (DNS rebinding). The page cannot choose the `host` that the browser sends: it is
//! that name. So whoever calls us by a name that is not ours is refused. A server on a
//! network has names that only its users know, and keys of its own, and a container is
//! called by whatever name its network gives it: there nothing is checked.

use std::net::IpAddr;

use dayfly_model::{Error, ErrorKind, Result};
use http::Uri;
use http::header::{HOST, HeaderMap};

/// The names that are known, besides those of every machine for itself.
pub(crate) struct Hosts {
    names: Vec<String>,
}

impl Hosts {
    /// `names` are host names, some of them like `*.example`, and IP addresses.
    pub(crate) fn new(names: impl IntoIterator<Item = String>) -> Hosts {
        Hosts { names: names.into_iter().map(|name| name.to_ascii_lowercase()).collect() }
    }

    /// Refuses a request that calls us by a name that is not ours. HTTP/1.0 need not give
    /// one, and browsers do not speak it.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<()> {
        let authority = uri.authority().map(|authority| authority.as_str().as_bytes());
        let header = headers.get(HOST).map(http::HeaderValue::as_bytes);
        for given in [authority, header].into_iter().flatten() {
            let host = String::from_utf8_lossy(given);
            if !host.is_empty() && !self.knows(&host) {
                return Err(Error::new(
                    ErrorKind::Misdirected,
                    format!(
                        "This server is not known by the name '{}': call it localhost, or start \
                         it with --allow-host and this name.",
                        without_port(&host)
                    ),
                ));
            }
        }
        Ok(())
    }

    fn knows(&self, host: &str) -> bool {
        let host = without_port(host);
        if let Ok(ip) = host.parse::<IpAddr>() {
            let is_named = |name: &String| name.parse() == Ok(ip);
            return ip.to_canonical().is_loopback() || self.names.iter().any(is_named);
        }
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        host == "localhost"
            || host.ends_with(".localhost")
            || self.names.iter().any(|name| is_called(name, &host))
    }
}

/// Whether `host` is this name, or one of those that `*.example` stands for.
fn is_called(name: &str, host: &str) -> bool {
    match name.strip_prefix("*.") {
        Some(parent) => host.split_once('.').is_some_and(|(_, above)| above == parent),
        None => name == host,
    }
}

/// A host without its port, and without the brackets of an address.
fn without_port(host: &str) -> &str {
    if let Some((address, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_known() {
        let names = ["Machine", "*.b.example", "10.0.0.5"];
        let hosts = Hosts::new(names.map(str::to_owned));
        for known in [
            "localhost",
            "LOCALHOST:8081",
            "localhost.:1",
            "account.localhost:8081",
            "127.0.0.1",
            "127.0.0.1:8081",
            "127.8.8.8:1",
            "[::1]:8081",
            "[::1]",
            "[::ffff:127.0.0.1]:1",
            "machine",
            "MACHINE:1",
            "a.b.example:1",
            "10.0.0.5:8081",
        ] {
            assert!(hosts.knows(known), "{known}");
        }
        for unknown in [
            "evil.example",
            "localhost.evil.example",
            "notlocalhost",
            "127.0.0.1.evil.example:8081",
            "b.example",
            "a.a.b.example",
            "10.0.0.6",
            "0.0.0.0:8081",
            "[2001:db8::1]:1",
            "user@localhost",
            "machine.evil.example",
            "localhost:8081:1",
            "[",
        ] {
            assert!(!hosts.knows(unknown), "{unknown}");
        }
    }

    #[test]
    fn each_host_of_a_request_must_be_ours() {
        let hosts = Hosts::new([]);
        let check = |uri: &str, header: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(host) = header {
                headers.insert(HOST, host.parse().unwrap());
            }
            hosts.check(&uri.parse().unwrap(), &headers).map_err(|error| error.kind.wire().status)
        };
        assert_eq!(check("/", Some("localhost:1")), Ok(()));
        assert_eq!(check("/", Some("a")), Err(421));
        assert_eq!(check("http://localhost/", None), Ok(()));
        assert_eq!(check("http://a/", None), Err(421));
        assert_eq!(check("http://localhost/", Some("a")), Err(421));
        assert_eq!(check("http://a/", Some("localhost")), Err(421));
        assert_eq!(check("/", None), Ok(()));
        assert_eq!(check("/", Some("")), Ok(()));
    }
}
