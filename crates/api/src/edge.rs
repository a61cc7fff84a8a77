//! What the listener tells of itself, for `/metrics`.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// What a connection speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// It has not said enough to know.
    #[default]
    Unknown,
    /// HTTP/1.1 in clear text.
    Http1,
    /// HTTP/2 in clear text.
    Http2,
    /// HTTP/1.1 over TLS.
    TlsHttp1,
    /// HTTP/2 over TLS.
    TlsHttp2,
    /// Frames of direct mode, over TLS.
    Direct,
}

impl Protocol {
    /// All of them, with their names.
    pub(crate) const ALL: [(Protocol, &'static str); 6] = [
        (Protocol::Unknown, "unknown"),
        (Protocol::Http1, "http1"),
        (Protocol::Http2, "http2"),
        (Protocol::TlsHttp1, "tls_http1"),
        (Protocol::TlsHttp2, "tls_http2"),
        (Protocol::Direct, "direct"),
    ];
}

/// What the listener tells of itself.
#[derive(Debug, Default)]
pub struct Edge {
    /// Bytes of answers that clients have not taken yet.
    pub unread_bytes: AtomicUsize,
    /// Connections that were closed because their clients did not.
    pub readers_cut: AtomicU64,
    /// Connections that were taken.
    pub accepted: AtomicU64,
    /// Connections that were closed at once, because there were too many.
    pub turned_away: AtomicU64,
    /// How many connections may be open at one time; 0 if that is not known.
    pub connections_max: AtomicUsize,
    /// The second at which the certificate ends; 0 if there is none.
    pub certificate_end: AtomicU64,
    /// Whether the server stops.
    pub closing: AtomicBool,
    open: [AtomicUsize; Protocol::ALL.len()],
}

impl Edge {
    /// A connection speaks this from now on.
    pub fn begins(&self, protocol: Protocol) {
        if let Some(open) = self.open.get(protocol as usize) {
            open.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A connection that spoke this does so no more.
    pub fn ends(&self, protocol: Protocol) {
        if let Some(open) = self.open.get(protocol as usize) {
            open.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// How many connections are open, by the name of what they speak.
    pub(crate) fn open(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let open = self.open.iter().map(|open| open.load(Ordering::Relaxed));
        Protocol::ALL.iter().map(|(_, name)| *name).zip(open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_has_its_own_place() {
        for (place, (protocol, _)) in Protocol::ALL.iter().enumerate() {
            assert_eq!(*protocol as usize, place);
        }
        let edge = Edge::default();
        edge.begins(Protocol::Unknown);
        edge.ends(Protocol::Unknown);
        edge.begins(Protocol::TlsHttp2);
        let open: Vec<usize> = edge.open().map(|(_, count)| count).collect();
        assert_eq!(open, [0, 0, 0, 0, 1, 0]);
    }
}
