//! `/metrics`, in the text form that Prometheus reads.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use dayfly_engine::Engine;
use http::StatusCode;

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
pub(crate) fn render(engine: &Engine, requests: &Requests) -> String {
    let mut text = String::new();
    describe(&mut text, "dayfly_requests_total", "counter", "Requests, by class of status.");
    for (class, counter) in (1..).zip(&requests.by_class) {
        let count = counter.load(Ordering::Relaxed);
        let _ = writeln!(text, "dayfly_requests_total{{status=\"{class}xx\"}} {count}");
    }

    let (figures, clock) = (engine.figures(), engine.glance());
    let mut metric = |name: &str, kind: &str, help: &str, value: String| {
        describe(&mut text, name, kind, help);
        let _ = writeln!(text, "{name} {value}");
    };
    let counters = [
        ("dayfly_commits_total", "Writes that were committed.", figures.commits),
        ("dayfly_commit_groups_total", "Groups that were written.", figures.groups),
        ("dayfly_redrafts_total", "Drafts that the committer ran again.", figures.redrafts),
        ("dayfly_ttl_purged_total", "Expired items that were removed.", engine.purged_items()),
        ("dayfly_clock_jumps_total", "Jumps of the system's clock that were held.", clock.jumps),
    ];
    for (name, help, value) in counters {
        metric(name, "counter", help, value.to_string());
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
        metric(name, "counter", help, value.to_string());
    }
    metric(
        "dayfly_clock_jump_held",
        "gauge",
        "1 while a jump of the system's clock is held.",
        u8::from(clock.held).to_string(),
    );
    metric(
        "dayfly_clock_frozen_seconds",
        "gauge",
        "How far the system's clock is behind; time stands still until it has caught up.",
        clock.behind_seconds.to_string(),
    );
    metric("dayfly_disk_bytes", "gauge", "Bytes on disk.", figures.disk_bytes.to_string());
    if let Some(free) = figures.free_bytes {
        metric("dayfly_disk_free_bytes", "gauge", "Bytes free on that disk.", free.to_string());
    }
    text
}

fn describe(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}
