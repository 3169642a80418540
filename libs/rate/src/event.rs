//! What a caller tells the learner about its requests, and what it is told back.
//!
//! Owns the vocabulary only. Which answer of a provider is which verdict is decided by the caller, who knows the
//! provider's dialect.

use std::time::Duration;

use serde::{Deserialize, Serialize};

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
    /// Asked to slow down (OpenAI's 503 "Slow Down"): the rate rose too steeply, whatever it is by now.
    SlowDown {
        /// How long the provider asks to wait, from now.
        retry_after: Option<Duration>,
    },
    /// The server itself has too much to do (503 or 529 "overloaded"): fewer requests at once help, the rate says
    /// nothing.
    Overloaded {
        /// How long the provider asks to wait, from now.
        retry_after: Option<Duration>,
    },
    /// Anything that says nothing about the rate: a timeout, a lost connection, another 5xx, an error of the request
    /// itself. It frees the slot.
    Lost,
}

/// A quantity that providers limit per minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    /// The number of requests.
    Requests,
    /// The number of tokens, of prompts and answers together, as the provider charges them.
    Tokens,
    /// The number of tokens of prompts.
    InputTokens,
    /// The number of tokens of answers.
    OutputTokens,
}

/// What one answer says about the provider's limits; empty where it says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// The request limit.
    pub requests: Hint,
    /// The limit on tokens of prompts and answers together.
    pub tokens: Hint,
    /// The limit on tokens of prompts.
    pub input_tokens: Hint,
    /// The limit on tokens of answers.
    pub output_tokens: Hint,
}

impl Hints {
    /// What is said about this limit.
    pub fn of(self, dimension: Dimension) -> Hint {
        match dimension {
            Dimension::Requests => self.requests,
            Dimension::Tokens => self.tokens,
            Dimension::InputTokens => self.input_tokens,
            Dimension::OutputTokens => self.output_tokens,
        }
    }

    /// Says this about one limit, and the same as before about the others.
    #[must_use]
    pub fn with(mut self, dimension: Dimension, hint: Hint) -> Self {
        match dimension {
            Dimension::Requests => self.requests = hint,
            Dimension::Tokens => self.tokens = hint,
            Dimension::InputTokens => self.input_tokens = hint,
            Dimension::OutputTokens => self.output_tokens = hint,
        }
        self
    }
}

/// One limit in the words of response headers; each fact may be missing.
///
/// Where the provider does not name the period, it may be another than the minute, a day for instance:
/// `limit × reset / used` tells which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// Units allowed per window.
    pub limit: Option<u64>,
    /// Units left in this window.
    pub remaining: Option<u64>,
    /// Time until nothing of the window is used.
    pub reset: Option<Duration>,
    /// The period that the limit counts in, where the provider names it.
    pub period: Option<Period>,
}

/// A period that providers count a limit in ("requests per min", `...PerDayPerProject...`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// 1 s.
    Second,
    /// 60 s, what most limits count in.
    Minute,
    /// 3,600 s.
    Hour,
    /// 86,400 s: a budget rather than a pace.
    Day,
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
