//! API keys: where they come from, and that they are never shown.
//!
//! Owns reading, renewing and redacting. When a key is read again is decided by whoever sees it refused.

use std::{
    env,
    ffi::OsString,
    fmt, fs, io,
    sync::{PoisonError, RwLock},
};

use bytes::Bytes;
use http::HeaderValue;
use memchr::memmem;
use penstock_job::spec::KeySource;
use thiserror::Error;

/// What stands where a key stood.
const REDACTED: &[u8] = b"[API key]";

/// A key, ready to be sent. It has no way to be printed.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ApiKey {
    authorization: HeaderValue,
}

/// The key of one route, as its source holds it now.
#[derive(Debug)]
pub(super) struct Key {
    source: KeySource,
    current: RwLock<ApiKey>,
}

/// A key that cannot be had.
#[derive(Debug, Error)]
#[error("read the API key from {}: {problem}", Place(place))]
pub struct KeyError {
    place: KeySource,
    problem: KeyProblem,
}

/// What is wrong with a key. None of the messages quotes it.
#[derive(Debug, Error)]
enum KeyProblem {
    #[error("it is not set; set it, or name another place with --api-key-env or --api-key-file")]
    NotSet,
    #[error("{0}; make it readable, or name another place with --api-key-file or --api-key-env")]
    Unreadable(io::Error),
    #[error("it is empty; put the key there")]
    Empty,
    #[error("it holds characters that no key has; put the key there alone, on one line")]
    NoKey,
}

impl ApiKey {
    fn parse(text: &str) -> Result<Self, KeyProblem> {
        let text = text.trim();
        if text.is_empty() {
            return Err(KeyProblem::Empty);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(KeyProblem::NoKey);
        }
        let mut authorization =
            HeaderValue::try_from(format!("Bearer {text}")).map_err(|_| KeyProblem::NoKey)?;
        authorization.set_sensitive(true);
        Ok(Self { authorization })
    }

    fn secret(&self) -> &[u8] {
        self.authorization
            .as_bytes()
            .strip_prefix(b"Bearer ")
            .expect("invariant: a key is kept with its scheme")
    }

    /// The value of the `authorization` header.
    pub(super) fn authorization(&self) -> HeaderValue {
        self.authorization.clone()
    }

    /// The text without the key, which some servers repeat when they refuse it.
    pub(super) fn redact(&self, text: Bytes) -> Bytes {
        let finder = memmem::Finder::new(self.secret());
        let mut rest = text.as_ref();
        let mut redacted = Vec::new();
        while let Some(start) = finder.find(rest) {
            redacted.extend_from_slice(&rest[..start]);
            redacted.extend_from_slice(REDACTED);
            rest = &rest[start + finder.needle().len()..];
        }
        if rest.len() == text.len() {
            return text;
        }
        redacted.extend_from_slice(rest);
        redacted.into()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiKey(..)")
    }
}

impl Key {
    /// Reads the key for the first time.
    pub(super) fn read(source: KeySource) -> Result<Self, KeyError> {
        match read(&source, |name| env::var_os(name)) {
            Ok(key) => Ok(Self { source, current: RwLock::new(key) }),
            Err(problem) => Err(KeyError { place: source, problem }),
        }
    }

    /// The key as last read.
    pub(super) fn current(&self) -> ApiKey {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the key again and says whether it is another one. The environment of a process does not change, so a
    /// key from there stays. Where reading fails, the old key stays in force.
    pub(super) fn refresh(&self) -> Result<bool, KeyError> {
        if let KeySource::Env(_) = self.source {
            return Ok(false);
        }
        let key = read(&self.source, |_| None)
            .map_err(|problem| KeyError { place: self.source.clone(), problem })?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let changed = *current != key;
        *current = key;
        Ok(changed)
    }
}

fn read(source: &KeySource, variable: impl FnOnce(&str) -> Option<OsString>) -> Result<ApiKey, KeyProblem> {
    match source {
        KeySource::Env(name) => {
            let value = variable(name).ok_or(KeyProblem::NotSet)?;
            ApiKey::parse(value.to_str().ok_or(KeyProblem::NoKey)?)
        }
        KeySource::File(path) => {
            let content = fs::read(path).map_err(KeyProblem::Unreadable)?;
            ApiKey::parse(str::from_utf8(&content).map_err(|_| KeyProblem::NoKey)?)
        }
    }
}

/// Names a source in a message.
struct Place<'a>(&'a KeySource);

impl fmt::Display for Place<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            KeySource::Env(name) => write!(formatter, "the variable {name}"),
            KeySource::File(path) => write!(formatter, "the file {}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_variable(value: Option<&str>) -> Result<ApiKey, KeyError> {
        let place = KeySource::Env("SOME_KEY".to_owned());
        read(&place, |name| value.filter(|_| name == "SOME_KEY").map(Into::into))
            .map_err(|problem| KeyError { place, problem })
    }

    #[test]
    fn a_key_is_trimmed_and_sent_as_bearer() {
        let key = from_variable(Some(" sk-secret\n")).unwrap();
        assert_eq!(key.authorization(), "Bearer sk-secret");
        assert!(key.authorization().is_sensitive());
    }

    #[test]
    fn a_missing_or_impossible_key_is_refused_with_its_place_and_without_its_text() {
        for (value, says) in [
            (None, "the variable SOME_KEY: it is not set"),
            (Some(" \n"), "it is empty"),
            (Some("sk-one\nsk-two"), "no key has"),
            (Some("sk-schlüssel"), "no key has"),
        ] {
            let refused = from_variable(value).unwrap_err().to_string();
            assert!(refused.contains(says) && !refused.contains("sk-"), "{refused}");
        }
        let missing = Key::read(KeySource::File("/nowhere/key".into())).unwrap_err().to_string();
        assert!(
            missing.contains("the file /nowhere/key: ") && missing.contains("--api-key-file"),
            "{missing}"
        );
    }

    #[test]
    fn a_key_file_is_read_again_and_a_broken_one_leaves_the_old_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, "first").unwrap();
        let key = Key::read(KeySource::File(path.clone())).unwrap();
        assert!(!key.refresh().unwrap(), "nothing changed");
        fs::write(&path, "second\n").unwrap();
        assert!(key.refresh().unwrap());
        assert_eq!(key.current().authorization(), "Bearer second");
        fs::remove_file(&path).unwrap();
        assert!(key.refresh().is_err());
        assert_eq!(key.current().authorization(), "Bearer second");
    }

    #[test]
    fn a_text_loses_each_occurrence_of_the_key_and_nothing_else() {
        let key = ApiKey::parse("sk-secret").unwrap();
        let redacted = key.redact(Bytes::from_static(b"bad sk-secret, really: sk-secret!"));
        assert_eq!(redacted, b"bad [API key], really: [API key]!"[..]);
        assert_eq!(key.redact(Bytes::from_static(b"fine")), b"fine"[..]);
    }

    #[test]
    fn a_key_cannot_be_printed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, "sk-secret").unwrap();
        let key = Key::read(KeySource::File(path)).unwrap();
        assert!(!format!("{key:?} {:?}", key.current().authorization()).contains("sk-secret"));
    }
}
