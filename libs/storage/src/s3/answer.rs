//! What an answer of S3 means: one pure table from its error code, or else its status, to kind and advice.
//!
//! `object_store` tells an answer as text, in which the error document of S3 stands whole. Source of the codes:
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>.

use std::fmt::Display;

use object_store::Error;

use crate::cause::{chain, one_line};
use crate::error::{Action, ErrorKind, StorageError};

/// The failure of `action` on `object` that `error` tells of.
pub(super) fn storage_error(action: Action, object: impl Display, error: &Error) -> StorageError {
    let text = chain(error);
    let answer = Answer::read(&text, status_of(error));
    let (kind, advice) = answer.meaning(action);
    StorageError::new(kind, action, object, answer.cause(), advice)
}

/// Whether the service says that it does not give the bytes of a range.
pub(super) fn is_past_the_end(error: &Error) -> bool {
    let text = chain(error);
    let answer = Answer::read(&text, status_of(error));
    answer.code == Some("InvalidRange") || answer.status == Some(416)
}

/// An answer, as far as its text tells it.
#[derive(Debug, PartialEq, Eq)]
struct Answer<'a> {
    status: Option<u16>,
    /// The error code of S3; an answer to a `HEAD` has none.
    code: Option<&'a str>,
    message: Option<&'a str>,
    text: &'a str,
}

impl<'a> Answer<'a> {
    fn read(text: &'a str, status: Option<u16>) -> Self {
        let told = text
            .split("status code: ")
            .nth(1)
            .and_then(|rest| rest.get(..3))
            .and_then(|code| code.parse().ok());
        let code = element(text, "Code").or_else(|| text.split("(code: ").nth(1)?.split(')').next());
        Self { status: told.or(status), code, message: element(text, "Message"), text }
    }

    fn cause(&self) -> String {
        match (self.code, self.message, self.status) {
            (Some(code), Some(message), _) => format!("S3 says `{code}`: {}", one_line(message)),
            (Some(code), None, _) => format!("S3 says `{code}`"),
            (None, _, Some(status)) => format!("S3 answers with status {status}"),
            (None, _, None) => one_line(self.text),
        }
    }

    fn meaning(&self, action: Action) -> (ErrorKind, &'static str) {
        match self.code {
            Some(code) => by_code(code, action),
            None => self.by_status(action),
        }
    }

    fn by_status(&self, action: Action) -> (ErrorKind, &'static str) {
        match self.status {
            Some(301 | 307 | 308) => WRONG_REGION,
            Some(400) => (
                ErrorKind::Refused,
                "see whether the region (`AWS_REGION`) is the bucket's and the credentials are valid",
            ),
            Some(401 | 403) => NO_RIGHT,
            Some(404) => absent(action),
            Some(412) => precondition(action),
            Some(416) => PAST_THE_END,
            Some(405 | 501) => ANOTHER_SERVICE,
            Some(_) => LATER,
            None if self.text.contains("without LOCATION") => WRONG_REGION,
            None if NO_CREDENTIALS_TEXTS.iter().any(|text| self.text.contains(text)) => NO_CREDENTIALS,
            None => UNREACHABLE,
        }
    }
}

fn by_code(code: &str, action: Action) -> (ErrorKind, &'static str) {
    match code {
        "NoSuchKey" => absent(action),
        "NoSuchBucket" => (ErrorKind::Refused, "create the bucket, or correct its name or the endpoint"),
        "PreconditionFailed" => precondition(action),
        "InvalidRange" => PAST_THE_END,
        "AccessDenied" | "AllAccessDisabled" | "MethodNotAllowed" => NO_RIGHT,
        "AccountProblem" | "InvalidPayer" | "NotSignedUp" => {
            (ErrorKind::Refused, "look at the state of the account that the bucket belongs to")
        }
        "InvalidAccessKeyId" | "SignatureDoesNotMatch" => {
            (ErrorKind::Refused, "correct `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`")
        }
        "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired" | "RequestExpired" => {
            (ErrorKind::Refused, "renew the credentials and their `AWS_SESSION_TOKEN`")
        }
        "RequestTimeTooSkewed" => (ErrorKind::Refused, "set the clock of this machine"),
        "PermanentRedirect"
        | "TemporaryRedirect"
        | "Redirect"
        | "AuthorizationHeaderMalformed"
        | "IllegalLocationConstraintException" => WRONG_REGION,
        "InvalidObjectState" => (ErrorKind::Refused, "restore the object from its archive first"),
        "NotImplemented" | "InvalidRequest" | "InvalidArgument" => ANOTHER_SERVICE,
        "EntityTooLarge" | "KeyTooLongError" => (ErrorKind::Invalid, "make it smaller, or its name shorter"),
        "QuotaExceeded" | "XMinioStorageFull" => {
            (ErrorKind::Refused, "free some space there, or have the quota raised")
        }
        "SlowDown" | "TooManyRequests" => (ErrorKind::Unavailable, "spread the load if it does not pass"),
        _ if code.starts_with("KMS") => {
            (ErrorKind::Refused, "grant the use of the key that the bucket is encrypted with")
        }
        _ => LATER,
    }
}

fn absent(action: Action) -> (ErrorKind, &'static str) {
    match action {
        Action::Replace => precondition(action),
        _ => (ErrorKind::NotFound, "make sure that the object exists and nobody deletes it"),
    }
}

fn precondition(action: Action) -> (ErrorKind, &'static str) {
    match action {
        Action::Create | Action::Compose => (ErrorKind::Exists, "read it to see whose it is"),
        _ => (ErrorKind::Changed, "read it again to see who changed it"),
    }
}

const LATER: (ErrorKind, &str) =
    (ErrorKind::Unavailable, "look at the state of the service if it does not pass");
const UNREACHABLE: (ErrorKind, &str) = (
    ErrorKind::Unavailable,
    "see whether this machine can reach the service and whether `AWS_ENDPOINT_URL` is right, if it does not pass",
);
const PAST_THE_END: (ErrorKind, &str) = (ErrorKind::Invalid, "ask for bytes that it has");
const NO_RIGHT: (ErrorKind, &str) = (
    ErrorKind::Refused,
    "grant `s3:GetObject`, `s3:PutObject`, `s3:DeleteObject` and `s3:AbortMultipartUpload` on its objects and `s3:ListBucket` on the bucket",
);
const WRONG_REGION: (ErrorKind, &str) = (ErrorKind::Refused, "set `AWS_REGION` to the region of the bucket");
const ANOTHER_SERVICE: (ErrorKind, &str) = (
    ErrorKind::Refused,
    "use a service that has conditional writes (`If-Match`, `If-None-Match`), as Amazon S3 does",
);
const NO_CREDENTIALS: (ErrorKind, &str) = (
    ErrorKind::Refused,
    "set `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, or run where a role is attached",
);

/// How `object_store` begins to tell that it came to no credentials: of an instance, a container, a web identity.
const NO_CREDENTIALS_TEXTS: [&str; 3] =
    ["169.254.169.254", "Error getting credentials", "AssumeRoleWithWebIdentity"];

/// The status that the library has put into a kind of error of its own.
fn status_of(error: &Error) -> Option<u16> {
    match error {
        Error::NotFound { .. } => Some(404),
        Error::Precondition { .. } | Error::NotModified { .. } => Some(412),
        Error::AlreadyExists { .. } => Some(409),
        Error::PermissionDenied { .. } => Some(403),
        Error::Unauthenticated { .. } => Some(401),
        _ => None,
    }
}

/// The text of the first element of this name.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (inner, _) = rest.split_once(&format!("</{name}>"))?;
    Some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How the library tells an answer with a body.
    fn told(status: &str, code: &str) -> String {
        format!(
            "Generic S3 error: Error performing PUT http://localhost/b/a in 1.2ms - Server returned non-2xx status code: {status}: <?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>So it is</Message><RequestId>1</RequestId></Error>"
        )
    }

    #[test]
    fn each_code_has_the_kind_that_its_remedy_needs() {
        use Action::{Compose, Create, Delete, List, Read, Replace};
        use ErrorKind::{Changed, Exists, Invalid, NotFound, Refused, Unavailable};
        let table = [
            ("404 Not Found", "NoSuchKey", Read, NotFound),
            ("404 Not Found", "NoSuchKey", Replace, Changed),
            ("404 Not Found", "NoSuchBucket", Read, Refused),
            ("404 Not Found", "NoSuchBucket", Replace, Refused),
            ("404 Not Found", "NoSuchUpload", Compose, Unavailable),
            ("412 Precondition Failed", "PreconditionFailed", Create, Exists),
            ("412 Precondition Failed", "PreconditionFailed", Compose, Exists),
            ("412 Precondition Failed", "PreconditionFailed", Replace, Changed),
            ("412 Precondition Failed", "PreconditionFailed", Read, Changed),
            // Another conditional write of the name is under way: nothing is decided.
            ("409 Conflict", "ConditionalRequestConflict", Create, Unavailable),
            ("409 Conflict", "ConditionalRequestConflict", Replace, Unavailable),
            ("409 Conflict", "OperationAborted", Create, Unavailable),
            ("403 Forbidden", "AccessDenied", List, Refused),
            ("403 Forbidden", "InvalidAccessKeyId", Read, Refused),
            ("403 Forbidden", "SignatureDoesNotMatch", Read, Refused),
            ("403 Forbidden", "RequestTimeTooSkewed", Read, Refused),
            ("400 Bad Request", "ExpiredToken", Create, Refused),
            ("301 Moved Permanently", "PermanentRedirect", Read, Refused),
            ("400 Bad Request", "AuthorizationHeaderMalformed", Read, Refused),
            ("416 Range Not Satisfiable", "InvalidRange", Read, Invalid),
            ("501 Not Implemented", "NotImplemented", Create, Refused),
            ("400 Bad Request", "KMS.DisabledException", Create, Refused),
            ("503 Slow Down", "SlowDown", Create, Unavailable),
            ("500 Internal Server Error", "InternalError", Delete, Unavailable),
            ("400 Bad Request", "BadDigest", Create, Unavailable),
            ("503 Service Unavailable", "NobodyForesawIt", Read, Unavailable),
        ];
        for (status, code, action, kind) in table {
            let text = told(status, code);
            let answer = Answer::read(&text, None);
            assert_eq!(answer.status.map(|status| status.to_string()).as_deref(), status.get(..3), "{code}");
            assert_eq!(answer.meaning(action).0, kind, "{action:?}: {code}");
            assert_eq!(answer.cause(), format!("S3 says `{code}`: So it is"));
        }
    }

    #[test]
    fn an_answer_without_a_body_is_told_by_its_status() {
        use ErrorKind::{Changed, NotFound, Refused, Unavailable};
        for (status, kind) in [
            (301, Refused),
            (400, Refused),
            (403, Refused),
            (404, NotFound),
            (412, Changed),
            (503, Unavailable),
        ] {
            let text = format!("Server returned non-2xx status code: {status} Reason: ");
            assert_eq!(Answer::read(&text, None).meaning(Action::Read).0, kind, "{status}");
            assert_eq!(Answer::read("told by the library", Some(status)).meaning(Action::Read).0, kind);
        }
    }

    #[test]
    fn what_is_no_answer_of_the_service_says_where_to_look() {
        for (text, kind, advice) in [
            (
                "Received redirect without LOCATION, this normally indicates an incorrectly configured region",
                ErrorKind::Refused,
                "AWS_REGION",
            ),
            (
                "Error performing PUT http://169.254.169.254/latest/api/token in 1s: error sending request",
                ErrorKind::Refused,
                "AWS_ACCESS_KEY_ID",
            ),
            (
                "HTTP error: error sending request: connection refused",
                ErrorKind::Unavailable,
                "AWS_ENDPOINT_URL",
            ),
        ] {
            let (found, told) = Answer::read(text, None).meaning(Action::Read);
            assert_eq!(found, kind, "{text}");
            assert!(told.contains(advice), "{text}: {told}");
        }
    }

    #[test]
    fn one_object_of_many_that_was_not_deleted_tells_its_code() {
        let text = "DeleteObjects request failed for key out/a: Access Denied (code: AccessDenied)";
        assert_eq!(Answer::read(text, None).meaning(Action::Delete), NO_RIGHT);
    }
}
