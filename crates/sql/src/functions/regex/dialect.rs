//! From the expressions of PCRE to those of the engine.
//!
//! Only whether there is a match counts, so groups need not be told apart. Each
//! construct is written anew, because much that both know they do not know alike:
//!
//! | PCRE                  | here                                              |
//! |-----------------------|---------------------------------------------------|
//! | `(..)` `(?<n>..)`     | a group without a number                          |
//! | `\d` `\w` `\s` `\b`   | ASCII                                             |
//! | `$` `\Z`              | the end, or before a newline that is the last     |
//! |                       | character; nothing may come after it              |
//! | `m` `s` `x`           | carried out while translating, `i` by the engine  |
//! | `a{`                  | a brace, where it starts no repetition            |
//! | `a++` `(?>..)`        | refused: nothing is given back to what follows    |
//! | `(?=..)` `\1` `(?1)`  | refused: the engine cannot look back or around    |
//!
//! With `m`, `^` of the engine also matches after a newline that is the last
//! character of the text, as it does not in PCRE. Whoever searches has to see to
//! that: [`Translated`] tells whether it can matter.

use std::str::Chars;

use super::Fault;
use super::class::{Escape, bracket, eat, escape, numbered};

/// How deep groups may be nested.
const DEPTH_MAX: usize = 100;
/// The greatest number of a repetition.
const REPEAT_MAX: u32 = 65_535;

/// The modifiers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "four switches, each on its own")]
pub(super) struct Flags {
    ignore_case: bool,
    lines: bool,
    dot_takes_newline: bool,
    spaced: bool,
}

impl Flags {
    /// Reads `imsx`, each or none of them.
    pub(super) fn read(letters: &str) -> Option<Flags> {
        let mut flags = Flags::default();
        letters.chars().all(|letter| flags.set(letter, true)).then_some(flags)
    }

    /// Whether the letter is a modifier.
    fn set(&mut self, letter: char, on: bool) -> bool {
        match letter {
            'i' => self.ignore_case = on,
            'm' => self.lines = on,
            's' => self.dot_takes_newline = on,
            'x' => self.spaced = on,
            _ => return false,
        }
        true
    }

    fn case(self) -> &'static str {
        if self.ignore_case { "i" } else { "-i" }
    }
}

/// An expression as the engine wants it.
pub(super) struct Translated {
    pub(super) pattern: String,
    /// It asks for the start of a line.
    pub(super) line_start: bool,
    /// It asks for the end of the text.
    pub(super) text_end: bool,
}

/// Writes an expression as the engine wants it.
pub(super) fn translate(pattern: &str, flags: Flags) -> Result<Translated, Fault> {
    let mut translation = Translation {
        rest: pattern.chars(),
        out: format!("(?{})", flags.case()),
        flags,
        groups: Vec::new(),
        names: Vec::new(),
        before: Before::Nothing,
        has_end: false,
        line_start: false,
        text_end: false,
    };
    while let Some(character) = translation.rest.next() {
        translation.step(character)?;
    }
    if !translation.groups.is_empty() {
        return Err(Fault::Invalid);
    }
    let Translation { out: pattern, line_start, text_end, .. } = translation;
    Ok(Translated { pattern, line_start, text_end })
}

struct Translation<'a> {
    rest: Chars<'a>,
    out: String,
    flags: Flags,
    /// What held outside of each group that is open.
    groups: Vec<Outside>,
    /// The names of groups so far; each only once.
    names: Vec<&'a str>,
    before: Before,
    /// Whether the end of the text was asked for in this group.
    has_end: bool,
    line_start: bool,
    text_end: bool,
}

struct Outside {
    flags: Flags,
    has_end: bool,
}

/// What the next construct comes after.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Nothing that could be repeated.
    Nothing,
    /// A place, like the start of the text.
    Place,
    /// Something that can be repeated.
    Thing,
    /// A repetition.
    Repetition,
    /// The end of the text.
    End,
}

impl Translation<'_> {
    fn step(&mut self, character: char) -> Result<(), Fault> {
        match character {
            '|' => self.emit("|", Before::Nothing),
            ')' => return self.close(),
            '#' if self.flags.spaced => {
                let comment = self.rest.by_ref().take_while(|character| *character != '\n');
                comment.for_each(drop);
            }
            blank if self.flags.spaced && is_blank(blank) => {}
            _ if self.before == Before::End => {
                return Err(Fault::Unsupported("something after the end of the text"));
            }
            '(' => return self.open(),
            '*' | '+' | '?' => return self.repeat(&character.to_string()),
            '{' => return self.brace(),
            '[' => {
                let set = bracket(&mut self.rest)?;
                self.emit(&set, Before::Thing);
            }
            '.' if self.flags.dot_takes_newline => self.emit("(?s:.)", Before::Thing),
            '.' => self.emit(r"[^\n]", Before::Thing),
            '^' if self.flags.lines => {
                self.line_start = true;
                self.emit("(?m:^)", Before::Place);
            }
            '^' => self.emit(r"\A", Before::Place),
            '$' if self.flags.lines => self.emit("(?m:$)", Before::Place),
            '$' => self.end(),
            '\\' => return self.escaped(),
            literal => self.emit(&numbered(literal), Before::Thing),
        }
        Ok(())
    }

    fn emit(&mut self, text: &str, leaves: Before) {
        self.out.push_str(text);
        self.before = leaves;
    }

    fn end(&mut self) {
        (self.has_end, self.text_end) = (true, true);
        self.emit(r"(?:\n?\z)", Before::End);
    }

    fn escaped(&mut self) -> Result<(), Fault> {
        match escape(&mut self.rest)? {
            Escape::One(character) => self.emit(&numbered(character), Before::Thing),
            Escape::Set(set) => self.emit(&format!("(?-i:{set})"), Before::Thing),
            Escape::Other('A') => self.emit(r"\A", Before::Place),
            Escape::Other('z') => {
                self.text_end = true;
                self.emit(r"\z", Before::Place);
            }
            Escape::Other('Z') => self.end(),
            Escape::Other('b') => self.emit(r"(?-u:\b)", Before::Place),
            Escape::Other('N') if !self.rest.as_str().starts_with('{') => {
                self.emit(r"[^\n]", Before::Thing);
            }
            Escape::Other('1'..='9' | 'g' | 'k') => {
                return Err(Fault::Unsupported("a reference to a group"));
            }
            Escape::Other('Q') => self.quoted(),
            Escape::Other('B') => return Err(Fault::Unsupported("\\B")),
            Escape::Other(_) => return Err(Fault::Unsupported("an unusual escape")),
        }
        Ok(())
    }

    /// Characters up to `\E`, as they are.
    fn quoted(&mut self) {
        let rest = self.rest.as_str();
        let (inside, after) = rest.split_once(r"\E").unwrap_or((rest, ""));
        self.rest = after.chars();
        for character in inside.chars() {
            self.emit(&numbered(character), Before::Thing);
        }
    }

    /// `{2}`, `{2,}` or `{2,3}`; any other brace is one.
    fn brace(&mut self) -> Result<(), Fault> {
        let counts = self.rest.as_str().split_once('}').and_then(|(inside, after)| {
            let (least, most) = inside.split_once(',').unwrap_or((inside, inside));
            let counted = is_number(least) && (most.is_empty() || is_number(most));
            counted.then_some((inside, least, most, after))
        });
        let Some((inside, least, most, after)) = counts else {
            let inside = self.rest.as_str().split_once('}').map_or("", |(inside, _)| inside);
            if inside.strip_prefix(',').is_some_and(is_number) {
                return Err(Fault::Unsupported("a repetition without a least number"));
            }
            self.emit(&numbered('{'), Before::Thing);
            return Ok(());
        };
        let least = repeats(least)?;
        if !most.is_empty() && repeats(most)? < least {
            return Err(Fault::Invalid);
        }
        self.rest = after.chars();
        self.repeat(&format!("{{{inside}}}"))
    }

    fn repeat(&mut self, text: &str) -> Result<(), Fault> {
        match self.before {
            Before::Thing => {}
            Before::Repetition if text == "+" || text == "?" => {
                // Its own sign would stand beside it: there is a comment between them.
                return Err(Fault::Unsupported("a repetition in parts"));
            }
            Before::Nothing | Before::Repetition => return Err(Fault::Invalid),
            Before::Place | Before::End => {
                return Err(Fault::Unsupported("a repetition of a place"));
            }
        }
        if eat(&mut self.rest, "+") {
            return Err(Fault::Unsupported("a possessive repetition"));
        }
        self.emit(text, Before::Repetition);
        if eat(&mut self.rest, "?") {
            self.out.push('?');
        }
        Ok(())
    }

    fn open(&mut self) -> Result<(), Fault> {
        if self.rest.as_str().starts_with('*') {
            return Err(Fault::Unsupported("a verb"));
        }
        if !eat(&mut self.rest, "?") {
            return self.push(self.flags);
        }
        if eat(&mut self.rest, "#") {
            return self.skip_comment();
        }
        if eat(&mut self.rest, ":") {
            return self.push(self.flags);
        }
        if ["=", "!", "<=", "<!"].iter().any(|mark| self.rest.as_str().starts_with(mark)) {
            return Err(Fault::Unsupported("a look-around"));
        }
        if eat(&mut self.rest, ">") {
            return Err(Fault::Unsupported("an atomic group"));
        }
        if eat(&mut self.rest, "P<") || eat(&mut self.rest, "<") {
            return self.named('>');
        }
        if eat(&mut self.rest, "'") {
            return self.named('\'');
        }
        self.modify()
    }

    fn skip_comment(&mut self) -> Result<(), Fault> {
        let (_, after) = self.rest.as_str().split_once(')').ok_or(Fault::Invalid)?;
        self.rest = after.chars();
        Ok(())
    }

    fn named(&mut self, mark: char) -> Result<(), Fault> {
        let (name, after) = self.rest.as_str().split_once(mark).ok_or(Fault::Invalid)?;
        if !is_name(name) || self.names.contains(&name) {
            return Err(Fault::Invalid);
        }
        self.names.push(name);
        self.rest = after.chars();
        self.push(self.flags)
    }

    /// `(?i)`, `(?i-x)` or `(?i:`, after the question mark.
    fn modify(&mut self) -> Result<(), Fault> {
        let (mut flags, mut on) = (self.flags, true);
        loop {
            match self.rest.next().ok_or(Fault::Invalid)? {
                ':' => return self.push(flags),
                ')' => {
                    self.flags = flags;
                    self.emit(&format!("(?{})", flags.case()), Before::Nothing);
                    return Ok(());
                }
                '-' if on => on = false,
                letter if flags.set(letter, on) => {}
                _ => return Err(Fault::Unsupported("an unusual group")),
            }
        }
    }

    fn push(&mut self, flags: Flags) -> Result<(), Fault> {
        if self.groups.len() >= DEPTH_MAX {
            return Err(Fault::Unsupported("more than 100 groups in each other"));
        }
        self.groups.push(Outside { flags: self.flags, has_end: self.has_end });
        (self.flags, self.has_end) = (flags, false);
        self.emit(&format!("(?{}:", flags.case()), Before::Nothing);
        Ok(())
    }

    fn close(&mut self) -> Result<(), Fault> {
        let outside = self.groups.pop().ok_or(Fault::Invalid)?;
        let leaves = if self.has_end { Before::End } else { Before::Thing };
        self.flags = outside.flags;
        self.has_end |= outside.has_end;
        self.emit(")", leaves);
        Ok(())
    }
}

fn is_blank(character: char) -> bool {
    matches!(character, '\t'..='\r' | ' ')
}

fn is_name(text: &str) -> bool {
    let good = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.chars().all(good) && text.starts_with(|first: char| !first.is_ascii_digit())
}

fn is_number(digits: &str) -> bool {
    !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_digit())
}

fn repeats(digits: &str) -> Result<u32, Fault> {
    digits.parse().ok().filter(|count| *count <= REPEAT_MAX).ok_or(Fault::Invalid)
}
