//! What can be changed while the server runs: its keys and its certificate.
//!
//! `SIGHUP` reads both again; when one of them cannot be used, both stay as they are.
//! Open connections stay open: their next request is checked with the new keys, and the
//! next handshake shows the new certificate. Besides, the certificate is looked at from
//! time to time: one of ours is made again in time, of another we warn.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dayfly_model::Timestamp;

use crate::config::Checked;
use crate::keys::KeySource;
use crate::tls::{self, DAY_SECONDS, RENEW_SECONDS, Source, Tls};
use crate::visit::Host;

/// How long before its end we warn of a certificate.
const WARN_SECONDS: u64 = 30 * DAY_SECONDS;

/// How often the certificate is looked at.
pub(crate) const LOOK_PERIOD: Duration = Duration::from_hours(12);

/// The means to change them.
pub(crate) struct Renewal {
    host: Arc<Host>,
    keys: KeySource,
    tls: Source,
    /// Where the certificate is shown, besides.
    export: Option<PathBuf>,
}

impl Renewal {
    /// `end` is that of the certificate that is in use.
    pub(crate) fn new(host: Arc<Host>, settings: &Checked, end: u64) -> Renewal {
        let renewal = Renewal {
            host,
            keys: settings.key_source.clone(),
            tls: settings.tls.clone(),
            export: settings.tls_export.clone(),
        };
        renewal.set_end(end);
        renewal
    }

    /// When the certificate ends.
    fn end(&self) -> u64 {
        self.host.api.edge().certificate_end.load(Ordering::Relaxed)
    }

    fn set_end(&self, end: u64) {
        self.host.api.edge().certificate_end.store(end, Ordering::Relaxed);
    }

    /// Reads everything again.
    pub(crate) fn reload(&self, now: u64) {
        match self.try_reload(now) {
            Ok(()) => {
                tracing::info!(target: "audit", "the keys and the certificate were read again");
                self.warn(now);
            }
            Err(sentence) => {
                tracing::error!("the keys and the certificate stay as they are: {sentence}");
            }
        }
    }

    fn try_reload(&self, now: u64) -> Result<(), String> {
        let keys = self.keys.read()?;
        let tls = self.tls.open(now)?;
        self.host.api.set_keys(&keys).map_err(|error| error.message)?;
        self.show(tls);
        Ok(())
    }

    /// Looks after the certificate.
    pub(crate) fn look(&self, now: u64) {
        if is_due(&self.tls, self.end(), now) {
            match self.tls.open(now) {
                Ok(tls) => {
                    self.show(tls);
                    tracing::warn!(
                        "the certificate would have ended soon and was made again: clients that \
                         trust the old one need the new one, from /_explorer/emulator.pem"
                    );
                }
                Err(sentence) => tracing::warn!("the certificate is not renewed: {sentence}"),
            }
        }
        self.warn(now);
    }

    fn show(&self, tls: Tls) {
        self.set_end(tls.end);
        if let Some(path) = &self.export {
            tls::export(path, &tls.certificate_pem);
        }
        self.host.api.set_certificate(tls.certificate_pem);
        self.host.set_tls(tls.acceptor);
    }

    fn warn(&self, now: u64) {
        if let Some(sentence) = warning(self.end(), now) {
            tracing::warn!("{sentence}");
        }
    }
}

/// Whether it is time for a new certificate, and for us to make it.
fn is_due(source: &Source, end: u64, now: u64) -> bool {
    matches!(source, Source::Made { .. }) && end <= now.saturating_add(RENEW_SECONDS)
}

/// What to say at `now` of a certificate that ends at `end`.
fn warning(end: u64, now: u64) -> Option<String> {
    let days = match end.checked_sub(now) {
        Some(left) if left > WARN_SECONDS => return None,
        Some(left) => format!("ends in {} days", left / DAY_SECONDS),
        None => "has ended".to_owned(),
    };
    let date = Timestamp(end).to_http_date();
    Some(format!("the certificate {days}, at {date}: put a new one in its place and send SIGHUP"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::Home;

    #[test]
    fn a_certificate_of_ours_is_renewed_before_anybody_is_warned() {
        const END: u64 = 1_700_000_000;
        let folder = tempfile::tempdir().unwrap();
        let home = Home::Folder(folder.path().to_owned());
        let made = Source::Made { home, names: vec!["localhost".to_owned()] };
        let files = Source::Files { certificate: "a".into(), key: "b".into() };
        for (now, due) in [(END - RENEW_SECONDS - 1, false), (END - RENEW_SECONDS, true)] {
            assert_eq!((is_due(&made, END, now), is_due(&files, END, now)), (due, false));
            assert_eq!(warning(END, now), None);
        }
        let first = made.open(END).unwrap();
        assert_eq!(made.open(first.end - RENEW_SECONDS - 1).unwrap().end, first.end);
        assert!(made.open(first.end - RENEW_SECONDS).unwrap().end > first.end);
    }

    #[test]
    fn the_end_of_a_certificate_is_told_thirty_days_before() {
        const END: u64 = 1_700_000_000;
        assert_eq!(warning(END, END - WARN_SECONDS - 1), None);
        let sentence = warning(END, END - WARN_SECONDS).unwrap();
        assert!(sentence.contains("ends in 30 days, at Tue, 14 Nov 2023 22:13:20 GMT"));
        assert!(warning(END, END).unwrap().contains("ends in 0 days"));
        assert!(warning(END, END + 1).unwrap().contains("has ended"));
    }
}
