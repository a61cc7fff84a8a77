//! Where the reading stands in the bytes of a body.
//!
//! The cursor has an end, which is that of the array or object around it: a
//! value cannot reach past what holds it.

use crate::error::{Error, Result};

/// A place in a body, and the place where reading has to stop.
pub(super) struct Cursor<'a> {
    body: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    /// At the start of a body.
    pub(super) fn new(body: &'a [u8]) -> Self {
        Cursor { body, at: 0, end: body.len() }
    }

    /// At an earlier place; reading there has to stop where this cursor is.
    pub(super) fn back_at(&self, at: usize) -> Self {
        Cursor { body: self.body, at, end: self.at }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.end
    }

    /// Ends after `length` more bytes, and says where the end was before.
    pub(super) fn end_after(&mut self, length: usize) -> Result<usize> {
        match self.at.checked_add(length) {
            Some(end) if end <= self.end => Ok(std::mem::replace(&mut self.end, end)),
            _ => Err(self.too_short()),
        }
    }

    pub(super) fn set_end(&mut self, end: usize) {
        self.end = end;
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let left = self.body.get(self.at..self.end).unwrap_or_default();
        let taken = left.get(..count).ok_or_else(|| self.too_short())?;
        self.at += count;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.first_chunk().copied().ok_or_else(|| self.too_short())
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        self.array().map(|[byte]| byte)
    }

    /// A length, count or offset of up to four bytes.
    pub(super) fn unsigned(&mut self, width: usize) -> Result<usize> {
        let bytes = self.take(width)?;
        Ok(bytes.iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte)))
    }

    /// The body is wrong, here.
    pub(super) fn fault(&self, reason: &str) -> Error {
        Error::bad_request(format!(
            "The input content is invalid because it is not valid binary JSON: {reason}, \
             before byte {}.",
            self.at
        ))
    }

    /// No value begins with this byte, or not here.
    pub(super) fn unknown(&self, marker: u8) -> Error {
        self.fault(&format!("0x{marker:02X} does not begin a value that can be here"))
    }

    fn too_short(&self) -> Error {
        self.fault("a value is longer than the bytes that are left for it")
    }
}
