//! Where an input is or an output goes, as a user says it: a path, `file:///path`, `gs://bucket/path`,
//! `s3://bucket/path`. Parsed once, at the edge. Nothing is decoded: a name is what stands there.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::name::ObjectName;

/// A place on this machine or in a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A path on this machine, perhaps relative.
    Path(PathBuf),
    /// A place in a bucket.
    Bucket(BucketPath),
}

/// An object in a bucket, or what objects of a bucket have in front of their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketPath {
    cloud: Cloud,
    bucket: String,
    /// Without a slash at either end; empty for the bucket itself.
    path: String,
}

/// Whose buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cloud {
    /// Google Cloud Storage, `gs://`.
    Gs,
    /// Amazon S3 and what speaks like it, `s3://`.
    S3,
}

/// A text that is no location. Reads after "failed to".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("use `{text}`: {cause}; {advice}")]
pub struct InvalidLocation {
    text: String,
    cause: String,
    advice: &'static str,
}

const FORMS: &str = "write a path, file:///path, gs://bucket/path or s3://bucket/path";
const OBJECT: &str = "write the object's name as the bucket has it";

impl Location {
    /// Reads what a user has written. What begins with `/` or `.` is a path, whatever follows.
    pub fn parse(text: &str) -> Result<Self, InvalidLocation> {
        let refused = |cause: String, advice| Err(InvalidLocation { text: text.to_owned(), cause, advice });
        if text.is_empty() {
            return refused("it is empty".to_owned(), FORMS);
        }
        let Some((scheme, rest)) = scheme_of(text) else {
            return Ok(Self::Path(PathBuf::from(text)));
        };
        let Some(rest) = rest.strip_prefix("//") else {
            return match scheme.as_str() {
                "gs" | "s3" | "file" => refused(format!("`{scheme}:` is not followed by `//`"), FORMS),
                // A colon in the name of a file.
                _ => Ok(Self::Path(PathBuf::from(text))),
            };
        };
        let cloud = match scheme.as_str() {
            "gs" => Cloud::Gs,
            "s3" => Cloud::S3,
            "file" if rest.starts_with('/') => return Ok(Self::Path(PathBuf::from(rest))),
            "file" => {
                return refused(
                    "it names a host".to_owned(),
                    "only files of this machine can be used: write file:///path",
                );
            }
            _ => return refused(format!("`{scheme}://` is not known"), FORMS),
        };
        match BucketPath::parse(cloud, rest) {
            Ok(place) => Ok(Self::Bucket(place)),
            Err((cause, advice)) => refused(cause, advice),
        }
    }

    /// The place of something called `name` below this one.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        match self {
            Self::Path(path) => Self::Path(path.join(name)),
            Self::Bucket(place) => Self::Bucket(BucketPath {
                path: if place.path.is_empty() { name.to_owned() } else { format!("{}/{name}", place.path) },
                ..place.clone()
            }),
        }
    }

    /// Its last name, to call it by.
    pub fn last_name(&self) -> String {
        match self {
            Self::Path(path) => path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
            Self::Bucket(BucketPath { bucket, path, .. }) => {
                path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(bucket).to_owned()
            }
        }
    }

    /// The path, of one on this machine.
    pub fn as_path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::Bucket(_) => None,
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(formatter),
            Self::Bucket(place) => place.fmt(formatter),
        }
    }
}

impl BucketPath {
    fn parse(cloud: Cloud, rest: &str) -> Result<Self, (String, &'static str)> {
        let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
        check_bucket(bucket)?;
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.contains(['?', '#']) {
            return Err(("it has a `?` or `#`, as a query string or a generation begins".to_owned(), OBJECT));
        }
        if !path.is_empty()
            && let Err(refusal) = ObjectName::parse(path)
        {
            return Err((format!("its path {}", refusal.into_parts().1), "choose another path"));
        }
        Ok(Self { cloud, bucket: bucket.to_owned(), path: path.to_owned() })
    }

    /// Whose bucket it is.
    pub fn cloud(&self) -> Cloud {
        self.cloud
    }

    /// The name of the bucket.
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// What follows the bucket's name, without a slash at either end; empty for the bucket itself.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether `other` is this place or lies below it.
    pub fn contains(&self, other: &Self) -> bool {
        let below = |rest: &str| self.path.is_empty() || rest.is_empty() || rest.starts_with('/');
        (self.cloud, &self.bucket) == (other.cloud, &other.bucket)
            && other.path.strip_prefix(self.path.as_str()).is_some_and(below)
    }

    /// The object that it names; `None` when it names the bucket itself.
    pub fn object(&self) -> Option<ObjectName> {
        ObjectName::parse(self.path.as_str()).ok()
    }
}

impl fmt::Display for BucketPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cloud, bucket, path } = self;
        write!(formatter, "{cloud}://{bucket}/{path}")
    }
}

impl fmt::Display for Cloud {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Gs => "gs",
            Self::S3 => "s3",
        })
    }
}

/// The scheme in lower case and what follows its colon (RFC 3986, section 3.1).
fn scheme_of(text: &str) -> Option<(String, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let mut letters = scheme.chars();
    let is_scheme = letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.'));
    is_scheme.then(|| (scheme.to_ascii_lowercase(), rest))
}

/// What both clouds ask of a bucket's name, as far as a typing mistake breaks it
/// (<https://cloud.google.com/storage/docs/buckets#naming>,
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html>). The cloud says the rest.
fn check_bucket(bucket: &str) -> Result<(), (String, &'static str)> {
    const ADVICE: &str = "write the name of a bucket that exists, without its address or a port";
    if bucket.is_empty() {
        return Err(("it names no bucket".to_owned(), "write the bucket's name after the `//`"));
    }
    if !(3..=222).contains(&bucket.len()) {
        return Err((format!("the bucket name `{bucket}` is too short or too long"), ADVICE));
    }
    let inner =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-_.".contains(letter);
    let outer = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    if !bucket.chars().all(inner) {
        return Err((
            format!("the bucket name `{bucket}` has other than lowercase letters, digits, `-`, `_` and `.`"),
            ADVICE,
        ));
    }
    if !bucket.starts_with(outer) || !bucket.ends_with(outer) {
        return Err((
            format!("the bucket name `{bucket}` does not begin and end with a letter or a digit"),
            ADVICE,
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_told_by_what_it_begins_with() {
        for (text, path) in [
            ("in.jsonl", "in.jsonl"),
            ("./gs://bucket", "./gs://bucket"),
            ("/data/s3://x", "/data/s3://x"),
            ("part:1.jsonl", "part:1.jsonl"),
            ("file:///data/in%20.jsonl", "/data/in%20.jsonl"),
            ("FILE:///data", "/data"),
        ] {
            assert_eq!(Location::parse(text), Ok(Location::Path(path.into())), "{text}");
        }
        for (text, uri, object) in [
            ("gs://bucket/a/in.jsonl", "gs://bucket/a/in.jsonl", Some("a/in.jsonl")),
            ("GS://bucket/out/", "gs://bucket/out", Some("out")),
            ("s3://my.bucket-1", "s3://my.bucket-1/", None),
            ("s3://my.bucket-1/", "s3://my.bucket-1/", None),
            ("gs://bucket/ä %2F*.jsonl", "gs://bucket/ä %2F*.jsonl", Some("ä %2F*.jsonl")),
        ] {
            let Location::Bucket(place) = Location::parse(text).unwrap() else { panic!("{text}") };
            assert_eq!(place.to_string(), uri);
            assert_eq!(place.object().as_ref().map(ObjectName::as_str), object, "{text}");
            assert_eq!(Location::parse(uri), Ok(Location::Bucket(place)), "what is shown can be typed");
        }
    }

    #[test]
    fn what_is_no_location_is_refused_with_what_to_write() {
        for (text, told) in [
            ("", "it is empty"),
            ("gs:/bucket/a", "`gs:` is not followed by `//`"),
            ("s3:bucket", "`s3:` is not followed by `//`"),
            ("https://storage.googleapis.com/b/o", "`https://` is not known; write a path"),
            ("az://container/a", "`az://` is not known"),
            ("file://host/a", "it names a host; only files of this machine"),
            ("gs://", "it names no bucket"),
            ("gs:///a", "it names no bucket"),
            ("gs://ab/a", "too short or too long"),
            ("gs://Bucket/a", "has other than lowercase letters"),
            ("gs://bucket:443/a", "has other than lowercase letters"),
            ("gs://-bucket/a", "does not begin and end with"),
            ("gs://bucket/a/../b", "its path has a segment `.` or `..`"),
            ("gs://bucket/a//b", "its path has an empty segment"),
            ("gs://bucket//a", "its path has an empty segment"),
            ("gs://bucket/a?generation=1", "it has a `?` or `#`"),
            ("gs://bucket/a#1", "it has a `?` or `#`"),
            ("gs://bucket/a\nb", "its path has a control character"),
        ] {
            let refused = Location::parse(text).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("use `{text}`: ")) && refused.contains(told), "{refused}");
        }
    }

    #[test]
    fn a_place_contains_itself_and_what_is_below_it_but_no_neighbour() {
        let place = |text| match Location::parse(text) {
            Ok(Location::Bucket(place)) => place,
            other => panic!("{other:?}"),
        };
        for (outer, inner, contains) in [
            ("gs://bucket", "gs://bucket/out", true),
            ("gs://bucket/out", "gs://bucket/out/", true),
            ("gs://bucket/out", "gs://bucket/out/shared", true),
            ("gs://bucket/out", "gs://bucket/output", false),
            ("gs://bucket/out", "gs://bucket", false),
            ("gs://bucket/out", "gs://bucket-2/out", false),
            ("gs://bucket/out", "s3://bucket/out", false),
        ] {
            assert_eq!(place(outer).contains(&place(inner)), contains, "{outer} {inner}");
        }
    }

    #[test]
    fn a_name_below_a_location_and_its_own_name_are_told_as_one_would_type_them() {
        for (text, joined, name) in [
            ("out", "out/receipt.json", "out"),
            ("/data/out/", "/data/out/receipt.json", "out"),
            ("gs://bucket", "gs://bucket/receipt.json", "bucket"),
            ("s3://bucket/a/out/", "s3://bucket/a/out/receipt.json", "out"),
        ] {
            let location = Location::parse(text).unwrap();
            assert_eq!(location.join("receipt.json").to_string(), joined);
            assert_eq!(location.last_name(), name);
        }
    }
}
