//! What is logged, and what `DAYFLY_LOG` may say about it.
//!
//! ```text
//! info                        everything of this level and above
//! warn,dayfly_storage=debug   more of one part
//! warn,requests               and a line for each request
//! ```
//!
//! A line for each request is much, so there is one only where `requests` is named: no
//! level alone asks for it.
//!
//! The filter underneath takes any word for the name of a part, so that `inof` would
//! log nothing that was wanted and say nothing about it. Here it is refused.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::EnvFilter;

/// A variable that is read before the settings: what to log.
pub(crate) const VARIABLE: &str = "DAYFLY_LOG";

/// Warnings and errors, and what changes the life of many items.
const DEFAULT: &str = "warn,audit=info";

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The parts that log something.
const PARTS: [&str; 7] =
    ["audit", REQUESTS, "dayfly", "dayfly_api", "dayfly_engine", "dayfly_storage", "h2"];

/// The part that has a line for each request.
const REQUESTS: &str = "requests";

/// Logs to the standard error what the environment asks for; if it does not, what is
/// `usual`, if anything is.
pub(crate) fn start(usual: Option<&str>) -> Result<(), String> {
    let wanted = std::env::var(VARIABLE).unwrap_or_default();
    let is_empty = wanted.trim_matches([',', ' ']).is_empty();
    let wanted = if is_empty { usual.unwrap_or(DEFAULT) } else { &wanted };
    let filter = EnvFilter::try_new(checked(wanted)?).map_err(|_| refusal(wanted))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr)
        .init();
    Ok(())
}

/// The words, each of which is known, without blanks between them.
fn checked(wanted: &str) -> Result<String, String> {
    let words: Vec<_> = wanted.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    match words.iter().find(|word| !is_good(word)) {
        Some(word) => Err(refusal(word)),
        None if words.iter().any(|word| part_of(word) == REQUESTS) => Ok(words.join(",")),
        None => Ok(format!("{},{REQUESTS}=off", words.join(","))),
    }
}

/// What stands before the level, if there is one.
fn part_of(word: &str) -> &str {
    word.split('=').next().unwrap_or(word)
}

fn is_good(word: &str) -> bool {
    let is_level = |word: &str| LEVELS.iter().any(|level| level.eq_ignore_ascii_case(word));
    match word.split_once('=') {
        Some((part, level)) => is_part(part) && is_level(level),
        None => is_level(word) || is_part(word),
    }
}

/// Whether this is a part, or a module of one.
fn is_part(word: &str) -> bool {
    let (part, modules) = word.split_once("::").unwrap_or((word, "all"));
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    PARTS.contains(&part) && modules.split("::").all(is_name)
}

fn refusal(word: &str) -> String {
    format!(
        "{VARIABLE} has '{word}', which is nothing that can be logged: give a level ({}), or \
         PART=LEVEL with a part of {}, separated by commas.",
        LEVELS.join(", "),
        PARTS.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_not_known_is_refused_with_those_that_are() {
        for good in [
            DEFAULT,
            "info",
            "DEBUG",
            "off",
            "warn,dayfly_storage=debug",
            "dayfly::listen=trace, h2=info,",
            "audit",
            "requests",
            "warn,requests",
        ] {
            let filter = checked(good).unwrap();
            assert!(EnvFilter::try_new(&filter).is_ok(), "{good}: {filter}");
            let off = EnvFilter::try_new(&filter).unwrap().to_string().contains("requests=off");
            assert_eq!(off, !good.contains("requests"), "{good}");
        }
        for (wrong, word) in [
            ("inof", "inof"),
            ("warn,storage=debug", "storage=debug"),
            ("dayfly=loud", "dayfly=loud"),
            ("a=b=c", "a=b=c"),
            ("dayfly::=info", "dayfly::=info"),
            ("dayfly[x]=info", "dayfly[x]=info"),
            ("3", "3"),
        ] {
            let sentence = checked(wrong).unwrap_err();
            assert!(sentence.starts_with(&format!("DAYFLY_LOG has '{word}', ")), "{sentence}");
            assert!(sentence.contains("off, error, warn, info, debug, trace"), "{sentence}");
            assert!(sentence.contains("audit, requests, dayfly, "), "{sentence}");
        }
    }
}
