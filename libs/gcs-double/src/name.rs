//! Names of buckets and objects: what the service accepts as one.
//!
//! The rules are those of the pages "Bucket naming requirements" and "Object naming requirements".

use std::{borrow::Borrow, fmt, sync::Arc};

use crate::bucket::Refusal;

/// The most bytes of an object's name, in UTF-8.
const LONGEST_OBJECT_NAME: usize = 1024;

/// The name of a bucket.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BucketName(Arc<str>);

/// A name that no bucket can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Invalid bucket name: '{0}'")]
pub struct InvalidBucketName(String);

/// The name of an object in its bucket.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectName(Arc<str>);

impl BucketName {
    /// Reads a name: 3 to 63 of `a-z0-9-_.` that begin and end with a letter or a digit.
    pub fn parse(name: &str) -> Result<Self, InvalidBucketName> {
        let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = name.as_bytes();
        let ends = [bytes.first(), bytes.last()];
        if (3..=63).contains(&name.len())
            && ends.into_iter().flatten().all(plain)
            && bytes.iter().all(|byte| plain(byte) || b"-_.".contains(byte))
        {
            Ok(Self(name.into()))
        } else {
            Err(InvalidBucketName(name.to_owned()))
        }
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ObjectName {
    /// Reads a name: 1 to 1,024 bytes, no line ends, none of the names that the service keeps for itself.
    pub(crate) fn parse(name: &str) -> Result<Self, Refusal> {
        if name.is_empty() {
            return Err(Refusal::Required { what: "name" });
        }
        if name.len() > LONGEST_OBJECT_NAME {
            return Err(Refusal::ObjectNameTooLong);
        }
        let kept = name == "." || name == ".." || name.starts_with(".well-known/acme-challenge/");
        if kept || name.contains(['\r', '\n']) {
            return Err(Refusal::InvalidObjectName { name: name.to_owned() });
        }
        Ok(Self(name.into()))
    }

    /// As text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for BucketName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for ObjectName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BucketName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_names_are_as_the_service_wants_them() {
        for name in ["abc", "a-b_c.d", "0a0", &"a".repeat(63)] {
            assert!(BucketName::parse(name).is_ok(), "{name}");
        }
        for name in ["", "ab", "Abc", "-abc", "abc.", "a/b", "é00", &"a".repeat(64)] {
            assert!(BucketName::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn object_names_are_1_to_1024_bytes_without_line_ends() {
        for name in ["a", "/", "a//b/", "...", "ü?#%20", &"é".repeat(512)] {
            assert!(ObjectName::parse(name).is_ok(), "{name}");
        }
        let long = "a".repeat(1025);
        for name in ["", ".", "..", "a\nb", "a\r", ".well-known/acme-challenge/x", &long] {
            assert!(ObjectName::parse(name).is_err(), "{name}");
        }
    }
}
