//! The binary: settings, listener, TLS, background work, and how they are
//! wired. It knows nothing of databases, containers and items.
//!
//! Start reading here: [`main`] is the life of the server, top to bottom. A
//! request begins in `listen`, goes through `connection` to `request`, and
//! leaves this crate for `dayfly_api`.

mod address;
mod answers;
mod background;
mod banner;
mod command;
mod config;
mod connection;
mod direct;
mod emulator;
mod events;
mod files;
mod hosts;
mod house;
mod inbox;
mod keys;
mod limits;
mod listen;
mod log;
mod memory;
mod progress;
mod recount;
mod renew;
mod request;
mod signals;
mod tls;
mod visit;
mod wire;

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, RwLock};

use clap::{CommandFactory as _, Parser as _};
use dayfly_api::{Api, Facts};
use dayfly_engine::{Engine, EngineSettings, ThroughputMode};
use dayfly_model::{ErrorKind, Timestamp};
use dayfly_storage::clock::{SystemWall, Wall as _};
use dayfly_storage::{Embedded, EmbeddedOptions, Local, LocalOptions, Memory, Store};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::{Builder, Runtime};

/// A request makes some dozens of small allocations, and the system's allocator
/// was a tenth of its cost.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use crate::address::Listen;
use crate::answers::Answers;
use crate::background::{Background, PERIOD};
use crate::config::{Checked, ClearText, Config, Durability, Place, Throughput};
use crate::emulator::Habits;
use crate::hosts::Hosts;
use crate::keys::WELL_KNOWN_KEY;
use crate::listen::{Addresses, Doors};
use crate::recount::Recount;
use crate::renew::{LOOK_PERIOD, Renewal};
use crate::signals::{Hangup, Signals};
use crate::tls::Tls;
use crate::visit::Host;

/// More threads than this do not make a single store faster.
const WORKERS_MAX: usize = 16;

/// What part of the cache is for blocks of the files, that is for finding
/// records; the others are for the records.
const BLOCKS_PART: u64 = 4;

/// The settings were refused.
const REFUSED: u8 = 2;

/// The settings were good, but the server could not start, or a command failed.
const FAILED: u8 = 1;

fn main() -> ExitCode {
    // clap itself ends the process when an argument is unknown or cannot be read.
    let config = Config::parse();
    if let Err(sentence) = config::check_environment(std::env::vars_os().map(|(name, _)| name)) {
        return end(&sentence, REFUSED);
    }
    let outcome = match config.command {
        Some(command) => command.run(Config::command()),
        None => match settings(config) {
            Ok(settings) => run(&settings),
            Err(sentence) => return end(&sentence, REFUSED),
        },
    };
    outcome.map_or_else(|sentence| end(&sentence, FAILED), |()| ExitCode::SUCCESS)
}

/// The settings of the server.
fn settings(mut config: Config) -> Result<Checked, String> {
    if config.emulator {
        config.habits = Habits::read(std::env::vars_os())?;
    }
    log::start(config.habits.log)?;
    for warning in &config.habits.warnings {
        tracing::warn!("{warning}");
    }
    config.check()
}

fn end(sentence: &str, code: u8) -> ExitCode {
    // If this cannot be written there is nobody left to tell.
    let _ = writeln!(io::stderr(), "dayfly: {sentence}");
    ExitCode::from(code)
}

/// Opens everything, serves until told to stop, and closes everything.
fn run(settings: &Checked) -> Result<(), String> {
    raise_file_limit();
    let runtime = runtime()?;
    let hangup = runtime.block_on(async { Hangup::new() })?;
    // Where the port is taken no folder is made: whoever mistook the port has nothing
    // to clear away.
    let doors = runtime.block_on(Doors::open(settings))?;
    let addresses = doors.addresses().map_err(|error| format!("No address is known: {error}."))?;
    let store = open_store(settings)?;
    let engine_settings = EngineSettings {
        strict: settings.strict,
        lenient_order_by: settings.lenient_order_by,
        throughput: match settings.throughput {
            Throughput::Measured => ThroughputMode::Measured,
            Throughput::Enforced => ThroughputMode::Enforced,
        },
        burst: settings.burst,
        serverless: settings.serverless,
        container_quota: settings.container_quota,
        partition_quota: settings.partition_quota,
        change_delay_seconds: settings.ttl_change_delay_seconds,
        change_guard_percent: settings.ttl_change_guard_percent,
        feed_retention_minutes: settings.feed_retention_minutes,
        resettable: settings.test_clock || settings.place == Place::Memory,
        ..EngineSettings::default()
    };
    let engine =
        Engine::open(Arc::clone(&store), engine_settings).map_err(|error| error.message)?;
    let engine = Arc::new(engine);
    let tls = settings.tls.open(SystemWall.seconds())?;
    if let Some(path) = &settings.tls_export {
        tls::export(path, &tls.certificate_pem);
    }
    let certificate_pem = tls.certificate_pem.clone();
    let port = addresses.main.port();
    let api = open_api(settings, Arc::clone(&engine), certificate_pem, port)?;

    let tick = Background::start("dayfly-tick", move || {
        if let Err(error) = store.tick() {
            tracing::warn!(%error, "the clock's lease was not renewed");
        }
        PERIOD
    })?;
    let recount = Recount::start(Arc::clone(&engine))?;

    let served = runtime.block_on(serve(settings, doors, addresses, hangup, api, tls, &engine));
    runtime.shutdown_background();
    let served = served.map(drop);
    drop((recount, tick));
    let closed = engine.close().map_err(|error| error.message);
    served.and(closed)?;
    if let Err(error) = banner::print_end() {
        tracing::debug!(%error, "nobody reads what is printed");
    }
    Ok(())
}

/// Says where it listens, and serves until a signal comes. The purge starts when the
/// server has; it is returned, since to end it may take a moment.
async fn serve(
    settings: &Checked,
    doors: Doors,
    addresses: Addresses,
    hangup: Hangup,
    api: Api,
    tls: Tls,
    engine: &Arc<Engine>,
) -> Result<Background, String> {
    let mut signals = Signals::new()?;
    let host = Arc::new(Host {
        answers: Arc::new(Answers::new(Arc::clone(api.edge()))),
        api,
        tls: RwLock::new(tls.acceptor),
        clear_text: settings.clear_text,
        hosts: settings
            .places()
            .all(Listen::is_loopback)
            .then(|| Hosts::new(settings.host_names.clone())),
        all_local: settings.emulator,
        direct: settings.direct,
        limits: settings.limits,
        bodies: AtomicUsize::new(0),
    });
    probe(engine)?;
    if let Err(error) = banner::print(settings, addresses) {
        tracing::warn!(%error, "nobody reads what is printed");
    }
    let renewal = Arc::new(Renewal::new(Arc::clone(&host), settings, tls.end));
    tokio::spawn(reload(hangup, Arc::clone(&renewal)));
    let look = Background::start("dayfly-certificate", move || {
        renewal.look(SystemWall.seconds());
        LOOK_PERIOD
    })?;
    let sampled = Arc::clone(&host);
    let series = Background::start("dayfly-series", move || sampled.api.sample())?;
    let purging = Arc::clone(engine);
    let purge = Background::start("dayfly-purge", move || purging.purge_turn())?;
    listen::listen(doors, host, &mut signals).await;
    drop((look, series));
    Ok(purge)
}

/// Reads keys and certificate again whenever it is asked for.
async fn reload(mut hangup: Hangup, renewal: Arc<Renewal>) {
    loop {
        hangup.next().await;
        tokio::task::block_in_place(|| renewal.reload(SystemWall.seconds()));
    }
}

/// Whether writes work. A server without room for them starts all the same: reads
/// work, and deletes and the purge may make room.
fn probe(engine: &Engine) -> Result<(), String> {
    match engine.probe() {
        Err(error) if error.kind == ErrorKind::InsufficientStorage => {
            tracing::warn!("the server starts without room for writes. {}", error.message);
            Ok(())
        }
        probed => probed.map_err(|error| format!("Writes do not work: {}", error.message)),
    }
}

fn open_store(settings: &Checked) -> Result<Arc<dyn Store>, String> {
    let blocks_bytes = settings.cache_bytes / BLOCKS_PART;
    let options = LocalOptions {
        test_clock: settings.test_clock,
        durability: match settings.durability {
            Durability::Sync => dayfly_storage::Durability::Sync,
            Durability::Relaxed => dayfly_storage::Durability::Relaxed,
        },
        cache_bytes: settings.cache_bytes - blocks_bytes,
        slots_bytes: settings.cache_bytes - blocks_bytes,
        ..LocalOptions::default()
    };
    let opened: dayfly_storage::Result<Arc<dyn Store>> = match &settings.place {
        Place::Memory => {
            // Everything is in memory already; a cache would keep it twice.
            let options = LocalOptions { cache_bytes: 0, ..options };
            Local::<Memory>::memory(options).map(|store| Arc::new(store) as _)
        }
        Place::Folder(folder) => {
            let embedded =
                EmbeddedOptions { cache_bytes: blocks_bytes, ..EmbeddedOptions::new(folder) };
            Local::<Embedded>::embedded(embedded, options).map(|store| Arc::new(store) as _)
        }
    };
    opened.map_err(|error| match error {
        dayfly_storage::Error::Full => {
            "The disk is full, and the data cannot be opened. Free some space, then start again."
                .to_owned()
        }
        other => other.to_string(),
    })
}

fn open_api(
    settings: &Checked,
    engine: Arc<Engine>,
    certificate_pem: String,
    port: u16,
) -> Result<Api, String> {
    let public_host = settings.public_endpoint.as_ref().map(|endpoint| match endpoint.port() {
        Some(_) => endpoint.to_string(),
        None => format!("{endpoint}:{port}"),
    });
    Api::new(
        engine,
        dayfly_api::Settings {
            keys: settings.keys.clone(),
            loopback: settings.loopback,
            on_ipv4: settings.places().all(Listen::is_on_ipv4),
            admin_public: settings.admin_public,
            open_account: settings.emulator,
            public_host,
            direct: settings.direct,
            machine: tls::host_name(),
            certificate_pem: Some(certificate_pem),
            request_log: settings.request_log,
            portal: settings.portal,
            facts: facts(settings),
            wall: Box::new(|| Timestamp(SystemWall.seconds())),
        },
    )
    .map_err(|error| error.message)
}

/// What the portal shows of the settings.
fn facts(settings: &Checked) -> Facts {
    Facts {
        relaxed: settings.durability == Durability::Relaxed,
        in_memory: settings.place == Place::Memory,
        emulator: settings.emulator,
        test_clock: settings.test_clock,
        clear_text: settings.clear_text == ClearText::Served,
        public_key: WELL_KNOWN_KEY,
        ttl_change_delay_seconds: settings.ttl_change_delay_seconds,
        ttl_change_guard_percent: settings.ttl_change_guard_percent,
    }
}

fn runtime() -> Result<Runtime, String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Builder::new_multi_thread()
        .worker_threads(cores.min(WORKERS_MAX))
        .thread_name("dayfly-worker")
        .enable_io()
        .enable_time()
        .build()
        .map_err(|error| format!("The threads could not be started: {error}."))
}

/// Asks for as many open files as the system gives: each connection is one.
fn raise_file_limit() {
    let now = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: now.maximum, maximum: now.maximum };
    if now.current != now.maximum
        && let Err(error) = setrlimit(Resource::Nofile, wanted)
    {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}
