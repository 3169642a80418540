//! Names of objects, checked once.
//!
//! The rules are those that every backend can keep; a backend may refuse more.

use std::borrow::Cow;
use std::fmt;

/// The longest name in bytes, which is what object stores allow.
const MAX_BYTES: usize = 1024;

/// The longest segment in bytes: a file name may have 255, and a folder keeps `<name>.meta` beside the object.
const MAX_SEGMENT_BYTES: usize = 250;

/// The folder that a `file://` store keeps to itself; no object may be in it on any backend.
pub(crate) const RESERVED: &str = ".penstock";

/// A name below the output: segments joined by `/`, none of them empty, `.` or `..`, without control characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName(Cow<'static, str>);

impl ObjectName {
    /// Checks a name that comes from outside or is put together at run time.
    pub fn parse(name: impl Into<String>) -> Result<Self, InvalidName> {
        let name = name.into();
        match broken_rule(&name) {
            None => Ok(Self(Cow::Owned(name))),
            Some(rule) => Err(InvalidName { name, rule }),
        }
    }

    /// A name that stands in the source.
    ///
    /// # Panics
    /// If it breaks a rule, which is a defect of the program.
    pub fn from_static(name: &'static str) -> Self {
        if let Some(rule) = broken_rule(name) {
            panic!("the object name `{name}` {rule}");
        }
        Self(Cow::Borrowed(name))
    }

    /// The whole name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl TryFrom<String> for ObjectName {
    type Error = InvalidName;

    fn try_from(name: String) -> Result<Self, InvalidName> {
        Self::parse(name)
    }
}

/// A name that no backend takes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("use the object name `{name}`: it {rule}; choose another name")]
pub struct InvalidName {
    name: String,
    rule: &'static str,
}

impl InvalidName {
    /// The name, and the rule that it breaks as a fragment that follows "it".
    pub fn into_parts(self) -> (String, &'static str) {
        (self.name, self.rule)
    }
}

fn broken_rule(name: &str) -> Option<&'static str> {
    if name.len() > MAX_BYTES {
        return Some("is longer than 1024 bytes");
    }
    if name.chars().any(char::is_control) {
        return Some("has a control character");
    }
    if name.split('/').next() == Some(RESERVED) {
        return Some("is in the folder `.penstock`, which the store keeps to itself");
    }
    name.split('/').find_map(|segment| match segment {
        "" => Some("has an empty segment"),
        "." | ".." => Some("has a segment `.` or `..`"),
        _ if segment.len() > MAX_SEGMENT_BYTES => Some("has a segment longer than 250 bytes"),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_protocol_and_odd_but_harmless_ones_are_taken() {
        for name in [
            "state.json",
            "parts/00000001-00000002-r.jsonl",
            "ä b/%2F#?.json",
            "..a/b..",
            "-",
            ".penstocks/a",
        ] {
            assert_eq!(ObjectName::parse(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn names_that_could_leave_the_output_or_enter_the_stores_own_folder_are_refused() {
        let long_segment = "a".repeat(251);
        let long_name = "a/".repeat(512) + "a";
        for name in [
            "",
            "/",
            "/etc/passwd",
            "a//b",
            "a/",
            "..",
            "a/../b",
            "./a",
            "a\nb",
            "a\0b",
            ".penstock",
            ".penstock/lock",
        ]
        .into_iter()
        .chain([long_segment.as_str(), long_name.as_str()])
        {
            assert!(ObjectName::parse(name).is_err(), "{name:?} was taken");
        }
    }

    #[test]
    fn a_refusal_names_the_name_the_rule_and_what_to_do() {
        let refusal = ObjectName::parse("a/../b").unwrap_err().to_string();
        assert_eq!(
            refusal,
            "use the object name `a/../b`: it has a segment `.` or `..`; choose another name"
        );
    }
}
