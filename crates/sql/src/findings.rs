//! Everything that is wrong in a query, in the order in which the service tells it.
//!
//! ```text
//! what its compiler finds     a code and a place each, and all of them are told
//! too many joins or calls     a code, only of a query that compiles
//! an order by no path         the code 2206, only of one that is within the limits
//! what else cannot be done    a sentence, only if nothing has a code
//! ```
//!
//! The walk over the tree goes from the inside out, so that what is wrong in a
//! subquery is told before what is wrong around it.

use crate::error::SyntaxError;
use crate::tree::Span;

/// So many findings are told at once.
const FINDINGS_MAX: usize = 16;

/// What was found to be wrong in a text.
pub(crate) struct Findings<'t> {
    pub(crate) text: &'t str,
    /// Those with codes.
    list: Vec<SyntaxError>,
    /// The first one without a code.
    sentence: Option<SyntaxError>,
}

impl<'t> Findings<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Findings { text, list: Vec::new(), sentence: None }
    }

    pub(crate) fn add(&mut self, code: &'static str, message: impl Into<String>, span: Span) {
        if self.list.len() < FINDINGS_MAX {
            self.list.push(SyntaxError::new(code, message, self.text, span));
        }
    }

    /// Something for which the service has no code that we know.
    pub(crate) fn add_without_code(&mut self, message: impl Into<String>, span: Span) {
        if self.sentence.is_none() {
            self.sentence = Some(SyntaxError::without_code(message, self.text, span));
        }
    }

    /// Whether nothing with a code was found.
    pub(crate) fn compiles(&self) -> bool {
        self.list.is_empty()
    }

    /// All that have codes, or else the sentence.
    pub(crate) fn outcome(self) -> Result<(), SyntaxError> {
        let mut list = self.list.into_iter();
        match list.next() {
            Some(first) => Err(SyntaxError { more: list.collect(), ..first }),
            None => self.sentence.map_or(Ok(()), Err),
        }
    }
}
