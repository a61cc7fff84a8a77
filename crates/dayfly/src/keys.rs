//! Which keys the account has, where they are read, and which are refused.
//!
//! A key is long and is copied by hand, through terminals, files and secrets of a
//! cluster: blanks and line ends in it are nobody's intention, and are left out
//! wherever it comes from.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use dayfly_api::AccountKeys;

use crate::address::Listen;
use crate::files;

/// The key that every emulator of the service uses. Everybody knows it.
pub(crate) const WELL_KNOWN_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// The shortest key that is not guessed, in bytes after decoding.
const KEY_BYTES_MIN: usize = 16;

/// The longest file that is read as a key.
const FILE_BYTES_MAX: u64 = 4096;

/// Where the keys come from.
#[derive(Clone)]
pub(crate) struct KeySource {
    pub(crate) key: Option<String>,
    pub(crate) file: Option<PathBuf>,
    pub(crate) secondary: Option<String>,
    pub(crate) read_only: Option<String>,
    /// The first address that other machines can connect to.
    pub(crate) network: Option<Listen>,
}

impl KeySource {
    /// The keys as they are now, or the sentence that refuses them.
    pub(crate) fn read(&self) -> Result<AccountKeys, String> {
        let (flag, primary) = match (&self.key, &self.file) {
            (Some(_), Some(_)) => {
                return Err(
                    "Both --key and --key-file give the key: leave out one of the two.".to_owned()
                );
            }
            (Some(key), None) => ("--key", key.clone()),
            (None, Some(path)) => {
                let text = files::read(path, "--key-file", FILE_BYTES_MAX)?;
                ("--key-file", without_blanks(&text))
            }
            (None, None) => ("--key", WELL_KNOWN_KEY.to_owned()),
        };
        let keys = AccountKeys {
            primary,
            secondary: self.secondary.clone(),
            read_only: self.read_only.clone(),
        };
        self.check(flag, &keys)?;
        Ok(keys)
    }

    /// Whether the user gave the key; then it is never printed.
    pub(crate) fn is_own(&self) -> bool {
        self.key.is_some() || self.file.is_some()
    }

    fn check(&self, flag: &str, keys: &AccountKeys) -> Result<(), String> {
        let well_known = BASE64.decode(WELL_KNOWN_KEY).ok();
        let primary = Some(decode(flag, &keys.primary)?);
        let secondary =
            keys.secondary.as_deref().map(|key| decode("--secondary-key", key)).transpose()?;
        let read_only =
            keys.read_only.as_deref().map(|key| decode("--read-only-key", key)).transpose()?;
        if let Some(address) = self.network
            && [&primary, &secondary, &read_only].contains(&&well_known)
        {
            return Err(format!(
                "The key that every emulator uses is known to everybody and is refused on the \
                 network address {address}: give a key of your own with --key, or listen on \
                 localhost."
            ));
        }
        if read_only.is_some() && (read_only == primary || read_only == secondary) {
            return Err("The read-only key is the same as a key that writes, so it would write \
                        too: give another one with --read-only-key, or leave it out."
                .to_owned());
        }
        Ok(())
    }
}

impl fmt::Debug for KeySource {
    /// Nothing of a key stands in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySource").finish_non_exhaustive()
    }
}

/// A key as it was typed, for clap.
#[expect(clippy::unnecessary_wraps, reason = "clap asks for it")]
pub(crate) fn typed(text: &str) -> Result<String, Infallible> {
    Ok(without_blanks(text))
}

fn without_blanks(text: &str) -> String {
    text.split_whitespace().collect()
}

/// The bytes of a key that was given with `flag`, or the sentence that refuses it.
pub(crate) fn decode(flag: &str, key: &str) -> Result<Vec<u8>, String> {
    let bytes = BASE64
        .decode(key)
        .map_err(|_| format!("The key of {flag} is not base64: make one with `dayfly key`."))?;
    if bytes.len() < KEY_BYTES_MIN {
        return Err(format!(
            "The key of {flag} has {} bytes, fewer than {KEY_BYTES_MIN}: \
             make one with `dayfly key`.",
            bytes.len()
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const OWN: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

    fn of_file(path: &Path) -> Result<String, String> {
        let file = Some(path.to_owned());
        let source = KeySource { key: None, file, secondary: None, read_only: None, network: None };
        source.read().map(|keys| keys.primary)
    }

    #[test]
    fn blanks_in_a_key_are_left_out() {
        let (half, rest) = OWN.split_at(20);
        assert_eq!(typed(&format!(" {half}\r\n\t{rest}\n")).unwrap(), OWN);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, format!("{half}\n{rest}\n\n")).unwrap();
        assert_eq!(of_file(&path).unwrap(), OWN);
    }

    #[test]
    fn a_file_that_is_no_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let refusal = || of_file(&path).unwrap_err();
        assert!(refusal().contains("of --key-file cannot be used: "), "{}", refusal());
        std::fs::write(&path, "x".repeat(5000)).unwrap();
        assert!(refusal().ends_with("it has more than 4096 bytes."), "{}", refusal());
        std::fs::write(&path, "!").unwrap();
        assert!(refusal().starts_with("The key of --key-file is not base64"), "{}", refusal());
    }
}
