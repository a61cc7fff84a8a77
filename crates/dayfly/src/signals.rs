//! How the system speaks to us: `SIGTERM`, or `SIGINT` from a keyboard, asks us to end.
//! `SIGHUP` asks for keys and certificate to be read again; a terminal that is closed
//! sends it too.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end the server. The first lets running requests come to
/// their end, the second does not.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

/// `SIGHUP`.
pub(crate) struct Hangup(Signal);

impl Hangup {
    /// From now on it comes here, and does not kill the process.
    pub(crate) fn new() -> Result<Hangup, String> {
        on(SignalKind::hangup()).map(Hangup)
    }

    /// Ready at the next one.
    pub(crate) async fn next(&mut self) {
        self.0.recv().await;
    }
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
