//! The numbers that a learner shows to metrics and live views.

/// The state of a learner in numbers; each means the same in every mode.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gauges {
    /// Requests per minute that the mode aims at before any token bound; absent while requests are not paced.
    pub rpm_target: Option<u32>,
    /// Requests per minute that may go out now, token bound included; absent while nothing is paced, and where only
    /// tokens are limited before the first request shows how many it takes.
    pub effective_rpm: Option<f64>,
    /// The 95th percentile (nearest rank) of the output tokens of the last 512 successes; absent before the first.
    pub p95_tokens: Option<u32>,
    /// Rate refusals so far, those before a resume included.
    pub refusals: u64,
    /// Requests per minute that mode `adaptive` found out from refusals to be allowed; absent while none came.
    pub learned_rpm: Option<f64>,
    /// Requests per minute that the provider states to allow, as far as mode `adaptive` believes it.
    pub stated_rpm: Option<f64>,
    /// Requests without a final verdict.
    pub in_flight: u32,
}

/// `units / each` as a gauge shows it.
#[expect(clippy::cast_precision_loss, reason = "a gauge is read to three digits")]
pub(crate) fn ratio(units: u64, each: u64) -> f64 {
    units as f64 / each as f64
}
