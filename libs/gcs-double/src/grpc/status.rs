//! Refusals as gRPC tells them.

use tonic::{Code, Status};

use crate::{
    bucket::{Kind, Refusal},
    visit::Stop,
};

/// The status of a refusal.
pub(super) fn status(refusal: &Refusal) -> Status {
    Status::new(code(refusal.kind()), refusal.to_string())
}

/// The HTTP status that the log shows; `None` where nothing is sent.
pub(super) fn status_code(stop: Option<&Stop>) -> Option<u16> {
    match stop {
        None => Some(200),
        Some(Stop::Refused(refusal)) => Some(refusal.kind().status()),
        Some(Stop::Dropped) => None,
    }
}

fn code(kind: Kind) -> Code {
    match kind {
        Kind::NotFound | Kind::Gone => Code::NotFound,
        Kind::Conflict => Code::AlreadyExists,
        Kind::ConditionNotMet => Code::FailedPrecondition,
        Kind::NotModified => Code::Aborted,
        Kind::RateLimited | Kind::Failed(429) => Code::ResourceExhausted,
        Kind::Invalid | Kind::Required => Code::InvalidArgument,
        Kind::RangeNotSatisfiable => Code::OutOfRange,
        Kind::NotServed => Code::Unimplemented,
        Kind::Failed(401) => Code::Unauthenticated,
        Kind::Retained | Kind::Failed(403) => Code::PermissionDenied,
        Kind::Failed(408 | 504) => Code::DeadlineExceeded,
        Kind::Failed(503) => Code::Unavailable,
        Kind::Failed(_) => Code::Internal,
    }
}
