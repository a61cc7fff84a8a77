//! Random queries over the items of `documents.rs`: filters that an index can
//! help with, and such that it cannot.

mod filters;

use serde_json::{Value, json};

use super::super::random::Random;
use super::defined::Defined;
use super::division::{AT, Division};
use super::world::World;

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
pub(super) const SORTED: [&str; 10] = ["a", "n", "s", "big", "b", "o/x", "pk", "_ts", "v", "w"];

/// Elements of arrays that are sorted by; no index has their order.
const ELEMENTS: [&str; 4] = ["tags[0]", "tags[1]", "list[0]/k", "list[1]/v"];

/// The paths of composite indexes, and of orders that they might give.
pub(super) const COMPOSITES: [&[&str]; 8] = [
    &["a", "n"],
    &["s", "n"],
    &["n", "a", "s"],
    &["o/x", "big"],
    &["s", "a"],
    &["v", "n"],
    &["b", "w"],
    &["w", "v", "a"],
];

/// A query on its way: its text is made, its parameters are gathered.
pub(super) struct Writer<'r> {
    random: &'r mut Random,
    division: &'static Division,
    defined: &'r [Defined],
    parameters: Vec<Value>,
    /// What JOIN has bound, and which values may stand there.
    joined: Vec<(&'static str, &'static str)>,
}

/// The body of a random request.
pub(super) fn query(random: &mut Random, world: &World) -> Value {
    let mut writer = Writer::new(random, world);
    let text = writer.query();
    writer.body(&text)
}

/// One whose rows start with the partition key and the id of their item, which a
/// random filter lets through.
pub(super) fn places(random: &mut Random, world: &World) -> Value {
    let mut writer = Writer::new(random, world);
    let from = writer.from();
    let filter = if writer.random.chance(85) { writer.filter(2) } else { "true".to_owned() };
    let sorted = writer.random.chance(40);
    let order = if sorted { writer.order() } else { String::new() };
    let joined = writer.joined.iter().map(|(path, _)| *path);
    let members: Vec<&str> = ["c.id"].into_iter().chain(joined).collect();
    let row = members.join(", ");
    let text = format!("SELECT VALUE [c.{AT}, {row}] FROM {from} WHERE {filter}{order}");
    writer.body(&text)
}

/// One of distinct rows without an order.
pub(super) fn distinct(random: &mut Random, world: &World) -> Value {
    let mut writer = Writer::new(random, world);
    let from = writer.from();
    let filter = if writer.random.chance(50) { writer.filter(2) } else { "true".to_owned() };
    let value = writer.random.pick(&["c.n", "c.a", "c.s", "[c.a, c.n]", "c.pk"]);
    let text = format!("SELECT DISTINCT VALUE {value} FROM {from} WHERE {filter}");
    writer.body(&text)
}

impl<'r> Writer<'r> {
    fn new(random: &'r mut Random, world: &'r World) -> Self {
        let (division, defined) = (world.layout.division, &world.defined);
        Writer { random, division, defined, parameters: Vec::new(), joined: Vec::new() }
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
            0 => format!("SELECT TOP {} {select} FROM {from}{filter}", self.count()),
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
                format!("SELECT TOP {} {select} FROM {from}{filter}{order}", self.count())
            }
            1 => format!("SELECT {select} FROM {from}{filter}{order}{}", self.page()),
            _ => format!("SELECT {select} FROM {from}{filter}{order}"),
        }
    }

    fn distinct(&mut self) -> String {
        let from = self.from();
        let filter = self.clause();
        if self.random.chance(40) {
            let path = dotted(self.random.pick(&SORTED));
            let direction = self.direction();
            let page = if self.random.chance(50) { self.page() } else { String::new() };
            return format!(
                "SELECT DISTINCT VALUE {path} FROM {from}{filter} ORDER BY {path}{direction}{page}"
            );
        }
        let select = self.selected();
        if self.random.chance(30) {
            let order = self.order();
            let page = if self.random.chance(50) { self.page() } else { String::new() };
            return format!("SELECT DISTINCT {select} FROM {from}{filter}{order}{page}");
        }
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
            let order = self.order_of_groups(&[(&other, "m"), (&key, "k")]);
            return format!(
                "SELECT {key} AS k, {aggregate} AS x, {other} AS m FROM {from}{filter} \
                 GROUP BY {key}, {other}{order}"
            );
        }
        let order = self.order_of_groups(&[(&key, "k")]);
        format!("SELECT {key} AS k, {aggregate} AS x FROM {from}{filter} GROUP BY {key}{order}")
    }

    /// An order by all keys of groups, of which each may be called by its name.
    fn order_of_groups(&mut self, keys: &[(&str, &str)]) -> String {
        if self.random.chance(50) {
            return String::new();
        }
        let mut members = Vec::new();
        for (key, name) in keys {
            let key = if self.random.chance(50) { key } else { name };
            members.push(format!("{key}{}", self.direction()));
        }
        let page = if self.random.chance(30) { self.page() } else { String::new() };
        format!(" ORDER BY {}{page}", members.join(", "))
    }

    fn aggregate(&mut self) -> String {
        match self.random.below(9) {
            0 => "COUNT(1)".to_owned(),
            1 => format!("COUNT({})", self.path().0),
            2 => "SUM(c.n)".to_owned(),
            3 => "AVG(c.n)".to_owned(),
            4 => format!("MIN({})", self.path().0),
            5 => format!("MAX({})", self.path().0),
            6 => format!("MAKELIST({})", self.path().0),
            7 => format!("MAKESET({})", self.path().0),
            _ => "SUM(IS_NUMBER(c.n) ? c.n : 0)".to_owned(),
        }
    }

    fn from(&mut self) -> String {
        match self.random.below(20) {
            0..2 => {
                self.joined.push(("t", "tag"));
                format!("c JOIN t IN {}", self.list())
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
                let list = self.list();
                format!("c JOIN (SELECT VALUE t FROM t IN {list} WHERE t >= {literal}) AS u")
            }
            6 => {
                let filter = self.clause();
                let select = self.random.pick(&["*", "VALUE c"]);
                format!("(SELECT {select} FROM c{filter}) AS c")
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
        if self.division.is_deep() && self.random.chance(20) {
            return self.order_of_keys();
        }
        if self.random.chance(60) {
            let paths = [SORTED.as_slice(), SORTED.as_slice(), ELEMENTS.as_slice()].concat();
            let path = dotted(self.random.pick(&paths));
            return format!(" ORDER BY {path}{}", self.direction());
        }
        let keys = self.random.pick(&COMPOSITES).iter().map(|path| {
            let direction = self.direction();
            format!("{}{direction}", dotted(path))
        });
        format!(" ORDER BY {}", keys.collect::<Vec<_>>().join(", "))
    }

    /// By the parts of the partition key, or by one of them.
    fn order_of_keys(&mut self) -> String {
        let paths = self.division.paths;
        let one = [self.random.pick(paths)];
        let paths = if self.random.chance(50) { paths } else { &one };
        let keys = paths.iter().map(|path| format!("c.{path}{}", self.direction()));
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
        let (offset, limit) = (self.count(), self.count());
        format!(" OFFSET {offset} LIMIT {limit}")
    }

    fn count(&mut self) -> String {
        let count = json!(self.random.below(25));
        self.written(count)
    }

    fn clause(&mut self) -> String {
        if self.random.chance(15) {
            return String::new();
        }
        format!(" WHERE {}", self.filter(2))
    }

    /// A path, and which values may stand there.
    fn path(&mut self) -> (String, &'static str) {
        let (path, kind) = if !self.joined.is_empty() && self.random.chance(50) {
            self.random.pick(&self.joined)
        } else {
            let defined: Vec<_> = self.defined.iter().flat_map(Defined::paths).collect();
            if !defined.is_empty() && self.random.chance(25) {
                let at = self.random.below(defined.len() as u64);
                return defined[usize::try_from(at).unwrap()].clone();
            }
            if self.division.is_deep() && self.random.chance(15) {
                let path = self.random.pick(self.division.paths);
                return (format!("c.{path}"), path);
            }
            self.random.pick(&PATHS)
        };
        (path.to_owned(), kind)
    }

    /// Where an array is, mostly.
    fn list(&mut self) -> String {
        let computed = self.defined.iter().find(|defined| defined.is_list());
        match computed {
            Some(defined) if self.random.chance(50) => defined.path(),
            _ => "c.tags".to_owned(),
        }
    }

    /// A constant that may stand at such a place, in the text or as a parameter.
    fn literal(&mut self, kind: &str) -> String {
        if let Some(level) = self.division.part_at(kind) {
            let key = self.random.pick(self.division.keys);
            return self.part(key, level);
        }
        let value = match kind {
            "tag" => self.random.tag(),
            "id" => json!(self.random.below(super::documents::IDS).to_string()),
            "ttl" => json!(self.random.below(40)),
            "ts" => json!(1000 + self.random.below(100)),
            _ if self.random.chance(15) => self.random.scalar(),
            kind => self.random.value_at(kind),
        };
        self.written(value)
    }

    /// What a filter may say of one part of this key.
    fn part(&mut self, key: &str, level: usize) -> String {
        let value = self.random.part_of(key, level);
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
