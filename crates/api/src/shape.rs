//! Header maps with the names of an earlier one.
//!
//! A header map hashes every name that is put into it: for the two dozen of an
//! answer that is a good part of what a read costs. But most answers have the
//! names of the one before, in the same order. So a map of those names is kept,
//! and copied, and only its values are set.

use std::cell::RefCell;

use http::header::{HeaderMap, HeaderName, HeaderValue};

/// How many lists of names a thread keeps.
const KEPT_MAX: usize = 8;

/// Headers, each of another name, in the order in which they are sent.
#[derive(Clone, Default)]
pub(crate) struct Lines(Vec<(HeaderName, HeaderValue)>);

impl Lines {
    /// The same lines, with room for more.
    pub(crate) fn and_room(&self, room: usize) -> Lines {
        let mut lines = Vec::with_capacity(self.0.len() + room);
        lines.extend_from_slice(&self.0);
        Lines(lines)
    }

    pub(crate) fn insert(&mut self, name: HeaderName, value: HeaderValue) {
        self.0.push((name, value));
    }

    /// The lines as a map.
    pub(crate) fn into_map(self) -> HeaderMap {
        thread_local! {
            static KEPT: RefCell<Vec<HeaderMap>> = const { RefCell::new(Vec::new()) };
        }
        KEPT.with_borrow_mut(|kept| {
            if let Some(like) = kept.iter().find(|map| self.has_names_of(map)) {
                return self.with_names_of(like);
            }
            let map: HeaderMap = self.0.iter().cloned().collect();
            if self.has_names_of(&map) {
                let mut names = map.clone();
                names.values_mut().for_each(|value| *value = HeaderValue::from_static(""));
                kept.insert(0, names);
                kept.truncate(KEPT_MAX);
            }
            map
        })
    }

    fn has_names_of(&self, map: &HeaderMap) -> bool {
        map.keys_len() == self.0.len()
            && map.keys().zip(&self.0).all(|(name, line)| *name == line.0)
    }

    fn with_names_of(self, like: &HeaderMap) -> HeaderMap {
        let mut map = like.clone();
        for (value, line) in map.values_mut().zip(self.0) {
            *value = line.1;
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(names: &[&'static str], value: &str) -> Lines {
        let mut lines = Lines::default();
        for name in names {
            let value = HeaderValue::from_str(&format!("{value} of {name}")).unwrap();
            lines.insert(HeaderName::from_static(name), value);
        }
        lines
    }

    #[test]
    fn a_map_has_its_own_values_whatever_names_were_there_before() {
        let all = ["date", "etag", "x-ms-a", "x-ms-b", "x-ms-c", "x-ms-d", "content-type"];
        for round in 0..3 {
            for length in 0..=all.len() {
                for first in 0..=all.len() - length {
                    let mut names = all[first..first + length].to_vec();
                    for turned in [false, true] {
                        if turned {
                            names.reverse();
                        }
                        let value = format!("{round} {first} {length} {turned}");
                        let map = lines(&names, &value).into_map();
                        assert_eq!(map.len(), names.len());
                        for name in &names {
                            assert_eq!(map[*name], format!("{value} of {name}"));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn two_lines_of_one_name_are_both_sent() {
        for _ in 0..2 {
            let map = lines(&["etag", "date", "etag"], "1").into_map();
            assert_eq!(map.get_all("etag").iter().count(), 2);
        }
    }
}
