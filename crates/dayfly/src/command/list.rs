//! All containers at once: `dayfly ls`, and `dayfly ttl status` without a container.

use clap::Args;
use serde_json::{Map, Value};

use super::client::Client;
use super::show::{bytes, count, items, number, row, table, ttl};
use super::{Container, Server, missing, not_json, print};

/// Databases and containers, with how many items live in them and how long.
#[derive(Clone, Debug, Args)]
pub(crate) struct List {
    /// Only the containers of this database.
    #[arg(value_name = "DB")]
    database: Option<String>,

    #[command(flatten)]
    server: Server,
}

/// A container and how it stands; or a database that has none.
struct Found {
    database: String,
    container: Option<(String, Value)>,
}

impl List {
    /// Asks, and prints the answer.
    pub(super) fn run(&self) -> Result<(), String> {
        let found = all(&self.server.client()?, self.database.as_deref())?;
        print_all(
            &self.server,
            &found,
            &["database", "container", "live items", "bytes", "ttl"],
            |one| {
                let mut cells = vec![one.database.clone()];
                match &one.container {
                    Some((name, status)) => {
                        let live = &status["live"];
                        cells.extend([name.clone(), number(&live["items"]), bytes(&live["bytes"])]);
                        cells.push(ttl(&status["defaultTtl"]));
                    }
                    None => cells.push("-".to_owned()),
                }
                Some(cells)
            },
        )
    }
}

/// Prints how time to live stands in every container.
pub(super) fn status(server: &Server) -> Result<(), String> {
    let found = all(&server.client()?, None)?;
    let head = ["container", "default ttl", "live", "never expire", "to be purged", "purge"];
    print_all(server, &found, &head, |one| {
        let (name, status) = one.container.as_ref()?;
        let (never, purge) = (&status["never"], &status["purge"]);
        let mut cells = row(&format!("{}/{name}", one.database), ttl(&status["defaultTtl"]));
        cells.extend([
            count(&status["live"]),
            items(&never["items"]),
            count(&status["backlog"]),
            purge["state"].as_str().unwrap_or("-").to_owned(),
        ]);
        Some(cells)
    })
}

/// All containers, or those of one database.
fn all(client: &Client, only: Option<&str>) -> Result<Vec<Found>, String> {
    let databases = client.databases()?;
    if let Some(sentence) = only.and_then(|only| missing::database(&databases, only)) {
        return Err(sentence);
    }
    let mut found = Vec::new();
    for database in databases.iter().filter_map(|one| one["id"].as_str()) {
        if only.is_none_or(|only| only == database) {
            look(client, database, &mut found)?;
        }
    }
    Ok(found)
}

fn look(client: &Client, database: &str, found: &mut Vec<Found>) -> Result<(), String> {
    let before = found.len();
    let containers = match client.containers(database) {
        // It was deleted meanwhile.
        Err(failure) if failure.status == Some(404) => return Ok(()),
        containers => containers?,
    };
    for name in containers.iter().filter_map(|one| one["id"].as_str()) {
        let path = Container(database.to_owned(), name.to_owned()).path();
        let status = match client.ask(&path, None) {
            Err(failure) if failure.status == Some(404) => continue,
            status => serde_json::from_str(&status?).map_err(|_| not_json())?,
        };
        let container = Some((name.to_owned(), status));
        found.push(Found { database: database.to_owned(), container });
    }
    if found.len() == before {
        found.push(Found { database: database.to_owned(), container: None });
    }
    Ok(())
}

/// Prints a table with the cells that `cells` has for each; with `--json`, a line
/// for each.
fn print_all(
    server: &Server,
    found: &[Found],
    head: &[&str],
    cells: impl Fn(&Found) -> Option<Vec<String>>,
) -> Result<(), String> {
    if server.json {
        return print(&found.iter().map(line).collect::<String>()).map(drop);
    }
    let mut rows = vec![head.iter().map(ToString::to_string).collect()];
    rows.extend(found.iter().filter_map(cells));
    let text = match rows.len() {
        1 => "There is nothing yet.\n".to_owned(),
        _ => table(&rows, &[2, 3, 4]),
    };
    print(&text).map(drop)
}

/// The status, with the names before it.
fn line(found: &Found) -> String {
    let mut members = Map::from_iter([("database".to_owned(), found.database.clone().into())]);
    if let Some((name, status)) = &found.container {
        members.insert("container".to_owned(), name.clone().into());
        members.extend(status.as_object().cloned().unwrap_or_default());
    }
    format!("{}\n", Value::Object(members))
}
