//! How much of the server one client can take, and for how long.
//!
//! Sizes are the same everywhere. Times can be set, out of sight of the help,
//! because a test does not want to wait as long as a server does.

use std::time::Duration;

/// The longest body of a request. The service takes items of 2 MB and batches
/// of the same size; the rest is room for what surrounds them.
pub(crate) const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// All bodies that are held at one time, over all connections. A body that
/// comes in one piece is not counted.
pub(crate) const BODIES_BYTES_MAX: usize = 512 * 1024 * 1024;

/// All answers that are held at one time, over all connections, because clients
/// have not taken them: 64 of the largest pages.
pub(crate) const ANSWERS_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The request line and the headers together.
pub(crate) const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The longest path with its query.
pub(crate) const URL_BYTES_MAX: usize = 16 * 1024;

/// Requests that one HTTP/2 connection may have open.
pub(crate) const STREAMS_MAX: u32 = 128;

/// Requests that one connection in direct mode may have open; both SDKs send 30 by default.
pub(crate) const REQUESTS_MAX: usize = 256;

/// What is read and thrown away after a refusal, so that the client gets to
/// see it: closing a socket with unread bytes takes the answer back, and some
/// clients read no answer before they have sent all.
pub(crate) const LINGER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How long a client may take, in milliseconds.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Limits {
    /// How many connections may be open at one time. The next one is closed
    /// at once, so that its client learns of it without waiting.
    #[arg(long, env = "DAYFLY_MAX_CONNECTIONS", default_value_t = 10_000, value_name = "COUNT")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_connections: u32,

    /// The first bytes of a connection, a TLS handshake, the head of a request.
    #[arg(long, hide = true, default_value_t = 10_000)]
    pub(crate) header_timeout_ms: u64,

    /// Between two pieces of a body.
    #[arg(long, hide = true, default_value_t = 10_000)]
    pub(crate) body_progress_timeout_ms: u64,

    /// A whole body.
    #[arg(long, hide = true, default_value_t = 60_000)]
    pub(crate) body_timeout_ms: u64,

    /// Until a client takes the next piece of an answer.
    #[arg(long, hide = true, default_value_t = 60_000)]
    pub(crate) write_timeout_ms: u64,

    /// Between two requests of a connection.
    #[arg(long, hide = true, default_value_t = 300_000)]
    pub(crate) idle_timeout_ms: u64,

    /// The same in direct mode, whose clients keep connections for long; Java's closes them
    /// itself after an hour, and a connection that both close at one time may lose a request.
    #[arg(long, hide = true, default_value_t = 3_900_000)]
    pub(crate) direct_idle_timeout_ms: u64,

    /// Reading on after a refusal; a body that is too large may take as long as any.
    #[arg(long, hide = true, default_value_t = 2_000)]
    pub(crate) linger_timeout_ms: u64,

    /// Between two pings of an HTTP/2 connection, and until one is answered.
    #[arg(long, hide = true, default_value_t = 20_000)]
    pub(crate) ping_timeout_ms: u64,

    /// A page of a query, which then ends as soon as it can: clients in direct mode wait for
    /// five or six seconds.
    #[arg(long, hide = true, default_value_t = 4_000)]
    pub(crate) page_timeout_ms: u64,

    /// A query, with the time that it waits for others.
    #[arg(long, hide = true, default_value_t = 60_000)]
    pub(crate) query_timeout_ms: u64,

    /// The same in direct mode, whose clients ask again after five or six seconds, and after
    /// ten at most unless .NET's was told to wait for longer.
    #[arg(long, hide = true, default_value_t = 12_000)]
    pub(crate) direct_query_timeout_ms: u64,

    /// For the requests that run when the server is told to stop.
    #[arg(long, hide = true, default_value_t = 10_000)]
    pub(crate) stop_timeout_ms: u64,
}

impl Limits {
    /// Those of a connection in direct mode.
    pub(crate) fn direct(self) -> Limits {
        Limits {
            idle_timeout_ms: self.direct_idle_timeout_ms,
            query_timeout_ms: self.direct_query_timeout_ms.min(self.query_timeout_ms),
            ..self
        }
    }

    pub(crate) fn header_timeout(&self) -> Duration {
        Duration::from_millis(self.header_timeout_ms)
    }

    pub(crate) fn body_progress_timeout(&self) -> Duration {
        Duration::from_millis(self.body_progress_timeout_ms)
    }

    pub(crate) fn body_timeout(&self) -> Duration {
        Duration::from_millis(self.body_timeout_ms)
    }

    pub(crate) fn linger_timeout(&self) -> Duration {
        Duration::from_millis(self.linger_timeout_ms)
    }

    pub(crate) fn ping_timeout(&self) -> Duration {
        Duration::from_millis(self.ping_timeout_ms)
    }

    pub(crate) fn page_timeout(&self) -> Duration {
        Duration::from_millis(self.page_timeout_ms)
    }

    pub(crate) fn query_timeout(&self) -> Duration {
        Duration::from_millis(self.query_timeout_ms)
    }

    pub(crate) fn stop_timeout(&self) -> Duration {
        Duration::from_millis(self.stop_timeout_ms)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::config::Config;

    /// Clients are told half an hour when they greet, and Java's waits for a whole one.
    #[test]
    fn a_direct_connection_may_be_idle_for_longer_than_clients_are() {
        let limits = Config::try_parse_from(["dayfly"]).unwrap().limits;
        assert!(limits.direct().idle_timeout_ms > 60 * 60 * 1000);
    }
}
