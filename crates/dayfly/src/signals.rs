//! How the system asks us to end: `SIGTERM`, or `SIGINT` from a keyboard.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end the server. The first lets running requests come to
/// their end, the second does not.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From now on these signals come here, and do not kill the process.
    pub(crate) fn new() -> Result<Signals, String> {
        let on = |kind| -> Result<Signal, String> {
            signal(kind).map_err(|error| format!("Signals cannot be handled: {error}."))
        };
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
