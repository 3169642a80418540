//! The token bucket: refills evenly, holds so much at most.

use std::time::Duration;

use super::meter::{Allowance, Meter};

/// A bucket of `capacity`, refilled at `per_second`. Below zero it is in debt.
#[derive(Debug)]
pub(super) struct Bucket {
    capacity: f64,
    per_second: f64,
    level: f64,
    refilled_at: Duration,
}

impl Bucket {
    pub(super) fn full(capacity: f64, per_second: f64, now: Duration) -> Self {
        Self { capacity, per_second, level: capacity, refilled_at: now }
    }

    fn refill(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.refilled_at).as_secs_f64();
        self.level = (self.level + passed * self.per_second).min(self.capacity);
        self.refilled_at = self.refilled_at.max(now);
    }

    /// How long until `amount` more has flowed in. Less than a nanosecond is rounding, not a wait.
    fn time_for(&self, amount: f64) -> Duration {
        Duration::from_secs_f64(amount.max(0.0) / self.per_second)
    }
}

impl Meter for Bucket {
    fn wait(&mut self, now: Duration, cost: f64) -> Duration {
        self.refill(now);
        self.time_for(cost.min(self.capacity) - self.level)
    }

    fn charge(&mut self, now: Duration, cost: f64) {
        self.refill(now);
        self.level -= cost;
    }

    /// Takes what is there but makes no debt: a client that hammers keeps the bucket empty.
    fn charge_refused(&mut self, now: Duration, cost: f64) {
        self.refill(now);
        self.level = (self.level - cost).max(self.level.min(0.0));
    }

    fn refund(&mut self, now: Duration, _charged_at: Duration, amount: f64) {
        self.refill(now);
        self.level = (self.level + amount).min(self.capacity);
    }

    fn allow(&mut self, now: Duration, allowance: Allowance) {
        let used = self.used(now);
        self.capacity = allowance.at_once;
        self.per_second = allowance.per_second;
        self.level = (self.capacity - used).max(0.0);
    }

    fn used(&mut self, now: Duration) -> f64 {
        self.refill(now);
        self.capacity - self.level
    }

    fn reset(&mut self, now: Duration) -> Duration {
        let used = self.used(now);
        self.time_for(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::ZERO;

    #[test]
    fn the_wait_is_what_a_provider_was_seen_to_name() {
        // Limit 10000, used 8554, requested 3082: "please try again in 9.816s".
        let mut bucket = Bucket::full(10_000.0, 10_000.0 / 60.0, START);
        bucket.charge(START, 8_554.0);
        assert_eq!(bucket.wait(START, 3_082.0).as_millis(), 9_816);
    }

    #[test]
    fn a_client_that_hammers_keeps_the_bucket_empty_but_not_in_debt() {
        let mut bucket = Bucket::full(1.0, 1.0, START);
        bucket.charge(START, 1.0);
        for tick in 1..=100 {
            bucket.charge_refused(Duration::from_millis(tick * 500), 1.0);
        }
        let last = Duration::from_secs(50);
        assert_eq!(bucket.wait(last, 1.0), Duration::from_secs(1));
    }

    #[test]
    fn a_cost_above_the_capacity_needs_a_full_bucket_and_leaves_a_debt() {
        let mut bucket = Bucket::full(10.0, 10.0, START);
        assert_eq!(bucket.wait(START, 25.0), Duration::ZERO);
        bucket.charge(START, 25.0);
        assert_eq!(bucket.wait(START, 1.0), Duration::from_millis(1_600));
    }
}
