//! What can be set, how it is called, and what it is when nobody sets it.
//!
//! A flag wins over its environment variable, which wins over the default; with
//! `--emulator` the variables of the emulators stand between the last two.
//! The help text below is the reference; the manual is made from it.
//!
//! Reading goes in two steps: [`Config`] is what was typed, [`Checked`] what is
//! meant. Between them stand the refusals: a setting that is unknown, senseless
//! or unsafe stops the server before it starts, with one sentence that says
//! what to do.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, CommandFactory as _, Parser, ValueEnum};
use dayfly_api::AccountKeys;
use http::uri::Authority;
use rustls::pki_types::ServerName;

use crate::address::Listen;
use crate::command::{self, Command};
use crate::emulator::{COMPUTE_PORT, EmulatorProtocol, HEALTH_PORT, Habits};
use crate::keys::{self, KeySource};
use crate::limits::Limits;
use crate::log;
use crate::memory::{self, MIB};
use crate::tls::{self, Home, Source};

/// Where the server listens when nobody says.
const PORT_DEFAULT: u16 = 8081;

/// Where the data is when nobody says.
const DATA_DEFAULT: &str = "./dayfly-data";

/// The longest that a change of a `defaultTtl` can wait.
const CHANGE_DELAY_SECONDS_MAX: u64 = 30 * 24 * 60 * 60;

/// How long every version can be kept, at least and at most.
const RETENTION_SECONDS_MIN: u64 = 60;
const RETENTION_SECONDS_MAX: u64 = 10 * 366 * 24 * 60 * 60;

/// The smallest cache with which reading still works well, and the largest.
const CACHE_MIB_MIN: u64 = 16;
const CACHE_MIB_MAX: u64 = 1024 * 1024;

/// A document database with time to live that speaks the Azure Cosmos DB for
/// NoSQL REST API.
///
/// Without arguments it serves http and https on localhost:8081 and keeps its
/// data in ./dayfly-data. With a command it asks a server that runs, and ends.
/// Every option can be set by the environment variable
/// shown with it; `DAYFLY_LOG` says what to log (off, error, warn, info,
/// debug, trace; and `requests`, a line for each request).
#[expect(clippy::doc_markdown, reason = "the help shows this text as it is")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[derive(Clone, Debug, Parser)]
#[command(version, max_term_width = 100, args_conflicts_with_subcommands = true)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// Where to listen: a port of this machine, such as 8082 or localhost:8082; an
    /// address of a network, such as 10.0.0.5:8082; or :8082, which is every
    /// address. Port 0 takes a free port, which is printed [default:
    /// localhost:8081; with --emulator, :8081].
    #[arg(long, env = "DAYFLY_LISTEN", value_name = "[IP:]PORT")]
    pub(crate) listen: Option<Listen>,

    /// A second address for the same server [default: none; with --emulator, port
    /// 8903]. Emulators have a "compute gateway" there, which tests of some SDKs
    /// ask for.
    #[arg(long, env = "DAYFLY_COMPUTE_LISTEN", value_name = "[IP:]PORT")]
    pub(crate) compute_listen: Option<Listen>,

    /// An address for health checks alone, also in clear text: /ready, /alive and
    /// /status [default: none; with --emulator, port 8080].
    #[arg(long, env = "DAYFLY_HEALTH_LISTEN", value_name = "[IP:]PORT")]
    pub(crate) health_listen: Option<Listen>,

    /// Serves everything to whoever reaches the port, as the emulators do: for
    /// containers whose port is published to your own machine only. Their
    /// environment variables take effect, such as PORT and PROTOCOL.
    #[arg(long, env = "DAYFLY_EMULATOR", value_parser = BoolishValueParser::new())]
    pub(crate) emulator: bool,

    /// What the emulators' variables say.
    #[arg(skip)]
    pub(crate) habits: Habits,

    /// The folder for the data [default: ./dayfly-data].
    #[arg(long, env = "DAYFLY_DATA", value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// Keeps everything in memory; it is gone when the server stops.
    #[arg(long, env = "DAYFLY_MEMORY", value_parser = BoolishValueParser::new())]
    pub(crate) memory: bool,

    /// The account key, in base64; `dayfly key` makes one. Without it, the key
    /// every emulator uses: fine on your own machine, refused on a network.
    #[arg(long, env = "DAYFLY_KEY", hide_env_values = true, value_name = "BASE64")]
    #[arg(value_parser = keys::typed)]
    pub(crate) key: Option<String>,

    /// A file with the account key, instead of --key. SIGHUP reads it again.
    #[arg(long, env = "DAYFLY_KEY_FILE", value_name = "PATH")]
    pub(crate) key_file: Option<PathBuf>,

    /// A second key, in base64, that may do all that the first may: for
    /// clients to go over to, while the first is changed.
    #[arg(long, env = "DAYFLY_SECONDARY_KEY", hide_env_values = true, value_name = "BASE64")]
    #[arg(value_parser = keys::typed)]
    pub(crate) secondary_key: Option<String>,

    /// A key, in base64, that reads and does not write.
    #[arg(long, env = "DAYFLY_READ_ONLY_KEY", hide_env_values = true, value_name = "BASE64")]
    #[arg(value_parser = keys::typed)]
    pub(crate) read_only_key: Option<String>,

    /// When a write is answered: `sync`, when it would survive a power cut;
    /// `relaxed`, when it was handed to the system [default: sync].
    #[arg(long, env = "DAYFLY_DURABILITY", value_enum, hide_possible_values = true)]
    pub(crate) durability: Option<Durability>,

    /// How much memory what was read lately may take, in MiB [default: an eighth of
    /// the memory there is].
    #[arg(long, env = "DAYFLY_CACHE", value_name = "MIB")]
    #[arg(value_parser = clap::value_parser!(u64).range(CACHE_MIB_MIN..=CACHE_MIB_MAX))]
    pub(crate) cache: Option<u64>,

    /// Lets the admin API freeze the clock and move it forward. A folder whose
    /// clock was moved opens only with this.
    #[arg(long, env = "DAYFLY_TEST_CLOCK", value_parser = BoolishValueParser::new())]
    pub(crate) test_clock: bool,

    /// Refuses what the service refuses and dayfly would let pass.
    #[arg(long, env = "DAYFLY_STRICT", value_parser = BoolishValueParser::new())]
    pub(crate) strict: bool,

    /// Sorts in memory where the service refuses ORDER BY, because no index has
    /// the order.
    #[arg(long, env = "DAYFLY_LENIENT_ORDER_BY", value_parser = BoolishValueParser::new())]
    pub(crate) lenient_order_by: bool,

    /// What becomes of requests that ask for more than their throughput gives: `measured`,
    /// they are counted; `enforced`, they are refused with 429 [default: measured].
    #[arg(long, env = "DAYFLY_THROUGHPUT", value_enum, hide_possible_values = true)]
    pub(crate) throughput: Option<Throughput>,

    /// Lets a range spend up to five minutes of throughput that nobody used, at 3,000
    /// RU/s at most, where it is enforced.
    #[arg(long, env = "DAYFLY_BURST", value_parser = BoolishValueParser::new())]
    pub(crate) burst: bool,

    /// Offers nothing to anybody, as a serverless account: whoever asks for a throughput is
    /// refused, and nothing is metered.
    #[arg(long, env = "DAYFLY_SERVERLESS", value_parser = BoolishValueParser::new())]
    pub(crate) serverless: bool,

    /// How many bytes of items may be alive in a container; a write that goes beyond is
    /// refused with 403/1014, and an item that expires makes room at once [default: no
    /// limit but the disk].
    #[arg(long, env = "DAYFLY_CONTAINER_QUOTA", value_name = "BYTES")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) container_quota: Option<u64>,

    /// The same for the items of one partition key; the service has 21474836480, which is
    /// 20 GB [default: no limit].
    #[arg(long, env = "DAYFLY_PARTITION_QUOTA", value_name = "BYTES")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) partition_quota: Option<u64>,

    /// How many seconds a change of a container's defaultTtl waits before it
    /// counts; until then it can be taken back. At most 30 days.
    #[arg(long, env = "DAYFLY_TTL_CHANGE_DELAY", default_value_t = 0, value_name = "SECONDS")]
    #[arg(value_parser = clap::value_parser!(u64).range(..=CHANGE_DELAY_SECONDS_MAX))]
    pub(crate) ttl_change_delay: u64,

    /// Refuses a change of a container's defaultTtl that would expire more than
    /// this part of its items at once, unless the client confirms it
    /// [default: off].
    #[arg(long, env = "DAYFLY_TTL_CHANGE_GUARD", value_name = "PERCENT")]
    #[arg(value_parser = percent)]
    pub(crate) ttl_change_guard: Option<f64>,

    /// For how long every version of a container's items is kept once somebody reads the
    /// change feed with all of them, if its changeFeedPolicy does not say: a span such as
    /// 90m, 12h or 30d, or seconds; at least a minute.
    #[arg(long, env = "DAYFLY_FEED_RETENTION", default_value = "7d", value_name = "TIME")]
    #[arg(value_parser = retention)]
    pub(crate) feed_retention: u32,

    /// Serves clear text on a network address too, where otherwise only https
    /// is served.
    #[arg(long, env = "DAYFLY_ALLOW_CLEAR_TEXT", value_parser = BoolishValueParser::new())]
    pub(crate) allow_clear_text: bool,

    /// Serves no clients in direct mode, which .NET and Java use unless told otherwise:
    /// they are told to use gateway mode.
    #[arg(long, env = "DAYFLY_NO_DIRECT", value_parser = BoolishValueParser::new())]
    pub(crate) no_direct: bool,

    /// Serves the admin API to other machines too, over https; otherwise it is
    /// there for connections from this one only.
    #[arg(long, env = "DAYFLY_ADMIN_PUBLIC", value_parser = BoolishValueParser::new())]
    pub(crate) admin_public: bool,

    /// More names or addresses for the generated certificate; may be repeated,
    /// or separated by commas.
    #[arg(long, env = "DAYFLY_TLS_SAN", value_delimiter = ',', value_name = "NAME")]
    pub(crate) tls_san: Vec<String>,

    /// The folder for the generated certificate [default: the data folder; with
    /// --memory, the user's cache].
    #[arg(long, env = "DAYFLY_TLS_DIR", value_name = "DIR")]
    pub(crate) tls_dir: Option<PathBuf>,

    /// A certificate of your own, with those above it, in PEM; with --tls-key,
    /// instead of a generated one. SIGHUP reads both again.
    #[arg(long, env = "DAYFLY_TLS_CERT", value_name = "PATH")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The private key of --tls-cert, in PEM.
    #[arg(long, env = "DAYFLY_TLS_KEY", value_name = "PATH")]
    pub(crate) tls_key: Option<PathBuf>,

    /// A file into which the certificate is written, without its private key, for
    /// clients that are to trust it [default: none].
    #[arg(long, env = "DAYFLY_TLS_EXPORT", value_name = "PATH")]
    pub(crate) tls_export: Option<PathBuf>,

    /// More names by which clients may call a server of this machine, besides
    /// localhost, the machine's name and those of --tls-san; may be repeated, or
    /// separated by commas.
    #[arg(long, env = "DAYFLY_ALLOW_HOST", value_delimiter = ',', value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,

    /// Whether the last 1,000 requests are kept in memory, for `dayfly requests`: on or
    /// off.
    #[arg(long, env = "DAYFLY_REQUEST_LOG", value_parser = BoolishValueParser::new())]
    #[arg(action = ArgAction::Set, default_value = "on", value_name = "on|off")]
    pub(crate) request_log: bool,

    /// Leaves out the portal, the page at /_explorer/.
    #[arg(long, env = "DAYFLY_NO_PORTAL", value_parser = BoolishValueParser::new())]
    pub(crate) no_portal: bool,

    #[command(flatten)]
    pub(crate) limits: Limits,
}

/// When a write is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Durability {
    /// When it would survive a power cut.
    Sync,
    /// When it was handed to the system.
    Relaxed,
}

/// What becomes of requests that ask for more than their throughput gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Throughput {
    /// They are counted.
    Measured,
    /// They are refused.
    Enforced,
}

/// Where the data goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nowhere: it is gone when the server stops.
    Memory,
    /// Into a folder.
    Folder(PathBuf),
}

/// What happens to requests that are not encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClearText {
    /// They are served.
    Served,
    /// They get one answer that says so.
    Refused,
}

/// A further address to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Further {
    pub(crate) place: Listen,
    /// Whether the user gave it; without one that nobody gave the server starts, too.
    pub(crate) is_asked_for: bool,
}

/// Settings that passed every check.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    pub(crate) listen: Listen,
    pub(crate) compute_listen: Option<Further>,
    pub(crate) health_listen: Option<Further>,
    /// Whether only this machine can connect, to any of the addresses. In emulator mode
    /// the user says so.
    pub(crate) loopback: bool,
    pub(crate) emulator: bool,
    /// Which of http and https is shown to tools.
    pub(crate) protocol: EmulatorProtocol,
    /// The host that the account names, if not the one its reader came by.
    pub(crate) public_endpoint: Option<Authority>,
    pub(crate) place: Place,
    pub(crate) keys: AccountKeys,
    /// Where they are read again.
    pub(crate) key_source: KeySource,
    /// Whether the user gave the key; then it is never printed.
    pub(crate) own_key: bool,
    pub(crate) durability: Durability,
    pub(crate) cache_bytes: u64,
    pub(crate) test_clock: bool,
    pub(crate) strict: bool,
    pub(crate) lenient_order_by: bool,
    pub(crate) throughput: Throughput,
    pub(crate) burst: bool,
    pub(crate) serverless: bool,
    pub(crate) container_quota: Option<u64>,
    pub(crate) partition_quota: Option<u64>,
    pub(crate) ttl_change_delay_seconds: u64,
    pub(crate) ttl_change_guard_percent: Option<f64>,
    pub(crate) feed_retention_minutes: u32,
    pub(crate) clear_text: ClearText,
    pub(crate) admin_public: bool,
    /// Whether clients in direct mode are served.
    pub(crate) direct: bool,
    /// How a server of this machine may be called, besides localhost.
    pub(crate) host_names: Vec<String>,
    /// Where the certificate comes from.
    pub(crate) tls: Source,
    /// Where it is shown, besides.
    pub(crate) tls_export: Option<PathBuf>,
    pub(crate) request_log: bool,
    /// Whether the portal is served.
    pub(crate) portal: bool,
    pub(crate) limits: Limits,
}

impl Checked {
    /// Where the server listens for those who work with it.
    pub(crate) fn places(&self) -> impl Iterator<Item = Listen> {
        std::iter::once(self.listen).chain(self.compute_listen.map(|further| further.place))
    }
}

impl Config {
    /// What these settings mean, or the sentence that refuses them.
    ///
    /// One server answers on all its addresses, so the rules for a network hold
    /// for all of them when one is on a network.
    pub(crate) fn check(self) -> Result<Checked, String> {
        self.check_addresses()?;
        let network = self.network_address().filter(|_| !self.emulator);
        let loopback = network.is_none();
        let source = self.key_source(network);
        let keys = source.read()?;
        self.check_network(loopback)?;
        self.check_throughput()?;
        self.tls_san.iter().try_for_each(|name| check_name("--tls-san", name))?;
        self.allow_host.iter().try_for_each(|name| check_name("--allow-host", name))?;
        let place = self.place()?;
        Ok(Checked {
            listen: self.listen(),
            compute_listen: self.compute(),
            health_listen: self.further(self.health_listen, HEALTH_PORT),
            loopback,
            emulator: self.emulator,
            protocol: self.habits.protocol,
            tls: self.tls_source(&place)?,
            place,
            own_key: source.is_own(),
            key_source: source,
            keys,
            durability: self.durability.unwrap_or(Durability::Sync),
            cache_bytes: self.cache.map_or_else(memory::cache_bytes, |mib| mib * MIB),
            test_clock: self.test_clock,
            strict: self.strict,
            lenient_order_by: self.lenient_order_by,
            throughput: self.throughput.unwrap_or(Throughput::Measured),
            burst: self.burst,
            serverless: self.serverless,
            container_quota: self.container_quota,
            partition_quota: self.partition_quota,
            ttl_change_delay_seconds: self.ttl_change_delay,
            ttl_change_guard_percent: self.ttl_change_guard,
            feed_retention_minutes: self.feed_retention,
            clear_text: if loopback || self.allow_clear_text {
                ClearText::Served
            } else {
                ClearText::Refused
            },
            admin_public: self.admin_public,
            direct: !self.no_direct,
            request_log: self.request_log,
            portal: !(self.no_portal || self.habits.no_portal),
            host_names: tls::host_name()
                .into_iter()
                .chain(self.tls_san)
                .chain(self.allow_host)
                .collect(),
            public_endpoint: self.habits.public_endpoint,
            tls_export: self.tls_export,
            limits: self.limits,
        })
    }

    fn listen(&self) -> Listen {
        let port = self.habits.port.unwrap_or(PORT_DEFAULT);
        let usual = if self.emulator { Listen::Every(port) } else { Listen::Loopback(port) };
        self.listen.unwrap_or(usual)
    }

    fn compute(&self) -> Option<Further> {
        self.further(self.compute_listen, COMPUTE_PORT)
    }

    /// A further address that the user gave, or else the one that emulators have.
    fn further(&self, given: Option<Listen>, port: u16) -> Option<Further> {
        let usual = Some(self.listen()).filter(|main| self.emulator && main.port() != port);
        let usual = usual.map(|main| Further { place: main.with_port(port), is_asked_for: false });
        given.map(|place| Further { place, is_asked_for: true }).or(usual)
    }

    /// Where clients connect who work with the server.
    fn places(&self) -> impl Iterator<Item = Listen> {
        std::iter::once(self.listen()).chain(self.compute().map(|further| further.place))
    }

    /// The first address that other machines can connect to. What health checks can reach
    /// needs no protection.
    fn network_address(&self) -> Option<Listen> {
        self.places().find(|place| !place.is_loopback())
    }

    fn check_addresses(&self) -> Result<(), String> {
        let given = [
            ("--listen", Some(self.listen())),
            ("--compute-listen", self.compute_listen),
            ("--health-listen", self.health_listen),
        ];
        let mut seen: Vec<(&str, Listen)> = Vec::new();
        for (flag, place) in given {
            let Some(place) = place.filter(|place| place.port() != 0) else { continue };
            if let Some((first, _)) = seen.iter().find(|(_, other)| *other == place) {
                return Err(format!(
                    "{first} and {flag} are both {place}: give one of them another port."
                ));
            }
            seen.push((flag, place));
        }
        Ok(())
    }

    fn key_source(&self, network: Option<Listen>) -> KeySource {
        let (key, file) = match (&self.key, &self.key_file) {
            (None, None) => (&self.habits.key, &self.habits.key_file),
            own => own,
        };
        KeySource {
            key: key.clone(),
            file: file.clone(),
            secondary: self.secondary_key.clone(),
            read_only: self.read_only_key.clone(),
            network,
        }
    }

    /// The admin API takes the key itself in a header; off this machine that
    /// must not be readable on the way.
    fn check_network(&self, loopback: bool) -> Result<(), String> {
        if !loopback && self.admin_public && self.allow_clear_text {
            return Err("The admin API takes the key in a header, which must not cross a network \
                        in clear text: leave out --allow-clear-text or --admin-public."
                .to_owned());
        }
        Ok(())
    }

    fn check_throughput(&self) -> Result<(), String> {
        if self.serverless && (self.throughput == Some(Throughput::Enforced) || self.burst) {
            return Err(
                "With --serverless nothing has a throughput, so --throughput enforced and \
                        --burst have no use: leave them out."
                    .to_owned(),
            );
        }
        Ok(())
    }

    fn tls_source(&self, place: &Place) -> Result<Source, String> {
        let generated = self.tls_dir.is_some() || !self.tls_san.is_empty();
        match (&self.tls_cert, &self.tls_key) {
            (Some(_), Some(_)) if generated => {
                Err("With --tls-cert no certificate is generated, so --tls-san and --tls-dir have \
                     no use: leave them out."
                    .to_owned())
            }
            (Some(certificate), Some(key)) => {
                Ok(Source::Files { certificate: certificate.clone(), key: key.clone() })
            }
            (None, None) => {
                let home = match (&self.tls_dir, place) {
                    (Some(folder), _) | (None, Place::Folder(folder)) => {
                        Home::Folder(folder.clone())
                    }
                    (None, Place::Memory) => Home::cache(|name| std::env::var_os(name)),
                };
                let public = self.habits.public_endpoint.as_ref();
                let public = public.and_then(|endpoint| tls::name_of(endpoint.host()));
                let more = self.tls_san.iter().cloned().chain(public);
                let names = tls::names(self.places().filter_map(Listen::ip), more);
                Ok(Source::Made { home, names })
            }
            _ => Err("A certificate and its private key go together: give both --tls-cert and \
                      --tls-key."
                .to_owned()),
        }
    }

    fn place(&self) -> Result<Place, String> {
        match (&self.data, self.memory) {
            (Some(_), true) => Err("With --memory nothing is kept, so --data has no use: \
                                    leave out one of the two."
                .to_owned()),
            (None, true) if self.cache.is_some() => {
                Err("With --memory everything is in memory, so --cache has no use: \
                     leave out one of the two."
                    .to_owned())
            }
            (None, true) if self.durability == Some(Durability::Sync) => {
                Err("With --memory nothing survives the server, which --durability sync \
                     promises: leave out one of the two."
                    .to_owned())
            }
            (None, true) => Ok(Place::Memory),
            (Some(folder), false) => Ok(Place::Folder(folder.clone())),
            (None, false) => {
                let usual = || PathBuf::from(DATA_DEFAULT);
                Ok(Place::Folder(self.habits.data.clone().unwrap_or_else(usual)))
            }
        }
    }
}

/// For how many minutes something is kept: for as long as is said, or a little longer.
fn retention(text: &str) -> Result<u32, String> {
    let bounds = RETENTION_SECONDS_MIN..=RETENTION_SECONDS_MAX;
    match command::seconds(text)? {
        seconds if bounds.contains(&seconds) => {
            u32::try_from(seconds.div_ceil(60)).map_err(|error| error.to_string())
        }
        _ => Err("it must be from a minute to ten years".to_owned()),
    }
}

/// A part of a hundred.
fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("it must be a number from 0 to 100".to_owned()),
    }
}

fn check_name(flag: &str, name: &str) -> Result<(), String> {
    let host = name.strip_prefix("*.").unwrap_or(name);
    match ServerName::try_from(host) {
        Ok(_) => Ok(()),
        Err(_) => Err(format!(
            "The name '{name}' of {flag} is none: give a host name or an IP address, without a \
             port."
        )),
    }
}

/// Refuses variables that look like a setting and are none: a setting with a
/// typing error would otherwise be a default that nobody notices.
pub(crate) fn check_environment(names: impl Iterator<Item = OsString>) -> Result<(), String> {
    let mut known = vec![OsString::from(log::VARIABLE)];
    variables(&Config::command(), &mut known);
    for name in names {
        let ours = name.to_string_lossy().starts_with("DAYFLY_");
        if ours && !known.contains(&name) {
            return Err(format!(
                "The environment variable {} is not a setting of dayfly: \
                 unset it, or look up its name with `dayfly --help`.",
                name.to_string_lossy()
            ));
        }
    }
    Ok(())
}

/// The variables of a command, and of those below it.
fn variables(command: &clap::Command, found: &mut Vec<OsString>) {
    found.extend(command.get_arguments().filter_map(clap::Arg::get_env).map(ToOwned::to_owned));
    for below in command.get_subcommands() {
        variables(below, found);
    }
}

#[cfg(test)]
mod tests;
