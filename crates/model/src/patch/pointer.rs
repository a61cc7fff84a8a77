//! JSON pointers: the way to a value in an item.
//!
//! `/a~1b/0` leads to the member `a/b`, and in it to the member `0` of an object or the
//! first element of an array. `/` is the member with an empty name. The item itself, which
//! an empty text would be, cannot be meant.

use super::syntax;
use crate::error::Result;
use crate::json::DEPTH_MAX;

/// A way to a value: one name at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pointer {
    first: String,
    rest: Vec<String>,
}

impl Pointer {
    pub(super) fn read(text: &str) -> Result<Pointer> {
        let mut segments = text.strip_prefix('/').ok_or_else(syntax)?.split('/');
        let first = unescaped(segments.next().unwrap_or_default())?;
        let mut rest = Vec::new();
        for segment in segments {
            // No item is so deep.
            if rest.len() + 1 == DEPTH_MAX {
                return Err(syntax());
            }
            rest.push(unescaped(segment)?);
        }
        Ok(Pointer { first, rest })
    }

    pub(super) fn first(&self) -> &str {
        &self.first
    }

    pub(super) fn last(&self) -> &str {
        self.rest.last().unwrap_or(&self.first)
    }

    /// All names but the last.
    pub(super) fn parents(&self) -> impl Iterator<Item = &str> {
        self.names().take(self.rest.len())
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&*self.first).chain(self.rest.iter().map(String::as_str))
    }

    /// Whether it leads to the same value as `other`, or to one inside of that.
    pub(super) fn is_within(&self, other: &Pointer) -> bool {
        self.names().zip(other.names()).filter(|(own, its)| own == its).count()
            == other.rest.len() + 1
    }

    /// About how many bytes it holds.
    pub(super) fn weight(&self) -> usize {
        self.names().map(|name| size_of::<String>() + name.len()).sum()
    }
}

/// A name with `~0` and `~1` read; another `~` is none that there is.
fn unescaped(segment: &str) -> Result<String> {
    let mut pieces = segment.split('~');
    let mut name = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (escaped, rest) = match piece.split_at_checked(1) {
            Some(("0", rest)) => ('~', rest),
            Some(("1", rest)) => ('/', rest),
            _ => return Err(syntax()),
        };
        name.push(escaped);
        name.push_str(rest);
    }
    Ok(name)
}
