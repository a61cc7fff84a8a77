//! How the place to listen may be written, and which addresses it means.
//!
//! ```text
//! 8082, localhost:8082, 127.0.0.1:8082, [::1]:8082   both loopback addresses
//! :8082                                              every address
//! 10.0.0.5:8082                                      this one
//! ```
//!
//! `localhost` is 127.0.0.1 to some clients and `::1` to others: a server that has
//! only one of the two is not found by half of them, or another server is.

use std::fmt::{self, Display, Formatter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// Where to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    /// On 127.0.0.1, and on `::1` where the machine has it.
    Loopback(u16),
    /// On every address of the machine.
    Every(u16),
    /// On one address.
    One(SocketAddr),
}

impl Listen {
    pub(crate) fn port(self) -> u16 {
        match self {
            Listen::Loopback(port) | Listen::Every(port) => port,
            Listen::One(address) => address.port(),
        }
    }

    /// Whether only this machine can connect.
    pub(crate) fn is_loopback(self) -> bool {
        match self {
            Listen::Loopback(_) => true,
            Listen::Every(_) => false,
            Listen::One(address) => address.ip().to_canonical().is_loopback(),
        }
    }

    /// Whether a client that comes to 127.0.0.1 finds the server. All addresses of
    /// version 6 are, where the system does not say otherwise, those of version 4 too.
    pub(crate) fn is_on_ipv4(self) -> bool {
        match self {
            Listen::Loopback(_) | Listen::Every(_) => true,
            Listen::One(address) => {
                address.ip().is_unspecified() || address.ip().to_canonical().is_ipv4()
            }
        }
    }

    /// The same address, or addresses, with another port.
    pub(crate) fn with_port(self, port: u16) -> Listen {
        match self {
            Listen::Loopback(_) => Listen::Loopback(port),
            Listen::Every(_) => Listen::Every(port),
            Listen::One(address) => Listen::One((address.ip(), port).into()),
        }
    }

    /// The address that was named, if one was.
    pub(crate) fn ip(self) -> Option<IpAddr> {
        match self {
            Listen::Loopback(_) | Listen::Every(_) => None,
            Listen::One(address) => Some(address.ip()),
        }
    }
}

impl FromStr for Listen {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Listen, &'static str> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            let is_localhost =
                address.ip() == Ipv4Addr::LOCALHOST || address.ip() == Ipv6Addr::LOCALHOST;
            return Ok(if is_localhost {
                Listen::Loopback(address.port())
            } else {
                Listen::One(address)
            });
        }
        let (host, port) = text.rsplit_once(':').unwrap_or(("localhost", text));
        let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
        match port.parse() {
            Ok(port) if is_number && host.is_empty() => Ok(Listen::Every(port)),
            Ok(port) if is_number && host.eq_ignore_ascii_case("localhost") => {
                Ok(Listen::Loopback(port))
            }
            _ => Err("give a port, such as 8082, or an address with one: localhost:8082, \
                      10.0.0.5:8082, or :8082 for every address"),
        }
    }
}

impl Display for Listen {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Listen::Loopback(port) => write!(f, "localhost:{port}"),
            Listen::Every(port) => write!(f, ":{port}"),
            Listen::One(address) => address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_may_be_written_in_many_ways() {
        for (text, expected) in [
            ("8082", Listen::Loopback(8082)),
            ("0", Listen::Loopback(0)),
            ("localhost:8082", Listen::Loopback(8082)),
            ("LocalHost:1", Listen::Loopback(1)),
            ("127.0.0.1:8082", Listen::Loopback(8082)),
            ("[::1]:8082", Listen::Loopback(8082)),
            (":8082", Listen::Every(8082)),
            ("127.0.0.2:1", Listen::One(([127, 0, 0, 2], 1).into())),
            ("0.0.0.0:1", Listen::One(([0, 0, 0, 0], 1).into())),
            ("10.0.0.5:1", Listen::One(([10, 0, 0, 5], 1).into())),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
            assert_eq!(expected.to_string().parse(), Ok(expected), "{text}");
        }
        for wrong in ["", ":", "nowhere", "nowhere:1", "65536", "-1", "+1", ":+1", "::1:1", "[::1]"]
        {
            assert!(wrong.parse::<Listen>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn another_port_is_at_the_same_address() {
        for (text, expected) in
            [("1", "2"), (":1", ":2"), ("10.0.0.5:1", "10.0.0.5:2"), ("[::]:1", "[::]:2")]
        {
            let listen: Listen = text.parse().unwrap();
            assert_eq!(Ok(listen.with_port(2)), expected.parse(), "{text}");
        }
    }

    #[test]
    fn only_loopback_is_this_machine_alone() {
        for (text, loopback, on_ipv4) in [
            ("1", true, true),
            ("127.1.2.3:1", true, true),
            ("[::ffff:127.0.0.1]:1", true, true),
            (":1", false, true),
            ("[::]:1", false, true),
            ("[2001:db8::1]:1", false, false),
        ] {
            let listen: Listen = text.parse().unwrap();
            assert_eq!((listen.is_loopback(), listen.is_on_ipv4()), (loopback, on_ipv4), "{text}");
        }
    }
}
