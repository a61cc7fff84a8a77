//! Emulator mode, `--emulator`: what the tools of the emulators rely on.
//!
//! Who gives the flag says: this port is published to my machine only. So all who come
//! count as clients of this machine, whatever their address, and with them the rules of
//! loopback hold on every address: the key that everybody knows, clear text, the admin API
//! and `/metrics`. A container is called by any name, so no name is refused.
//!
//! The emulators are set up by environment variables, which libraries such as Testcontainers
//! set without being asked. [`TABLE`] has all that are known, with what becomes of each. A
//! flag wins over our own variable, and that over one of these. What has no effect is named
//! in a warning, unless it asks for nothing that is missing. A value that cannot be read
//! refuses to start, since its effect would be missed silently.
//!
//! Other habits are elsewhere: `banner.rs` prints the lines that tools wait for, `listen.rs`
//! opens ports 8903 and 8080, and the API has the page of the explorer and shows the account
//! to who signs nothing: some tools ask for it to learn whether the server is up.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

use http::uri::Authority;

use crate::keys;

/// The ports that emulators have beside the main one.
pub(crate) const COMPUTE_PORT: u16 = 8903;
pub(crate) const HEALTH_PORT: u16 = 8080;

/// What the names of one emulator start with.
const PREFIX: &str = "AZURE_COSMOS_EMULATOR_";

/// What becomes of a variable.
enum Effect {
    /// It is another name for a setting of ours.
    Sets(fn(&mut Habits, Variable<'_>) -> Result<(), String>),
    /// What it asks for is so, whatever it says.
    Granted,
    /// It switches something on that is not there: why.
    Lacking(&'static str),
    /// It is read past: why.
    Ignored(&'static str),
}

/// Everything that the emulators know, but for what only starts like [`PREFIX`].
const TABLE: &[(&str, Effect)] = &[
    ("PORT", Effect::Sets(port)),
    // Both are always served; it says which one is shown.
    ("PROTOCOL", Effect::Sets(protocol)),
    ("KEY_FILE", Effect::Sets(key_file)),
    ("AZURE_COSMOS_EMULATOR_KEY", Effect::Sets(key)),
    ("DATA_PATH", Effect::Sets(data)),
    // Data is kept unless --memory is given. In a container that is removed it goes, too.
    ("AZURE_COSMOS_EMULATOR_ENABLE_DATA_PERSISTENCE", Effect::Sets(persistence)),
    ("LOG_LEVEL", Effect::Sets(log)),
    ("GATEWAY_PUBLIC_ENDPOINT", Effect::Sets(public_endpoint)),
    // Nothing is ever sent.
    ("ENABLE_TELEMETRY", Effect::Granted),
    // The account names the address that its reader came by.
    ("AZURE_COSMOS_EMULATOR_IP_ADDRESS_OVERRIDE", Effect::Granted),
    (
        "AZURE_COSMOS_EMULATOR_PARTITION_COUNT",
        Effect::Ignored("a container has as many ranges as its throughput asks for"),
    ),
    ("ENABLE_EXPLORER", Effect::Sets(explorer)),
    ("EXPLORER_PORT", Effect::Ignored("the portal is on the port of the API")),
    (
        "EXPLORER_PROTOCOL",
        Effect::Ignored("the portal is on the port of the API, in http and https"),
    ),
    (
        "CERT_PATH",
        Effect::Ignored("a PFX is not read; give PEM files with --tls-cert and --tls-key"),
    ),
    ("CERT_SECRET", Effect::Ignored("it belongs to CERT_PATH, which is not read")),
    ("ENABLE_OTLP_EXPORTER", Effect::Lacking("nothing is exported; /metrics has figures")),
    ("ENABLE_CONSOLE_EXPORTER", Effect::Lacking("nothing is exported; /metrics has figures")),
];

/// What the variables say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Habits {
    pub(crate) port: Option<u16>,
    pub(crate) protocol: EmulatorProtocol,
    pub(crate) key: Option<String>,
    pub(crate) key_file: Option<PathBuf>,
    pub(crate) data: Option<PathBuf>,
    /// What to log, in our words.
    pub(crate) log: Option<&'static str>,
    /// The host that the account names, perhaps with a port.
    pub(crate) public_endpoint: Option<Authority>,
    /// Whether the portal is left out.
    pub(crate) no_portal: bool,
    /// What has no effect, in a sentence each.
    pub(crate) warnings: Vec<String>,
}

/// Which of the two that are served is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EmulatorProtocol {
    #[default]
    Http,
    Https,
}

impl Display for EmulatorProtocol {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EmulatorProtocol::Http => "http",
            EmulatorProtocol::Https => "https",
        })
    }
}

impl Habits {
    /// What the environment says, or the sentence that refuses it.
    pub(crate) fn read(
        environment: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Habits, String> {
        let mut given = BTreeMap::new();
        for (name, value) in environment {
            if let Ok(name) = name.into_string()
                && is_known(&name)
            {
                let value = value
                    .into_string()
                    .map_err(|_| format!("{name} has a value that is not UTF-8."))?;
                given.insert(name, value.trim().to_owned());
            }
        }
        // Helpers write `None` for what nobody told them.
        given.retain(|_, value| !matches!(value.as_str(), "" | "None"));
        let mut habits = Habits::default();
        for (name, effect) in TABLE {
            if let Some(value) = given.remove(*name) {
                habits.take(Variable { name, value: &value }, effect)?;
            }
        }
        for name in given.keys() {
            habits.warn(name, "dayfly does not know it");
        }
        Ok(habits)
    }

    fn take(&mut self, variable: Variable<'_>, effect: &Effect) -> Result<(), String> {
        match effect {
            Effect::Sets(set) => return set(self, variable),
            Effect::Granted => {}
            Effect::Lacking(why) => {
                if variable.is_on()? {
                    self.warn(variable.name, why);
                }
            }
            Effect::Ignored(why) => self.warn(variable.name, why),
        }
        Ok(())
    }

    fn warn(&mut self, name: &str, why: &str) {
        self.warnings.push(format!("{name} has no effect: {why}"));
    }
}

fn is_known(name: &str) -> bool {
    name.starts_with(PREFIX) || TABLE.iter().any(|(known, _)| *known == name)
}

/// A variable that is set.
#[derive(Clone, Copy)]
struct Variable<'a> {
    name: &'a str,
    value: &'a str,
}

impl Variable<'_> {
    fn refused(self, allowed: &str) -> String {
        let Variable { name, value } = self;
        format!("{name} has '{value}', which cannot be read: give {allowed}.")
    }

    fn is_on(self) -> Result<bool, String> {
        match self.value.to_ascii_lowercase().as_str() {
            "true" | "yes" | "1" => Ok(true),
            "false" | "no" | "0" => Ok(false),
            _ => Err(self.refused("true or false")),
        }
    }
}

fn port(habits: &mut Habits, variable: Variable<'_>) -> Result<(), String> {
    let port = variable.value.parse().map_err(|_| variable.refused("a port, such as 8081"))?;
    habits.port = Some(port);
    Ok(())
}

fn protocol(habits: &mut Habits, variable: Variable<'_>) -> Result<(), String> {
    habits.protocol = match variable.value.to_ascii_lowercase().as_str() {
        "http" => EmulatorProtocol::Http,
        "https" | "https-insecure" => EmulatorProtocol::Https,
        _ => return Err(variable.refused("http, https or https-insecure")),
    };
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "the table asks for it")]
fn key_file(habits: &mut Habits, variable: Variable<'_>) -> Result<(), String> {
    habits.key_file = Some(variable.value.into());
    Ok(())
}

/// Most who give a key give the one that everybody knows; that is no key of their own.
fn key(habits: &mut Habits, variable: Variable<'_>) -> Result<(), String> {
    keys::decode(variable.name, variable.value)?;
    habits.key = Some(variable.value.to_owned()).filter(|key| key != keys::WELL_KNOWN_KEY);
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "the table asks for it")]
fn data(habits: &mut Habits, variable: Variable<'_>) -> Result<(), String> {
    habits.data = Some(variable.value.into());
    Ok(())
}

fn persistence(_: &mut Habits, variable: Variable<'_>) -> Result<(), String> {
    variable.is_on().map(drop)
}

fn explorer(habits: &mut Habits, variable: Variable<'_>) -> Result<(), String> {
    habits.no_portal = !variable.is_on()?;
    Ok(())
}

fn log(habits: &mut Habits, variable: Variable<'_>) -> Result<(), String> {
    habits.log = Some(match variable.value.to_ascii_lowercase().as_str() {
        "quiet" => "off",
        "error" => "error",
        "warn" => "warn",
        "info" => "info",
        "debug" => "debug",
        "trace" => "trace",
        _ => return Err(variable.refused("quiet, error, warn, info, debug or trace")),
    });
    Ok(())
}

fn public_endpoint(habits: &mut Habits, variable: Variable<'_>) -> Result<(), String> {
    let authority = variable.value.parse().ok();
    let authority = authority.filter(|authority: &Authority| !authority.as_str().contains('@'));
    let refused = || variable.refused("a host name, or one with a port, such as cosmos:8081");
    habits.public_endpoint = Some(authority.ok_or_else(refused)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

    fn read(variables: &[(&str, &str)]) -> Result<Habits, String> {
        Habits::read(variables.iter().map(|(name, value)| (name.into(), value.into())))
    }

    #[test]
    fn what_has_a_setting_of_ours_takes_effect() {
        let habits = read(&[
            ("PORT", "9000"),
            ("PROTOCOL", "https"),
            ("KEY_FILE", "/k"),
            ("DATA_PATH", "/d"),
            ("LOG_LEVEL", "quiet"),
            ("GATEWAY_PUBLIC_ENDPOINT", "cosmos"),
            ("AZURE_COSMOS_EMULATOR_KEY", OWN),
            ("AZURE_COSMOS_EMULATOR_ENABLE_DATA_PERSISTENCE", "True"),
            ("ENABLE_TELEMETRY", "true"),
            ("AZURE_COSMOS_EMULATOR_IP_ADDRESS_OVERRIDE", "10.0.0.5"),
            ("HOME", "/h"),
        ])
        .unwrap();
        assert_eq!((habits.port, habits.protocol), (Some(9000), EmulatorProtocol::Https));
        assert_eq!((habits.key.as_deref(), habits.key_file), (Some(OWN), Some("/k".into())));
        assert_eq!((habits.data, habits.log), (Some("/d".into()), Some("off")));
        assert_eq!(habits.public_endpoint.unwrap().as_str(), "cosmos");
        assert_eq!(habits.warnings, [""; 0]);
    }

    #[test]
    fn what_helpers_set_for_nobody_is_quiet() {
        for variables in [
            &[][..],
            &[("PROTOCOL", "http"), ("ENABLE_TELEMETRY", "false"), ("ENABLE_EXPLORER", "false")],
            &[("AZURE_COSMOS_EMULATOR_PARTITION_COUNT", "None"), ("PORT", "")],
            &[("AZURE_COSMOS_EMULATOR_KEY", keys::WELL_KNOWN_KEY)],
            &[("ENABLE_OTLP_EXPORTER", "False"), ("ENABLE_CONSOLE_EXPORTER", "0")],
        ] {
            let habits = read(variables).unwrap();
            assert_eq!(habits.warnings, [""; 0], "{variables:?}");
            assert_eq!((habits.port, habits.key), (None, None), "{variables:?}");
            assert_eq!(habits.protocol, EmulatorProtocol::Http, "{variables:?}");
        }
    }

    #[test]
    fn without_an_explorer_there_is_no_portal() {
        for (value, no_portal) in [("false", true), ("0", true), ("true", false), ("", false)] {
            let habits = read(&[("ENABLE_EXPLORER", value)]).unwrap();
            assert_eq!(habits.no_portal, no_portal, "'{value}'");
            assert_eq!(habits.warnings, [""; 0], "'{value}'");
        }
    }

    #[test]
    fn what_has_no_effect_is_named_once() {
        for (name, value) in [
            ("EXPLORER_PORT", "1234"),
            ("EXPLORER_PROTOCOL", "https"),
            ("CERT_PATH", "/cert.pfx"),
            ("CERT_SECRET", "secret"),
            ("ENABLE_OTLP_EXPORTER", "true"),
            ("ENABLE_CONSOLE_EXPORTER", "true"),
            ("AZURE_COSMOS_EMULATOR_PARTITION_COUNT", "10"),
            ("AZURE_COSMOS_EMULATOR_ENABLE_MONGODB_ENDPOINT", "4.0"),
        ] {
            let warnings = read(&[(name, value)]).unwrap().warnings;
            let [warning] = warnings.as_slice() else { panic!("{name}: {warnings:?}") };
            assert!(warning.starts_with(&format!("{name} has no effect: ")), "{warning}");
            assert!(!warning.contains("secret"), "{warning}");
        }
    }

    #[test]
    fn a_value_that_cannot_be_read_is_refused_with_those_that_can() {
        for (name, value, allowed) in [
            ("PORT", "http", "give a port"),
            ("PORT", "65536", "give a port"),
            ("PROTOCOL", "ftp", "give http, https or https-insecure."),
            ("LOG_LEVEL", "loud", "give quiet, error, warn, info, debug or trace."),
            ("ENABLE_EXPLORER", "maybe", "give true or false."),
            ("AZURE_COSMOS_EMULATOR_ENABLE_DATA_PERSISTENCE", "2", "give true or false."),
            ("GATEWAY_PUBLIC_ENDPOINT", "https://cosmos/", "give a host name"),
            ("GATEWAY_PUBLIC_ENDPOINT", "a@b", "give a host name"),
        ] {
            let sentence = read(&[(name, value)]).unwrap_err();
            let start = format!("{name} has '{value}', which cannot be read: {allowed}");
            assert!(sentence.starts_with(&start), "{sentence}");
            assert!(sentence.ends_with('.') && !sentence.contains('\n'), "{sentence}");
        }
        let sentence = read(&[("AZURE_COSMOS_EMULATOR_KEY", "a key")]).unwrap_err();
        let start = "The key of AZURE_COSMOS_EMULATOR_KEY is not base64";
        assert!(sentence.starts_with(start) && !sentence.contains("a key"), "{sentence}");
    }
}
