//! `dayfly key`: a new key that nobody can guess.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::print;

/// As long as the keys of the service.
const KEY_BYTES: usize = 64;

/// Prints a new key.
pub(super) fn run() -> Result<(), String> {
    print(&format!("{}\n", make()?)).map(drop)
}

fn make() -> Result<String, String> {
    let mut bytes = [0; KEY_BYTES];
    rustls::crypto::ring::default_provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| "The system gives no random bytes.".to_owned())?;
    Ok(BASE64.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_keys_are_the_same() {
        let (first, second) = (make().unwrap(), make().unwrap());
        assert_ne!(first, second);
        assert_eq!(BASE64.decode(first).unwrap().len(), KEY_BYTES);
    }
}
