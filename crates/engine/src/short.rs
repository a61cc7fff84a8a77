//! Short parts of rows and tokens, one behind the other: the length in two bytes, then that
//! many bytes.

use std::ops::Range;

use bytes::{Buf, BufMut};

/// Appends a part, and says where it is.
pub(crate) fn put_short(bytes: &mut Vec<u8>, part: &[u8]) -> Range<usize> {
    debug_assert!(u16::try_from(part.len()).is_ok());
    bytes.put_u16(u16::try_from(part.len()).unwrap_or(u16::MAX));
    let start = bytes.len();
    bytes.put_slice(part);
    start..bytes.len()
}

/// Takes the next part of what is left.
pub(crate) fn take_short<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = usize::from(rest.try_get_u16().ok()?);
    let (part, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(part)
}
