//! The text form that Prometheus reads: a metric is described once, and then has its
//! samples.

use std::fmt::{Display, Write as _};

/// The labels of a sample: names, and values as they are.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

/// What is written, and the metric that is being written.
#[derive(Default)]
pub(super) struct MetricsPage {
    pub(super) text: String,
    name: &'static str,
}

impl MetricsPage {
    pub(super) fn describe(&mut self, name: &'static str, kind: &str, help: &str) {
        self.name = name;
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// A sample of the metric that was described last.
    pub(super) fn sample(&mut self, labels: Labels<'_>, number: impl Display) {
        self.part("", labels, None, number);
    }

    /// A metric that is one number.
    pub(super) fn single(
        &mut self,
        name: &'static str,
        kind: &str,
        help: &str,
        number: impl Display,
    ) {
        self.describe(name, kind, help);
        self.sample(&[], number);
    }

    /// A series of the histogram that was described last: how many were up to each of
    /// the `ends`, each in one class only and the last one for all others, and their sum.
    pub(super) fn histogram(
        &mut self,
        labels: Labels<'_>,
        ends: &[impl Display],
        classes: &[u64],
        sum: impl Display,
    ) {
        let mut count = 0;
        let ends = ends.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
        for (end, class) in ends.zip(classes) {
            count += class;
            self.part("_bucket", labels, Some(&end), count);
        }
        self.part("_sum", labels, None, sum);
        self.part("_count", labels, None, count);
    }

    fn part(&mut self, part: &str, labels: Labels<'_>, end: Option<&str>, number: impl Display) {
        let _ = write!(self.text, "{}{part}", self.name);
        let mut before = '{';
        for (name, value) in labels.iter().copied().chain(end.map(|end| ("le", end))) {
            let _ = write!(self.text, "{before}{name}=\"{}\"", escaped(value));
            before = ',';
        }
        let close = if before == '{' { "" } else { "}" };
        let _ = writeln!(self.text, "{close} {number}");
    }
}

/// A label's value, as it stands between quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
