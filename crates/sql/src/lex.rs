//! From text to tokens.
//!
//! A token is a piece of the text and knows where it stands. Nothing is copied,
//! so looking ahead is looking again. Whether a word is a keyword depends on
//! where it stands, so that is left to the parser; a piece that is no token at
//! all becomes one of its own kind, and the parser tells the client when it gets
//! there.

use crate::tree::{Number, Span};

/// The words that are no names.
const RESERVED: [&str; 25] = [
    "AND", "ARRAY", "AS", "ASC", "BETWEEN", "BY", "DESC", "DISTINCT", "EXISTS", "FROM", "GROUP",
    "IN", "JOIN", "LEFT", "LIKE", "LIMIT", "NOT", "OFFSET", "OR", "ORDER", "RIGHT", "SELECT",
    "TOP", "VALUE", "WHERE",
];
/// The same, but only in lower case.
const RESERVED_LOWER: [&str; 5] = ["false", "null", "true", "udf", "undefined"];

/// Every sign, the longer ones first.
const SIGNS: [&str; 31] = [
    ">>>", "<<", ">>", "<=", ">=", "!=", "<>", "||", "??", "(", ")", "[", "]", "{", "}", ",", ".",
    ":", "?", "*", "/", "%", "+", "-", "~", "<", ">", "=", "&", "^", "|",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Word,
    Number,
    /// A string that ends.
    Text,
    /// A string that does not.
    OpenText,
    Parameter,
    Sign,
    Unknown,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: TokenKind,
    pub(crate) text: &'a str,
    pub(crate) start: usize,
}

impl Token<'_> {
    pub(crate) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    pub(crate) fn span(&self) -> Span {
        Span { start: self.start, end: self.end() }
    }

    /// Whether it is this keyword, in upper case here.
    pub(crate) fn is(&self, keyword: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(keyword)
    }

    /// Whether it is this sign.
    pub(crate) fn is_sign(&self, sign: &str) -> bool {
        self.kind == TokenKind::Sign && self.text == sign
    }

    /// Whether it is a word that may be a name.
    pub(crate) fn is_name(&self) -> bool {
        self.kind == TokenKind::Word && !is_reserved(self.text)
    }
}

fn is_reserved(word: &str) -> bool {
    RESERVED_LOWER.contains(&word)
        || RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(word))
}

/// Reads one token after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Lexer { text, at: 0 }
    }

    /// The next token. At the end of the text it is `End`, again and again.
    pub(crate) fn next_token(&mut self) -> Token<'a> {
        self.skip_blanks();
        let (kind, length) = measure(self.rest());
        let (text, _) = self.rest().split_at_checked(length).unwrap_or((self.rest(), ""));
        let token = Token { kind, text, start: self.at };
        self.at += text.len();
        token
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// Skips white space, and comments from `--` to the end of the line.
    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let text = rest.trim_start_matches([' ', '\t', '\r', '\n']);
            self.at += rest.len() - text.len();
            if !text.starts_with("--") {
                return;
            }
            self.at += text.find(['\r', '\n']).unwrap_or(text.len());
        }
    }
}

/// The kind and the length of the token that `text` starts with.
fn measure(text: &str) -> (TokenKind, usize) {
    let Some(first) = text.chars().next() else { return (TokenKind::End, 0) };
    let after = text.get(first.len_utf8()..).unwrap_or("");
    match first {
        '\'' | '"' => text_length(text, first),
        '@' if after.starts_with(starts_word) => (TokenKind::Parameter, 1 + word_length(after)),
        first if starts_word(first) => (TokenKind::Word, word_length(text)),
        '.' if after.starts_with(is_digit) => (TokenKind::Number, number_length(text)),
        first if is_digit(first) => (TokenKind::Number, number_length(text)),
        first => {
            let sign = SIGNS.iter().find(|sign| text.starts_with(**sign));
            sign.map_or((TokenKind::Unknown, first.len_utf8()), |sign| {
                (TokenKind::Sign, sign.len())
            })
        }
    }
}

fn starts_word(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

fn word_length(text: &str) -> usize {
    text.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(text.len())
}

/// Whether `word` is one, from its first to its last character.
pub(crate) fn is_word(word: &str) -> bool {
    word.starts_with(starts_word) && word_length(word) == word.len()
}

/// Whether `word` is one that may be a name.
pub(crate) fn is_name(word: &str) -> bool {
    is_word(word) && !is_reserved(word)
}

/// A string goes on to the next quote of its kind that no `\` stands before.
fn text_length(text: &str, quote: char) -> (TokenKind, usize) {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return (TokenKind::Text, at + c.len_utf8()),
            _ => {}
        }
    }
    (TokenKind::OpenText, text.len())
}

/// `12`, `1.5`, `.5`, `1.`, each perhaps with an exponent, or `0x1F`.
fn number_length(text: &str) -> usize {
    if let Some(digits) = hex_digits(text) {
        return 2 + digits.len();
    }
    let mut length = digits_from(text, 0);
    if text.get(length..).is_some_and(|rest| rest.starts_with('.')) {
        length = digits_from(text, length + 1);
    }
    if let Some(exponent) = text.get(length..).and_then(|rest| rest.strip_prefix(['e', 'E'])) {
        let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if unsigned.starts_with(is_digit) {
            return digits_from(text, text.len() - unsigned.len());
        }
    }
    length
}

/// Where the digits that start at `at` end.
fn digits_from(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or("");
    at + rest.find(|c| !is_digit(c)).unwrap_or(rest.len())
}

fn hex_digits(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
    rest.get(..end).filter(|digits| !digits.is_empty())
}

/// The value of a number: exact where 64 bits hold it, else the nearest double.
/// `None`: no double can hold it.
pub(crate) fn number_of(text: &str) -> Option<Number> {
    if let Some(digits) = hex_digits(text) {
        let exact = i64::from_str_radix(digits, 16).ok();
        let nearest = || {
            digits
                .chars()
                .filter_map(|digit| digit.to_digit(16))
                .fold(0.0, |sum, digit| sum * 16.0 + f64::from(digit))
        };
        return Some(exact.map_or_else(|| Number::Double(nearest()), Number::Integer))
            .filter(finite);
    }
    let integer = text.parse().ok().map(Number::Integer);
    integer.or_else(|| text.parse().ok().map(Number::Double)).filter(finite)
}

fn finite(number: &Number) -> bool {
    match number {
        Number::Integer(_) => true,
        Number::Double(value) => value.is_finite(),
    }
}

/// What a string with its quotes means. `None`: an escape in it is none.
pub(crate) fn text_of(token: &str) -> Option<String> {
    let quote = token.chars().next()?;
    let inner = token.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((plain, escape)) = rest.split_once('\\') {
        text.push_str(plain);
        rest = escape.get(escape.chars().next()?.len_utf8()..)?;
        text.push(match escape.chars().next()? {
            c @ ('\'' | '"' | '\\' | '/') => c,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let (c, after) = character(rest)?;
                rest = after;
                c
            }
            _ => return None,
        });
    }
    text.push_str(rest);
    Some(text)
}

/// The character after `\u`: four hexadecimal digits, or two times four for one
/// that UTF-16 writes as a pair.
fn character(text: &str) -> Option<(char, &str)> {
    let (first, rest) = unit(text)?;
    if let Some(c) = char::from_u32(u32::from(first)) {
        return Some((c, rest));
    }
    let (second, rest) = unit(rest.strip_prefix("\\u")?)?;
    let c = char::decode_utf16([first, second]).next()?.ok()?;
    Some((c, rest))
}

fn unit(text: &str) -> Option<(u16, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    let is_hex = digits.chars().all(|c| c.is_ascii_hexdigit());
    is_hex.then(|| Some((u16::from_str_radix(digits, 16).ok()?, rest)))?
}
