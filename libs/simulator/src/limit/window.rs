//! Fixed windows: a counter that starts again at zero.

use std::time::Duration;

use super::meter::{Allowance, Meter};

/// A counter for windows of `length`.
#[derive(Debug)]
pub(super) struct FixedWindow {
    limit: f64,
    length: Duration,
    /// How far into a window the server started.
    phase: Duration,
    window: u128,
    used: f64,
}

impl FixedWindow {
    /// `phase` in 0..1 says how much of the first window is over at the start.
    pub(super) fn new(limit: f64, length: Duration, phase: f64) -> Self {
        Self { limit, length, phase: length.mul_f64(phase), window: 0, used: 0.0 }
    }

    /// Which window this moment lies in.
    fn index(&self, at: Duration) -> u128 {
        (at + self.phase).as_nanos() / self.length.as_nanos()
    }

    /// Enters the window that `now` lies in; gives the time until it ends.
    fn enter(&mut self, now: Duration) -> Duration {
        let (since_first, length) = ((now + self.phase).as_nanos(), self.length.as_nanos());
        let window = self.index(now);
        if window > self.window {
            self.window = window;
            self.used = 0.0;
        }
        let left = length - since_first % length;
        Duration::from_nanos(u64::try_from(left).expect("invariant: a window is 18 hours at most"))
    }
}

impl Meter for FixedWindow {
    fn wait(&mut self, now: Duration, cost: f64) -> Duration {
        let left = self.enter(now);
        let fits = self.used + cost.min(self.limit) <= self.limit;
        if fits { Duration::ZERO } else { left }
    }

    fn charge(&mut self, now: Duration, cost: f64) {
        self.enter(now);
        self.used += cost;
    }

    fn charge_refused(&mut self, now: Duration, cost: f64) {
        self.charge(now, cost);
    }

    fn refund(&mut self, now: Duration, charged_at: Duration, amount: f64) {
        self.enter(now);
        if self.index(charged_at) == self.window {
            self.used = (self.used - amount).max(0.0);
        }
    }

    fn allow(&mut self, now: Duration, allowance: Allowance) {
        self.enter(now);
        self.limit = allowance.at_once;
    }

    fn used(&mut self, now: Duration) -> f64 {
        self.enter(now);
        self.used
    }

    fn reset(&mut self, now: Duration) -> Duration {
        self.enter(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_starts_again_when_its_window_ends() {
        let mut window = FixedWindow::new(2.0, Duration::from_mins(1), 0.25);
        let at = Duration::from_secs;
        window.charge(at(0), 2.0);
        assert_eq!(window.wait(at(30), 1.0), at(15));
        assert_eq!(window.wait(at(45), 1.0), Duration::ZERO);
    }
}
