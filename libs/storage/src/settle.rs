//! What became of a write whose answer leaves it open: decided in one place, from one look at the object.
//!
//! Each write of a bucket carries a mark of its own in the object's metadata. So a look tells whether the object is
//! the one that was written, even where another writer has written the same bytes, and a precondition that failed only
//! because the write itself had been applied before counts as success.

use crate::Result;
use crate::error::{Action, ErrorKind, StorageError};
use crate::generation::{Generation, ObjectMeta};
use crate::name::ObjectName;

/// The key of the mark in an object's metadata.
pub(crate) const MARK: &str = "penstock-write";

/// A write as it was sent.
#[derive(Debug)]
pub(crate) struct Write<'a> {
    pub(crate) action: Action,
    pub(crate) name: &'a ObjectName,
    /// What its object carries under [`MARK`], and no other write's does.
    pub(crate) mark: &'a str,
    /// The generation that it replaces; `None` where the name must be free.
    pub(crate) replaces: Option<&'a Generation>,
}

/// What a look at the name finds.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) meta: ObjectMeta,
    pub(crate) mark: Option<String>,
}

#[derive(Debug)]
enum Fate {
    /// The object is the one that was written.
    Applied(ObjectMeta),
    /// Everything is as before; the write may still land.
    NotApplied,
    /// The name holds something else, so the write can no longer be applied.
    Lost(StorageError),
}

/// A mark that no other write has.
pub(crate) fn new_mark() -> String {
    format!("{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..))
}

/// What `answer` to a write comes to: success, and a refusal that excludes that it was applied, are taken as they are;
/// otherwise `look` decides. Where the look fails as well, the answer stands.
pub(crate) async fn settled(
    write: &Write<'_>,
    answer: Result<ObjectMeta>,
    look: impl Future<Output = Result<Option<Found>>>,
) -> Result<ObjectMeta> {
    let error = match answer {
        Err(error) if leaves_open(error.kind()) => error,
        plain => return plain,
    };
    let Ok(found) = look.await else { return Err(error) };
    match fate(write, found) {
        Fate::Applied(meta) => Ok(meta),
        Fate::NotApplied => Err(error),
        Fate::Lost(lost) => Err(lost),
    }
}

fn leaves_open(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Unavailable | ErrorKind::Exists | ErrorKind::Changed)
}

fn fate(write: &Write<'_>, found: Option<Found>) -> Fate {
    match (found, write.replaces) {
        (Some(found), _) if found.mark.as_deref() == Some(write.mark) => Fate::Applied(found.meta),
        (None, None) => Fate::NotApplied,
        (Some(_), None) => Fate::Lost(StorageError::exists(write.action, write.name)),
        (Some(found), Some(generation)) if found.meta.generation == *generation => Fate::NotApplied,
        (_, Some(_)) => Fate::Lost(StorageError::changed(write.action, write.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> ObjectName {
        ObjectName::from_static("state.json")
    }

    fn found(generation: &str, mark: &str) -> Found {
        let generation = Generation::new(generation);
        let meta = ObjectMeta { name: name(), generation, size_bytes: 1, crc32c: Some(1) };
        Found { meta, mark: Some(mark.to_owned()) }
    }

    fn failed(kind: ErrorKind) -> StorageError {
        StorageError::new(kind, Action::Create, name(), "the test wants it so", "look at the test")
    }

    /// What comes of a write marked `mine`, in a word: the generation, or the error's kind.
    async fn outcome(replaces: Option<&str>, answer: ErrorKind, look: Result<Option<Found>>) -> String {
        let replaces = replaces.map(Generation::new);
        let name = name();
        let write = Write { action: Action::Create, name: &name, mark: "mine", replaces: replaces.as_ref() };
        match settled(&write, Err(failed(answer)), async { look }).await {
            Ok(meta) => meta.generation.to_string(),
            Err(error) => format!("{:?}", error.kind()),
        }
    }

    #[tokio::test]
    async fn a_look_decides_what_an_answer_leaves_open() {
        use ErrorKind::{Changed, Exists, Unavailable};
        let (mine, other) = (found("7", "mine"), found("7", "other"));
        let table = [
            // Applied, though it was reported failed, or met its own object.
            (None, Unavailable, Some(&mine), "7"),
            (None, Exists, Some(&mine), "7"),
            (Some("6"), Changed, Some(&mine), "7"),
            (Some("6"), Unavailable, Some(&mine), "7"),
            // Not applied: the answer stands, and the caller may send again.
            (None, Unavailable, None, "Unavailable"),
            (None, Exists, None, "Exists"),
            (Some("7"), Unavailable, Some(&other), "Unavailable"),
            // Another writer was first.
            (None, Unavailable, Some(&other), "Exists"),
            (None, Exists, Some(&other), "Exists"),
            (Some("6"), Unavailable, Some(&other), "Changed"),
            (Some("6"), Unavailable, None, "Changed"),
        ];
        for (replaces, answer, look, expected) in table {
            let told = outcome(replaces, answer, Ok(look.cloned())).await;
            assert_eq!(told, expected, "{answer:?} for a write that replaces {replaces:?}, then {look:?}");
        }
    }

    #[tokio::test]
    async fn without_a_look_the_answer_stands() {
        let told = outcome(None, ErrorKind::Exists, Err(failed(ErrorKind::Unavailable))).await;
        assert_eq!(told, "Exists");
    }

    #[tokio::test]
    async fn a_plain_answer_needs_no_look() {
        let name = name();
        let write = Write { action: Action::Create, name: &name, mark: "mine", replaces: None };
        let unasked = async { panic!("it was looked for") };
        let written = settled(&write, Ok(found("7", "mine").meta), unasked).await.unwrap();
        assert_eq!(written.generation.as_str(), "7");
        let unasked = async { panic!("it was looked for") };
        let refused = settled(&write, Err(failed(ErrorKind::Refused)), unasked).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused);
    }

    #[test]
    fn marks_differ() {
        assert_ne!(new_mark(), new_mark());
        assert_eq!(new_mark().len(), 32);
    }
}
