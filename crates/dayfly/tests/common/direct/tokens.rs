//! What a frame says where HTTP has headers: tokens, each an identifier, a type and a value.

/// A value, as the wire knows them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Byte(u8),
    UShort(u16),
    ULong(u32),
    Long(i32),
    ULongLong(u64),
    LongLong(i64),
    Guid([u8; 16]),
    SmallString(String),
    String(String),
    ULongString(String),
    SmallBytes(Vec<u8>),
    Bytes(Vec<u8>),
    ULongBytes(Vec<u8>),
    Float(f32),
    Double(f64),
}

pub(crate) fn text(text: impl Into<String>) -> Value {
    Value::String(text.into())
}

impl Value {
    /// The number of its type.
    pub(crate) fn kind(&self) -> u8 {
        match self {
            Value::Byte(_) => 0x00,
            Value::UShort(_) => 0x01,
            Value::ULong(_) => 0x02,
            Value::Long(_) => 0x03,
            Value::ULongLong(_) => 0x04,
            Value::LongLong(_) => 0x05,
            Value::Guid(_) => 0x06,
            Value::SmallString(_) => 0x07,
            Value::String(_) => 0x08,
            Value::ULongString(_) => 0x09,
            Value::SmallBytes(_) => 0x0A,
            Value::Bytes(_) => 0x0B,
            Value::ULongBytes(_) => 0x0C,
            Value::Float(_) => 0x0D,
            Value::Double(_) => 0x0E,
        }
    }

    /// Its bytes, with their length in front where they have one.
    fn bytes(&self) -> Vec<u8> {
        let small = |bytes: &[u8]| [&[u8::try_from(bytes.len()).unwrap()], bytes].concat();
        let short =
            |bytes: &[u8]| [&u16::try_from(bytes.len()).unwrap().to_le_bytes()[..], bytes].concat();
        let long =
            |bytes: &[u8]| [&u32::try_from(bytes.len()).unwrap().to_le_bytes()[..], bytes].concat();
        match self {
            Value::Byte(value) => vec![*value],
            Value::UShort(value) => value.to_le_bytes().to_vec(),
            Value::ULong(value) => value.to_le_bytes().to_vec(),
            Value::Long(value) => value.to_le_bytes().to_vec(),
            Value::ULongLong(value) => value.to_le_bytes().to_vec(),
            Value::LongLong(value) => value.to_le_bytes().to_vec(),
            Value::Guid(value) => value.to_vec(),
            Value::SmallString(text) => small(text.as_bytes()),
            Value::String(text) => short(text.as_bytes()),
            Value::ULongString(text) => long(text.as_bytes()),
            Value::SmallBytes(bytes) => small(bytes),
            Value::Bytes(bytes) => short(bytes),
            Value::ULongBytes(bytes) => long(bytes),
            Value::Float(value) => value.to_le_bytes().to_vec(),
            Value::Double(value) => value.to_le_bytes().to_vec(),
        }
    }

    /// One of this type from the front of some bytes, which must have it whole.
    fn take(kind: u8, rest: &mut &[u8]) -> Value {
        match kind {
            0x00 => Value::Byte(u8::from_le_bytes(array(rest))),
            0x01 => Value::UShort(u16::from_le_bytes(array(rest))),
            0x02 => Value::ULong(u32::from_le_bytes(array(rest))),
            0x03 => Value::Long(i32::from_le_bytes(array(rest))),
            0x04 => Value::ULongLong(u64::from_le_bytes(array(rest))),
            0x05 => Value::LongLong(i64::from_le_bytes(array(rest))),
            0x06 => Value::Guid(array(rest)),
            0x07 => Value::SmallString(utf8(prefixed(1, rest))),
            0x08 => Value::String(utf8(prefixed(2, rest))),
            0x09 => Value::ULongString(utf8(prefixed(4, rest))),
            0x0A => Value::SmallBytes(prefixed(1, rest)),
            0x0B => Value::Bytes(prefixed(2, rest)),
            0x0C => Value::ULongBytes(prefixed(4, rest)),
            0x0D => Value::Float(f32::from_le_bytes(array(rest))),
            0x0E => Value::Double(f64::from_le_bytes(array(rest))),
            other => panic!("there is no type {other:#04x}"),
        }
    }

    pub(crate) fn text(&self) -> &str {
        match self {
            Value::SmallString(text) | Value::String(text) | Value::ULongString(text) => text,
            other => panic!("{other:?} is no text"),
        }
    }

    pub(crate) fn number(&self) -> i64 {
        match self {
            Value::Byte(value) => (*value).into(),
            Value::UShort(value) => (*value).into(),
            Value::ULong(value) => (*value).into(),
            Value::Long(value) => (*value).into(),
            Value::LongLong(value) => *value,
            other => panic!("{other:?} is no whole number"),
        }
    }
}

fn split<'a>(count: usize, rest: &mut &'a [u8]) -> &'a [u8] {
    let (bytes, after) = rest.split_at_checked(count).expect("a token runs past the head");
    *rest = after;
    bytes
}

fn array<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    split(N, rest).try_into().unwrap()
}

/// Bytes with their length in front, in so many bytes.
fn prefixed(width: usize, rest: &mut &[u8]) -> Vec<u8> {
    let length = split(width, rest).iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    split(length, rest).to_vec()
}

fn utf8(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("a text is UTF-8")
}

/// Tokens in the order of the wire, each at most once.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tokens(Vec<(u16, Value)>);

impl Tokens {
    /// Those of a head, but for its first 24 bytes.
    pub(crate) fn decode(mut rest: &[u8]) -> Tokens {
        let mut tokens = Tokens::default();
        while !rest.is_empty() {
            let id = u16::from_le_bytes(array(&mut rest));
            let [kind] = array(&mut rest);
            let value = Value::take(kind, &mut rest);
            assert!(tokens.get(id).is_none(), "token {id:#06x} twice");
            tokens.0.push((id, value));
        }
        tokens
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let each = self.0.iter().map(|(id, value)| encode(*id, value));
        each.collect::<Vec<_>>().concat()
    }

    pub(crate) fn get(&self, id: u16) -> Option<&Value> {
        self.0.iter().find(|(known, _)| *known == id).map(|(_, value)| value)
    }

    /// In the place of the one that is there, or at the end.
    pub(crate) fn set(&mut self, id: u16, value: Value) {
        match self.0.iter_mut().find(|(known, _)| *known == id) {
            Some((_, known)) => *known = value,
            None => self.0.push((id, value)),
        }
    }

    pub(crate) fn remove(&mut self, id: u16) {
        self.0.retain(|(known, _)| *known != id);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u16, &Value)> {
        self.0.iter().map(|(id, value)| (*id, value))
    }
}

/// One token.
pub(crate) fn encode(id: u16, value: &Value) -> Vec<u8> {
    [&id.to_le_bytes()[..], &[value.kind()], &value.bytes()].concat()
}

/// A frame's head with its length in front: two fields of a request, or the status.
pub(crate) fn head(start: [u8; 4], activity: [u8; 16], tokens: &[u8]) -> Vec<u8> {
    let length = u32::try_from(24 + tokens.len()).unwrap().to_le_bytes();
    [&length[..], &start, &activity, tokens].concat()
}

/// The tokens of a request that the tests send, and those of its captured frames.
pub(crate) const REQUEST: &[(u16, u8)] = &[
    (0x0000, 0x0B),
    (0x0001, 0x08),
    (0x0002, 0x00),
    (0x0003, 0x07),
    (0x0004, 0x02),
    (0x0005, 0x08),
    (0x0006, 0x08),
    (0x0007, 0x00),
    (0x0008, 0x08),
    (0x0010, 0x00),
    (0x0013, 0x08),
    (0x0015, 0x08),
    (0x0016, 0x08),
    (0x0017, 0x08),
    (0x001B, 0x08),
    (0x0022, 0x08),
    (0x0023, 0x08),
    (0x002B, 0x08),
    (0x002C, 0x08),
    (0x0035, 0x08),
    (0x003F, 0x08),
    (0x0042, 0x00),
    (0x0049, 0x02),
    (0x004A, 0x02),
    (0x004B, 0x05),
    (0x004D, 0x02),
    (0x0059, 0x02),
    (0x0062, 0x0B),
    (0x0063, 0x0B),
    (0x0064, 0x00),
    (0x0073, 0x00),
    (0x0074, 0x00),
    (0x0075, 0x00),
    (0x0082, 0x00),
    (0x009D, 0x08),
    (0x00A2, 0x02),
    (0x00B0, 0x06),
    (0x00C2, 0x00),
    (0x00C4, 0x00),
    (0x00C8, 0x00),
];

/// The tokens of an answer.
pub(crate) const REPLY: &[(u16, u8)] = &[
    (0x0000, 0x00),
    (0x0002, 0x07),
    (0x0003, 0x08),
    (0x0004, 0x08),
    (0x000C, 0x02),
    (0x000E, 0x08),
    (0x000F, 0x08),
    (0x0010, 0x07),
    (0x0013, 0x05),
    (0x0014, 0x02),
    (0x0015, 0x0E),
    (0x0017, 0x08),
    (0x0018, 0x08),
    (0x001A, 0x05),
    (0x001B, 0x00),
    (0x001C, 0x02),
    (0x001E, 0x02),
    (0x001F, 0x02),
    (0x0021, 0x08),
    (0x0026, 0x02),
    (0x0028, 0x08),
    (0x0029, 0x05),
    (0x0030, 0x02),
    (0x0032, 0x05),
    (0x0035, 0x02),
    (0x003A, 0x05),
    (0x003B, 0x05),
    (0x003C, 0x05),
    (0x003E, 0x08),
    (0x0044, 0x08),
    (0x0045, 0x08),
    (0x0051, 0x0E),
    (0x0052, 0x06),
    (0x0066, 0x00),
];

/// The tokens of a context request.
pub(crate) const CONTEXT_REQUEST: &[(u16, u8)] =
    &[(0x0000, 0x02), (0x0001, 0x07), (0x0002, 0x07), (0x0003, 0x00), (0x0004, 0x00)];

/// The tokens of the answer to it.
pub(crate) const CONTEXT_REPLY: &[(u16, u8)] = &[
    (0x0000, 0x02),
    (0x0001, 0x07),
    (0x0002, 0x07),
    (0x0003, 0x07),
    (0x0004, 0x02),
    (0x0005, 0x02),
];

impl Tokens {
    /// Whether each of them is in the table, with its type.
    #[track_caller]
    pub(crate) fn are_of(&self, table: &[(u16, u8)]) {
        for (id, value) in self.iter() {
            let kind = table.iter().find(|(known, _)| *known == id).map(|(_, kind)| *kind);
            assert_eq!(kind, Some(value.kind()), "token {id:#06x} has {value:?}");
        }
    }
}
