//! Figures for a person: a table on the screen, and the same one in
//! `docs/performance.md`.

use std::path::PathBuf;

use crate::{Result, failed};

/// The figures of one benchmark.
pub(super) struct Report {
    name: &'static str,
    /// What the command needs besides the name.
    arguments: &'static str,
    rows: Vec<Row>,
}

struct Row {
    what: String,
    measured: String,
    bar: String,
    verdict: &'static str,
}

/// Where a figure has to be.
#[derive(Clone, Copy)]
pub(super) enum Bar {
    AtMost(f64),
    Below(f64),
    AtLeast(f64),
}

impl Report {
    pub(super) fn new(name: &'static str) -> Report {
        Report::with_arguments(name, "")
    }

    /// Of a benchmark that is not asked for by its name alone.
    pub(super) fn with_arguments(name: &'static str, arguments: &'static str) -> Report {
        Report { name, arguments, rows: Vec::new() }
    }

    /// A figure without a bar.
    pub(super) fn note(&mut self, what: impl Into<String>, measured: impl Into<String>) {
        let (bar, verdict) = (String::new(), "");
        self.rows.push(Row { what: what.into(), measured: measured.into(), bar, verdict });
    }

    /// A figure with a bar.
    pub(super) fn judge(&mut self, what: impl Into<String>, value: f64, unit: &str, bar: Bar) {
        let (good, bar) = match bar {
            Bar::AtMost(most) => (value <= most, format!("<= {most:.2}{unit}")),
            Bar::Below(end) => (value < end, format!("< {end:.2}{unit}")),
            Bar::AtLeast(least) => (value >= least, format!(">= {least:.2}{unit}")),
        };
        let verdict = if good { "pass" } else { "FAIL" };
        let measured = format!("{value:.2}{unit}");
        self.rows.push(Row { what: what.into(), measured, bar, verdict });
    }

    /// How many bars were missed.
    pub(super) fn missed(&self) -> usize {
        self.rows.iter().filter(|row| row.verdict == "FAIL").count()
    }

    /// The table, which is also Markdown.
    pub(super) fn table(&self) -> String {
        let cells = |row: &Row| {
            [row.what.clone(), row.measured.clone(), row.bar.clone(), row.verdict.to_owned()]
        };
        let mut lines = vec![[self.name, "measured", "bar", ""].map(str::to_owned)];
        lines.extend(self.rows.iter().map(cells));
        let mut widths = [3; 4];
        for line in &lines {
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = cell.chars().count().max(*width);
            }
        }
        let mut texts: Vec<String> = lines.iter().map(|line| padded(line, &widths)).collect();
        texts.insert(1, padded(&widths.map(|width| "-".repeat(width)), &widths));
        texts.join("\n")
    }

    /// Puts the table into its place in `docs/performance.md`.
    pub(super) fn write(&self) -> Result<()> {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/performance.md");
        let text = std::fs::read_to_string(&path).map_err(failed("docs/performance.md"))?;
        let (start, end) = (format!("<!-- {} -->", self.name), format!("<!-- /{} -->", self.name));
        let place = text
            .split_once(&start)
            .and_then(|(before, rest)| rest.split_once(&end).map(|(_, after)| (before, after)));
        let Some((before, after)) = place else {
            return Err(format!("docs/performance.md has no place '{start}' … '{end}'"));
        };
        let command = format!("`cargo xtask bench {}{} --write`", self.name, self.arguments);
        let table = self.table();
        let text = format!("{before}{start}\n{command}:\n\n{table}\n{end}{after}");
        std::fs::write(&path, text).map_err(failed("docs/performance.md"))
    }
}

fn padded(cells: &[String; 4], widths: &[usize; 4]) -> String {
    let cells = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
    format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_says_what_was_missed() {
        let mut report = Report::new("read");
        report.note("requests", "7");
        report.judge("ratio", 2.0, "", Bar::AtMost(1.5));
        report.judge("rate", 0.6, " k/s", Bar::AtLeast(0.5));
        assert_eq!(report.missed(), 1);
        let expected = "\
| read     | measured | bar         |      |
| -------- | -------- | ----------- | ---- |
| requests | 7        |             |      |
| ratio    | 2.00     | <= 1.50     | FAIL |
| rate     | 0.60 k/s | >= 0.50 k/s | pass |";
        assert_eq!(report.table(), expected);
    }
}
