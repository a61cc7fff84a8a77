//! Random filters: what an index can help with, and what it cannot.

use serde_json::json;

use super::Writer;

const COMPARISONS: [&str; 6] = ["=", "!=", "<", "<=", ">", ">="];

impl Writer<'_> {
    pub(super) fn filter(&mut self, depth: u64) -> String {
        if depth == 0 || self.random.chance(35) {
            return self.predicate();
        }
        let (left, right) = (self.filter(depth - 1), self.filter(depth - 1));
        match self.random.below(10) {
            0..4 => format!("({left} AND {right})"),
            4..7 => format!("({left} OR {right})"),
            7 => format!("({left} AND {right} AND {})", self.filter(depth - 1)),
            8 => format!("(NOT ({left}) OR {right})"),
            _ => format!("NOT ({left})"),
        }
    }

    pub(super) fn predicate(&mut self) -> String {
        if self.division.is_deep() && self.random.chance(25) {
            return self.keys();
        }
        let (path, kind) = self.path();
        let literal = self.literal(kind);
        let compare = self.random.pick(&COMPARISONS);
        match self.random.below(40) {
            0..9 => format!("{path} = {literal}"),
            9..14 => format!("{path} {compare} {literal}"),
            14 => format!("{literal} {compare} {path}"),
            15 => format!("{path} {compare} {}", self.path().0),
            16 | 17 => format!("{path} IN ({literal}, {})", self.literal(kind)),
            18 => format!("{path} NOT IN ({literal}, {})", self.literal(kind)),
            19 | 20 => format!("{path} BETWEEN {literal} AND {}", self.literal(kind)),
            21 => format!("{path} NOT BETWEEN {literal} AND {}", self.literal(kind)),
            22 | 23 => self.like(),
            24 | 25 => self.text_function(),
            26 | 27 => self.in_array(),
            28..31 => self.type_function(&path),
            31 => format!("{path} = undefined"),
            32 => path,
            33 => self.exists(),
            34 => self.computed(),
            35 => format!("({path} ?? {literal}) = {literal}"),
            36 => format!("{path} {compare} NaN"),
            37 => format!("IIF({path} {compare} {literal}, c.b, true)"),
            38 => self.partition(),
            _ => format!("{path} IN ({literal}, c.n, {})", self.literal(kind)),
        }
    }

    fn like(&mut self) -> String {
        let path = self.random.pick(&["c.s", "c.a", "c.o.x", "c.tags[0]"]);
        let not = self.random.pick(&["", "", "NOT "]);
        let long = json!(self.random.long("") + "%").to_string();
        let pattern = self.random.pick(&[
            "'a%'",
            "'%b'",
            "'a_'",
            "'%'",
            "''",
            "'_'",
            "'日本%'",
            "'a!%b' ESCAPE '!'",
            "'ab'",
            "'%a%b%'",
            "'a!%%' ESCAPE '!'",
            &long,
            &long,
        ]);
        format!("{path} {not}LIKE {pattern}")
    }

    fn text_function(&mut self) -> String {
        let path = self.random.pick(&["c.s", "c.s", "c.a", "c.o.y.z"]);
        let name = self.random.pick(&[
            "STARTSWITH",
            "STARTSWITH",
            "startswith",
            "ENDSWITH",
            "CONTAINS",
            "STRINGEQUALS",
        ]);
        let part =
            if self.random.chance(20) { json!(self.random.long("")) } else { self.random.string() };
        let part = self.written(part);
        let case = self.random.pick(&["", "", ", true", ", false"]);
        format!("{name}({path}, {part}{case})")
    }

    fn in_array(&mut self) -> String {
        let tag = self.literal("tag");
        match self.random.below(6) {
            0 => format!("ARRAY_CONTAINS([{tag}, {}], c.a)", self.literal("a")),
            1 => format!("ARRAY_CONTAINS(c.list, {{\"k\": {tag}}}, true)"),
            2 => format!("ARRAY_CONTAINS(c.list, {{\"k\": {tag}, \"v\": 1}})"),
            3 => format!("ARRAY_CONTAINS({}, {tag}, {})", self.list(), self.random.chance(50)),
            _ => format!("ARRAY_CONTAINS({}, {tag})", self.list()),
        }
    }

    fn type_function(&mut self, path: &str) -> String {
        let name = self.random.pick(&[
            "IS_DEFINED",
            "IS_DEFINED",
            "IS_NULL",
            "IS_BOOL",
            "IS_NUMBER",
            "IS_STRING",
            "IS_ARRAY",
            "IS_OBJECT",
            "IS_PRIMITIVE",
        ]);
        format!("{name}({path})")
    }

    fn exists(&mut self) -> String {
        let literal = self.literal("tag");
        let compare = self.random.pick(&COMPARISONS);
        match self.random.below(5) {
            0 => format!("EXISTS(SELECT VALUE t FROM t IN {})", self.list()),
            1 => format!("EXISTS(SELECT VALUE l FROM l IN c.list WHERE l.k {compare} {literal})"),
            2 => format!(
                "EXISTS(SELECT VALUE l FROM l IN c.list WHERE l.k {compare} {literal} AND l.v > 1)"
            ),
            3 => format!("EXISTS(SELECT VALUE l.w FROM l IN c.list WHERE l.k = {literal})"),
            _ => {
                let list = self.list();
                format!("EXISTS(SELECT VALUE t FROM t IN {list} WHERE t {compare} {literal})")
            }
        }
    }

    fn computed(&mut self) -> String {
        match self.random.below(7) {
            0 => "UPPER(c.s) = 'AB'".to_owned(),
            1 => "LOWER(c.s) = 'ab'".to_owned(),
            2 => "ARRAY_LENGTH(c.tags) > 1".to_owned(),
            3 => "c.n + 1 > 2".to_owned(),
            4 => "c.n % 2 = 0".to_owned(),
            5 => "(SELECT VALUE COUNT(1) FROM t IN c.tags) >= 2".to_owned(),
            _ => "c.s || 'b' = 'ab'".to_owned(),
        }
    }

    /// What names parts of a hierarchical key: the first, the first two, all, or others;
    /// of one key or of two.
    fn keys(&mut self) -> String {
        let one = self.parts();
        match self.random.below(6) {
            0 => format!("({one} OR {})", self.parts()),
            1 => format!("({one} AND c.id = {})", self.literal("id")),
            _ => one,
        }
    }

    fn parts(&mut self) -> String {
        let (key, end) = (self.random.pick(self.division.keys), self.division.paths.len());
        let later = 1 + usize::try_from(self.random.below(end as u64 - 1)).unwrap();
        let levels: &[usize] = match self.random.below(8) {
            0..3 => &[0],
            3 | 4 => &[0, 1],
            5 | 6 => &[0, 1, 2][..end],
            _ => &[later],
        };
        let named: Vec<String> = levels.iter().map(|level| self.named(key, *level)).collect();
        format!("({})", named.join(" AND "))
    }

    /// What one part of a key is: that of this key, mostly.
    fn named(&mut self, key: &str, level: usize) -> String {
        let path = format!("c.{}", self.division.paths[level]);
        let one = self.part(key, level);
        let other = self.literal(self.division.paths[level]);
        match self.random.below(12) {
            0..5 => format!("{path} = {one}"),
            5 => format!("{one} = {path}"),
            6 | 7 => format!("{path} IN ({one}, {other})"),
            8 => format!("({path} = {one} OR {other} = {path})"),
            9 => format!("ARRAY_CONTAINS([{other}, {one}], {path})"),
            10 => format!("NOT IS_DEFINED({path})"),
            _ => self.type_function(&path),
        }
    }

    fn partition(&mut self) -> String {
        let (key, id) = (self.literal("pk"), self.literal("id"));
        match self.random.below(3) {
            0 => format!("c.pk = {key}"),
            1 => format!("c.pk IN ({key}, {})", self.literal("pk")),
            _ => format!("(c.pk = {key} AND c.id = {id})"),
        }
    }
}
