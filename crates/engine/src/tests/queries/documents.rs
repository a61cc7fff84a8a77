//! Random items: few values of all kinds, so that many are equal, some nearly.

use serde_json::{Map, Value, json};

use super::super::random::Random;
use super::division::Division;

/// How many ids there are in a partition.
pub(super) const IDS: u64 = 25;

/// Around this many bytes the index cuts a value.
const LONG: u64 = 512;

impl Random {
    /// An item with some of the properties that queries ask for.
    pub(super) fn item(&mut self, division: &Division, key: &str, id: &str) -> Value {
        let mut item = Map::new();
        item.insert("id".to_owned(), json!(id));
        division.put(key, &mut item, self);
        for (name, percent) in [
            ("a", 80),
            ("n", 90),
            ("s", 85),
            ("big", 70),
            ("b", 60),
            ("tags", 75),
            ("list", 60),
            ("v", 20),
        ] {
            if self.chance(percent) {
                let value = self.value_at(name);
                item.insert(name.to_owned(), value);
            }
        }
        if self.chance(70) {
            let o = self.object();
            item.insert("o".to_owned(), o);
        }
        if self.chance(40) {
            let seconds = 1 + self.below(40);
            item.insert("ttl".to_owned(), if self.chance(30) { json!(-1) } else { json!(seconds) });
        }
        Value::Object(item)
    }

    /// A value as it can stand at a property of this name.
    pub(super) fn value_at(&mut self, name: &str) -> Value {
        match name {
            "n" => self.small(),
            "s" => self.string(),
            "big" => self.big(),
            "b" => json!(self.chance(50)),
            "tags" => self.tags(),
            "list" => self.list(),
            "o" => self.object(),
            _ if self.chance(8) => json!([1, "a"]),
            _ if self.chance(8) => json!({"x": 1, "y": self.below(2)}),
            _ => self.scalar(),
        }
    }

    pub(super) fn scalar(&mut self) -> Value {
        match self.below(12) {
            0 => Value::Null,
            1 | 2 => json!(self.chance(50)),
            3..7 => self.small(),
            7 => self.big(),
            _ => self.string(),
        }
    }

    /// Numbers of which any sum is exact; sometimes something else.
    fn small(&mut self) -> Value {
        let number = i32::try_from(self.below(9)).unwrap() - 3;
        match self.below(30) {
            0 => json!("no number"),
            1 => Value::Null,
            2 => json!(true),
            3..6 => json!(f64::from(number) + 0.5),
            6..9 => json!(f64::from(number)),
            9 => json!(-0.0),
            _ => json!(number),
        }
    }

    /// Numbers that are no doubles, and doubles beside them.
    fn big(&mut self) -> Value {
        let step = self.below(4);
        match self.below(8) {
            0 => json!((1i64 << 53) + step.cast_signed()),
            1 => json!(-(1i64 << 53) - step.cast_signed()),
            2 => json!(i64::MAX - step.cast_signed()),
            3 => json!(i64::MIN + step.cast_signed()),
            4 => json!(u64::MAX - step),
            5 => json!(9_007_199_254_740_992.0),
            6 => json!(self.pick(&[1e300, -1e300, 5e-324, 0.1, 9.223_372_036_854_775e18])),
            _ => json!(self.below(3)),
        }
    }

    pub(super) fn string(&mut self) -> Value {
        let text = self.pick(&[
            "",
            "a",
            "ab",
            "abc",
            "b",
            "B",
            "aB",
            "ä",
            "Äb",
            "日本",
            "日本語",
            "😀",
            "a\0b",
            "a\0",
            "a%b",
            "a_b",
            "\u{FFFF}",
            "x\"y'z\\",
        ]);
        match self.below(10) {
            0 => json!(self.long(text)),
            1 => json!(self.below(3).to_string()),
            _ => json!(text),
        }
    }

    /// A string that the index cuts, or just does not.
    pub(super) fn long(&mut self, end: &str) -> String {
        let (part, bytes) = self.pick(&[("L", 1), ("L", 1), ("é", 2)]);
        let length = LONG - 12 + self.below(16);
        part.repeat(usize::try_from(length / bytes).unwrap()) + end
    }

    fn tags(&mut self) -> Value {
        match self.below(12) {
            0 => json!("no list"),
            1 => json!([]),
            2 => json!([["a", 1], {"k": 1}, null]),
            _ => (0..self.below(4)).map(|_| self.tag()).collect(),
        }
    }

    pub(super) fn tag(&mut self) -> Value {
        match self.below(10) {
            0 => self.scalar(),
            1 => json!([self.below(2)]),
            2..5 => json!(self.below(4)),
            _ => json!(self.pick(&["a", "b", "ab", "ä"])),
        }
    }

    fn list(&mut self) -> Value {
        let member = |random: &mut Random| match random.below(12) {
            0 => json!(1),
            1 => json!({"v": 1}),
            2 => json!({"k": {"z": 1}}),
            _ => json!({"k": random.tag(), "v": random.below(4)}),
        };
        (0..self.below(4)).map(|_| member(self)).collect()
    }

    fn object(&mut self) -> Value {
        match self.below(10) {
            0 => json!("no object"),
            1 => json!({}),
            2 => json!({"y": 1, "x": self.small()}),
            3 => json!({"x": self.small(), "y": 1}),
            _ => json!({"x": self.scalar(), "y": {"z": self.scalar()}}),
        }
    }
}
