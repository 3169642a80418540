//! What a program that paces requests is told, and what it answers.
//!
//! The events are those of the pipe of `penstock-rate --stdio`: a program behind that pipe can be put here as it is.

use std::{num::NonZeroU32, time::Duration};

use crate::limit::{Claim, Dimension};

/// Decides when requests go. Every call carries the virtual clock and returns what it wants from now on.
pub trait Controller {
    /// The work begins.
    fn start(&mut self, now: Duration) -> Wish;

    /// A request has gone out, `index` counts them from 0.
    fn departed(&mut self, now: Duration, index: u64, input_tokens: u32, max_tokens: u32) -> Wish;

    /// What became of a request is known.
    fn answered(&mut self, now: Duration, answer: &Answer) -> Wish;

    /// The wake-up that was wished for.
    fn woken(&mut self, now: Duration) -> Wish;

    /// What a ledger shared by the jobs of one key says: how many they are, and the mean of their rates in requests
    /// per minute. `None`: the former wish stands.
    fn shared(&mut self, _now: Duration, _jobs: NonZeroU32, _mean_per_minute: Option<f64>) -> Option<Wish> {
        None
    }

    /// How many requests the server works on, and how many wait there. `None`: the former wish stands.
    fn saturation(&mut self, _now: Duration, _running: u32, _waiting: u32) -> Option<Wish> {
        None
    }

    /// Requests per minute that it aims at, for plots.
    fn per_minute(&self) -> Option<f64> {
        None
    }

    /// Requests per minute that it tells the other jobs of its key, if it shares the limit with them.
    fn shared_per_minute(&self) -> Option<f64> {
        None
    }
}

/// When a controller wants to act next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wish {
    /// When the next request is to go; at once if that has passed. `None`: not before something happens.
    pub send_at: Option<Duration>,
    /// When it wants to be woken, whatever happens until then.
    pub wake_at: Option<Duration>,
}

/// What became of one request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    /// Which request.
    pub index: u64,
    /// When it had gone out.
    pub sent_at: Duration,
    /// How it ended.
    pub outcome: Outcome,
    /// What the headers claim about the limit of requests.
    pub requests: Option<Claim>,
    /// What the headers claim about the limit of tokens.
    pub tokens: Option<Claim>,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was admitted, and this is its whole answer.
    Succeeded {
        /// Tokens of the answer.
        output_tokens: u32,
    },
    /// It was refused for the rate.
    Refused {
        /// The limit, where the refusal names it.
        dimension: Option<Dimension>,
        /// The wait that the refusal asks for.
        retry_after: Option<Duration>,
    },
    /// The server had no room for it (503).
    Overloaded,
    /// It was admitted, and failed for a reason that has nothing to do with the rate.
    Failed,
}
