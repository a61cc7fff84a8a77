//! Tokens: how a frame writes its values. A codec that knows bytes and nothing else.
//!
//! ```text
//! id: u16   form: u8   value        all numbers little endian
//! ```
//!
//! What a text or a run of bytes says of its own length is believed only within the
//! frame's head, which is in memory already: nothing is set aside for it.

use std::ops::Range;

use bytes::Bytes;

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Form {
    Byte,
    UShort,
    /// Four bytes, in spite of its name.
    ULong,
    /// Four bytes, too.
    Long,
    ULongLong,
    LongLong,
    Guid,
    SmallString,
    String,
    ULongString,
    SmallBytes,
    Bytes,
    ULongBytes,
    Float,
    Double,
}

const FORMS: [Form; 15] = [
    Form::Byte,
    Form::UShort,
    Form::ULong,
    Form::Long,
    Form::ULongLong,
    Form::LongLong,
    Form::Guid,
    Form::SmallString,
    Form::String,
    Form::ULongString,
    Form::SmallBytes,
    Form::Bytes,
    Form::ULongBytes,
    Form::Float,
    Form::Double,
];

impl Form {
    fn of(number: u8) -> Option<Form> {
        FORMS.get(usize::from(number)).copied()
    }

    fn is_text(self) -> bool {
        matches!(self, Form::SmallString | Form::String | Form::ULongString)
    }

    /// How many bytes say how long the value is, or how long it is.
    fn size(self) -> Result<usize, usize> {
        match self {
            Form::Byte => Ok(1),
            Form::UShort => Ok(2),
            Form::ULong | Form::Long | Form::Float => Ok(4),
            Form::ULongLong | Form::LongLong | Form::Double => Ok(8),
            Form::Guid => Ok(16),
            Form::SmallString | Form::SmallBytes => Err(1),
            Form::String | Form::Bytes => Err(2),
            Form::ULongString | Form::ULongBytes => Err(4),
        }
    }
}

/// The frame cannot be read, and nothing that comes after it can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Which forms the tokens of a frame have: a hexadecimal digit for each id from 0 on, and
/// a dot for an id that nobody has.
pub(super) struct Forms(pub(super) &'static [u8]);

impl Forms {
    /// How many ids there are.
    const COUNT: usize = 0x107;

    /// Whether a token is known; and if it is, it must be of its form. One number is signed
    /// in one SDK and unsigned in another.
    fn knows(&self, id: u16, form: Form) -> Result<bool, Malformed> {
        const SIGNED_OR_NOT: u16 = 0x0059;
        let digit = self.0.get(usize::from(id)).map(|digit| char::from(*digit));
        let Some(known) = digit.and_then(|digit| digit.to_digit(16)) else { return Ok(false) };
        let is_it = known == form as u32 || (id == SIGNED_OR_NOT && form == Form::Long);
        if is_it { Ok(true) } else { Err(Malformed) }
    }
}

/// The tokens of a frame that are known.
#[derive(Debug)]
pub(super) struct Tokens {
    bytes: Bytes,
    known: Vec<(u16, Range<usize>)>,
}

impl Tokens {
    /// Reads all tokens, to the end of `bytes`. Unknown ones are passed by their form, as often
    /// as they come: nothing of them is kept, so two of them cannot contradict each other.
    pub(super) fn read(bytes: Bytes, forms: &Forms) -> Result<Tokens, Malformed> {
        let mut known = Vec::with_capacity(24);
        let mut seen = [0_u64; Forms::COUNT.div_ceil(64)];
        let mut at = 0;
        while at < bytes.len() {
            let [low, high, form] = fixed(&bytes, at)?;
            let (id, form) = (u16::from_le_bytes([low, high]), Form::of(form).ok_or(Malformed)?);
            at += 3;
            let size = match form.size() {
                Ok(size) => size,
                Err(of_length) => {
                    let length = length(bytes.get(at..at + of_length).ok_or(Malformed)?);
                    at += of_length;
                    length
                }
            };
            let end = at.checked_add(size).ok_or(Malformed)?;
            let value = bytes.get(at..end).ok_or(Malformed)?;
            if form.is_text() && std::str::from_utf8(value).is_err() {
                return Err(Malformed);
            }
            if forms.knows(id, form)? {
                let (word, bit) = (usize::from(id / 64), 1 << (id % 64));
                let word = seen.get_mut(word).ok_or(Malformed)?;
                if *word & bit != 0 {
                    return Err(Malformed);
                }
                *word |= bit;
                known.push((id, at..end));
            }
            at = end;
        }
        Ok(Tokens { bytes, known })
    }

    /// The bytes of a value.
    pub(super) fn bytes(&self, id: u16) -> Option<&[u8]> {
        let (_, place) = self.known.iter().find(|(known, _)| *known == id)?;
        self.bytes.get(place.clone())
    }

    /// A value that is a text.
    pub(super) fn text(&self, id: u16) -> Option<&str> {
        std::str::from_utf8(self.bytes(id)?).ok()
    }

    /// A value that is a number, which no token we read needs a sign for.
    pub(super) fn number(&self, id: u16) -> Option<u64> {
        let bytes = self.bytes(id)?;
        let mut number = [0; 8];
        number.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(number))
    }
}

fn fixed<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], Malformed> {
    bytes.get(at..).and_then(|rest| rest.first_chunk().copied()).ok_or(Malformed)
}

fn length(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte))
}

/// Where tokens are written, one after the other.
#[derive(Debug)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    fn put(&mut self, id: u16, form: Form, value: &[u8]) {
        self.0.extend_from_slice(&id.to_le_bytes());
        self.0.push(form as u8);
        self.0.extend_from_slice(value);
    }

    pub(super) fn byte(&mut self, id: u16, value: u8) {
        self.put(id, Form::Byte, &[value]);
    }

    pub(super) fn ulong(&mut self, id: u16, value: u32) {
        self.put(id, Form::ULong, &value.to_le_bytes());
    }

    /// A number that others read with a sign; none of ours is that large.
    pub(super) fn longlong(&mut self, id: u16, value: u64) {
        self.put(id, Form::LongLong, &value.to_le_bytes());
    }

    pub(super) fn double(&mut self, id: u16, value: f64) {
        self.put(id, Form::Double, &value.to_le_bytes());
    }

    #[cfg(test)]
    pub(super) fn bytes(&mut self, id: u16, bytes: &[u8]) {
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        self.put(id, Form::Bytes, &length.to_le_bytes());
        self.0.extend_from_slice(bytes);
    }

    /// A short text. What is longer than one can be is left out.
    pub(super) fn small_text(&mut self, id: u16, text: &str) {
        if let Ok(length) = u8::try_from(text.len()) {
            self.put(id, Form::SmallString, &[length]);
            self.0.extend_from_slice(text.as_bytes());
        }
    }

    /// A text. What is longer than one can be is left out.
    pub(super) fn text(&mut self, id: u16, text: &[u8]) {
        if let Ok(length) = u16::try_from(text.len()) {
            self.put(id, Form::String, &length.to_le_bytes());
            self.0.extend_from_slice(text);
        }
    }
}
