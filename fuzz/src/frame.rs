//! Frames, read and written by the protocol, and not with what the server has for it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// What stands before the tokens.
const FIXED_BYTES: usize = 24;

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) resource: u16,
    pub(crate) operation: u16,
    pub(crate) activity: [u8; 16],
    pub(crate) tokens: Vec<Token>,
}

/// A token: its id, its form, and its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub(crate) id: u16,
    form: u8,
    pub(crate) value: Vec<u8>,
}

impl Token {
    pub(crate) fn byte(id: u16, value: u8) -> Token {
        Token { id, form: 0, value: vec![value] }
    }

    pub(crate) fn number(id: u16, value: u32) -> Token {
        Token { id, form: 2, value: value.to_le_bytes().to_vec() }
    }

    pub(crate) fn short_text(id: u16, text: &str) -> Token {
        Token { id, form: 7, value: text.as_bytes().to_vec() }
    }

    pub(crate) fn text(id: u16, text: &str) -> Token {
        Token { id, form: 8, value: text.as_bytes().to_vec() }
    }

    pub(crate) fn bytes(id: u16, bytes: &[u8]) -> Token {
        Token { id, form: 0x0B, value: bytes.to_vec() }
    }
}

/// How many bytes a value has; or, negated, how many say so.
fn size(form: u8) -> Option<Result<usize, usize>> {
    Some(match form {
        0 => Ok(1),
        1 => Ok(2),
        2 | 3 | 13 => Ok(4),
        4 | 5 | 14 => Ok(8),
        6 => Ok(16),
        7 | 10 => Err(1),
        8 | 11 => Err(2),
        9 | 12 => Err(4),
        _ => return None,
    })
}

/// The tokens that these bytes are, to their end.
pub(crate) fn tokens(mut bytes: &[u8]) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    while !bytes.is_empty() {
        let (&[low, high, form], rest) = bytes.split_first_chunk()?;
        let (length, rest) = match size(form)? {
            Ok(size) => (size, rest),
            Err(of_length) => {
                let (length, rest) = rest.split_at_checked(of_length)?;
                (length.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
            }
        };
        let (value, rest) = rest.split_at_checked(length)?;
        tokens.push(Token { id: u16::from_le_bytes([low, high]), form, value: value.to_vec() });
        bytes = rest;
    }
    Some(tokens)
}

impl Frame {
    /// A request with these tokens, whose answer is known by 7.
    pub(crate) fn new(resource: u16, operation: u16, tokens: Vec<Token>) -> Frame {
        let mut frame = Frame { resource, operation, activity: *b"0123456789abcdef", tokens };
        frame.set(Token::byte(0x0002, 1));
        frame.set(Token::number(0x004D, 7));
        frame
    }

    /// Reads a whole head.
    pub(crate) fn read(head: &[u8]) -> Option<Frame> {
        let (fixed, rest) = head.split_first_chunk::<FIXED_BYTES>()?;
        Some(Frame {
            resource: u16::from_le_bytes([fixed[4], fixed[5]]),
            operation: u16::from_le_bytes([fixed[6], fixed[7]]),
            activity: fixed[8..].try_into().ok()?,
            tokens: tokens(rest)?,
        })
    }

    /// Its head as bytes.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut head = vec![0; 4];
        head.extend(self.resource.to_le_bytes());
        head.extend(self.operation.to_le_bytes());
        head.extend(self.activity);
        for Token { id, form, value } in &self.tokens {
            head.extend(id.to_le_bytes());
            head.push(*form);
            if let Some(Err(of_length)) = size(*form) {
                head.extend(&value.len().to_le_bytes()[..of_length]);
            }
            head.extend(value);
        }
        let length = u32::try_from(head.len()).unwrap_or(u32::MAX);
        head[..4].copy_from_slice(&length.to_le_bytes());
        head
    }

    /// Its head, and a body behind it.
    pub(crate) fn with_body(&self, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        [&*self.write(), &length.to_le_bytes(), body].concat()
    }

    pub(crate) fn value(&self, id: u16) -> Option<&[u8]> {
        Some(&*self.tokens.iter().find(|token| token.id == id)?.value)
    }

    pub(crate) fn set(&mut self, token: Token) {
        self.tokens.retain(|other| other.id != token.id);
        self.tokens.push(token);
    }

    /// The verb, the kind of the resource and the address that are signed, if it asks for
    /// something that there is.
    pub(crate) fn signed(&self) -> Option<(&'static str, &'static str, String)> {
        let (verb, is_feed) = match self.operation {
            0x01 | 0x13 | 0x25 | 0x0F | 0x09 | 0x42 => ("post", true),
            0x08 => ("post", false),
            0x02 => ("patch", false),
            0x03 => ("get", false),
            0x04 => ("get", true),
            0x05 => ("delete", false),
            0x06 => ("put", false),
            0x11 => ("head", false),
            0x12 => ("head", true),
            _ => return None,
        };
        let above: &[(&str, u16)] = match self.resource {
            1 => &[],
            2 | 5 | 0x23 => &[("dbs", 0x15)],
            3 | 7 | 8 | 9 | 0x0A | 0x16 => &[("dbs", 0x15), ("colls", 0x16)],
            6 => &[("dbs", 0x15), ("users", 0x19)],
            _ => return None,
        };
        let (kind, name) = match self.resource {
            1 => ("dbs", 0x15),
            2 => ("colls", 0x16),
            3 => ("docs", 0x17),
            5 => ("users", 0x19),
            6 => ("permissions", 0x1A),
            7 => ("sprocs", 0x1B),
            8 => ("conflicts", 0x20),
            9 => ("triggers", 0x1D),
            0x0A => ("udfs", 0x1C),
            0x16 => ("pkranges", 0x36),
            _ => ("clientencryptionkeys", 0x80),
        };
        if let (None, Some(rid)) = (self.value(0x15), self.value(0x00)) {
            return Some((verb, kind, STANDARD.encode(rid).replace('/', "-").to_lowercase()));
        }
        let own = [(kind, name)];
        let parts = above.iter().chain(if is_feed { &[][..] } else { &own });
        let mut link = Vec::new();
        for (word, name) in parts {
            link.push((*word).to_owned());
            link.push(String::from_utf8(self.value(*name)?.to_vec()).ok()?);
        }
        Some((verb, kind, link.join("/")))
    }
}
