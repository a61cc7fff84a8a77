//! `/metrics`, in the text form that Prometheus reads.
//!
//! A metric is described once and then has its samples, one for each container
//! where it is about containers. A page shows [`CONTAINERS_MAX`] containers at
//! most, so that nobody waits long for it, and says how many it left out.

mod meters;
mod page;
mod process;

use std::sync::atomic::Ordering;

use dayfly_engine::cancel::Reason;
use dayfly_engine::figures::{AllFigures, ContainerFigures};
use dayfly_engine::throughput::OfferFigures;
use dayfly_engine::{ByLane, COMMIT_SECONDS, Engine, Figures, LAG_SECONDS, Reading};

use self::page::MetricsPage;
use crate::edge::Edge;

pub(crate) use self::meters::Meters;

/// How many containers a page shows.
const CONTAINERS_MAX: usize = 1000;

/// All metrics.
pub(crate) fn render(engine: &Engine, meters: &Meters, edge: &Edge) -> String {
    let mut page = MetricsPage::default();
    server(&mut page, engine);
    meters.render(&mut page);
    connections(&mut page, edge);
    answers(&mut page, edge);
    queries(&mut page, engine);
    store(&mut page, engine);
    purge(&mut page, engine);
    recounts(&mut page, engine);
    match engine.throughput_figures(CONTAINERS_MAX) {
        Ok(figures) => throughput(&mut page, &figures),
        Err(error) => tracing::warn!(%error, "the figures of throughput could not be read"),
    }
    match engine.container_figures(CONTAINERS_MAX) {
        Ok(figures) => containers(&mut page, &figures),
        Err(error) => tracing::warn!(%error, "the figures of the containers could not be read"),
    }
    process::render(&mut page);
    page.text
}

fn server(page: &mut MetricsPage, engine: &Engine) {
    page.describe("dayfly_build_info", "gauge", "1, with what runs here.");
    let labels = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("os", std::env::consts::OS),
        ("arch", std::env::consts::ARCH),
    ];
    page.sample(&labels, 1);
    page.single(
        "dayfly_ready",
        "gauge",
        "1 while writes are taken, as /ready says.",
        u8::from(engine.writable().is_ok()),
    );
}

fn connections(page: &mut MetricsPage, edge: &Edge) {
    page.describe("dayfly_connections_open", "gauge", "Connections, by what they speak.");
    for (protocol, count) in edge.open() {
        page.sample(&[("protocol", protocol)], count);
    }
    page.single(
        "dayfly_connections_max",
        "gauge",
        "How many may be open at one time.",
        edge.connections_max.load(Ordering::Relaxed),
    );
    page.single(
        "dayfly_connections_accepted_total",
        "counter",
        "Connections that were taken.",
        edge.accepted.load(Ordering::Relaxed),
    );
    page.single(
        "dayfly_connections_refused_total",
        "counter",
        "Connections that were closed at once, because too many were open.",
        edge.turned_away.load(Ordering::Relaxed),
    );
    let end = edge.certificate_end.load(Ordering::Relaxed);
    if end > 0 {
        page.single(
            "dayfly_certificate_end_timestamp_seconds",
            "gauge",
            "When the certificate ends, in seconds since 1970.",
            end,
        );
    }
}

fn answers(page: &mut MetricsPage, edge: &Edge) {
    page.single(
        "dayfly_unread_answer_bytes",
        "gauge",
        "Bytes of answers that clients have not taken yet.",
        edge.unread_bytes.load(Ordering::Relaxed),
    );
    page.single(
        "dayfly_slow_readers_cut_total",
        "counter",
        "Connections closed because too much was answered that nobody read.",
        edge.readers_cut.load(Ordering::Relaxed),
    );
}

fn queries(page: &mut MetricsPage, engine: &Engine) {
    let figures = engine.query_figures();
    page.single(
        "dayfly_queries_slow_total",
        "counter",
        "Queries that made more work than is quick, and went on in the slow lane.",
        figures.moved,
    );
    page.single(
        "dayfly_queries_spent_total",
        "counter",
        "Queries that were ended because they made more work than one answer may.",
        figures.spent,
    );
    page.describe(
        "dayfly_queries_cancelled_total",
        "counter",
        "Queries that were given up, waiting or running, because nobody wanted them any more.",
    );
    for (reason, count) in Reason::ALL.into_iter().zip(figures.cancelled) {
        let reason = match reason {
            Reason::Silent => "client_closed",
            Reason::Gone => "client_gone",
            Reason::Late => "deadline",
            Reason::Stopping => "stop",
        };
        page.sample(&[("reason", reason)], count);
    }
    for (name, help, ByLane { quick, slow }) in [
        ("dayfly_queries_waiting", "Queries that wait for a thread, by lane.", figures.waiting),
        ("dayfly_queries_running", "Queries that run, by lane.", figures.running),
    ] {
        page.describe(name, "gauge", help);
        page.sample(&[("lane", "quick")], quick);
        page.sample(&[("lane", "slow")], slow);
    }
}

fn store(page: &mut MetricsPage, engine: &Engine) {
    let (figures, clock) = (engine.figures(), engine.glance());
    commits(page, &figures, &clock);
    memory(page, &figures);
    wall(page, &clock);
    disk(page, &figures);
}

fn commits(page: &mut MetricsPage, figures: &Figures, clock: &Reading) {
    let counters = [
        ("dayfly_commits_total", "Writes that were committed.", figures.commits),
        ("dayfly_commit_groups_total", "Groups that were written.", figures.groups),
        ("dayfly_redrafts_total", "Drafts that the committer ran again.", figures.redrafts),
        ("dayfly_written_bytes_total", "Bytes that were committed.", figures.written_bytes),
        (
            "dayfly_slow_scans_total",
            "Scans that had to step over many deleted rows.",
            figures.slow_scans,
        ),
        (
            "dayfly_compactions_total",
            "Compactions that were made because of such scans, or after a large purge.",
            figures.compactions,
        ),
        ("dayfly_clock_jumps_total", "Jumps of the system's clock that were held.", clock.jumps),
    ];
    for (name, help, value) in counters {
        page.single(name, "counter", help, value);
    }
    let seconds = [
        (
            "dayfly_commit_seconds_total",
            "Time the committer spent writing and syncing.",
            figures.commit_seconds,
        ),
        (
            "dayfly_commit_stall_seconds_total",
            "The part of it in which the engine made the committer wait.",
            figures.stall_seconds,
        ),
    ];
    for (name, help, value) in seconds {
        page.single(name, "counter", help, value);
    }
    page.describe(
        "dayfly_commit_group_seconds",
        "histogram",
        "How long a group took to be written and synced.",
    );
    let commits = figures.commit_seconds;
    page.histogram(&[], &COMMIT_SECONDS, &figures.commit_classes, commits);
}

fn memory(page: &mut MetricsPage, figures: &Figures) {
    for (name, help, count) in [
        ("dayfly_cache_hits_total", "Records that were found in memory.", figures.cache_hits),
        ("dayfly_cache_misses_total", "Records that were not.", figures.cache_misses),
    ] {
        page.single(name, "counter", help, count);
    }
    page.single(
        "dayfly_empty_stretches",
        "gauge",
        "Stretches of deleted rows that scans leap over.",
        figures.empty_stretches,
    );
    page.single(
        "dayfly_cached_bytes",
        "gauge",
        "Records read lately that are kept in memory.",
        figures.cached_bytes,
    );
}

fn wall(page: &mut MetricsPage, clock: &Reading) {
    page.single(
        "dayfly_clock_jump_held",
        "gauge",
        "1 while a jump of the system's clock is held.",
        u8::from(clock.held),
    );
    page.single(
        "dayfly_clock_frozen_seconds",
        "gauge",
        "How far the system's clock is behind; time stands still until it has caught up.",
        clock.behind_seconds,
    );
}

fn disk(page: &mut MetricsPage, figures: &Figures) {
    page.single(
        "dayfly_stored_rows",
        "gauge",
        "Rows on disk, roughly, with those that are deleted.",
        figures.rows,
    );
    page.single(
        "dayfly_stored_deleted_rows",
        "gauge",
        "Deleted rows that wait on disk for a compaction.",
        figures.deleted_rows,
    );
    page.single("dayfly_disk_bytes", "gauge", "Bytes on disk.", figures.disk_bytes);
    if let Some(free) = figures.free_bytes {
        page.single("dayfly_disk_free_bytes", "gauge", "Bytes free on that disk.", free);
    }
    page.single(
        "dayfly_disk_reserve_bytes",
        "gauge",
        "With fewer bytes free, writes that need room are refused.",
        figures.reserve_bytes,
    );
}

fn purge(page: &mut MetricsPage, engine: &Engine) {
    let figures = engine.purge_figures();
    page.describe(
        "dayfly_ttl_purge_lag_seconds",
        "histogram",
        "How long items had been dead when they were removed.",
    );
    page.histogram(&[], &LAG_SECONDS, &figures.lag.classes, figures.lag.sum_seconds);
    page.single(
        "dayfly_ttl_purge_ru_spent_total",
        "counter",
        "What the deletes of the purge would have cost; nobody pays it.",
        figures.ru_spent,
    );
    let (by_operator, by_clock) = engine.purge_rests();
    page.describe(
        "dayfly_ttl_purge_paused",
        "gauge",
        "1 while the purge rests, in all containers or in some, by reason.",
    );
    page.sample(&[("reason", "operator")], u8::from(by_operator));
    page.sample(&[("reason", "clock")], u8::from(by_clock));
}

fn recounts(page: &mut MetricsPage, engine: &Engine) {
    let recounts = engine.recounts();
    page.describe(
        "dayfly_figures_recounts_total",
        "counter",
        "Recounts of a part of the figures, by what they found.",
    );
    for (result, counter) in [
        ("right", &recounts.right),
        ("wrong", &recounts.wrong),
        ("left_out", &recounts.left_out),
        ("failed", &recounts.failed),
    ] {
        page.sample(&[("result", result)], counter.load(Ordering::Relaxed));
    }
}

/// A metric of each throughput: its name, its kind, what it says, and how it is read.
type OfferMetric = (&'static str, &'static str, &'static str, fn(&OfferFigures) -> f64);

const PER_OFFER: &[OfferMetric] = &[
    (
        "dayfly_throughput_provisioned",
        "gauge",
        "The most that a throughput gives in a second, in request units.",
        |of| of.provisioned.into(),
    ),
    ("dayfly_throughput_used_total", "counter", "What users were charged of it.", |of| of.used),
    ("dayfly_throughput_overflow_total", "counter", "What they left over.", |of| of.overflow),
    (
        "dayfly_throughput_purge_spent_total",
        "counter",
        "What the background spent of that: the purge, and rebuilds of indexes.",
        |of| of.background,
    ),
];

/// What is in use. What was thrown away because nobody used it begins anew.
fn throughput(page: &mut MetricsPage, figures: &[OfferFigures]) {
    for (name, kind, help, value) in PER_OFFER {
        page.describe(name, kind, help);
        for of in figures {
            page.sample(&[("owner", &of.owner)], value(of));
        }
    }
    page.describe(
        "dayfly_throttled_total",
        "counter",
        "Requests that were refused because they asked for more, or would have been.",
    );
    for of in figures {
        page.sample(&[("owner", &of.owner)], of.throttled);
    }
    page.single(
        "dayfly_ttl_purge_forced",
        "gauge",
        "Throughputs of which the purge gets a little whatever users leave over.",
        figures.iter().filter(|of| of.is_forced).count(),
    );
}

/// A metric of each container: its name, its kind, what it says, and how it is
/// read.
type Metric = (&'static str, &'static str, &'static str, fn(&ContainerFigures) -> u64);

const PER_CONTAINER: &[Metric] = &[
    ("dayfly_ttl_expired_total", "counter", "Items that have expired.", |of| of.expired),
    ("dayfly_ttl_purged_total", "counter", "Expired items that were removed.", |of| of.purged),
    ("dayfly_ttl_backlog_items", "gauge", "Expired items that are still on disk.", |of| {
        of.dead.items
    }),
    ("dayfly_ttl_backlog_bytes", "gauge", "Their bytes.", |of| of.dead.bytes),
    (
        "dayfly_ttl_oldest_unpurged_seconds",
        "gauge",
        "How long ago the oldest of them expired; 0 if there is none.",
        |of| of.oldest_dead_seconds,
    ),
    ("dayfly_ttl_live_items", "gauge", "Items that are alive.", |of| of.live.items),
    ("dayfly_ttl_live_bytes", "gauge", "Their bytes.", |of| of.live.bytes),
    (
        "dayfly_ttl_uninterpretable_items",
        "gauge",
        "Live items whose ttl cannot be read, so that they live by the default.",
        |of| of.uninterpretable,
    ),
];

fn containers(page: &mut MetricsPage, figures: &AllFigures) {
    for (name, kind, help, value) in PER_CONTAINER {
        page.describe(name, kind, help);
        for of in &figures.containers {
            page.sample(&[("container", &of.container)], value(of));
        }
    }
    page.single(
        "dayfly_ttl_containers_left_out",
        "gauge",
        "Containers that are not shown here, because there are too many.",
        figures.left_out,
    );
}
