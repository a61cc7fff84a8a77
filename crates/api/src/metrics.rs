//! `/metrics`, in the text form that Prometheus reads.
//!
//! A metric is described once and then has its samples, one for each container
//! where it is about containers. A page shows [`CONTAINERS_MAX`] containers at
//! most, so that nobody waits long for it, and says how many it left out.

use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use dayfly_engine::cancel::Reason;
use dayfly_engine::figures::{AllFigures, ContainerFigures};
use dayfly_engine::{ByLane, Engine, LAG_SECONDS};
use http::StatusCode;

/// How many containers a page shows.
const CONTAINERS_MAX: usize = 1000;

/// What the listener tells of itself.
#[derive(Debug, Default)]
pub struct Edge {
    /// Bytes of answers that clients have not taken yet.
    pub unread_bytes: AtomicUsize,
    /// Connections that were closed because their clients did not.
    pub readers_cut: AtomicU64,
}

/// Counts of requests, by the first digit of their status.
#[derive(Default)]
pub(crate) struct Requests {
    by_class: [AtomicU64; 5],
}

impl Requests {
    pub(crate) fn count(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(counter) = self.by_class.get(class) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// All metrics.
pub(crate) fn render(engine: &Engine, requests: &Requests, edge: &Edge) -> String {
    let mut page = Page::default();
    page.describe("dayfly_requests_total", "counter", "Requests, by class of status.");
    for (class, counter) in (1..).zip(&requests.by_class) {
        page.sample("status", &format!("{class}xx"), counter.load(Ordering::Relaxed));
    }
    answers(&mut page, edge);
    queries(&mut page, engine);
    store(&mut page, engine);
    purge(&mut page, engine);
    recounts(&mut page, engine);
    match engine.container_figures(CONTAINERS_MAX) {
        Ok(figures) => containers(&mut page, &figures),
        Err(error) => tracing::warn!(%error, "the figures of the containers could not be read"),
    }
    page.text
}

fn answers(page: &mut Page, edge: &Edge) {
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

fn queries(page: &mut Page, engine: &Engine) {
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
        page.sample("reason", reason, count);
    }
    for (name, help, ByLane { quick, slow }) in [
        ("dayfly_queries_waiting", "Queries that wait for a thread, by lane.", figures.waiting),
        ("dayfly_queries_running", "Queries that run, by lane.", figures.running),
    ] {
        page.describe(name, "gauge", help);
        page.sample("lane", "quick", quick);
        page.sample("lane", "slow", slow);
    }
}

fn store(page: &mut Page, engine: &Engine) {
    let (figures, clock) = (engine.figures(), engine.glance());
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
}

fn purge(page: &mut Page, engine: &Engine) {
    let figures = engine.purge_figures();
    page.describe(
        "dayfly_ttl_purge_lag_seconds",
        "histogram",
        "How long items had been dead when they were removed.",
    );
    let mut items = 0;
    let ends = LAG_SECONDS.iter().map(u64::to_string).chain(["+Inf".to_owned()]);
    for (end, class) in ends.zip(figures.lag.classes) {
        items += class;
        page.part("_bucket", &format!("{{le=\"{end}\"}}"), items);
    }
    page.part("_sum", "", figures.lag.sum_seconds);
    page.part("_count", "", figures.lag.count);
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
    page.sample("reason", "operator", u8::from(by_operator));
    page.sample("reason", "clock", u8::from(by_clock));
}

fn recounts(page: &mut Page, engine: &Engine) {
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
        page.sample("result", result, counter.load(Ordering::Relaxed));
    }
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

fn containers(page: &mut Page, figures: &AllFigures) {
    for (name, kind, help, value) in PER_CONTAINER {
        page.describe(name, kind, help);
        for of in &figures.containers {
            page.sample("container", &of.container, value(of));
        }
    }
    page.single(
        "dayfly_ttl_containers_left_out",
        "gauge",
        "Containers that are not shown here, because there are too many.",
        figures.left_out,
    );
}

/// What is written, and the metric that is being written.
#[derive(Default)]
struct Page {
    text: String,
    name: &'static str,
}

impl Page {
    fn describe(&mut self, name: &'static str, kind: &str, help: &str) {
        self.name = name;
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// A sample of the metric that was described last.
    fn sample(&mut self, label: &str, value: &str, number: impl Display) {
        let value = escaped(value);
        let _ = writeln!(self.text, "{}{{{label}=\"{value}\"}} {number}", self.name);
    }

    /// A part of the histogram that was described last.
    fn part(&mut self, part: &str, labels: &str, number: impl Display) {
        let _ = writeln!(self.text, "{}{part}{labels} {number}", self.name);
    }

    /// A metric that is one number.
    fn single(&mut self, name: &'static str, kind: &str, help: &str, number: impl Display) {
        self.describe(name, kind, help);
        let _ = writeln!(self.text, "{name} {number}");
    }
}

/// A label's value, as it stands between quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
