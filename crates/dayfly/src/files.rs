//! Small files that are read whole: keys and certificates.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The text of a file that was given with `flag` and has at most `bytes_max` bytes.
pub(crate) fn read(path: &Path, flag: &str, bytes_max: u64) -> Result<String, String> {
    let mut text = String::new();
    let read = File::open(path)
        .and_then(|file| file.take(bytes_max.saturating_add(1)).read_to_string(&mut text));
    let why = match read {
        Ok(length) if u64::try_from(length).is_ok_and(|length| length <= bytes_max) => {
            return Ok(text);
        }
        Ok(_) => format!("it has more than {bytes_max} bytes"),
        Err(error) => error.to_string(),
    };
    Err(format!("The file {} of {flag} cannot be used: {why}.", path.display()))
}
