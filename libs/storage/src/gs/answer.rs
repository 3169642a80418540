//! What an answer of Google Cloud Storage means: one pure table from status and text to kind and advice.
//!
//! The service tells a failed precondition as 412 over REST and as `FAILED_PRECONDITION` or `ABORTED` over gRPC, and some
//! things only in the text. Sources: <https://cloud.google.com/storage/docs/json_api/v1/status-codes> and
//! <https://cloud.google.com/storage/docs/troubleshooting>.

use std::error::Error as StdError;
use std::fmt::Display;
use std::time::Duration;

use google_cloud_auth::errors::CredentialsError;
use google_cloud_gax::error::rpc::Code;
use google_cloud_storage::Error;
use google_cloud_storage::error::{ReadError, WriteError};

use crate::cause::{chain, one_line, sources};
use crate::error::{Action, ErrorKind, StorageError};

/// What came instead of what was asked for.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    status: Status,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Status {
    /// Over REST. `told` says that the service itself answered, in its own form.
    Http { code: u16, told: bool },
    /// Over gRPC.
    Grpc(Code),
    /// No credentials could be had.
    NoCredentials { may_pass: bool },
    /// The bytes contradict their checksum.
    Corrupt,
    /// No answer: no connection, a broken one, or none in time.
    Unreachable,
    /// An answer that cannot be read.
    Unreadable,
}

impl Answer {
    /// No answer within `limit`.
    pub(super) fn late(limit: Duration) -> Self {
        let text = format!("there was no answer for {} s", limit.as_secs());
        Self { status: Status::Unreachable, text }
    }
}

impl From<&Error> for Answer {
    fn from(error: &Error) -> Self {
        Self { status: status_of(error), text: text_of(error) }
    }
}

fn status_of(error: &Error) -> Status {
    if let Some(code) = error.http_status_code() {
        return Status::Http { code, told: error.status().is_some() };
    }
    if let Some(status) = error.status() {
        return Status::Grpc(status.code);
    }
    if let Some(credentials) = sources(error).find_map(|source| source.downcast_ref::<CredentialsError>()) {
        return Status::NoCredentials { may_pass: credentials.is_transient() };
    }
    if sources(error).any(is_mismatch) {
        return Status::Corrupt;
    }
    if error.is_deserialization() { Status::Unreadable } else { Status::Unreachable }
}

fn is_mismatch(source: &(dyn StdError + 'static)) -> bool {
    matches!(source.downcast_ref(), Some(ReadError::ChecksumMismatch(_)))
        || matches!(source.downcast_ref(), Some(WriteError::ChecksumMismatch { .. }))
}

/// What the service says, or else what the library says with all its reasons, in one line.
fn text_of(error: &Error) -> String {
    let told = match (error.status(), error.http_payload()) {
        (Some(status), _) if !status.message.is_empty() => status.message.clone(),
        (None, Some(payload)) if !payload.is_empty() => String::from_utf8_lossy(payload).into_owned(),
        _ => chain(error),
    };
    one_line(&told)
}

/// An error with its reasons, in one line.
pub(super) fn chain_of(error: &(dyn StdError + 'static)) -> String {
    one_line(&chain(error))
}

/// The failure of `action` on `object` that the library reports.
pub(super) fn told(action: Action, object: impl Display, error: &Error) -> StorageError {
    storage_error(action, object, &Answer::from(error))
}

/// The failure of `action` on `object` that `answer` tells of.
pub(super) fn storage_error(action: Action, object: impl Display, answer: &Answer) -> StorageError {
    let (kind, advice) = meaning(action, answer);
    let cause = match answer.status {
        Status::Http { code, told: false } => format!("{} (HTTP status {code})", answer.text),
        _ => answer.text.clone(),
    };
    StorageError::new(kind, action, object, cause.trim(), advice)
}

/// Kind and advice of an answer. One that nobody foresaw may pass.
fn meaning(action: Action, answer: &Answer) -> (ErrorKind, &'static str) {
    let text = answer.text.to_lowercase();
    match answer.status {
        Status::Http { code, told } => match code {
            400 | 413 => bad_request(action, &text),
            401 => NOT_LOGGED_IN,
            403 => forbidden(action, &text),
            404 => missing(action, &text, told),
            409 | 412 => precondition(action, &text),
            416 => (ErrorKind::Invalid, "ask for bytes that it has"),
            308 | 408 | 410 | 429 | 500.. => LATER,
            _ => (ErrorKind::Refused, ANOTHER_SERVICE),
        },
        Status::Grpc(code) => match code {
            Code::NotFound => missing(action, &text, true),
            Code::FailedPrecondition | Code::Aborted | Code::AlreadyExists => precondition(action, &text),
            Code::PermissionDenied => forbidden(action, &text),
            Code::Unauthenticated => NOT_LOGGED_IN,
            Code::InvalidArgument => bad_request(action, &text),
            Code::OutOfRange => (ErrorKind::Invalid, "ask for bytes that it has"),
            Code::Unimplemented => (ErrorKind::Refused, ANOTHER_SERVICE),
            Code::DataLoss => DAMAGED,
            _ => LATER,
        },
        Status::NoCredentials { may_pass: true } => (ErrorKind::Unavailable, LOG_IN),
        Status::NoCredentials { may_pass: false } => NOT_LOGGED_IN,
        Status::Corrupt => DAMAGED,
        Status::Unreachable => (
            ErrorKind::Unavailable,
            "see whether this machine can reach the storage and whether the endpoint is right, if it does not pass",
        ),
        Status::Unreadable => (ErrorKind::Unavailable, ANOTHER_SERVICE),
    }
}

const ANOTHER_SERVICE: &str =
    "make sure that the endpoint is Google Cloud Storage, or speaks as it does, over REST and gRPC";
const LOG_IN: &str =
    "log in (`gcloud auth application-default login`), or run where a service account is attached";
const NOT_LOGGED_IN: (ErrorKind, &str) = (ErrorKind::Refused, LOG_IN);
const LATER: (ErrorKind, &str) =
    (ErrorKind::Unavailable, "look at the status of Google Cloud Storage if it does not pass");
const DAMAGED: (ErrorKind, &str) =
    (ErrorKind::Damaged, "send or read it again, and look at what lies between if it happens twice");
const HELD: (ErrorKind, &str) = (
    ErrorKind::Refused,
    "choose a bucket or a path without retention policy and holds, since a job replaces its own state",
);
const RETAINED: (ErrorKind, &str) =
    (ErrorKind::Refused, "delete it when its retention period is over or its hold is lifted");
const NO_BILLING: (ErrorKind, &str) =
    (ErrorKind::Refused, "enable billing for the bucket's project, or choose a bucket whose owner pays");

/// What the bucket's own rules forbid, whatever the status that says so.
fn forbidden_by_rule(action: Action, text: &str) -> Option<(ErrorKind, &'static str)> {
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if says(&["retention", "legal hold", "temporary hold", "event-based hold", "under active hold"]) {
        Some(if action == Action::Delete { RETAINED } else { HELD })
    } else if says(&["billing", "requester pays"]) {
        Some(NO_BILLING)
    } else if says(&["constraints/", "organization policy", "vpc service controls"]) {
        Some((ErrorKind::Refused, "choose a bucket that your organization's policies let this machine write"))
    } else {
        None
    }
}

fn forbidden(action: Action, text: &str) -> (ErrorKind, &'static str) {
    forbidden_by_rule(action, text).unwrap_or((
        ErrorKind::Refused,
        "grant this account the role Storage Object User (`roles/storage.objectUser`) on the bucket",
    ))
}

fn precondition(action: Action, text: &str) -> (ErrorKind, &'static str) {
    forbidden_by_rule(action, text).unwrap_or(match action {
        Action::Create | Action::Compose => (ErrorKind::Exists, "read it to see whose it is"),
        _ => (ErrorKind::Changed, "read it again to see who changed it"),
    })
}

fn bad_request(action: Action, text: &str) -> (ErrorKind, &'static str) {
    let checksum = ["crc32c", "md5", "checksum"].iter().any(|word| text.contains(word));
    if checksum {
        DAMAGED
    } else {
        forbidden_by_rule(action, text).unwrap_or((ErrorKind::Invalid, "correct what the answer names"))
    }
}

/// An object, its bucket, or the whole service: only the first makes an absence that may be relied on. Told means that it
/// is the service's own form of an error; a read over REST has a plain text instead.
fn missing(action: Action, text: &str, told: bool) -> (ErrorKind, &'static str) {
    let bucket = text.contains("bucket does not exist") || text.contains("bucket not found");
    let object = text.contains("no such object") || (told && !bucket);
    match action {
        _ if !object && !bucket => (ErrorKind::Refused, ANOTHER_SERVICE),
        _ if bucket => (ErrorKind::Refused, "create the bucket, or correct its name"),
        // A create of an object finds nothing missing but its bucket or its upload session.
        Action::Create => LATER,
        Action::Replace => (ErrorKind::Changed, "read it again to see who changed it"),
        _ => (ErrorKind::NotFound, "make sure that the path is right and nobody deletes objects there"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http(code: u16, text: &str) -> Answer {
        Answer { status: Status::Http { code, told: true }, text: text.to_owned() }
    }

    fn untold(code: u16, text: &str) -> Answer {
        Answer { status: Status::Http { code, told: false }, text: text.to_owned() }
    }

    fn grpc(code: Code, text: &str) -> Answer {
        Answer { status: Status::Grpc(code), text: text.to_owned() }
    }

    #[test]
    fn each_answer_has_the_kind_that_its_remedy_needs() {
        use Action::{Compose, Create, Delete, List, Read, Replace};
        use ErrorKind::{Changed, Damaged, Exists, Invalid, NotFound, Refused, Unavailable};
        let condition = "At least one of the pre-conditions you specified did not hold.";
        let no_bucket = "The specified bucket does not exist.";
        let retention = "Object 'b/o' is subject to bucket's retention policy or object retention and cannot be \
                         deleted or overwritten until 2026-11-30T10:00:00Z";
        let table = [
            // Preconditions, on both ways.
            (Create, http(412, condition), Exists),
            (Replace, http(412, condition), Changed),
            (Read, untold(412, "Precondition Failed"), Changed),
            (Compose, grpc(Code::FailedPrecondition, condition), Exists),
            (Delete, grpc(Code::FailedPrecondition, condition), Changed),
            (Delete, grpc(Code::Aborted, condition), Changed),
            // What is missing.
            (Read, untold(404, "No such object: bucket/name"), NotFound),
            (Read, grpc(Code::NotFound, "The specified object was not found."), NotFound),
            (Compose, grpc(Code::NotFound, "Object b/o (generation: 1) not found."), NotFound),
            (Replace, http(404, "No such object: bucket/name"), Changed),
            (Create, http(404, no_bucket), Refused),
            (Read, untold(404, no_bucket), Refused),
            (List, grpc(Code::NotFound, no_bucket), Refused),
            (Read, untold(404, "<html>page not found</html>"), Refused),
            (Read, untold(301, ""), Refused),
            (List, grpc(Code::Unimplemented, ""), Refused),
            // Rights.
            (Read, http(401, "Anonymous caller does not have storage.objects.get access"), Refused),
            (Create, http(403, "a@b does not have storage.objects.create access"), Refused),
            (List, grpc(Code::PermissionDenied, "a@b does not have storage.objects.list access"), Refused),
            (List, grpc(Code::Unauthenticated, ""), Refused),
            (Replace, http(403, retention), Refused),
            (Replace, http(412, retention), Refused),
            (Delete, grpc(Code::FailedPrecondition, retention), Refused),
            (Read, http(400, "Bucket is a requester pays bucket but no user project provided."), Refused),
            (Create, http(412, "Request violates constraint 'constraints/storage.x'"), Refused),
            // What passes.
            (
                Create,
                http(429, "The object exceeded the rate limit for object mutation operations"),
                Unavailable,
            ),
            (Read, untold(503, "Service Unavailable"), Unavailable),
            (Create, http(410, "The upload session is gone"), Unavailable),
            (List, grpc(Code::ResourceExhausted, ""), Unavailable),
            (List, grpc(Code::Internal, ""), Unavailable),
            (List, grpc(Code::Unknown, ""), Unavailable),
            // What never will.
            (
                Create,
                http(400, "Provided CRC32C \"AAAA\" doesn't match calculated CRC32C \"BBBB\"."),
                Damaged,
            ),
            (Create, http(400, "The maximum object length is 1024 characters"), Invalid),
            (
                Compose,
                grpc(Code::InvalidArgument, "The number of source components exceeds the maximum"),
                Invalid,
            ),
            (Read, untold(416, "The requested range cannot be satisfied."), Invalid),
        ];
        for (action, answer, kind) in table {
            assert_eq!(meaning(action, &answer).0, kind, "{action:?}: {answer:?}");
        }
    }

    #[test]
    fn a_message_reads_after_failed_to_and_says_what_helps() {
        let denied = grpc(Code::PermissionDenied, "me@example.com does not have storage.objects.list access");
        assert_eq!(
            storage_error(Action::List, "gs://bucket/out/", &denied).to_string(),
            "list `gs://bucket/out/`: me@example.com does not have storage.objects.list access; grant this account \
             the role Storage Object User (`roles/storage.objectUser`) on the bucket"
        );
        let page = storage_error(Action::Read, "a", &untold(404, "<html>no</html>"));
        assert!(page.to_string().starts_with("read `a`: <html>no</html> (HTTP status 404); "), "{page}");
    }

    #[test]
    fn errors_of_the_library_are_told_apart() {
        let connect = Error::connect("connection refused");
        assert_eq!(Answer::from(&connect).status, Status::Unreachable);
        assert_eq!(Answer::from(&connect).text, "cannot connect to endpoint: connection refused");
        let login = Error::authentication(CredentialsError::from_msg(false, "no login"));
        assert_eq!(Answer::from(&login).status, Status::NoCredentials { may_pass: false });
        let short = Error::io(ReadError::ShortRead(5));
        assert_eq!(Answer::from(&short).status, Status::Unreachable);
        let odd = Error::deser(ReadError::MissingHeader("x-goog-generation"));
        assert_eq!(Answer::from(&odd).status, Status::Unreadable);
    }
}
