//! From a path to the resource it names.
//!
//! A path is the same resource with and without a trailing slash. Segments are
//! decoded once. Databases, containers and items are named by name or by RID;
//! which one it is, only the catalog can tell.

use std::borrow::Cow;

use dayfly_model::{Error, ErrorKind, Result};
use percent_encoding::percent_decode_str;

use crate::portal;

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource<'a> {
    Account,
    Databases,
    Database(&'a str),
    Containers(&'a str),
    Container(&'a str, &'a str),
    EncryptionKeys(&'a str),
    EncryptionKey(&'a str, &'a str),
    Items(&'a str, &'a str),
    Item(&'a str, &'a str, &'a str),
    Ranges(&'a str, &'a str),
    Conflicts(&'a str, &'a str),
    /// Deleting all items of a partition key.
    PartitionDelete(&'a str, &'a str),
    Conflict(&'a str, &'a str),
    Offers,
    Offer(&'a str),
    /// A part of the service that dayfly does not have yet, and the verbs it
    /// has there.
    NotYet(&'static str, &'static [&'static str]),
    /// What clients in direct mode ask first.
    Addresses,
    /// A call of the admin API.
    Admin(&'a [Cow<'a, str>]),
    Ready,
    Alive,
    Certificate,
    /// A file of the portal.
    Portal(&'a str),
    Metrics,
}

impl Resource<'_> {
    /// Whether it is a page that is open to all, for those who watch the server.
    pub(crate) fn is_page(self) -> bool {
        matches!(
            self,
            Resource::Ready
                | Resource::Alive
                | Resource::Certificate
                | Resource::Portal(_)
                | Resource::Metrics
        )
    }
}

/// The decoded segments of a path.
pub(crate) fn segments(path: &str) -> Result<Vec<Cow<'_, str>>> {
    let mut segments = Vec::with_capacity(8);
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        segments.push(decode(segment)?);
    }
    Ok(segments)
}

fn decode(segment: &str) -> Result<Cow<'_, str>> {
    if !segment.as_bytes().contains(&b'%') {
        return Ok(Cow::Borrowed(segment));
    }
    percent_decode_str(segment).decode_utf8().map_err(|_| {
        Error::bad_request(format!("The path segment '{segment}' does not decode to UTF-8."))
    })
}

/// What addresses are asked for: clients sign that path, not the one they send.
pub(crate) fn resolved<'q>(segments: &[Cow<'_, str>], query: &'q str) -> Option<Cow<'q, str>> {
    segments.first().filter(|first| *first == "addresses")?;
    parameter(query, "$resolveFor")
}

/// What a query says of a name, either of them escaped or not.
pub(crate) fn parameter<'q>(query: &'q str, name: &str) -> Option<Cow<'q, str>> {
    let named = query.split('&').filter_map(|part| part.split_once('='));
    let mut named = named.filter(|(found, _)| percent_decode_str(found).eq(name.bytes()));
    decode(named.next()?.1).ok()
}

/// No path has more segments.
const SEGMENTS_MAX: usize = 16;

const CRUD: &[&str] = &["GET", "HEAD", "POST", "PUT", "DELETE"];

/// What the segments of a path name.
pub(crate) fn resource<'a>(segments: &'a [Cow<'a, str>]) -> Result<Resource<'a>> {
    let mut parts = [""; SEGMENTS_MAX];
    for (part, segment) in parts.iter_mut().zip(segments) {
        *part = segment;
    }
    let parts = parts.get(..segments.len()).ok_or_else(unknown)?;
    Ok(match *parts {
        [] => Resource::Account,
        ["dbs"] => Resource::Databases,
        ["dbs", db] => Resource::Database(db),
        ["dbs", db, "colls"] => Resource::Containers(db),
        ["dbs", db, "colls", coll] => Resource::Container(db, coll),
        ["dbs", db, "colls", coll, "docs"] => Resource::Items(db, coll),
        ["dbs", db, "colls", coll, "docs", id] => Resource::Item(db, coll, id),
        ["dbs", db, "colls", coll, "pkranges"] => Resource::Ranges(db, coll),
        ["dbs", db, "colls", coll, "conflicts"] => Resource::Conflicts(db, coll),
        ["dbs", db, "colls", coll, "conflicts", _] => Resource::Conflict(db, coll),
        ["dbs", db, "colls", coll, "operations", "partitionkeydelete"] => {
            Resource::PartitionDelete(db, coll)
        }
        ["dbs", _, "colls", _, "docs", _, "attachments", ..] => {
            Resource::NotYet("An attachment", CRUD)
        }
        ["dbs", _, "colls", _, kind] | ["dbs", _, "colls", _, kind, _] => script(kind)?,
        ["dbs", _, "users"] | ["dbs", _, "users", _] => Resource::NotYet("A user", CRUD),
        ["dbs", _, "users", _, "permissions"] | ["dbs", _, "users", _, "permissions", _] => {
            Resource::NotYet("A permission", CRUD)
        }
        ["dbs", db, "clientencryptionkeys"] => Resource::EncryptionKeys(db),
        ["dbs", db, "clientencryptionkeys", key] => Resource::EncryptionKey(db, key),
        ["offers"] => Resource::Offers,
        ["offers", rid] => Resource::Offer(rid),
        ["media", ..] => Resource::NotYet("An attachment", CRUD),
        ["addresses", ..] => Resource::Addresses,
        ["_admin", "v1", ..] => Resource::Admin(segments.get(2..).unwrap_or_default()),
        ["ready" | "status"] => Resource::Ready,
        ["alive"] => Resource::Alive,
        ["_explorer", "emulator.pem"] => Resource::Certificate,
        ["_explorer"] | ["_explorer", "quickstart.html"] => Resource::Portal(portal::INDEX),
        ["_explorer", file] => Resource::Portal(file),
        ["metrics"] => Resource::Metrics,
        _ => return Err(unknown()),
    })
}

fn script(kind: &str) -> Result<Resource<'static>> {
    Ok(match kind {
        "sprocs" => Resource::NotYet("A stored procedure", CRUD),
        "triggers" => Resource::NotYet("A trigger", CRUD),
        "udfs" => Resource::NotYet("A user-defined function", CRUD),
        _ => return Err(unknown()),
    })
}

/// What is said of a path that names nothing, and of one that is hidden.
pub const UNKNOWN_PATH: &str = "There is no such resource: the path is not known.";

/// The error for a path that names nothing.
pub(crate) fn unknown() -> Error {
    Error::new(ErrorKind::NotFound, UNKNOWN_PATH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: Option<Resource<'_>>) {
        let segments = segments(path);
        let named = segments.as_ref().ok().and_then(|segments| resource(segments).ok());
        assert_eq!(named, expected, "{path}");
    }

    #[test]
    fn paths_and_what_they_name() {
        check("/", Some(Resource::Account));
        check("", Some(Resource::Account));
        check("/dbs/", Some(Resource::Databases));
        check("/dbs/d", Some(Resource::Database("d")));
        check("//dbs/d//colls/c/", Some(Resource::Container("d", "c")));
        check("/dbs/d/colls/c/docs/a%20b%25", Some(Resource::Item("d", "c", "a b%")));
        check("/dbs/d/colls/c/docs/%FF", None);
        check("/nothing", None);
        check("/dbs/d/colls/c/nothing", None);
        check("/_admin/v1/clock", Some(Resource::Admin(&["clock".into()])));
    }
}
