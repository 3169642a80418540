//! What a caller tells the learner about its requests, and what it is told back.
//!
//! Owns the vocabulary only. Which answer of a provider is which verdict is decided by the caller, who knows the
//! provider's dialect.

use std::time::Duration;

/// Names one attempt of one request while it is in flight; the caller draws it, and draws a new one for a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// What a request is expected to use up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Tokens of the prompt, as counted or estimated before sending.
    pub input_tokens: u32,
    /// The request's `max_tokens`, or an estimate of the answer's length where it sets none.
    pub output_tokens: u32,
}

impl Cost {
    /// Tokens that a provider which charges up front takes from its budget: input and the longest possible output.
    pub fn reserved_tokens(self) -> u64 {
        u64::from(self.input_tokens) + u64::from(self.output_tokens)
    }
}

/// What became of a request, as far as its rate is concerned.
///
/// Every request that was sent gets one final verdict (any but [`Verdict::Admitted`]), which frees its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The provider let it in; the answer is still coming. Known when the response headers arrive.
    Admitted {
        /// What the headers say about the limits.
        hints: Hints,
    },
    /// The answer is complete.
    Succeeded {
        /// Tokens that the answer used, as the provider counted them.
        output_tokens: u32,
        /// Tokens that the prompt used, as the provider counted them.
        input_tokens: u32,
    },
    /// Refused for its rate: a 429 that will pass. Exhausted quotas, unpaid bills and requests that are too large
    /// for the limit are not rate refusals: they are [`Verdict::Lost`].
    Refused {
        /// The limit that was exceeded, where the answer names it.
        dimension: Option<Dimension>,
        /// How long the provider asks to wait, from now.
        retry_after: Option<Duration>,
        /// What the headers or the body say about the limits.
        hints: Hints,
    },
    /// Anything that says nothing about the rate: a timeout, a lost connection, a 5xx, an error of the request
    /// itself. It frees the slot.
    Lost,
}

/// A quantity that providers limit per minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// The number of requests.
    Requests,
    /// The number of tokens, as the provider charges them.
    Tokens,
}

/// What one answer says about the provider's limits; empty where it says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// The request limit.
    pub requests: Hint,
    /// The token limit.
    pub tokens: Hint,
}

/// One limit in the words of response headers; each fact may be missing.
///
/// It may describe another window than the minute, a day for instance: `limit × reset / used` tells which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// Units allowed per window.
    pub limit: Option<u64>,
    /// Units left in this window.
    pub remaining: Option<u64>,
    /// Time until nothing of the window is used.
    pub reset: Option<Duration>,
}

/// When the next request may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// At once.
    Now,
    /// Not before this clock reading, which is later than the one the question was asked at.
    Until(Duration),
    /// As many requests are in flight as may be: ask again after a final verdict.
    ForVerdict,
}
