//! `REGEXMATCH`: whether a text has a match of a regular expression.
//!
//! The service takes the expressions of Perl (PCRE). They are translated, construct
//! by construct (`dialect.rs`), to an engine whose time grows with the text and
//! never explodes. An expression that is wrong is undefined, as in the service; one
//! that is right and that the engine cannot do is refused, with a reason.
//!
//! A query asks the same expression of every item, so each thread keeps the last
//! few it has read.

mod class;
mod dialect;

use std::cell::RefCell;
use std::fmt;

use dayfly_model::value::Value;
use regex::{Regex, RegexBuilder};

use self::dialect::{Flags, Translated};
use super::arguments::{optional, text};
use super::{Arguments, Body, Family};

pub(super) const FUNCTIONS: &Family =
    &[("REGEXMATCH", Body::Failing(|a| regexmatch(a).map_err(|refusal| refusal.to_string())))];

/// The longest expression, in bytes.
const PATTERN_MAX: usize = 16 * 1024;
/// The most bytes that an expression may become.
const PROGRAM_MAX: usize = 256 * 1024;
/// The most bytes that a search may keep of what it found out on its way.
const MEMORY_MAX: usize = 512 * 1024;
/// How many expressions a thread keeps.
const KEPT_MAX: usize = 8;

/// An expression that the service would take, and this server does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    reason: &'static str,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "The regular expression has {}, which is not supported here.", self.reason)
    }
}

/// What is wrong with an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// It is no expression.
    Invalid,
    /// It has something that the engine does not know.
    Unsupported(&'static str),
}

/// An expression that is ready.
struct Expression {
    regex: Regex,
    line_start: bool,
    text_end: bool,
}

type Compiled = Result<Expression, Fault>;

/// Whether the first argument has a match of the second, under the modifiers of
/// the third.
pub(crate) fn regexmatch(arguments: &Arguments<'_>) -> Result<Value, Refusal> {
    let (Some(text), Some(pattern)) = (text(arguments, 0), text(arguments, 1)) else {
        return Ok(Value::Undefined);
    };
    let flags = optional(arguments, 2, Flags::default(), |value| Flags::read(value.as_str()?));
    let Some(flags) = flags else { return Ok(Value::Undefined) };
    match with_compiled(pattern, flags, |expression| expression.is_in(text)) {
        Ok(found) => Ok(found.into()),
        Err(Fault::Invalid) => Ok(Value::Undefined),
        Err(Fault::Unsupported(reason)) => Err(Refusal { reason }),
    }
}

impl Expression {
    fn is_in(&self, text: &str) -> Result<bool, Fault> {
        let found = self.regex.is_match(text);
        match text.strip_suffix('\n') {
            Some(before) if found && self.line_start => self.is_before_last(before),
            _ => Ok(found),
        }
    }

    /// Whether a match that was found is also there without the newline at the
    /// end. If not, it may hang on a line that starts after it, which is none.
    fn is_before_last(&self, text: &str) -> Result<bool, Fault> {
        if !self.text_end && self.regex.is_match(text) {
            return Ok(true);
        }
        Err(Fault::Unsupported("the start of a line together with the last newline of a text"))
    }
}

/// An expression that was read before, and what became of it.
struct Kept {
    pattern: String,
    flags: Flags,
    compiled: Compiled,
}

thread_local! {
    /// The expressions read last, the newest at the end.
    static KEPT: RefCell<Vec<Kept>> = const { RefCell::new(Vec::new()) };
}

fn with_compiled<T>(
    pattern: &str,
    flags: Flags,
    run: impl FnOnce(&Expression) -> Result<T, Fault>,
) -> Result<T, Fault> {
    KEPT.with_borrow_mut(|kept| {
        let known = kept.iter().position(|k| k.flags == flags && k.pattern == pattern);
        let entry = match known {
            Some(place) => kept.remove(place),
            None => Kept { pattern: pattern.to_owned(), flags, compiled: compile(pattern, flags) },
        };
        if kept.len() >= KEPT_MAX {
            kept.remove(0);
        }
        let outcome = entry.compiled.as_ref().map_err(|fault| *fault).and_then(run);
        kept.push(entry);
        outcome
    })
}

fn compile(pattern: &str, flags: Flags) -> Compiled {
    if pattern.len() > PATTERN_MAX {
        return Err(Fault::Unsupported("more than 16 KB"));
    }
    let Translated { pattern, line_start, text_end } = dialect::translate(pattern, flags)?;
    let built =
        RegexBuilder::new(&pattern).size_limit(PROGRAM_MAX).dfa_size_limit(MEMORY_MAX).build();
    let regex = built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => Fault::Unsupported("repetitions that grow too large"),
        _ => Fault::Unsupported("a construct of another dialect"),
    })?;
    Ok(Expression { regex, line_start, text_end })
}

#[cfg(test)]
mod tests;
