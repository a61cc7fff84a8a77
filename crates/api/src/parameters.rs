//! The parameters of a call: what stands behind the question mark of a URL.
//!
//! They are written as forms write them: `%20` and `+` are a blank. Each may be
//! given once, and none that the call does not have: a typing error must not
//! become a default that nobody notices.

use std::borrow::Cow;

use dayfly_model::{Error, Result};
use percent_encoding::percent_decode_str;

/// The parameters of one call.
#[derive(Debug)]
pub(crate) struct Parameters<'a>(Vec<(Cow<'a, str>, String)>);

impl<'a> Parameters<'a> {
    /// Reads the parameters; only `known` ones are taken.
    pub(crate) fn read(query: &'a str, known: &[&str]) -> Result<Parameters<'a>> {
        let mut found: Vec<(Cow<'a, str>, String)> = Vec::with_capacity(known.len());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name, name)?;
            let value = decode(&name, value)?.into_owned();
            if !known.contains(&&*name) {
                return Err(Error::bad_request(format!(
                    "The parameter '{name}' is not one of this call. {}",
                    told(known)
                )));
            }
            if found.iter().any(|(earlier, _)| *earlier == name) {
                return Err(Error::bad_request(format!(
                    "The parameter '{name}' is given twice; leave out one of the two."
                )));
            }
            found.push((name, value));
        }
        Ok(Parameters(found))
    }

    /// A parameter that may be left out.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// A parameter that the call cannot do without.
    pub(crate) fn need(&self, name: &str) -> Result<&str> {
        self.get(name).filter(|value| !value.is_empty()).ok_or_else(|| {
            Error::bad_request(format!("The parameter '{name}' is missing; this call needs it."))
        })
    }

    /// A whole number from 1 to `max`, or `default` if it is not given.
    pub(crate) fn number(&self, name: &str, default: u32, max: u32) -> Result<u32> {
        let Some(text) = self.get(name) else { return Ok(default) };
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(number) if digits && (1..=max).contains(&number) => Ok(number),
            _ => Err(Error::bad_request(format!(
                "The parameter '{name}' has the value '{text}', but must be a whole number from 1 \
                 to {max}."
            ))),
        }
    }
}

fn decode<'a>(name: &str, text: &'a str) -> Result<Cow<'a, str>> {
    let bytes: Cow<'a, [u8]> = if text.contains('+') {
        percent_decode_str(&text.replace('+', " ")).collect::<Vec<u8>>().into()
    } else {
        percent_decode_str(text).into()
    };
    let text = match bytes {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).map(Cow::Borrowed).ok(),
        Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::Owned).ok(),
    };
    text.ok_or_else(|| {
        Error::bad_request(format!("The parameter '{name}' does not decode to UTF-8."))
    })
}

/// Which parameters there are, for somebody who named another one.
fn told(known: &[&str]) -> String {
    match known {
        [] => "It has none.".to_owned(),
        known => format!("It has: {}.", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_blanks_are_read_as_forms_write_them() {
        let parameters = Parameters::read("&id=a%2Bb+c%20d%3D&%6Bey=%C3%A4&", &["id", "key"]);
        let parameters = parameters.unwrap();
        assert_eq!(parameters.need("id").unwrap(), "a+b c d=");
        assert_eq!(parameters.need("key").unwrap(), "\u{e4}");
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (query, expected) in [
            ("n=1&n=1", "The parameter 'n' is given twice"),
            ("m=1", "The parameter 'm' is not one of this call. It has: n."),
            ("n=%FF", "The parameter 'n' does not decode to UTF-8."),
            ("n=+1", "The parameter 'n' has the value ' 1', but must be a whole number"),
            ("n=%2B1", "The parameter 'n' has the value '+1', but must be a whole number"),
            ("n=0", "The parameter 'n' has the value '0', but must be a whole number from 1 to 9."),
            (
                "n=10",
                "The parameter 'n' has the value '10', but must be a whole number from 1 to 9.",
            ),
            ("n=4294967296", "The parameter 'n' has the value '4294967296', but"),
            ("n=", "The parameter 'n' has the value '', but must be a whole number"),
        ] {
            let outcome = Parameters::read(query, &["n"]).and_then(|some| some.number("n", 7, 9));
            let message = outcome.unwrap_err().message;
            assert!(message.starts_with(expected), "{query}: {message}");
        }
        assert_eq!(Parameters::read("", &["n"]).unwrap().number("n", 7, 9).unwrap(), 7);
        assert!(Parameters::read("n", &["n"]).unwrap().need("n").is_err());
    }
}
