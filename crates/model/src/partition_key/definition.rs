//! How a container is partitioned.
//!
//! | kind        | paths  | version | hash                               |
//! |-------------|--------|---------|------------------------------------|
//! | `Hash`      | 1      | 1       | 32 bits, strings cut to 100        |
//! | `Hash`      | 1      | 2       | 128 bits                           |
//! | `MultiHash` | 1 to 3 | 2       | 128 bits a level                   |
//!
//! A version that is not given is 1, for `MultiHash` 2; `"V1"` and `"V2"` are taken
//! too, since Java writes the name. A container made without any definition gets
//! `/_partitionKey` and `systemKey`.

use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::json::Path;
use crate::system::SYSTEM_PROPERTIES;

/// How many levels a hierarchical key has at most.
pub const PATHS_MAX: usize = 3;

/// Whether a key has one level or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One path, one hash.
    Hash,
    /// A hash for each of up to three paths.
    MultiHash,
}

/// Which hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Murmur3, 32 bits.
    V1,
    /// Murmur3, 128 bits.
    V2,
}

/// The `partitionKey` of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionKeyDefinition {
    /// The paths, one a level.
    pub paths: Vec<Path>,
    /// The paths as they were given.
    pub texts: Vec<String>,
    /// One level or several.
    pub kind: Kind,
    /// Which hash.
    pub version: Version,
    /// Whether the version is shown: it is when it was given, or is not 1.
    pub shows_version: bool,
    /// Whether the container was made without a definition.
    pub system_key: bool,
}

impl PartitionKeyDefinition {
    /// What a container has that was made without a definition.
    pub fn system() -> PartitionKeyDefinition {
        PartitionKeyDefinition {
            paths: Path::parse(SYSTEM_PATH).into_iter().collect(),
            texts: vec![SYSTEM_PATH.to_owned()],
            kind: Kind::Hash,
            version: Version::V2,
            shows_version: true,
            system_key: true,
        }
    }

    /// Reads `partitionKey`.
    pub fn parse(value: &Value) -> Result<PartitionKeyDefinition> {
        let Value::Object(members) = value else {
            return Err(invalid(format!("'{value}' is not an object")));
        };
        let kind = read_kind(members.get("kind"))?;
        let version = read_version(members.get("version"), kind)?;
        let texts = read_texts(members.get("paths"))?;
        let most = if kind == Kind::Hash { 1 } else { PATHS_MAX };
        if texts.is_empty() {
            return Err(invalid("there is no path".to_owned()));
        }
        if texts.len() > most {
            return Err(invalid(format!(
                "Too many partition key paths: there are {}, and kind '{}' has at most {most}",
                texts.len(),
                kind.name()
            )));
        }
        let paths = texts.iter().map(|text| read_path(text)).collect::<Result<Vec<Path>>>()?;
        for (number, path) in paths.iter().enumerate() {
            if paths.iter().take(number).any(|earlier| earlier == path) {
                return Err(invalid(format!("the path '{path}' is there twice")));
            }
        }
        let system_key = members.get("systemKey").is_some_and(|value| *value == Value::Bool(true));
        let given = members.get("version").is_some_and(|version| !version.is_null());
        let shows_version = given || version != Version::V1;
        Ok(PartitionKeyDefinition { paths, texts, kind, version, shows_version, system_key })
    }

    /// Checks what the service asks of the paths of a new container. Those that were
    /// taken before this was checked stay what they are.
    pub fn check_new(&self) -> Result<()> {
        self.texts.iter().try_for_each(|text| check_characters(text))
    }

    /// As `partitionKey` is written.
    pub fn to_json(&self) -> Value {
        let mut members = Map::new();
        members.insert("paths".to_owned(), json!(self.texts));
        members.insert("kind".to_owned(), json!(self.kind.name()));
        if self.shows_version {
            members.insert("version".to_owned(), json!(self.version.number()));
        }
        if self.system_key {
            members.insert("systemKey".to_owned(), json!(true));
        }
        Value::Object(members)
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Hash => "Hash",
            Kind::MultiHash => "MultiHash",
        }
    }
}

impl Version {
    fn number(self) -> u32 {
        match self {
            Version::V1 => 1,
            Version::V2 => 2,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Version::V1 => "V1",
            Version::V2 => "V2",
        }
    }

    /// Whether a client means this one, by its number or its name.
    fn is_meant_by(self, value: &Value) -> bool {
        match value {
            Value::String(name) => name.eq_ignore_ascii_case(self.name()),
            number => number.as_f64() == Some(f64::from(self.number())),
        }
    }
}

const SYSTEM_PATH: &str = "/_partitionKey";

fn read_kind(value: Option<&Value>) -> Result<Kind> {
    match value {
        None | Some(Value::Null) => Ok(Kind::Hash),
        Some(Value::String(kind)) if kind == "Hash" => Ok(Kind::Hash),
        Some(Value::String(kind)) if kind == "MultiHash" => Ok(Kind::MultiHash),
        Some(other) => Err(invalid(format!("the kind {other} is not 'Hash' or 'MultiHash'"))),
    }
}

fn read_version(value: Option<&Value>, kind: Kind) -> Result<Version> {
    let version = match (value, kind) {
        (None | Some(Value::Null), Kind::Hash) => Version::V1,
        (None | Some(Value::Null), Kind::MultiHash) => Version::V2,
        (Some(value), _) => [Version::V1, Version::V2]
            .into_iter()
            .find(|version| version.is_meant_by(value))
            .ok_or_else(|| invalid(format!("the version {value} is not 1 or 2")))?,
    };
    if kind == Kind::MultiHash && version == Version::V1 {
        return Err(invalid("the version of kind 'MultiHash' is 2, not 1".to_owned()));
    }
    Ok(version)
}

fn read_texts(value: Option<&Value>) -> Result<Vec<String>> {
    let Some(Value::Array(paths)) = value else {
        return Err(invalid("there is no list of paths".to_owned()));
    };
    let text = |path: &Value| match path {
        Value::String(text) => Ok(text.clone()),
        other => Err(invalid(format!("the path {other} is not a string"))),
    };
    paths.iter().map(text).collect()
}

fn read_path(text: &str) -> Result<Path> {
    let path = Path::parse(text).map_err(|_| {
        let near = if text.starts_with('/') { text.chars().count() } else { 0 };
        not_accepted(text, near)
    })?;
    if path.segments().first().is_some_and(|name| SYSTEM_PROPERTIES.contains(&name.as_str())) {
        return Err(invalid(format!("the path '{text}' is a system property")));
    }
    Ok(path)
}

/// In quotes a name may have anything; without, no blanks and no hyphens.
fn check_characters(text: &str) -> Result<()> {
    let mut quote = None;
    let mut chars = text.chars().zip(1..);
    let mut before = '/';
    while let Some((char, near)) = chars.next() {
        match (quote, char) {
            (Some(_), '\\') => {
                chars.next();
            }
            (Some(open), _) if open == char => quote = None,
            (None, '"' | '\'') if before == '/' => quote = Some(char),
            (None, _) if char == '-' || char.is_whitespace() => {
                return Err(not_accepted(text, near));
            }
            _ => {}
        }
        before = char;
    }
    Ok(())
}

fn not_accepted(text: &str, near: usize) -> Error {
    Error::in_its_words(format!(
        "The partition key component definition path '{text}' could not be accepted, failed near \
         position '{near}'. Partition key paths must contain only valid characters and not contain \
         a trailing slash or wildcard character."
    ))
}

fn invalid(reason: String) -> Error {
    Error::bad_request(format!("The partition key definition is invalid: {reason}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_and_their_echo() {
        for (given, echo) in [
            (r#"{"paths":["/a"]}"#, r#"{"paths":["/a"],"kind":"Hash"}"#),
            (r#"{"paths":["/a/b"],"kind":"Hash"}"#, r#"{"paths":["/a/b"],"kind":"Hash"}"#),
            (r#"{"paths":["/a"],"version":1}"#, r#"{"paths":["/a"],"kind":"Hash","version":1}"#),
            (
                r#"{"version":2,"kind":"Hash","paths":["/id"],"systemKey":false}"#,
                r#"{"paths":["/id"],"kind":"Hash","version":2}"#,
            ),
            (
                r#"{"paths":["/\"a b\""],"version":2.0}"#,
                r#"{"paths":["/\"a b\""],"kind":"Hash","version":2}"#,
            ),
            (
                r#"{"paths":["/a"],"kind":"MultiHash"}"#,
                r#"{"paths":["/a"],"kind":"MultiHash","version":2}"#,
            ),
            (r#"{"paths":["/a"],"version":"v1"}"#, r#"{"paths":["/a"],"kind":"Hash","version":1}"#),
            (
                r#"{"paths":["/a"],"kind":"MultiHash","version":"V2"}"#,
                r#"{"paths":["/a"],"kind":"MultiHash","version":2}"#,
            ),
            (
                r#"{"paths":["/a","/b","/c"],"kind":"MultiHash","version":2}"#,
                r#"{"paths":["/a","/b","/c"],"kind":"MultiHash","version":2}"#,
            ),
            (
                r#"{"paths":["/_partitionKey"],"version":2,"systemKey":true}"#,
                r#"{"paths":["/_partitionKey"],"kind":"Hash","version":2,"systemKey":true}"#,
            ),
        ] {
            let value = serde_json::from_str(given).unwrap();
            let definition = PartitionKeyDefinition::parse(&value).unwrap();
            assert_eq!(definition.to_json().to_string(), echo);
            assert_eq!(PartitionKeyDefinition::parse(&definition.to_json()).unwrap(), definition);
        }
        let system = PartitionKeyDefinition::system();
        assert_eq!(PartitionKeyDefinition::parse(&system.to_json()).unwrap(), system);
        assert_eq!(system.paths.len(), 1);
    }

    #[test]
    fn definitions_that_are_refused() {
        for (given, reason) in [
            ("[]", "'[]' is not an object"),
            ("{}", "there is no list of paths"),
            (r#"{"paths":"/a"}"#, "there is no list of paths"),
            (r#"{"paths":[]}"#, "there is no path"),
            (r#"{"paths":[1]}"#, "the path 1 is not a string"),
            (
                r#"{"paths":["/a","/b"]}"#,
                "Too many partition key paths: there are 2, and kind 'Hash' has at most 1",
            ),
            (
                r#"{"paths":["/a","/b","/c","/d"],"kind":"MultiHash"}"#,
                "Too many partition key paths: there are 4, and kind 'MultiHash' has at most 3",
            ),
            (r#"{"paths":["/a","/\"a\""],"kind":"MultiHash"}"#, "the path '/a' is there twice"),
            (
                r#"{"paths":["/a"],"kind":"MultiHash","version":1}"#,
                "the version of kind 'MultiHash' is 2, not 1",
            ),
            (
                r#"{"paths":["/a"],"kind":"Range"}"#,
                "the kind \"Range\" is not 'Hash' or 'MultiHash'",
            ),
            (r#"{"paths":["/a"],"version":3}"#, "the version 3 is not 1 or 2"),
            (r#"{"paths":["/a"],"version":"V3"}"#, "the version \"V3\" is not 1 or 2"),
            (r#"{"paths":["/a"],"version":"2"}"#, "the version \"2\" is not 1 or 2"),
            (r#"{"paths":["/_ts"]}"#, "the path '/_ts' is a system property"),
        ] {
            let error = PartitionKeyDefinition::parse(&serde_json::from_str(given).unwrap());
            let expected = format!("The partition key definition is invalid: {reason}.");
            assert_eq!(error.unwrap_err().message, expected, "{given}");
        }
        for (path, near) in
            [("a", 0), ("", 0), ("/", 1), ("/a/", 3), ("/a/?", 4), ("/*", 2), ("/\"a", 3)]
        {
            let error = PartitionKeyDefinition::parse(&json!({"paths": [path]})).unwrap_err();
            assert_eq!(error, not_accepted(path, near));
        }
    }

    #[test]
    fn a_new_path_has_odd_characters_in_quotes_only() {
        let check = |path: &str| {
            PartitionKeyDefinition::parse(&json!({"paths": [path]})).unwrap().check_new()
        };
        for good in [
            "/a/b_c",
            "/ü/$type",
            "/\"a b-c\"/d",
            "/'a-b'",
            r#"/"a\" -"/b"#,
            r#"/'level" 1*()'/'le/vel2'"#,
            "/it's",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, near) in [("/tenant id", 8), ("/a-b", 3), ("/\"a-b\"/c\td", 9), ("/it's -", 6)] {
            assert_eq!(check(bad), Err(not_accepted(bad, near)));
        }
    }
}
