//! How the system speaks to us: `SIGTERM`, or `SIGINT` from a keyboard, asks us to end.
//! `SIGHUP` does not: a terminal that is closed sends it.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end the server. The first lets running requests come to
/// their end, the second does not.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

/// From now on `SIGHUP` does not kill the process. What tokio has caught once it
/// catches for good.
pub(crate) fn catch_hangup() -> Result<(), String> {
    on(SignalKind::hangup()).map(drop)
}

fn on(kind: SignalKind) -> Result<Signal, String> {
    signal(kind).map_err(|error| format!("Signals cannot be handled: {error}."))
}

impl Signals {
    /// From now on these signals come here, and do not kill the process.
    pub(crate) fn new() -> Result<Signals, String> {
        Ok(Signals {
            terminate: on(SignalKind::terminate())?,
            interrupt: on(SignalKind::interrupt())?,
        })
    }

    /// Ready at the next signal.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
