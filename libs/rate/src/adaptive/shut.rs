//! A lane that is shut: everything is refused, so single requests ask whether it is open again.

/// Seconds between the first two pings at least.
const FIRST_INTERVAL: f64 = 0.25;
/// By how much the interval grows with each refused ping.
const BACK_OFF: f64 = 1.6;
/// The longest interval in seconds, or as many times what lies between two admissions: who asked as often as the limit
/// admits would keep a limit shut that counts what it refuses.
const LONGEST_INTERVAL: f64 = 2.0;
const RARER: f64 = 2.0;
/// After so many seconds a limit of a minute would have reopened: whatever it is, it is not in a hurry.
const LONG_SHUT: f64 = 75.0;
const LONG_INTERVAL: f64 = 60.0;
/// A wait of up to a second is one that was rounded up: it says nothing.
const ROUNDING: f64 = 1.0;
/// No provider is believed that it is shut for longer than this, in seconds.
const LONGEST_WAIT: f64 = 600.0;

/// So many requests would have been let through by a bucket, whose rate may have fallen.
const FILLS: f64 = 3.0;

#[derive(Clone, Copy, Debug)]
pub(super) struct Shut {
    pub(super) since: f64,
    pub(super) began: f64,
    /// When the ping went out whose fate is open.
    pub(super) ping: Option<f64>,
    /// When the next ping may go.
    pub(super) next_at: f64,
    /// When it should open, as far as that is known. No ping passes that moment.
    pub(super) opens_at: Option<f64>,
    /// Until when the provider said that it is shut.
    pub(super) told_until: f64,
    interval: f64,
    longest: f64,
    /// Seconds between two admissions of the minute before.
    rare: f64,
    sent_at: f64,
    /// How long nothing had been sent before the ping, and before any that was refused.
    pause: f64,
    refused_after: f64,
}

impl Shut {
    /// Shut from now on; `verdict` is how long a refusal takes, `spacing` what lies between two requests of the lane,
    /// and `rare` what lay between two of its admissions.
    pub(super) fn new(now: f64, since: f64, verdict: f64, spacing: f64, rare: f64) -> Self {
        let interval = FIRST_INTERVAL.max(verdict).max(spacing / 2.0);
        let longest = LONGEST_INTERVAL.max(RARER * rare).max(interval);
        Self {
            since,
            began: now,
            ping: None,
            next_at: now + interval,
            opens_at: None,
            told_until: f64::NEG_INFINITY,
            interval,
            longest,
            rare,
            sent_at: now,
            pause: 0.0,
            refused_after: 0.0,
        }
    }

    pub(super) fn sent(&mut self, now: f64) {
        if self.ping.is_none() {
            self.ping = Some(now);
            self.pause = now - self.sent_at;
        }
        self.sent_at = now;
        self.next_at = now + self.interval;
    }

    /// A request was refused after a pause in which the minute before would have let some through: no bucket does that,
    /// not even one that counts what it refuses, since it fills all the time.
    pub(super) fn does_not_fill(&self) -> bool {
        self.refused_after > FILLS * self.rare
    }

    /// A request was refused, with the wait that the provider asks for in seconds.
    pub(super) fn refused(&mut self, now: f64, sent_at: f64, retry_after: Option<f64>) {
        if self.ping == Some(sent_at) {
            self.ping = None;
            self.refused_after = self.refused_after.max(self.pause);
            let longest = if now - self.since > LONG_SHUT { LONG_INTERVAL } else { self.longest };
            self.interval = (self.interval * BACK_OFF).min(longest);
            self.next_at = now + self.interval;
            if let Some(opens_at) = self.opens_at.filter(|opens_at| (now..self.next_at).contains(opens_at)) {
                self.next_at = opens_at;
            }
        }
        match retry_after {
            Some(wait) if wait > ROUNDING => {
                self.next_at = now + wait.min(LONGEST_WAIT);
                self.told_until = self.next_at - ROUNDING;
            }
            Some(wait) => self.next_at = self.next_at.min(now + wait + ROUNDING),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_asked_at_most_half_as_often_as_the_limit_admits() {
        let rare = 6.0;
        let mut shut = Shut::new(0.0, 0.0, 0.2, rare, rare);
        let mut asked = 0.0;
        for _ in 0..6 {
            asked = shut.next_at;
            shut.sent(asked);
            shut.refused(asked + 0.2, asked, None);
        }
        assert!(shut.next_at - asked >= 2.0 * rare, "asked {asked:.1}, and again {:.1}", shut.next_at);
    }
}
