//! Random queries over the items of `documents.rs`: filters that an index can
//! help with, and such that it cannot.

use serde_json::{Value, json};

use super::super::random::Random;

/// The paths that filters ask for, and which values may stand there.
const PATHS: [(&str, &str); 22] = [
    ("c.a", "a"),
    ("c.a", "a"),
    ("c.n", "n"),
    ("c[\"n\"]", "n"),
    ("c.s", "s"),
    ("c.s", "s"),
    ("c.big", "big"),
    ("c.big", "big"),
    ("c.b", "b"),
    ("c.o.x", "a"),
    ("c.o.y.z", "a"),
    ("c.o.y", "o"),
    ("c.o", "o"),
    ("c.tags", "tags"),
    ("c.tags[0]", "tag"),
    ("c.tags[1]", "tag"),
    ("c.list[0].k", "tag"),
    ("c.list[1][\"v\"]", "n"),
    ("c.id", "id"),
    ("c.pk", "pk"),
    ("c.ttl", "ttl"),
    ("c._ts", "ts"),
];

/// The paths that are sorted by, one by one or together.
pub(super) const SORTED: [&str; 8] = ["a", "n", "s", "big", "b", "o/x", "pk", "_ts"];

/// The paths of composite indexes, and of orders that they might give.
pub(super) const COMPOSITES: [&[&str]; 5] =
    [&["a", "n"], &["s", "n"], &["n", "a", "s"], &["o/x", "big"], &["s", "a"]];

const COMPARISONS: [&str; 6] = ["=", "!=", "<", "<=", ">", ">="];

/// A query on its way: its text is made, its parameters are gathered.
pub(super) struct Writer<'r> {
    random: &'r mut Random,
    parameters: Vec<Value>,
    /// What JOIN has bound, and which values may stand there.
    joined: Vec<(&'static str, &'static str)>,
}

/// The body of a random request.
pub(super) fn query(random: &mut Random) -> Value {
    let mut writer = Writer::new(random);
    let text = writer.query();
    writer.body(&text)
}

/// One that has a row for each item that a random filter lets through: its
/// partition key and its id. Whether it is sorted.
pub(super) fn places(random: &mut Random) -> (Value, bool) {
    let mut writer = Writer::new(random);
    let filter = if writer.random.chance(85) { writer.filter(2) } else { "true".to_owned() };
    let sorted = writer.random.chance(40);
    let order = if sorted { writer.order() } else { String::new() };
    let text = format!("SELECT VALUE [c.pk, c.id] FROM c WHERE {filter}{order}");
    (writer.body(&text), sorted)
}

impl<'r> Writer<'r> {
    fn new(random: &'r mut Random) -> Self {
        Writer { random, parameters: Vec::new(), joined: Vec::new() }
    }

    fn body(self, text: &str) -> Value {
        json!({ "query": text, "parameters": self.parameters })
    }

    fn query(&mut self) -> String {
        match self.random.below(100) {
            0..40 => self.plain(),
            40..65 => self.sorted(),
            65..75 => self.distinct(),
            75..88 => self.aggregates(),
            _ => self.groups(),
        }
    }

    fn plain(&mut self) -> String {
        let from = self.from();
        let filter = self.clause();
        let select = self.selected();
        match self.random.below(10) {
            0 => format!("SELECT TOP {} {select} FROM {from}{filter}", self.random.below(30)),
            1 => format!("SELECT {select} FROM {from}{filter}{}", self.page()),
            _ => format!("SELECT {select} FROM {from}{filter}"),
        }
    }

    fn sorted(&mut self) -> String {
        let from = self.from();
        let order = self.order();
        let filter = if self.random.chance(30) { self.kept(&order) } else { self.clause() };
        let select = self.selected();
        match self.random.below(6) {
            0 => {
                format!("SELECT TOP {} {select} FROM {from}{filter}{order}", self.random.below(30))
            }
            1 => format!("SELECT {select} FROM {from}{filter}{order}{}", self.page()),
            _ => format!("SELECT {select} FROM {from}{filter}{order}"),
        }
    }

    fn distinct(&mut self) -> String {
        let from = self.from();
        let filter = self.clause();
        if self.random.chance(30) {
            let path = dotted(self.random.pick(&SORTED));
            let direction = self.direction();
            let page = if self.random.chance(30) { self.page() } else { String::new() };
            return format!(
                "SELECT DISTINCT VALUE {path} FROM {from}{filter} ORDER BY {path}{direction}{page}"
            );
        }
        let select = self.selected();
        format!("SELECT DISTINCT {select} FROM {from}{filter}")
    }

    fn aggregates(&mut self) -> String {
        let from = self.from();
        let filter = self.clause();
        let first = self.aggregate();
        if self.random.chance(60) {
            return format!("SELECT VALUE {first} FROM {from}{filter}");
        }
        let second = self.aggregate();
        format!("SELECT {first} AS x, {second} AS y FROM {from}{filter}")
    }

    fn groups(&mut self) -> String {
        let from = self.from();
        let filter = self.clause();
        let key = self.path().0;
        let aggregate = self.aggregate();
        if self.random.chance(30) {
            let other = self.path().0;
            return format!(
                "SELECT {key} AS k, {aggregate} AS x, {other} AS l FROM {from}{filter} \
                 GROUP BY {key}, {other}"
            );
        }
        format!("SELECT {key} AS k, {aggregate} AS x FROM {from}{filter} GROUP BY {key}")
    }

    fn aggregate(&mut self) -> String {
        match self.random.below(7) {
            0 => "COUNT(1)".to_owned(),
            1 => format!("COUNT({})", self.path().0),
            2 => "SUM(c.n)".to_owned(),
            3 => "AVG(c.n)".to_owned(),
            4 => format!("MIN({})", self.path().0),
            5 => format!("MAX({})", self.path().0),
            _ => "SUM(IS_NUMBER(c.n) ? c.n : 0)".to_owned(),
        }
    }

    fn from(&mut self) -> String {
        match self.random.below(20) {
            0..2 => {
                self.joined.push(("t", "tag"));
                "c JOIN t IN c.tags".to_owned()
            }
            2..4 => {
                self.joined.push(("l.k", "tag"));
                self.joined.push(("l.v", "n"));
                "root c JOIN l IN c.list".to_owned()
            }
            4 => {
                self.joined.push(("t", "tag"));
                self.joined.push(("l.k", "tag"));
                "c JOIN t IN c.tags JOIN l IN c.list".to_owned()
            }
            5 => {
                let literal = self.literal("tag");
                self.joined.push(("u", "tag"));
                format!("c JOIN (SELECT VALUE t FROM t IN c.tags WHERE t >= {literal}) AS u")
            }
            _ => "c".to_owned(),
        }
    }

    fn selected(&mut self) -> String {
        match self.random.below(8) {
            0 | 1 if self.joined.is_empty() => "*".to_owned(),
            0 | 1 => "VALUE c".to_owned(),
            2 => format!("VALUE {}", self.path().0),
            3 => format!("{} AS x, {} AS y", self.path().0, self.path().0),
            4 => "VALUE {\"id\": c.id, \"o\": c.o, \"l\": [c.a, c.n]}".to_owned(),
            5 => {
                let filter = self.literal("tag");
                format!(
                    "c.id AS id, ARRAY(SELECT VALUE t FROM t IN c.tags WHERE t != {filter}) AS t"
                )
            }
            _ => "VALUE c.id".to_owned(),
        }
    }

    fn order(&mut self) -> String {
        if self.random.chance(60) {
            let path = dotted(self.random.pick(&SORTED));
            return format!(" ORDER BY {path}{}", self.direction());
        }
        let keys = self.random.pick(&COMPOSITES).iter().map(|path| {
            let direction = self.direction();
            format!("{}{direction}", dotted(path))
        });
        format!(" ORDER BY {}", keys.collect::<Vec<_>>().join(", "))
    }

    /// A filter of what an order sorts by first, so that an index has all of it.
    fn kept(&mut self, order: &str) -> String {
        let words = order.trim_start_matches(" ORDER BY ");
        let path = words.split([',', ' ']).next().unwrap();
        let literal = self.literal(path.trim_start_matches("c."));
        let filter = match self.random.below(5) {
            0 => format!("IS_DEFINED({path})"),
            1 => format!("IS_STRING({path})"),
            2 => format!("{path} != {literal}"),
            3 => format!("{path} >= {literal}"),
            _ => format!("{path} <= {literal}"),
        };
        if self.random.chance(50) {
            return format!(" WHERE {filter}");
        }
        format!(" WHERE {filter} AND {}", self.predicate())
    }

    fn direction(&mut self) -> &'static str {
        self.random.pick(&["", " ASC", " DESC", " DESC"])
    }

    fn page(&mut self) -> String {
        let (offset, limit) = (self.random.below(20), self.random.below(20));
        format!(" OFFSET {offset} LIMIT {limit}")
    }

    fn clause(&mut self) -> String {
        if self.random.chance(15) {
            return String::new();
        }
        format!(" WHERE {}", self.filter(2))
    }

    fn filter(&mut self, depth: u64) -> String {
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

    /// A path, and which values may stand there.
    fn path(&mut self) -> (&'static str, &'static str) {
        if !self.joined.is_empty() && self.random.chance(50) {
            return self.random.pick(&self.joined.clone());
        }
        self.random.pick(&PATHS)
    }

    fn predicate(&mut self) -> String {
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
            28..31 => self.type_function(path),
            31 => format!("{path} = undefined"),
            32 => path.to_owned(),
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
            3 => format!("ARRAY_CONTAINS(c.tags, {tag}, {})", self.random.chance(50)),
            _ => format!("ARRAY_CONTAINS(c.tags, {tag})"),
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
            0 => "EXISTS(SELECT VALUE t FROM t IN c.tags)".to_owned(),
            1 => format!("EXISTS(SELECT VALUE l FROM l IN c.list WHERE l.k {compare} {literal})"),
            2 => format!(
                "EXISTS(SELECT VALUE l FROM l IN c.list WHERE l.k {compare} {literal} AND l.v > 1)"
            ),
            3 => format!("EXISTS(SELECT VALUE l.w FROM l IN c.list WHERE l.k = {literal})"),
            _ => format!("EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t {compare} {literal})"),
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

    fn partition(&mut self) -> String {
        let (key, id) = (self.literal("pk"), self.literal("id"));
        match self.random.below(3) {
            0 => format!("c.pk = {key}"),
            1 => format!("c.pk IN ({key}, {})", self.literal("pk")),
            _ => format!("(c.pk = {key} AND c.id = {id})"),
        }
    }

    /// A constant that may stand at such a place, in the text or as a parameter.
    fn literal(&mut self, kind: &str) -> String {
        let value = match kind {
            "tag" => self.random.tag(),
            "id" => json!(self.random.below(super::documents::IDS).to_string()),
            "pk" => serde_json::from_str(self.random.pick(&super::documents::KEYS)).unwrap(),
            "ttl" => json!(self.random.below(40)),
            "ts" => json!(1000 + self.random.below(100)),
            _ if self.random.chance(15) => self.random.scalar(),
            kind => self.random.value_at(kind),
        };
        self.written(value)
    }

    fn written(&mut self, value: Value) -> String {
        if self.random.chance(25) {
            let name = format!("@p{}", self.parameters.len());
            self.parameters.push(json!({ "name": name, "value": value }));
            return name;
        }
        value.to_string()
    }
}

/// A path of a policy as a query writes it.
fn dotted(path: &str) -> String {
    format!("c.{}", path.replace('/', "."))
}
