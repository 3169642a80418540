//! Refusals: why a request gets an error instead of a result.
//!
//! Owns the reasons. Statuses, codes, words and envelopes belong to the dialects: no two providers agree on them.

use std::borrow::Cow;

use http::Method;

use crate::limit::Exceeded;

/// One refusal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Refusal {
    UnknownPath {
        method: Method,
        path: String,
    },
    WrongMethod {
        method: Method,
        path: String,
    },
    /// The dialect's version, a header or a parameter of the URL, is missing.
    MissingVersion,
    /// The body has more bytes than this.
    TooLarge(usize),
    /// The body is no JSON of the expected shape, for this reason.
    UnreadableBody(String),
    /// A field of the body that must be there is not.
    Missing(&'static str),
    /// A field asks for what this server does not do.
    Unsupported {
        param: Cow<'static, str>,
        message: &'static str,
    },
    /// The request is wrong in a way that no field names.
    InvalidRequest,
    /// The prompt was refused by the provider's own checks.
    RejectedPrompt,
    MissingKey,
    WrongKey,
    /// The credential is of a kind that is not accepted here.
    Unauthenticated,
    Forbidden,
    ModelNotFound,
    /// A limit of a minute.
    RateLimited(Exceeded),
    /// A limit of a day, used up.
    DayQuota,
    /// A limit of 0: the account may not use the model at all.
    ZeroQuota,
    /// Nothing is left to pay with.
    InsufficientQuota,
    /// The most that the account wants to spend is spent.
    SpendLimit,
    AllSlotsTaken,
    InternalError,
    BadGateway,
    Unavailable,
    /// The client raised its rate too fast.
    SlowDown,
    /// The provider is overloaded for everybody.
    Overloaded,
    DeadlineExceeded,
}
