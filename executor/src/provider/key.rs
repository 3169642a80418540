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
use http::{HeaderName, HeaderValue, header};
use memchr::memmem;
use penstock_job::spec::KeySource;
use thiserror::Error;

/// What stands where a key stood.
const REDACTED: &[u8] = b"[API key]";

/// How a request carries the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyHeader {
    name: HeaderName,
    /// What stands before the key.
    scheme: &'static str,
}

/// A key, ready to be sent. It has no way to be printed.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ApiKey {
    value: HeaderValue,
    header: KeyHeader,
}

/// The key of one route, as its source holds it now.
#[derive(Debug)]
pub(super) struct Key {
    source: KeySource,
    header: KeyHeader,
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

impl KeyHeader {
    /// `authorization: Bearer KEY`
    pub(super) const BEARER: Self = Self { name: header::AUTHORIZATION, scheme: "Bearer " };

    /// A header that holds the key alone.
    pub(super) const fn plain(name: HeaderName) -> Self {
        Self { name, scheme: "" }
    }
}

impl ApiKey {
    fn parse(text: &str, header: &KeyHeader) -> Result<Self, KeyProblem> {
        let text = text.trim();
        if text.is_empty() {
            return Err(KeyProblem::Empty);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(KeyProblem::NoKey);
        }
        let mut value =
            HeaderValue::try_from(format!("{}{text}", header.scheme)).map_err(|_| KeyProblem::NoKey)?;
        value.set_sensitive(true);
        Ok(Self { value, header: header.clone() })
    }

    /// The key alone.
    pub(super) fn secret(&self) -> &[u8] {
        self.value
            .as_bytes()
            .strip_prefix(self.header.scheme.as_bytes())
            .expect("invariant: a key is kept with its scheme")
    }

    /// The header that carries it.
    pub(super) fn header(&self) -> (HeaderName, HeaderValue) {
        (self.header.name.clone(), self.value.clone())
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
    pub(super) fn read(source: KeySource, header: KeyHeader) -> Result<Self, KeyError> {
        match read(&source, &header, |name| env::var_os(name)) {
            Ok(key) => Ok(Self { source, header, current: RwLock::new(key) }),
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
        let key = read(&self.source, &self.header, |_| None)
            .map_err(|problem| KeyError { place: self.source.clone(), problem })?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let changed = *current != key;
        *current = key;
        Ok(changed)
    }
}

/// The first of these variables that is set, else the first of all; `None` of none.
pub(super) fn first_set(variables: &[&str]) -> Option<KeySource> {
    let set = variables.iter().find(|name| env::var_os(name).is_some());
    set.or(variables.first()).map(|name| KeySource::Env((*name).to_owned()))
}

fn read(
    source: &KeySource,
    header: &KeyHeader,
    variable: impl FnOnce(&str) -> Option<OsString>,
) -> Result<ApiKey, KeyProblem> {
    match source {
        KeySource::Env(name) => {
            let value = variable(name).ok_or(KeyProblem::NotSet)?;
            ApiKey::parse(value.to_str().ok_or(KeyProblem::NoKey)?, header)
        }
        KeySource::File(path) => {
            let content = fs::read(path).map_err(KeyProblem::Unreadable)?;
            ApiKey::parse(str::from_utf8(&content).map_err(|_| KeyProblem::NoKey)?, header)
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
        read(&place, &KeyHeader::BEARER, |name| value.filter(|_| name == "SOME_KEY").map(Into::into))
            .map_err(|problem| KeyError { place, problem })
    }

    #[test]
    fn a_key_is_trimmed_and_sent_in_its_header() {
        let key = from_variable(Some(" sk-secret\n")).unwrap();
        let (name, value) = key.header();
        assert_eq!((name, value.as_bytes()), (header::AUTHORIZATION, &b"Bearer sk-secret"[..]));
        assert!(value.is_sensitive());
        let plain = KeyHeader::plain(HeaderName::from_static("api-key"));
        let (name, value) = ApiKey::parse("sk-secret", &plain).unwrap().header();
        assert_eq!((name.as_str(), value.as_bytes()), ("api-key", &b"sk-secret"[..]));
        assert!(value.is_sensitive());
    }

    #[test]
    fn of_several_variables_the_first_that_is_set_holds_the_key() {
        // Cargo sets the second one for every test.
        let second = first_set(&["PENSTOCK_TEST_NOT_SET", "CARGO_PKG_NAME"]);
        assert_eq!(second, Some(KeySource::Env("CARGO_PKG_NAME".to_owned())));
        let none_set = first_set(&["PENSTOCK_TEST_NOT_SET", "PENSTOCK_TEST_NOT_SET_EITHER"]);
        assert_eq!(none_set, Some(KeySource::Env("PENSTOCK_TEST_NOT_SET".to_owned())));
        assert_eq!(first_set(&[]), None);
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
        let missing =
            Key::read(KeySource::File("/nowhere/key".into()), KeyHeader::BEARER).unwrap_err().to_string();
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
        let key = Key::read(KeySource::File(path.clone()), KeyHeader::BEARER).unwrap();
        assert!(!key.refresh().unwrap(), "nothing changed");
        fs::write(&path, "second\n").unwrap();
        assert!(key.refresh().unwrap());
        assert_eq!(key.current().header().1, "Bearer second");
        fs::remove_file(&path).unwrap();
        assert!(key.refresh().is_err());
        assert_eq!(key.current().header().1, "Bearer second");
    }

    #[test]
    fn a_text_loses_each_occurrence_of_the_key_and_nothing_else() {
        for header in [KeyHeader::BEARER, KeyHeader::plain(HeaderName::from_static("api-key"))] {
            let key = ApiKey::parse("sk-secret", &header).unwrap();
            let redacted = key.redact(Bytes::from_static(b"bad sk-secret, really: sk-secret!"));
            assert_eq!(redacted, b"bad [API key], really: [API key]!"[..]);
            assert_eq!(key.redact(Bytes::from_static(b"fine")), b"fine"[..]);
        }
    }

    #[test]
    fn a_key_cannot_be_printed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, "sk-secret").unwrap();
        let key = Key::read(KeySource::File(path), KeyHeader::BEARER).unwrap();
        assert!(!format!("{key:?} {:?}", key.current().header()).contains("sk-secret"));
    }
}
