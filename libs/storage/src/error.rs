//! Why a storage operation failed, sorted by what the caller does next.
//!
//! The mapping from the operating system's errors stands here, so that every operation of the file backend answers
//! alike. Messages read after "failed to" and end with what helps.

use std::fmt;
use std::io;
use std::ops::Range;

use rustix::io::Errno;

use crate::name::{InvalidName, ObjectName};

/// What kind of failure it is, which decides what the caller does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// There is no such object.
    NotFound,
    /// A create-only write found the name taken.
    Exists,
    /// The object has another generation than the caller named.
    Changed,
    /// The store will not: no permission, no space, read-only. Passes only when a person helps.
    Refused,
    /// Did not work this time and may work the next.
    Unavailable,
    /// The content contradicts its checksum, or what the store keeps about it cannot be read.
    Damaged,
    /// The request makes no sense; repeating it is of no use.
    Invalid,
}

/// What was being done; the verb that a message starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is one verb, and `Store` says what it does")]
pub enum Action {
    Open,
    Read,
    Create,
    Replace,
    List,
    Compose,
    Delete,
    Lock,
    Sign,
}

impl fmt::Display for Action {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Open => "open",
            Self::Read => "read",
            Self::Create => "create",
            Self::Replace => "replace",
            Self::List => "list",
            Self::Compose => "compose",
            Self::Delete => "delete",
            Self::Lock => "lock",
            Self::Sign => "sign a URL of",
        })
    }
}

/// A failed storage operation. Its message reads after "failed to": what was done to which object, why it did not
/// work, what helps.
#[derive(Debug, thiserror::Error)]
#[error("{action} `{object}`: {cause}; {advice}")]
pub struct StorageError {
    kind: ErrorKind,
    action: Action,
    object: String,
    cause: String,
    advice: &'static str,
}

impl StorageError {
    /// A failure of `action` on `object`; `cause` and `advice` are fragments of one sentence.
    pub fn new(
        kind: ErrorKind,
        action: Action,
        object: impl fmt::Display,
        cause: impl Into<String>,
        advice: &'static str,
    ) -> Self {
        Self { kind, action, object: object.to_string(), cause: cause.into(), advice }
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What was being done.
    pub fn action(&self) -> Action {
        self.action
    }

    /// The object, folder or prefix that it was done to.
    pub fn object(&self) -> &str {
        &self.object
    }

    /// For a write: it may have been applied, or may land later, so read back before deciding.
    ///
    /// True also where a precondition failed, since the loser may be a repeat of an attempt that won, and where the
    /// store refused, since a full disk can refuse the record of a content that has landed.
    pub fn ambiguous(&self) -> bool {
        match self.kind {
            ErrorKind::Exists | ErrorKind::Changed | ErrorKind::Unavailable | ErrorKind::Refused => true,
            ErrorKind::NotFound | ErrorKind::Damaged | ErrorKind::Invalid => false,
        }
    }

    /// The object is not there.
    pub fn not_found(action: Action, name: &ObjectName) -> Self {
        Self::new(
            ErrorKind::NotFound,
            action,
            name,
            "there is no such object",
            "make sure that nobody else deletes files of this output",
        )
    }

    /// The name of a create-only write is taken.
    pub fn exists(action: Action, name: &ObjectName) -> Self {
        Self::new(ErrorKind::Exists, action, name, "it exists already", "read it to see whose it is")
    }

    /// The object has another generation than expected.
    pub fn changed(action: Action, name: impl fmt::Display) -> Self {
        Self::new(
            ErrorKind::Changed,
            action,
            name,
            "it is not the generation that was expected",
            "read it again to see who changed it",
        )
    }

    /// A small object was expected and a large one found.
    pub(crate) fn too_large(name: &ObjectName, size_bytes: u64, limit_bytes: u64) -> Self {
        Self::new(
            ErrorKind::Invalid,
            Action::Read,
            name,
            format!("it has {size_bytes} bytes where at most {limit_bytes} are expected"),
            "make sure that nobody else writes into this output",
        )
    }

    /// A range that is not all inside the object.
    pub(crate) fn past_the_end(object: impl fmt::Display, range: &Range<u64>, size_bytes: u64) -> Self {
        Self::new(
            ErrorKind::Invalid,
            Action::Read,
            object,
            format!("bytes {}..{} are not all among its {size_bytes}", range.start, range.end),
            "ask for bytes that it has",
        )
    }

    /// A compose of no source, or of more than the backend takes.
    pub(crate) fn wrong_source_count(target: &ObjectName, sources: usize) -> Self {
        Self::new(
            ErrorKind::Invalid,
            Action::Compose,
            target,
            format!("this store does not compose {sources} objects at once"),
            "name at least one, and no more than its limit",
        )
    }

    /// The operating system's answer to `action` on `object`.
    pub fn io(action: Action, object: impl fmt::Display, answer: &io::Error) -> Self {
        let (kind, advice) = classify(action, answer);
        Self::new(kind, action, object, answer.to_string(), advice)
    }
}

const WRONG_KIND_OF_ENTRY: &str =
    "a folder stands where a file belongs, or a file where a folder belongs: move it away";

/// Kind and advice for an error of the operating system. An answer that nobody foresaw may pass.
fn classify(action: Action, error: &io::Error) -> (ErrorKind, &'static str) {
    let Some(errno) = Errno::from_io_error(error) else {
        return match error.kind() {
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidFilename => {
                (ErrorKind::Invalid, "choose another name")
            }
            io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
                (ErrorKind::Invalid, WRONG_KIND_OF_ENTRY)
            }
            io::ErrorKind::UnexpectedEof => {
                (ErrorKind::Damaged, "it is shorter than it was; restore it from a copy")
            }
            _ => (ErrorKind::Unavailable, "look at the file system if it does not pass"),
        };
    };
    match errno {
        Errno::NOENT if !matches!(action, Action::Open | Action::Read | Action::List) => {
            (ErrorKind::Unavailable, "leave the folder in its place, where it is made again")
        }
        Errno::NOENT => {
            (ErrorKind::NotFound, "make sure that the path exists and nobody deletes files there")
        }
        Errno::EXIST => (ErrorKind::Exists, "read it to see whose it is"),
        Errno::NOSPC => (ErrorKind::Refused, "free some space on that file system"),
        Errno::DQUOT => (ErrorKind::Refused, "free some space or have the disk quota raised"),
        Errno::FBIG => {
            (ErrorKind::Refused, "raise the file size limit (`ulimit -f`) or use another file system")
        }
        Errno::ROFS => (ErrorKind::Refused, "mount that file system writable or choose another folder"),
        Errno::ACCESS | Errno::PERM => {
            (ErrorKind::Refused, "give this user the right to read and write there or choose another folder")
        }
        Errno::MFILE | Errno::NFILE => {
            (ErrorKind::Unavailable, "raise the limit of open files (`ulimit -n`) if it does not pass")
        }
        Errno::ISDIR | Errno::NOTDIR => (ErrorKind::Invalid, WRONG_KIND_OF_ENTRY),
        Errno::NAMETOOLONG | Errno::INVAL | Errno::ILSEQ | Errno::LOOP => {
            (ErrorKind::Invalid, "choose a path that this file system takes")
        }
        Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK => {
            (ErrorKind::Refused, "choose a folder on a file system that has locks and hard links")
        }
        Errno::IO => (ErrorKind::Unavailable, "look at the health of the disk if it does not pass"),
        _ => (ErrorKind::Unavailable, "look at the file system if it does not pass"),
    }
}

impl From<InvalidName> for StorageError {
    fn from(refusal: InvalidName) -> Self {
        let (name, rule) = refusal.into_parts();
        Self::new(ErrorKind::Invalid, Action::Open, name, rule, "choose another name")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_of_the_system_has_the_kind_that_its_remedy_needs() {
        let table = [
            (Errno::NOENT, ErrorKind::NotFound),
            (Errno::EXIST, ErrorKind::Exists),
            (Errno::NOSPC, ErrorKind::Refused),
            (Errno::DQUOT, ErrorKind::Refused),
            (Errno::ACCESS, ErrorKind::Refused),
            (Errno::PERM, ErrorKind::Refused),
            (Errno::ROFS, ErrorKind::Refused),
            (Errno::MFILE, ErrorKind::Unavailable),
            (Errno::IO, ErrorKind::Unavailable),
            (Errno::STALE, ErrorKind::Unavailable),
            (Errno::NOTDIR, ErrorKind::Invalid),
            (Errno::ISDIR, ErrorKind::Invalid),
            (Errno::NAMETOOLONG, ErrorKind::Invalid),
        ];
        for (errno, kind) in table {
            assert_eq!(StorageError::io(Action::Read, "a", &errno.into()).kind(), kind, "{errno:?}");
        }
    }

    #[test]
    fn a_message_reads_after_failed_to_and_says_what_helps() {
        let error = StorageError::io(Action::Create, "parts/1", &Errno::NOSPC.into());
        assert_eq!(
            error.to_string(),
            "create `parts/1`: No space left on device (os error 28); free some space on that file system"
        );
    }

    #[test]
    fn a_lost_race_is_ambiguous_and_a_bad_argument_is_not() {
        let name = ObjectName::from_static("state.json");
        assert!(StorageError::changed(Action::Replace, &name).ambiguous());
        assert!(StorageError::exists(Action::Create, &name).ambiguous());
        assert!(!StorageError::from(ObjectName::parse("..").unwrap_err()).ambiguous());
    }
}
