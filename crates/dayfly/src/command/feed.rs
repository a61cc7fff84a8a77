//! `dayfly feed`: what changes in a container, one change a line.

use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::client::Start;
use super::{Container, Server, missing, not_json, print};

/// How long to rest when nothing is new.
const REST: Duration = Duration::from_millis(500);

/// The changes of a container, in the order in which they were made.
#[derive(Clone, Debug, Args)]
pub(crate) struct Feed {
    /// The container, as DATABASE/CONTAINER.
    #[arg(value_name = "DB/COLL")]
    container: Container,

    /// Where to begin: 'beginning', 'now', or behind a change that was printed, by its _lsn.
    /// Without it, the beginning; with --all-versions, now.
    #[arg(long, value_name = "PLACE")]
    from: Option<From>,

    /// Every version, with what was deleted and what expired, instead of the newest version of
    /// what is there. The first time, the container begins to keep them.
    #[arg(long)]
    all_versions: bool,

    /// Goes on when nothing is new, until it is stopped.
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
            _ => Err("it must be 'beginning', 'now', or a number, such as the _lsn of a change"),
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
        let mut place = self.place();
        loop {
            let start = Start { place: place.as_deref(), all_versions: self.all_versions };
            let answer = client
                .changes((database, container), &start)
                .map_err(|failure| missing::told(&client, &self.container, failure))?;
            let is_end = answer.body.is_empty();
            let text = match () {
                () if is_end => String::new(),
                () if self.server.json => format!("{}\n", answer.body),
                () => lines(&answer.body)?,
            };
            place = answer.etag.or(place);
            if !print(&text)? || (is_end && !self.follow) {
                return Ok(());
            }
            if is_end {
                rest();
            }
        }
    }

    /// What the first request says of where it begins.
    fn place(&self) -> Option<String> {
        match &self.from {
            Some(From::Beginning) => None,
            Some(From::Behind(place)) => Some(place.clone()),
            Some(From::Now) => Some("*".to_owned()),
            None => self.all_versions.then(|| "*".to_owned()),
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
    fn where_a_feed_begins() {
        for (text, from) in [
            ("beginning", From::Beginning),
            ("now", From::Now),
            ("42", From::Behind("\"42\"".to_owned())),
            ("1:17,0:42", From::Behind("\"1:17,0:42\"".to_owned())),
        ] {
            assert_eq!(text.parse(), Ok(from));
        }
        for wrong in ["", "*", "yesterday", "-1", "1h", ",1", "4\r\n2"] {
            assert!(wrong.parse::<From>().is_err(), "{wrong}");
        }
    }
}
