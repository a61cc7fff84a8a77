//! `dayfly feed`: what changes in a container, one change a line.
//!
//! What was printed last is no place to go on from where a container lies in several buckets,
//! each with an order of its own. So the place is told in the end, apart from the changes.

use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use dayfly_model::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::client::{Failure, Start};
use super::{Container, Server, missing, not_json, print, say};

/// How long to rest when nothing is new.
const REST: Duration = Duration::from_millis(500);

/// The changes of a container, in the order in which they were made.
#[derive(Clone, Debug, Args)]
pub(crate) struct Feed {
    /// The container, as DATABASE/CONTAINER.
    #[arg(value_name = "DB/COLL")]
    container: Container,

    /// Where to begin: 'beginning'; 'now'; a time, such as 2026-01-31T12:00:00Z or @1769860800,
    /// seconds since 1970; or a place, which is told in the end. Without it, the beginning;
    /// with --all-versions, which knows no times, now.
    #[arg(long, value_name = "PLACE")]
    from: Option<From>,

    /// Every version, with what was deleted and what expired, instead of the newest version of
    /// what is there. The first time, the container begins to keep them.
    #[arg(long)]
    all_versions: bool,

    /// Goes on when nothing is new, and when the server was away for a while, until it is
    /// stopped.
    #[arg(long)]
    follow: bool,

    #[command(flatten)]
    server: Server,
}

/// Where to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
enum From {
    Beginning,
    Now,
    Since(Timestamp),
    Behind(String),
}

impl FromStr for From {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<From, &'static str> {
        let is_place = |c: char| c.is_ascii_digit() || matches!(c, ':' | ',');
        match text {
            "beginning" => Ok(From::Beginning),
            "now" => Ok(From::Now),
            _ if text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(is_place) => {
                Ok(From::Behind(format!("\"{text}\"")))
            }
            _ => {
                let second = |text: &str| Some(Timestamp(text.parse().ok()?));
                let since = text.strip_prefix('@').and_then(second);
                since.or_else(|| Timestamp::parse_iso_date(text)).map(From::Since).ok_or(
                    "it must be 'beginning', 'now', a time such as 2026-01-31T12:00:00Z or \
                     @1769860800, or a place that was told, such as 42",
                )
            }
        }
    }
}

/// A page of changes.
#[derive(Deserialize)]
struct ChangesPage<'a> {
    #[serde(borrow, rename = "Documents")]
    changes: Vec<&'a RawValue>,
}

impl Feed {
    /// Prints page after page, until nothing is new or nobody reads any more.
    pub(super) fn run(&self) -> Result<(), String> {
        let client = self.server.client()?;
        let Container(database, container) = &self.container;
        let (mut place, mut since) = self.start();
        let mut outage = Outage { may_be_lost: false, is_told: false };
        loop {
            let all_versions = self.all_versions;
            let start = Start { place: place.as_deref(), since, all_versions };
            let answer = match client.changes((database, container), &start) {
                Ok(answer) => answer,
                Err(failure) if outage.passes(&failure) => {
                    outage.tell(&failure);
                    rest();
                    continue;
                }
                Err(failure) => return Err(missing::told(&client, &self.container, failure)),
            };
            outage = Outage { may_be_lost: self.follow, is_told: false };
            since = None;
            let is_end = answer.body.is_empty();
            let text = match () {
                () if is_end => String::new(),
                () if self.server.json => format!("{}\n", answer.body),
                () => lines(&answer.body)?,
            };
            place = answer.etag.or(place);
            if !print(&text)? {
                return Ok(());
            }
            if is_end && !self.follow {
                let place = place.unwrap_or_default();
                say(&format!("to go on from here: --from {}", place.trim_matches('"')));
                return Ok(());
            }
            if is_end {
                rest();
            }
        }
    }

    /// What the first request says of where it begins.
    fn start(&self) -> (Option<String>, Option<Timestamp>) {
        match &self.from {
            Some(From::Beginning) => (None, None),
            Some(From::Since(since)) => (None, Some(*since)),
            Some(From::Behind(place)) => (Some(place.clone()), None),
            Some(From::Now) => (Some("*".to_owned()), None),
            None => (self.all_versions.then(|| "*".to_owned()), None),
        }
    }
}

/// A time in which there are no answers, and that may pass.
struct Outage {
    /// Whether the server was there, and is waited for.
    may_be_lost: bool,
    /// Whether it was said that there is one.
    is_told: bool,
}

impl Outage {
    /// Whether it is one: too much is asked for, or nobody is there any more.
    fn passes(&self, failure: &Failure) -> bool {
        match failure.status {
            Some(429) => true,
            Some(503) | None => self.may_be_lost,
            Some(_) => false,
        }
    }

    /// Says once what is waited for.
    fn tell(&mut self, failure: &Failure) {
        if !std::mem::replace(&mut self.is_told, true) {
            say(&format!("{} It is tried again.", failure.sentence));
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the server tells nobody that there is more")]
fn rest() {
    std::thread::sleep(REST);
}

/// The changes of a page, one a line, as the server wrote them.
fn lines(body: &str) -> Result<String, String> {
    let page: ChangesPage<'_> = serde_json::from_str(body).map_err(|_| not_json())?;
    Ok(page.changes.iter().flat_map(|change| [change.get(), "\n"]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_waited_for() {
        let failure = |status| Failure { status, sentence: String::new() };
        for may_be_lost in [false, true] {
            let outage = Outage { may_be_lost, is_told: false };
            let passes = |status| outage.passes(&failure(status));
            assert_eq!((passes(Some(429)), passes(Some(404))), (true, false));
            assert_eq!((passes(None), passes(Some(503))), (may_be_lost, may_be_lost));
        }
    }

    #[test]
    fn where_a_feed_begins() {
        let noon = From::Since(Timestamp(1_769_860_800));
        for (text, from) in [
            ("2026-01-31T12:00:00Z", noon.clone()),
            ("@1769860800", noon),
            ("beginning", From::Beginning),
            ("now", From::Now),
            ("42", From::Behind("\"42\"".to_owned())),
            ("1:17,0:42", From::Behind("\"1:17,0:42\"".to_owned())),
        ] {
            assert_eq!(text.parse(), Ok(from));
        }
        for wrong in ["", "*", "yesterday", "-1", "1h", ",1", "4\r\n2", "@", "@-1", "2026-01-31"] {
            assert!(wrong.parse::<From>().is_err(), "{wrong}");
        }
    }
}
