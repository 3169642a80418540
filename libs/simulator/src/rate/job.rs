//! The work that one controller has to get done.

use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;

/// A stream of requests. The default is an endless backlog that begins at once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Job {
    /// Minutes until it begins.
    pub begins_after_minutes: f64,
    /// How many requests it has; one that was refused is sent again. `None`: there is always another one.
    pub requests: Option<u64>,
    /// Tokens of a prompt.
    pub input_tokens: Distribution,
    /// The most tokens that each request allows its answer.
    pub max_tokens: u32,
    /// The most requests that its machine has room for at once.
    pub most_in_flight: u32,
}

impl Default for Job {
    fn default() -> Self {
        Self {
            begins_after_minutes: 0.0,
            requests: None,
            input_tokens: Distribution::LogNormal { median: 200.0, sigma: 0.5 },
            max_tokens: 2_048,
            most_in_flight: 20_000,
        }
    }
}
