//! The rate of a job in numbers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rate of a job in numbers, over all its models. The names in JSON are those of the metrics; each means the same
/// whichever way the rate is found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateGauges {
    /// Requests a minute that the learners aim at, before any token limit; `None` while nothing is paced.
    #[serde(rename = "rate.rpm_target")]
    pub rpm_target: Option<u64>,
    /// Requests a minute that may go out now, token limits included; `None` while nothing is paced.
    #[serde(rename = "rate.effective_rpm")]
    pub effective_rpm: Option<f64>,
    /// The 95th percentile of the output tokens of recent answers, that of the model with the longest; `None` before the
    /// first.
    #[serde(rename = "rate.p95_tokens")]
    pub p95_tokens: Option<u32>,
    /// Refusals for the rate, those of earlier runs included.
    #[serde(rename = "rate.429_events")]
    pub refusals: u64,
    /// What was let in during the last minute, as a part of the limits that were found out; `None` while a model's is not
    /// known.
    #[serde(rename = "rate.learned_utilisation", default)]
    pub learned_utilisation: Option<f64>,
    /// The same as a part of the limits that the provider states; `None` where it states none.
    #[serde(rename = "rate.stated_utilisation", default)]
    pub stated_utilisation: Option<f64>,
}
