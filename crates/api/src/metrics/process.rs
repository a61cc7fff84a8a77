//! What the system knows of this process, by the names that every exporter has for it.
//! It is read from `/proc`; where there is none, nothing is told.

use std::fs;

use super::page::MetricsPage;

/// In how many parts of a second the kernel tells times, on every machine of ours.
const TICKS: f64 = 100.0;

/// The figures.
#[derive(Debug, Default, PartialEq)]
struct Process {
    cpu_seconds: Option<f64>,
    start_seconds: Option<f64>,
    resident_bytes: Option<u64>,
    open_files: Option<usize>,
    max_files: Option<u64>,
}

pub(super) fn render(page: &mut MetricsPage) {
    let process = read();
    if let Some(seconds) = process.cpu_seconds {
        page.single(
            "process_cpu_seconds_total",
            "counter",
            "CPU time that the process took, in seconds.",
            seconds,
        );
    }
    if let Some(bytes) = process.resident_bytes {
        page.single("process_resident_memory_bytes", "gauge", "Memory that it takes.", bytes);
    }
    if let Some(files) = process.open_files {
        page.single("process_open_fds", "gauge", "Files and sockets that it has open.", files);
    }
    if let Some(files) = process.max_files {
        page.single("process_max_fds", "gauge", "How many it may have open.", files);
    }
    if let Some(second) = process.start_seconds {
        page.single(
            "process_start_time_seconds",
            "gauge",
            "When it was started, in seconds since 1970.",
            second,
        );
    }
}

fn read() -> Process {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let times = times(&text("/proc/self/stat"));
    let boot = number_after(&text("/proc/stat"), "btime ");
    Process {
        cpu_seconds: times.map(|(cpu, _)| cpu),
        #[expect(clippy::cast_precision_loss, reason = "a time of day")]
        start_seconds: times.zip(boot).map(|((_, started), boot)| boot as f64 + started),
        resident_bytes: number_after(&text("/proc/self/status"), "VmRSS:").map(|kib| kib * 1024),
        open_files: fs::read_dir("/proc/self/fd").ok().map(Iterator::count),
        max_files: number_after(&text("/proc/self/limits"), "Max open files"),
    }
}

/// CPU seconds, and how long after the boot it was started, from `/proc/self/stat`. The
/// name in it may have blanks and brackets.
fn times(stat: &str) -> Option<(f64, f64)> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let seconds = |field: usize| Some(fields.get(field)?.parse::<f64>().ok()? / TICKS);
    Some((seconds(11)? + seconds(12)?, seconds(19)?))
}

/// The first number behind the word that a line begins with.
fn number_after(text: &str, word: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(word))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_the_kernel_are_read() {
        let stat = "7 (day (fly) x) S 1 7 7 0 -1 4194560 9 0 0 0 150 50 0 0 20 0 9 0 4200 1 2 3";
        let (cpu, started) = times(stat).unwrap();
        assert!((cpu - 2.0).abs() < 1e-9 && (started - 42.0).abs() < 1e-9);
        assert_eq!(times("nothing"), None);
        let limits = "Limit  Soft\nMax open files            1024                 4096  files\n";
        assert_eq!(number_after(limits, "Max open files"), Some(1024));
        assert_eq!(number_after("Max open files  unlimited", "Max open files"), None);
    }
}
