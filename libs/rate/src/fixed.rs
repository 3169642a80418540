//! Mode `fixed`: the user's limits are the rate. Refusals change nothing; what is not limited is not paced.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::event::Cost;
use crate::gauges::ratio;
use crate::limits::Limits;
use crate::pacing::{Pace, interval};

/// Paces requests and reserved tokens at the user's limits, each in its own lane.
///
/// The token lane charges after the fact: a request waits until all before it are paid for. So a provider's
/// minute-deep bucket is full whenever a request goes, and one larger than the whole budget goes alone instead of
/// blocking for ever.
#[derive(Clone, Debug)]
pub(crate) struct Fixed {
    limits: Limits,
    requests: Pace,
    tokens: Pace,
    latest: Option<Cost>,
}

/// What a later run needs to go on: how long each lane is still busy.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FixedRecord {
    requests_busy: Duration,
    tokens_busy: Duration,
}

impl Fixed {
    pub(crate) fn new(limits: Limits, now: Duration) -> Self {
        let idle = FixedRecord { requests_busy: Duration::ZERO, tokens_busy: Duration::ZERO };
        Self::restore(&idle, limits, now)
    }

    pub(crate) fn restore(record: &FixedRecord, limits: Limits, now: Duration) -> Self {
        Self {
            limits,
            requests: Pace::restore(now, record.requests_busy),
            tokens: Pace::restore(now, record.tokens_busy),
            latest: None,
        }
    }

    pub(crate) fn record(&self, now: Duration) -> FixedRecord {
        FixedRecord { requests_busy: self.requests.record(now), tokens_busy: self.tokens.record(now) }
    }

    /// Other limits hold from now on: what was not waited for yet takes longer or shorter in proportion.
    pub(crate) fn limit(&mut self, now: Duration, limits: Limits) {
        // Long enough that rounding does not matter.
        const MANY: u64 = 1_000_000;
        let spacing = |limit: Option<u64>| limit.map_or(Duration::ZERO, |limit| interval(MANY, limit));
        let requests = |limits: Limits| spacing(limits.rpm.map(|rpm| rpm.get().into()));
        let tokens = |limits: Limits| spacing(limits.tpm.map(NonZeroU64::get));
        self.requests.change(now, requests(self.limits), requests(limits));
        self.tokens.change(now, tokens(self.limits), tokens(limits));
        self.limits = limits;
    }

    pub(crate) fn sent(&mut self, now: Duration, cost: Cost) {
        if let Some(rpm) = self.limits.rpm {
            self.requests.take(now, interval(1, rpm.get().into()));
        }
        if let Some(tpm) = self.limits.tpm {
            self.tokens.take(now, interval(cost.reserved_tokens(), tpm.get()));
        }
        self.latest = Some(cost);
    }

    pub(crate) fn free_at(&self) -> Duration {
        self.requests.free_at().max(self.tokens.free_at())
    }

    pub(crate) fn target(&self) -> Option<u32> {
        self.limits.rpm.map(NonZeroU32::get)
    }

    /// The lower of the request limit and what the token limit allows of requests like the latest.
    pub(crate) fn effective_rpm(&self) -> Option<f64> {
        let by_requests = self.limits.rpm.map(|rpm| f64::from(rpm.get()));
        let by_tokens = self.limits.tpm.zip(self.latest).and_then(|(tpm, cost)| {
            let each = cost.reserved_tokens();
            (each > 0).then(|| ratio(tpm.get(), each))
        });
        [by_requests, by_tokens].into_iter().flatten().min_by(f64::total_cmp)
    }

    pub(crate) fn explain(&self) -> String {
        match (self.limits.rpm, self.limits.tpm, self.limits.max_in_flight) {
            (Some(rpm), None, _) => format!("{rpm}/min: the request limit that is set"),
            (None, Some(tpm), _) => format!("{tpm} tokens/min: the token limit that is set"),
            (Some(rpm), Some(tpm), _) => format!("{rpm}/min and {tpm} tokens/min: the limits that are set"),
            (None, None, Some(cap)) => format!("no rate limit set: pacing is off, at most {cap} in flight"),
            (None, None, None) => "no limit set: pacing is off".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(rpm: u32, tpm: u64) -> Limits {
        Limits { rpm: NonZeroU32::new(rpm), tpm: NonZeroU64::new(tpm), max_in_flight: None }
    }

    /// When each of these requests goes, if each goes as early as it may; in milliseconds.
    fn schedule(limits: Limits, tokens: &[u32]) -> Vec<u128> {
        let mut fixed = Fixed::new(limits, Duration::ZERO);
        let mut now = Duration::ZERO;
        let send = |&output_tokens: &u32| {
            now = now.max(fixed.free_at());
            fixed.sent(now, Cost { input_tokens: 0, output_tokens });
            now.as_millis()
        };
        tokens.iter().map(send).collect()
    }

    #[test]
    fn without_limits_nothing_waits() {
        assert_eq!(schedule(limits(0, 0), &[1_000; 3]), [0, 0, 0]);
    }

    #[test]
    fn a_request_limit_spaces_requests_evenly() {
        assert_eq!(schedule(limits(600, 0), &[1; 4]), [0, 100, 200, 300]);
    }

    #[test]
    fn a_token_limit_makes_each_request_wait_for_those_before_it() {
        assert_eq!(schedule(limits(0, 60_000), &[1_000, 3_000, 10, 10]), [0, 1_000, 4_000, 4_010]);
    }

    #[test]
    fn a_request_larger_than_the_budget_goes_and_is_paid_for_afterwards() {
        assert_eq!(schedule(limits(0, 1_000), &[10, 3_000, 10]), [0, 600, 180_600]);
    }

    #[test]
    fn the_tighter_limit_rules() {
        assert_eq!(schedule(limits(60, 60_000), &[10, 5_000, 10, 10]), [0, 1_000, 5_995, 6_990]);
        let mut fixed = Fixed::new(limits(60, 60_000), Duration::ZERO);
        assert_eq!(fixed.effective_rpm(), Some(60.0));
        fixed.sent(Duration::ZERO, Cost { input_tokens: 2_000, output_tokens: 2_000 });
        assert_eq!(fixed.effective_rpm(), Some(15.0));
    }

    #[test]
    fn another_limit_holds_at_once_for_what_was_not_waited_for_yet() {
        let mut fixed = Fixed::new(limits(0, 60_000), Duration::ZERO);
        fixed.sent(Duration::ZERO, Cost { input_tokens: 0, output_tokens: 4_000 });
        let after = |fixed: &Fixed| fixed.free_at().as_millis();
        assert_eq!(after(&fixed), 4_000);
        fixed.limit(Duration::from_secs(1), limits(0, 30_000));
        assert_eq!(after(&fixed), 7_000);
        fixed.limit(Duration::from_secs(3), limits(0, 120_000));
        assert_eq!(after(&fixed), 4_000);
        fixed.limit(Duration::from_secs(3), limits(0, 0));
        assert_eq!(after(&fixed), 3_000, "nothing is limited any more");
        fixed.limit(Duration::from_secs(4), limits(60, 0));
        fixed.sent(Duration::from_secs(4), Cost { input_tokens: 0, output_tokens: 1 });
        assert!(after(&fixed).abs_diff(5_000) <= 5, "{}", after(&fixed));
    }

    #[test]
    fn it_says_what_the_pace_comes_from() {
        let explain = |limits| Fixed::new(limits, Duration::ZERO).explain();
        let capped = Limits { max_in_flight: NonZeroU32::new(8), ..Limits::default() };
        assert_eq!(explain(limits(0, 0)), "no limit set: pacing is off");
        assert_eq!(explain(capped), "no rate limit set: pacing is off, at most 8 in flight");
        assert_eq!(explain(limits(500, 0)), "500/min: the request limit that is set");
        assert_eq!(explain(limits(0, 9_000)), "9000 tokens/min: the token limit that is set");
        assert_eq!(explain(limits(5, 9)), "5/min and 9 tokens/min: the limits that are set");
    }
}
