//! Logins: a key is given once, and a token stands for it from then on.
//!
//! A page in a browser must not keep a key. It gives the key, or a code that somebody with
//! the key asked for, and gets a token with the rights of that key. A token ends when it was
//! not used for half a day, when [`SESSIONS_MAX`] others came after it, when the keys are
//! read again, and with the server. A code is good once, and for a minute.
//!
//! Only hashes of tokens and codes are kept, and how long a comparison takes says nothing
//! of them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use dayfly_engine::Caller;
use dayfly_model::{Error, ErrorKind, Result};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// How many sessions there are at most; the oldest goes for a new one.
const SESSIONS_MAX: usize = 64;

/// How many codes wait to be used, at most.
const CODES_MAX: usize = 64;

/// How long a session lasts that is not used.
pub(crate) const IDLE: Duration = Duration::from_hours(12);

/// How long a code is good.
pub(crate) const CODE_LIFE: Duration = Duration::from_mins(1);

/// How many random bytes a token or a code has.
const SECRET_BYTES: usize = 32;

/// All sessions, and the codes that may become one.
#[derive(Default)]
pub(crate) struct Sessions {
    sessions: Mutex<Vec<Secret>>,
    codes: Mutex<Vec<Secret>>,
}

/// A token or a code.
struct Secret {
    hash: [u8; 32],
    /// Whose rights it has.
    caller: Caller,
    /// When it was made or used last.
    since: Instant,
}

impl Sessions {
    /// A token with the rights of `caller`.
    pub(crate) fn open(&self, caller: Caller, now: Instant) -> Result<String> {
        let token = add(&mut lock(&self.sessions), SESSIONS_MAX, IDLE, caller, now)?;
        tracing::info!(target: "audit", by = caller.name(), "a session was opened");
        Ok(token)
    }

    /// Whose rights a token has. It is used, and so lasts longer.
    pub(crate) fn caller(&self, token: &str, now: Instant) -> Option<Caller> {
        let mut sessions = fresh(&self.sessions, IDLE, now);
        let session = find(&sessions, token).and_then(|place| sessions.get_mut(place))?;
        session.since = now;
        Some(session.caller)
    }

    /// Whether a token is good, without using it.
    pub(crate) fn is_open(&self, token: &str, now: Instant) -> bool {
        find(&fresh(&self.sessions, IDLE, now), token).is_some()
    }

    /// Ends a session. Whether there was one.
    pub(crate) fn close(&self, token: &str, now: Instant) -> bool {
        take(&mut fresh(&self.sessions, IDLE, now), token).is_some()
    }

    /// A code for one session with the rights of `caller`.
    pub(crate) fn make_code(&self, caller: Caller, now: Instant) -> Result<String> {
        add(&mut lock(&self.codes), CODES_MAX, CODE_LIFE, caller, now)
    }

    /// Whose rights a code gives. It is good no more.
    pub(crate) fn redeem(&self, code: &str, now: Instant) -> Option<Caller> {
        take(&mut fresh(&self.codes, CODE_LIFE, now), code).map(|code| code.caller)
    }

    /// Ends all sessions, and forgets all codes: their keys may be good no more.
    pub(crate) fn forget_all(&self) {
        lock(&self.codes).clear();
        lock(&self.sessions).clear();
    }
}

fn lock(secrets: &Mutex<Vec<Secret>>) -> MutexGuard<'_, Vec<Secret>> {
    secrets.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Those that have not ended.
fn fresh(
    secrets: &Mutex<Vec<Secret>>,
    life: Duration,
    now: Instant,
) -> MutexGuard<'_, Vec<Secret>> {
    let mut secrets = lock(secrets);
    secrets.retain(|secret| now.saturating_duration_since(secret.since) < life);
    secrets
}

/// Makes a secret that nobody can guess.
fn add(
    secrets: &mut Vec<Secret>,
    most: usize,
    life: Duration,
    caller: Caller,
    now: Instant,
) -> Result<String> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes)
        .map_err(|_| Error::new(ErrorKind::Internal, "The system gives no random bytes."))?;
    let text = URL_SAFE_NO_PAD.encode(bytes);
    secrets.retain(|secret| now.saturating_duration_since(secret.since) < life);
    // The oldest stand first.
    let over = (secrets.len() + 1).saturating_sub(most);
    secrets.drain(..over.min(secrets.len()));
    secrets.push(Secret { hash: hash(&text), caller, since: now });
    Ok(text)
}

fn take(secrets: &mut Vec<Secret>, text: &str) -> Option<Secret> {
    find(secrets, text).map(|place| secrets.remove(place))
}

/// Where a secret is. All are compared, wherever it is.
fn find(secrets: &[Secret], text: &str) -> Option<usize> {
    let hash = hash(text);
    let same = |secret: &Secret| bool::from(secret.hash.ct_eq(&hash));
    (0..).zip(secrets).fold(None, |found, (place, secret)| {
        let is_it = same(secret);
        if is_it { Some(place) } else { found }
    })
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Instant {
        crate::instant()
    }

    #[test]
    fn a_token_has_the_rights_of_its_key_until_nobody_used_it_for_half_a_day() {
        let (sessions, begin) = (Sessions::default(), start());
        let token = sessions.open(Caller::ReadOnly, begin).unwrap();
        assert_eq!(URL_SAFE_NO_PAD.decode(&token).unwrap().len(), SECRET_BYTES);
        let nearly = IDLE.saturating_sub(Duration::from_secs(1));
        for used in [begin + nearly, begin + nearly + nearly] {
            assert_eq!(sessions.caller(&token, used), Some(Caller::ReadOnly));
        }
        let end = begin + nearly + nearly + IDLE;
        assert!(sessions.is_open(&token, begin + nearly + nearly));
        assert!(!sessions.is_open(&token, end));
        assert_eq!(sessions.caller(&token, end), None);
        assert_eq!(sessions.caller(&token, begin), None, "it does not come back");
    }

    #[test]
    fn what_was_closed_or_never_opened_is_none() {
        let (sessions, now) = (Sessions::default(), start());
        let [first, second] = [0, 1].map(|_| sessions.open(Caller::Primary, now).unwrap());
        assert_ne!(first, second);
        assert!(sessions.close(&first, now));
        assert!(!sessions.close(&first, now));
        assert_eq!(sessions.caller(&first, now), None);
        assert_eq!(sessions.caller("", now), None);
        assert_eq!(sessions.caller(&second, now), Some(Caller::Primary));
        sessions.forget_all();
        assert_eq!(sessions.caller(&second, now), None);
    }

    #[test]
    fn the_oldest_of_many_goes() {
        let (sessions, now) = (Sessions::default(), start());
        let tokens: Vec<String> =
            (0..=SESSIONS_MAX).map(|_| sessions.open(Caller::Primary, now).unwrap()).collect();
        assert_eq!(sessions.caller(&tokens[0], now), None);
        assert!(tokens[1..].iter().all(|token| sessions.caller(token, now).is_some()));
    }

    #[test]
    fn a_code_is_good_once_and_for_a_minute() {
        let (sessions, now) = (Sessions::default(), start());
        let code = sessions.make_code(Caller::Secondary, now).unwrap();
        assert_eq!(sessions.caller(&code, now), None, "a code is no token");
        assert_eq!(sessions.redeem(&code, now), Some(Caller::Secondary));
        assert_eq!(sessions.redeem(&code, now), None);
        let code = sessions.make_code(Caller::Primary, now).unwrap();
        assert_eq!(sessions.redeem(&code, now + CODE_LIFE), None);
    }
}
