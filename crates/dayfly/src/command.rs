//! Commands: what `dayfly` does instead of serving.
//!
//! A command asks a server that runs, and shows the answer to a person, or as it
//! is with `--json`. `dayfly key`, and those that are about the command line itself, ask
//! nobody.

mod client;
mod clock;
mod feed;
mod health;
mod key;
mod list;
mod manual;
mod missing;
mod portal;
mod query;
mod requests;
mod ru;
mod show;
mod typed;

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use self::client::Client;
use self::clock::Clock;
use self::feed::Feed;
use self::health::Health;
use self::list::List;
use self::manual::{Completions, Manual};
use self::portal::Portal;
use self::query::Query;
use self::requests::Requests;
use self::ru::Ru;
pub(crate) use self::typed::seconds;
use crate::keys;

/// What to do instead of serving.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Shows time to live in a running server: how it stands, what expires
    /// when, and why.
    Ttl(Ttl),
    /// Shows the databases and containers of a running server, with how many items
    /// live in them and their time to live.
    Ls(List),
    /// Shows the clock of a running server, and moves that of one with --test-clock.
    Clock(Clock),
    /// Shows what a query finds in a running server, or how it finds it.
    Query(Query),
    /// Shows what changes in a container of a running server, one change a line.
    Feed(Feed),
    /// Shows the last requests that a running server answered.
    Requests(Requests),
    /// Shows what becomes of the throughput of a container, second by second.
    Ru(Ru),
    /// Prints an address that opens the portal of a running server.
    Portal(Portal),
    /// Prints a new account key, for --key or --key-file.
    Key,
    /// Ends with 0 if a running server takes writes, with 1 if not, for containers and
    /// those who watch over them.
    Healthcheck(Health),
    /// Prints completions for a shell.
    Completions(Completions),
    /// Prints a page for man, or writes those of all commands into a folder.
    Man(Manual),
}

/// Time to live in a running server.
#[derive(Clone, Debug, Args)]
pub(crate) struct Ttl {
    #[command(subcommand)]
    ask: Ask,

    #[command(flatten)]
    server: Server,
}

/// Where the server is.
#[derive(Clone, Debug, Args)]
struct Server {
    /// Where the server listens.
    #[arg(long, global = true, env = "DAYFLY_ENDPOINT", value_name = "URL")]
    #[arg(default_value = "http://127.0.0.1:8081")]
    endpoint: String,

    /// The account key, or the key that only reads. Without it, the key every
    /// emulator uses, for a server on this machine.
    #[arg(long, global = true, env = "DAYFLY_KEY", hide_env_values = true, value_name = "BASE64")]
    #[arg(value_parser = keys::typed)]
    key: Option<String>,

    /// For https: a file with the certificate to trust, such as the one the
    /// server has at /_explorer/emulator.pem.
    #[arg(long, global = true, env = "DAYFLY_CA", value_name = "FILE")]
    ca: Option<PathBuf>,

    /// Prints the answer as the server sent it.
    #[arg(long, global = true)]
    json: bool,
}

/// A question.
#[derive(Clone, Debug, Subcommand)]
enum Ask {
    /// How time to live stands in a container, or in all of them.
    Status {
        /// The container, as DATABASE/CONTAINER; without it, all.
        #[arg(value_name = "DB/COLL")]
        container: Option<Container>,
    },
    /// What expires when, if nothing is written.
    Forecast {
        /// The container, as DATABASE/CONTAINER.
        #[arg(value_name = "DB/COLL")]
        container: Container,
        /// How many stretches of time, at most 1000.
        #[arg(long, default_value_t = 24, value_name = "COUNT")]
        buckets: u32,
        /// How long each is: seconds, or a span such as 30m, 12h or 1d.
        #[arg(long, visible_alias = "bucket", default_value = "1h", value_name = "TIME")]
        #[arg(value_parser = typed::seconds)]
        bucket_seconds: u64,
    },
    /// What another defaultTtl would expire; nothing is changed.
    Whatif {
        /// The container, as DATABASE/CONTAINER.
        #[arg(value_name = "DB/COLL")]
        container: Container,
        /// The default: a number of seconds, a span such as 30m, 12h or 90d, -1, or
        /// off.
        #[arg(value_name = "DEFAULT_TTL", allow_hyphen_values = true)]
        #[arg(value_parser = typed::default_ttl)]
        default: String,
    },
    /// The items that die next, the first one first.
    Next {
        /// The container, as DATABASE/CONTAINER.
        #[arg(value_name = "DB/COLL")]
        container: Container,
        /// Only those that die within this time: seconds, or a span such as 30m, 12h or
        /// 1d.
        #[arg(long, value_name = "TIME", value_parser = typed::seconds)]
        within: Option<u64>,
        /// How many, at most 1000.
        #[arg(long, default_value_t = 20, value_name = "COUNT")]
        limit: u32,
    },
    /// Why an item lives, until when, or why not.
    Explain {
        /// The container, as DATABASE/CONTAINER.
        #[arg(value_name = "DB/COLL")]
        container: Container,
        /// The item's id.
        #[arg(value_name = "ID", allow_hyphen_values = true)]
        id: String,
        /// The item's partition key: a word, which is a string, or JSON, such as
        /// `5`, or `["x","y"]` for a key of several values.
        #[arg(value_name = "PARTITION_KEY", allow_hyphen_values = true)]
        partition_key: String,
    },
    /// Removes from the disk what has expired until now. Nobody sees a
    /// difference but in the figures.
    Purge {
        /// The container, as DATABASE/CONTAINER.
        #[arg(value_name = "DB/COLL")]
        container: Container,
    },
}

/// A container, by the names of its database and itself.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Container(String, String);

impl std::str::FromStr for Container {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Container, &'static str> {
        match text.split_once('/') {
            Some((database, name))
                if !database.is_empty() && !name.is_empty() && !name.contains('/') =>
            {
                Ok(Container(database.to_owned(), name.to_owned()))
            }
            _ => Err("it must be DATABASE/CONTAINER, such as shop/carts"),
        }
    }
}

impl std::fmt::Display for Container {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.0, self.1)
    }
}

impl Container {
    /// The path of its time to live.
    fn path(&self) -> String {
        self.below("ttl")
    }

    /// The path of what the admin API has for it.
    fn below(&self, what: &str) -> String {
        format!("/_admin/v1/containers/{}/{}/{what}", encoded(&self.0), encoded(&self.1))
    }

    /// The path of its items, with the end of their lives.
    fn items_path(&self) -> String {
        format!("/_admin/v1/containers/{}/{}/items", encoded(&self.0), encoded(&self.1))
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

impl Ask {
    /// The container that is asked about, if it is one.
    fn container(&self) -> Option<&Container> {
        match self {
            Ask::Status { container } => container.as_ref(),
            Ask::Forecast { container, .. }
            | Ask::Whatif { container, .. }
            | Ask::Next { container, .. }
            | Ask::Explain { container, .. }
            | Ask::Purge { container } => Some(container),
        }
    }

    /// The path to ask about a container, and what to send there, if it is not only
    /// read.
    fn request(&self, at: &Container) -> (String, Option<Value>) {
        let path = at.path();
        match self {
            Ask::Status { .. } => (path, None),
            Ask::Forecast { buckets, bucket_seconds, .. } => {
                (format!("{path}/forecast?buckets={buckets}&bucketSeconds={bucket_seconds}"), None)
            }
            Ask::Whatif { default, .. } => {
                (format!("{path}/whatif?defaultTtl={}", encoded(default)), None)
            }
            Ask::Next { within, limit, .. } => {
                let within = within.map(|seconds| format!("&within={seconds}")).unwrap_or_default();
                (format!("{}?order=expiry&limit={limit}{within}", at.items_path()), None)
            }
            Ask::Explain { id, partition_key, .. } => {
                let (id, key) = (encoded(id), encoded(&typed::partition_key(partition_key)));
                (format!("{path}/explain?id={id}&partitionKey={key}"), None)
            }
            Ask::Purge { .. } => {
                ("/_admin/v1/purge/run".to_owned(), Some(json!({"container": at.to_string()})))
            }
        }
    }

    /// The answer about a container, for a person.
    fn show(&self, at: &Container, answer: &Value) -> String {
        match self {
            Ask::Status { .. } => show::status(&at.to_string(), answer),
            Ask::Forecast { .. } => show::forecast(answer),
            Ask::Whatif { default, .. } => show::what_if(default, answer),
            Ask::Next { .. } => show::next(answer),
            Ask::Explain { .. } => show::explain(answer),
            Ask::Purge { .. } => show::purge(answer),
        }
    }
}

impl Ttl {
    fn run(&self) -> Result<(), String> {
        let Some(at) = self.ask.container() else { return list::status(&self.server) };
        let (path, body) = self.ask.request(at);
        let client = self.server.client()?;
        let answer = client
            .ask(&path, body.as_ref())
            .map_err(|failure| missing::told(&client, at, failure))?;
        self.server.print(&answer, |answer| self.ask.show(at, answer))
    }
}

impl Server {
    fn client(&self) -> Result<Client, String> {
        Client::new(&self.endpoint, self.key.clone(), self.ca.as_deref())
    }

    /// Prints an answer of the admin API, as it is or as `show` shows it.
    fn print(&self, answer: &str, show: impl FnOnce(&Value) -> String) -> Result<(), String> {
        if self.json {
            return print(&format!("{answer}\n")).map(drop);
        }
        let value = serde_json::from_str(answer).map_err(|_| not_json())?;
        print(&show(&value)).map(drop)
    }
}

/// A text of the server without what would move the cursor.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn not_json() -> String {
    "The server's answer is not JSON: is it a dayfly?".to_owned()
}

impl Command {
    /// Asks, and prints the answer; or says in a sentence why there is none.
    /// `whole` is the command line that it belongs to.
    pub(crate) fn run(self, whole: clap::Command) -> Result<(), String> {
        match self {
            Command::Ttl(ttl) => ttl.run(),
            Command::Ls(list) => list.run(),
            Command::Clock(clock) => clock.run(),
            Command::Query(query) => query.run(),
            Command::Feed(feed) => feed.run(),
            Command::Requests(requests) => requests.run(),
            Command::Ru(ru) => ru.run(),
            Command::Portal(portal) => portal.run(),
            Command::Key => key::run(),
            Command::Healthcheck(health) => health.run(),
            Command::Completions(completions) => completions.run(whole),
            Command::Man(manual) => manual.run(whole),
        }
    }
}

/// Prints a text. `false`: whoever read has read enough.
fn print(text: &str) -> Result<bool, String> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(format!("The answer could not be printed: {error}.")),
    }
}

/// Says something beside what is printed.
fn say(sentence: &str) {
    let _ = writeln!(io::stderr(), "dayfly: {sentence}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart_and_written_into_paths() {
        let container: Container = "my shop/a?b#c".parse().unwrap();
        assert_eq!(container.path(), "/_admin/v1/containers/my%20shop/a%3Fb%23c/ttl");
        for wrong in ["", "a", "/", "a/", "/a", "a/b/c"] {
            assert!(wrong.parse::<Container>().is_err(), "{wrong}");
        }
    }
}
