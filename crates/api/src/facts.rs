//! What the portal shows of the server itself: how it was started, by which addresses
//! clients come to it, and its certificate.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dayfly_engine::{Caller, Reading};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// How the server was started, as far as it is shown.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Facts {
    /// Whether a write is answered before it would survive a power cut.
    pub relaxed: bool,
    /// Whether nothing is kept when the server stops.
    pub in_memory: bool,
    /// Whether it does as the emulators do.
    pub emulator: bool,
    /// Whether the clock can be moved.
    pub test_clock: bool,
    /// Whether clear text is served.
    pub clear_text: bool,
    /// The key that is no secret, because every emulator has it.
    pub public_key: &'static str,
    /// How long a change of a default waits.
    pub ttl_change_delay_seconds: u64,
    /// From which part of the items on a change must be confirmed, in percent.
    pub ttl_change_guard_percent: Option<f64>,
}

/// What is shown to one who asks.
pub(crate) struct Shown<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) clock: Reading,
    /// When it was started, in real time, and how long ago.
    pub(crate) started_at: u64,
    pub(crate) uptime_seconds: u64,
    pub(crate) caller: Caller,
    pub(crate) request_log: bool,
    pub(crate) direct: bool,
    /// Whether the primary key is the public one.
    pub(crate) has_public_key: bool,
    /// By which clients come.
    pub(crate) host: &'a str,
    pub(crate) certificate_pem: Option<&'a str>,
    /// When the certificate ends; 0 if that is not known.
    pub(crate) certificate_end: u64,
}

impl Shown<'_> {
    pub(crate) fn to_json(&self) -> Value {
        let Shown { facts, clock, .. } = self;
        let endpoint =
            |scheme: &str| json!({"scheme": scheme, "url": format!("{scheme}://{}/", self.host)});
        let http = facts.clear_text.then(|| endpoint("http"));
        let endpoints: Vec<Value> = std::iter::once(endpoint("https")).chain(http).collect();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "now": clock.now,
            "startedAt": self.started_at,
            "uptimeSeconds": self.uptime_seconds,
            "clock": {
                "now": clock.now,
                "frozen": clock.frozen,
                "offsetSeconds": clock.offset_seconds,
                "held": clock.held,
                "canMove": facts.test_clock,
            },
            "durability": if facts.relaxed { "relaxed" } else { "sync" },
            "place": if facts.in_memory { "memory" } else { "folder" },
            "emulator": facts.emulator,
            "readOnly": self.caller == Caller::ReadOnly,
            "by": self.caller.name(),
            "wellKnownKey": self.has_public_key,
            "requestLog": self.request_log,
            "ttlChangeDelaySeconds": facts.ttl_change_delay_seconds,
            "ttlChangeGuardPercent": facts.ttl_change_guard_percent,
            "endpoints": endpoints,
            "direct": self.direct,
            "certificate": self.certificate_pem.map(|pem| json!({
                "path": "/_explorer/emulator.pem",
                "sha256": fingerprint(pem),
                "endsAt": (self.certificate_end > 0).then_some(self.certificate_end),
            })),
        })
    }
}

/// By which a certificate is known: the hash of the first one in a text.
fn fingerprint(pem: &str) -> Option<String> {
    let (_, rest) = pem.split_once("-----BEGIN CERTIFICATE-----")?;
    let (body, _) = rest.split_once("-----END CERTIFICATE-----")?;
    let text: String = body.split_whitespace().collect();
    let hash = Sha256::digest(STANDARD.decode(text).ok()?);
    let bytes: Vec<String> = hash.iter().map(|byte| format!("{byte:02X}")).collect();
    Some(bytes.join(":"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_known_by_its_first_block() {
        let pem = "-----BEGIN CERTIFICATE-----\nYW\nJj\n-----END CERTIFICATE-----\n\
                   -----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let known = fingerprint(pem).unwrap();
        assert!(known.starts_with("BA:78:16:BF:8F:01:CF:EA:"), "{known}");
        assert_eq!(known.len(), 95);
        assert_eq!(fingerprint("none"), None);
    }
}
