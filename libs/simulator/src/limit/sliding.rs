//! The sliding log: everything of the last minute counts.

use std::{collections::VecDeque, time::Duration};

use super::meter::{Allowance, Meter};

/// What was charged in the last `length`, in order. Charges of one millisecond share an entry, which bounds
/// the log.
#[derive(Debug)]
pub(super) struct SlidingLog {
    limit: f64,
    length: Duration,
    charges: VecDeque<(Duration, f64)>,
    used: f64,
}

impl SlidingLog {
    pub(super) fn new(limit: f64, length: Duration) -> Self {
        Self { limit, length, charges: VecDeque::new(), used: 0.0 }
    }

    fn forget_before(&mut self, now: Duration) {
        while let Some(&(at, cost)) = self.charges.front()
            && at + self.length <= now
        {
            self.charges.pop_front();
            self.used -= cost;
        }
        if self.charges.is_empty() {
            // Sums and differences of fractions drift; an empty log is the chance to start at zero again.
            self.used = 0.0;
        }
    }
}

impl Meter for SlidingLog {
    fn wait(&mut self, now: Duration, cost: f64) -> Duration {
        self.forget_before(now);
        let mut excess = self.used + cost.min(self.limit) - self.limit;
        let mut wait = Duration::ZERO;
        for &(at, charged) in &self.charges {
            if excess <= 0.0 {
                break;
            }
            excess -= charged;
            wait = (at + self.length).saturating_sub(now);
        }
        wait
    }

    fn charge(&mut self, now: Duration, cost: f64) {
        self.forget_before(now);
        self.used += cost;
        match self.charges.back_mut() {
            Some((at, charged)) if at.as_millis() == now.as_millis() => *charged += cost,
            _ => self.charges.push_back((now, cost)),
        }
    }

    fn charge_refused(&mut self, now: Duration, cost: f64) {
        self.charge(now, cost);
    }

    fn refund(&mut self, now: Duration, charged_at: Duration, amount: f64) {
        self.forget_before(now);
        let after = self.charges.partition_point(|&(at, _)| at <= charged_at);
        // Its own entry, unless that has grown old by now.
        if let Some(index) = after.checked_sub(1)
            && charged_at + self.length > now
        {
            let charged = &mut self.charges[index].1;
            let refunded = amount.min(*charged);
            *charged -= refunded;
            self.used -= refunded;
        }
    }

    fn allow(&mut self, now: Duration, allowance: Allowance) {
        self.forget_before(now);
        self.limit = allowance.at_once;
    }

    fn used(&mut self, now: Duration) -> f64 {
        self.forget_before(now);
        self.used
    }

    fn reset(&mut self, now: Duration) -> Duration {
        self.forget_before(now);
        self.charges.back().map_or(Duration::ZERO, |&(at, _)| (at + self.length).saturating_sub(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_comes_back_as_each_charge_grows_a_minute_old() {
        let mut log = SlidingLog::new(3.0, Duration::from_mins(1));
        let at = Duration::from_secs;
        for second in [0, 10, 20] {
            log.charge(at(second), 1.0);
        }
        assert_eq!(log.wait(at(30), 1.0), at(30));
        assert_eq!(log.wait(at(30), 2.0), at(40));
        assert_eq!(log.wait(at(60), 1.0), Duration::ZERO);
        assert_eq!(log.reset(at(60)), at(20));
    }
}
