//! The way to what is indexed: `/a/b/?`, `/a/[]/"b c"/*`, `/a/[]/{b, c/d}/?`.

use crate::error::{Error, Result};
use crate::json::path::read_quoted;

/// An included or excluded path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexPath {
    text: String,
    /// The way, without its end.
    pub segments: Vec<Segment>,
    /// What is meant there.
    pub end: End,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Segment {
    /// A property.
    Name(String),
    /// `[]`: every item of an array.
    Items,
    /// `{a, b/c}`: several properties as one.
    Tuple(Vec<Vec<String>>),
}

/// The end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// `/*`: this and everything below.
    Subtree,
    /// `/?`: the scalar itself.
    Scalar,
}

/// One step to a value in an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Into a property.
    Name(&'a str),
    /// Into an array.
    Item,
}

impl IndexPath {
    /// `/*`.
    pub fn everything() -> IndexPath {
        IndexPath { text: "/*".to_owned(), segments: Vec::new(), end: End::Subtree }
    }

    /// `/"_etag"/?`.
    pub fn etag() -> IndexPath {
        IndexPath {
            text: "/\"_etag\"/?".to_owned(),
            segments: vec![Segment::Name("_etag".to_owned())],
            end: End::Scalar,
        }
    }

    /// Reads a path. `/` alone is an old way to write `/*`.
    pub fn parse(text: &str) -> Result<IndexPath> {
        if text == "/" {
            return Ok(IndexPath::everything());
        }
        let mut segments = Vec::new();
        let mut rest = text;
        loop {
            let refuse = |rest: &str| refused(text, text.len() - rest.len());
            let segment = rest.strip_prefix('/').ok_or_else(|| refuse(rest))?;
            match segment {
                "*" => return Ok(IndexPath { text: text.to_owned(), segments, end: End::Subtree }),
                "?" => return Ok(IndexPath { text: text.to_owned(), segments, end: End::Scalar }),
                _ => {}
            }
            let (read, after) = read_segment(segment).map_err(refuse)?;
            segments.push(read);
            rest = after;
        }
    }

    /// The path as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What makes two paths the same, however they are written.
    pub(super) fn identity(&self) -> (Vec<Segment>, End) {
        (self.segments.clone(), self.end)
    }

    /// How much this path says: a longer one wins.
    pub(super) fn precision(&self) -> (usize, End) {
        (self.segments.len(), self.end)
    }

    /// Whether the scalar under `steps` is meant.
    pub(super) fn covers(&self, steps: &[Step<'_>]) -> bool {
        let fits = match self.end {
            End::Scalar => self.segments.len() == steps.len(),
            End::Subtree => self.segments.len() <= steps.len(),
        };
        fits && self.segments.iter().zip(steps).all(|(segment, step)| match (segment, step) {
            (Segment::Name(name), Step::Name(step)) => name == step,
            (Segment::Items, Step::Item) => true,
            _ => false,
        })
    }
}

/// The way to a value, as the paths of a policy are written: `/a/[]/"b c"`.
pub fn path_text(steps: &[Step<'_>]) -> String {
    let mut text = String::new();
    for step in steps {
        text.push('/');
        match step {
            Step::Item => text.push_str("[]"),
            Step::Name(name) if !name.is_empty() && name.chars().all(is_plain) => {
                text.push_str(name);
            }
            Step::Name(name) => {
                let escaped = name.replace('\\', "\\\\").replace('"', "\\\"");
                text.push_str(&format!("\"{escaped}\""));
            }
        }
    }
    text
}

/// What a name needs no quotes for.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// The next segment and what follows it, or what could not be read.
fn read_segment(text: &str) -> Result<(Segment, &str), &str> {
    if let Some(after) = text.strip_prefix("[]") {
        return Ok((Segment::Items, after));
    }
    if let Some(tuple) = text.strip_prefix('{') {
        return read_tuple(tuple);
    }
    let (name, after) = read_name(text)?;
    Ok((Segment::Name(name), after))
}

/// A name in quotes, or one of letters, digits, `_` and `$`.
fn read_name(text: &str) -> Result<(String, &str), &str> {
    if let Some(quoted) = text.strip_prefix('"') {
        return read_quoted(quoted).filter(|(name, _)| !name.is_empty()).ok_or(text);
    }
    let end = text.find(|c| !is_plain(c)).unwrap_or(text.len());
    let (name, after) = text.split_at(end);
    if name.is_empty() { Err(text) } else { Ok((name.to_owned(), after)) }
}

fn read_tuple(text: &str) -> Result<(Segment, &str), &str> {
    let mut members = Vec::new();
    let mut rest = text;
    loop {
        let mut member = Vec::new();
        loop {
            let (name, after) = read_name(rest.trim_start())?;
            member.push(name);
            rest = after;
            match rest.strip_prefix('/') {
                Some(after) => rest = after,
                None => break,
            }
        }
        members.push(member);
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix('}') {
            return Ok((Segment::Tuple(members), after));
        }
        rest = rest.strip_prefix(',').ok_or(rest)?;
    }
}

/// The sentence of the service.
fn refused(text: &str, position: usize) -> Error {
    Error::bad_request(format!(
        "The indexing path '{text}' could not be accepted, failed near position '{position}'. \
         Please ensure that the path is a valid path. Common errors include invalid characters \
         or absence of quotes around labels."
    ))
}
