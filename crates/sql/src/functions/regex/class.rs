//! Sets of characters in an expression: `[...]`, and escapes that stand for a set.
//!
//! `\d`, `\w` and `\s` are ASCII, as in PCRE without its Unicode option. In the
//! brackets of PCRE only `]`, `\`, `^`, `-` and `[:` are special; the engine knows
//! more (`[a[b]]`, `&&`, `--`), so all other characters are written by number.

use std::str::Chars;

use super::Fault;

const HORIZONTAL: &str = r"\t\x20\x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}";
const VERTICAL: &str = r"\n-\r\x{85}\x{2028}\x{2029}";

const NAMES: &[&str] = &[
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// What an escape stands for.
pub(super) enum Escape {
    /// One character.
    One(char),
    /// A set, as the engine writes it.
    Set(String),
    /// Something that is neither; the character after the backslash.
    Other(char),
}

/// Reads what comes after a backslash.
pub(super) fn escape(rest: &mut Chars<'_>) -> Result<Escape, Fault> {
    let letter = rest.next().ok_or(Fault::Invalid)?;
    Ok(match letter {
        'd' => set("0-9", false),
        'D' => set("0-9", true),
        'w' => set("0-9A-Za-z_", false),
        'W' => set("0-9A-Za-z_", true),
        's' => set(r"\t-\r\x20", false),
        'S' => set(r"\t-\r\x20", true),
        'h' => set(HORIZONTAL, false),
        'H' => set(HORIZONTAL, true),
        'v' => set(VERTICAL, false),
        'V' => set(VERTICAL, true),
        'p' => Escape::Set(property(rest, false)?),
        'P' => Escape::Set(property(rest, true)?),
        'a' => Escape::One('\x07'),
        'e' => Escape::One('\x1B'),
        'f' => Escape::One('\x0C'),
        'n' => Escape::One('\n'),
        'r' => Escape::One('\r'),
        't' => Escape::One('\t'),
        'x' => Escape::One(by_number(rest)?),
        '0' => Escape::One(octal(rest)),
        other if other.is_ascii_alphanumeric() => Escape::Other(other),
        other => Escape::One(other),
    })
}

fn set(inside: &str, negated: bool) -> Escape {
    Escape::Set(format!("[{}{inside}]", if negated { "^" } else { "" }))
}

/// `\x41` or `\x{1F600}`.
fn by_number(rest: &mut Chars<'_>) -> Result<char, Fault> {
    if let Some(braced) = rest.as_str().strip_prefix('{') {
        let (digits, after) = braced.split_once('}').ok_or(Fault::Invalid)?;
        *rest = after.chars();
        return hexadecimal(digits);
    }
    let digits: String = rest.clone().take(2).take_while(char::is_ascii_hexdigit).collect();
    skip(rest, digits.len());
    if digits.is_empty() { Ok('\0') } else { hexadecimal(&digits) }
}

fn hexadecimal(digits: &str) -> Result<char, Fault> {
    let all_digits = digits.chars().all(|digit| digit.is_ascii_hexdigit());
    let number = u32::from_str_radix(digits, 16).ok().filter(|_| all_digits);
    number.and_then(char::from_u32).ok_or(Fault::Invalid)
}

/// Up to two digits after `\0`.
fn octal(rest: &mut Chars<'_>) -> char {
    let digits: Vec<u32> = rest.clone().take(2).map_while(|digit| digit.to_digit(8)).collect();
    skip(rest, digits.len());
    let number = digits.iter().fold(0, |number, digit| number * 8 + digit);
    char::from_u32(number).unwrap_or_default()
}

fn skip(rest: &mut Chars<'_>, count: usize) {
    rest.by_ref().take(count).for_each(drop);
}

/// `\pL`, `\p{Lu}` or `\p{^Lu}`.
fn property(rest: &mut Chars<'_>, negated: bool) -> Result<String, Fault> {
    let (name, after) = match rest.as_str().strip_prefix('{') {
        Some(braced) => braced.split_once('}').ok_or(Fault::Invalid)?,
        None => rest.as_str().split_at_checked(1).ok_or(Fault::Invalid)?,
    };
    let (name, negated) = match name.strip_prefix('^') {
        Some(name) => (name, !negated),
        None => (name, negated),
    };
    if name.is_empty() || !name.chars().all(|letter| letter.is_ascii_alphabetic() || letter == '_')
    {
        return Err(Fault::Unsupported("a property of characters by an unknown name"));
    }
    *rest = after.chars();
    Ok(format!(r"\{}{{{name}}}", if negated { 'P' } else { 'p' }))
}

/// Reads what comes after an opening bracket, up to the closing one.
pub(super) fn bracket(rest: &mut Chars<'_>) -> Result<String, Fault> {
    if closed_name(rest.as_str()).is_some() {
        // A name stands in brackets within brackets.
        return Err(Fault::Invalid);
    }
    let mut out = String::from("[");
    if eat(rest, "^") {
        out.push('^');
    }
    let mut first = true;
    loop {
        if !first && eat(rest, "]") {
            out.push(']');
            return Ok(out);
        }
        first = false;
        match item(rest)? {
            Escape::Set(set) => {
                if starts_range(rest) {
                    return Err(Fault::Unsupported("a range that starts with a set"));
                }
                out.push_str(&set);
            }
            Escape::One(from) => out.push_str(&range(from, rest)?),
            Escape::Other(_) => return Err(Fault::Unsupported("an unusual escape in brackets")),
        }
    }
}

/// A character, with a second one if it is the start of a range.
fn range(from: char, rest: &mut Chars<'_>) -> Result<String, Fault> {
    if !starts_range(rest) {
        return Ok(numbered(from));
    }
    rest.next();
    match item(rest)? {
        Escape::One(to) if from <= to => Ok(format!("{}-{}", numbered(from), numbered(to))),
        Escape::One(_) => Err(Fault::Invalid),
        _ => Err(Fault::Unsupported("a range that ends with a set")),
    }
}

fn starts_range(rest: &Chars<'_>) -> bool {
    rest.as_str().strip_prefix('-').is_some_and(|after| !after.starts_with(']'))
}

fn item(rest: &mut Chars<'_>) -> Result<Escape, Fault> {
    match rest.next().ok_or(Fault::Invalid)? {
        '[' => named(rest),
        '\\' if eat(rest, "b") => Ok(Escape::One('\x08')),
        '\\' => escape(rest),
        character => Ok(Escape::One(character)),
    }
}

/// `[:alpha:]`, after its bracket. Without its end the bracket is a character.
fn named(rest: &mut Chars<'_>) -> Result<Escape, Fault> {
    let Some((mark, name, after)) = closed_name(rest.as_str()) else {
        return Ok(Escape::One('['));
    };
    let (name, negated) = name.strip_prefix('^').map_or((name, ""), |name| (name, "^"));
    if mark != ':' || !NAMES.contains(&name) {
        return Err(Fault::Invalid);
    }
    *rest = after.chars();
    Ok(Escape::Set(format!("[:{negated}{name}:]")))
}

/// The mark, the name and what comes after it, if the text starts with a name
/// between marks and a bracket that closes it.
fn closed_name(text: &str) -> Option<(char, &str, &str)> {
    let mark = text.chars().next().filter(|mark| [':', '.', '='].contains(mark))?;
    let (name, after) = text.strip_prefix(mark)?.split_once(']')?;
    let name = name.strip_suffix(mark)?;
    let another = ['[', mark].iter().collect::<String>();
    (!name.contains(&another)).then_some((mark, name, after))
}

/// A character as a number, so that it means nothing else.
pub(super) fn numbered(character: char) -> String {
    if character.is_ascii_alphanumeric() {
        character.to_string()
    } else {
        format!(r"\x{{{:X}}}", u32::from(character))
    }
}

/// Takes a text if it comes next.
pub(super) fn eat(rest: &mut Chars<'_>, text: &str) -> bool {
    let after = rest.as_str().strip_prefix(text);
    if let Some(after) = after {
        *rest = after.chars();
    }
    after.is_some()
}
