//! How the containers of a world are divided: by one property, or by two or three of
//! them, one below the other.

use serde_json::{Map, Value, json};

use super::super::random::Random;

/// The property of an item that has the text of its key, whatever is in the parts.
pub(super) const AT: &str = "at";

/// A partition key, and the keys that items have. A key is the text of its parts; `{}` is
/// a part that is not there, and no part has a comma.
#[derive(Debug)]
pub(super) struct Division {
    /// The properties, as a query writes them.
    pub(super) paths: &'static [&'static str],
    pub(super) keys: &'static [&'static str],
}

/// The last is not what its double is.
const FLAT: Division = Division {
    paths: &["pk"],
    keys: &["\"p\"", "\"q\"", "\"ü\"", "7", "null", "true", "9007199254740993"],
};

const TWO: Division = Division {
    paths: &["pk", "k.z"],
    keys: &[
        "\"p\",\"a\"",
        "\"p\",\"b\"",
        "\"p\",7",
        "\"p\",null",
        "\"p\",{}",
        "\"q\",\"a\"",
        "\"q\",false",
        "7,\"a\"",
        "9007199254740993,9007199254740993",
        "null,\"a\"",
        "true,null",
        "{},\"a\"",
        "{},{}",
    ],
};

const THREE: Division = Division {
    paths: &["pk", "sub", "k.z"],
    keys: &[
        "\"p\",\"a\",1",
        "\"p\",\"a\",2.5",
        "\"p\",\"a\",{}",
        "\"p\",\"b\",1",
        "\"p\",null,true",
        "\"p\",{},1",
        "\"p\",{},{}",
        "\"q\",\"a\",1",
        "\"q\",7,null",
        "null,\"a\",\"ü\"",
        "9007199254740993,true,1",
        "{},\"a\",1",
        "{},{},{}",
    ],
};

impl Division {
    /// Of every four worlds one has keys of several parts. It is not drawn, so that all
    /// other worlds are what they were.
    pub(super) fn of(seed: u64) -> &'static Division {
        match (seed % 4, seed / 4 % 2) {
            (1, 0) => &TWO,
            (1, _) => &THREE,
            _ => &FLAT,
        }
    }

    pub(super) fn is_deep(&self) -> bool {
        self.paths.len() > 1
    }

    /// As a definition says it.
    pub(super) fn to_json(&self) -> Value {
        let paths: Vec<String> = self.paths.iter().map(|path| slashed(path)).collect();
        if self.is_deep() {
            return json!({"paths": paths, "kind": "MultiHash"});
        }
        json!({ "paths": paths })
    }

    /// Which part of the key stands at a path.
    pub(super) fn part_at(&self, path: &str) -> Option<usize> {
        self.paths.iter().position(|known| *known == path)
    }

    /// Gives an item its key.
    pub(super) fn put(&self, key: &str, item: &mut Map<String, Value>, random: &mut Random) {
        item.insert(AT.to_owned(), key.into());
        for (path, part) in self.paths.iter().zip(parts(key)) {
            let value = if part == json!({}) { random.no_part() } else { Some(part) };
            let (name, value) = match path.split_once('.') {
                Some((name, below)) => (name, random.object_with(below, value)),
                None => (*path, value),
            };
            item.extend(value.map(|value| (name.to_owned(), value)));
        }
    }
}

/// Whether a key is this one, or begins with it.
pub(super) fn begins_with(key: &str, begin: &str) -> bool {
    key.strip_prefix(begin).is_some_and(|rest| rest.is_empty() || rest.starts_with(','))
}

/// A path as a policy writes it.
pub(super) fn slashed(path: &str) -> String {
    format!("/{}", path.replace('.', "/"))
}

fn parts(key: &str) -> Vec<Value> {
    serde_json::from_str(&format!("[{key}]")).unwrap()
}

impl Random {
    /// A key as a request names it: that of some items, or the begin of one, or nearly
    /// that of some.
    pub(super) fn key(&mut self, division: &Division) -> String {
        let key = self.pick(division.keys);
        if !division.is_deep() {
            return key.to_owned();
        }
        let mut parts: Vec<&str> = key.split(',').collect();
        let level = usize::try_from(self.below(parts.len() as u64)).unwrap();
        if self.chance(15) {
            parts[level] = self.pick(division.keys).split(',').nth(level).unwrap();
        }
        if self.chance(60) {
            parts.truncate(level.max(1));
        }
        parts.join(",")
    }

    /// What a filter may say of one part of this key.
    pub(super) fn part_of(&mut self, key: &str, level: usize) -> Value {
        let part = parts(key).swap_remove(level);
        let is_absent = part == json!({});
        if is_absent { self.no_part().unwrap_or_else(|| json!("nobody")) } else { part }
    }

    /// What an item has at a path that says nothing of its key.
    fn no_part(&mut self) -> Option<Value> {
        self.pick(&[None, None, None, Some(0), Some(1)]).map(|which| match which {
            0 => json!({}),
            _ => json!([1]),
        })
    }

    /// What has this value below, or nothing there.
    fn object_with(&mut self, name: &str, value: Option<Value>) -> Option<Value> {
        match value {
            Some(value) => Some(json!({ name: value })),
            None => self
                .pick(&[None, Some("{}"), Some("\"no object\"")])
                .map(|text| serde_json::from_str(text).unwrap()),
        }
    }
}
