//! The bounds that the user sets; the learner stays within them whatever it finds out.

use std::num::{NonZeroU32, NonZeroU64};

/// Upper bounds set by the user; what is absent is not bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Requests per minute.
    pub rpm: Option<NonZeroU32>,
    /// Tokens per minute.
    pub tpm: Option<NonZeroU64>,
    /// Requests in flight at once; never more than [`MOST_IN_FLIGHT`](crate::MOST_IN_FLIGHT).
    pub max_in_flight: Option<NonZeroU32>,
}
