//! What a provider has charged by when, where it charges answers as they are produced.
//!
//! Such a limit is overdrawn by answers to requests that went out long before, so what was admitted in a second says
//! nothing about it. What was charged does: between two moments at which the allowance was used up, it is the limit.

use super::slots::{SLOT, Slots};

/// Moments closer to each other tell nothing: a single long answer is more than the limit gives in between.
const SHORTEST: f64 = 2.0;
/// Moments that are further apart neither: in between, an allowance that lay idle may have been full.
const LONGEST: f64 = 60.0;

#[derive(Clone, Debug)]
pub(super) struct Charged {
    slots: Slots,
    /// When the allowance was last seen used up.
    exhausted_at: Option<f64>,
    /// Whether it is, as far as is known.
    is_exhausted: bool,
    /// What was charged while it was, the last time.
    overdrawn: f64,
}

/// What was charged between two moments at which the allowance was used up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    pub(super) seconds: f64,
    /// Units a second.
    pub(super) rate: f64,
}

impl Charged {
    /// After a history of what was sent, which is taken to have been charged at once.
    pub(super) fn new(slots: Slots) -> Self {
        Self { slots, exhausted_at: None, is_exhausted: false, overdrawn: 0.0 }
    }

    /// So much was charged at this time, or less than was thought.
    pub(super) fn add(&mut self, at: f64, units: f64) {
        if self.is_exhausted {
            self.overdrawn += units;
        }
        if units > 0.0 {
            self.slots.sent(at, units);
        } else {
            self.slots.refused(at, -units);
        }
    }

    /// So much of what was charged before has been given back.
    pub(super) fn returned(&mut self, at: f64, units: f64) {
        self.slots.returned(at, units);
    }

    /// What was charged when.
    pub(super) fn slots(&self) -> &Slots {
        &self.slots
    }

    /// What was charged from one moment until before another.
    pub(super) fn between(&self, from: f64, until: f64) -> f64 {
        self.slots.tally(from, until).admitted()
    }

    /// The allowance was used up at this time. What it gave since the last time.
    pub(super) fn exhausted(&mut self, at: f64) -> Option<Measured> {
        let before = self.exhausted_at.filter(|before| at - before < LONGEST);
        let seconds = before.map_or(0.0, |before| at - before);
        if before.is_some() && seconds < SHORTEST {
            return None;
        }
        self.exhausted_at = Some(at);
        let rate = self.between(before?, at) / seconds;
        Some(Measured { seconds, rate })
    }

    /// Everything sent since a moment is refused.
    pub(super) fn shut(&mut self, now: f64, since: f64) {
        self.is_exhausted = true;
        self.overdrawn = self.between(since, now + SLOT);
    }

    /// A request passed again.
    pub(super) fn reopened(&mut self) {
        self.is_exhausted = false;
    }

    /// What was charged although the allowance was used up, the last time that it was: what was under way then.
    pub(super) fn overdrawn(&self) -> f64 {
        self.overdrawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many units every tenth of a second, from one second until before another.
    fn charge(charged: &mut Charged, seconds: std::ops::Range<u32>, units: f64) {
        (10 * seconds.start..10 * seconds.end).for_each(|tenth| charged.add(f64::from(tenth) / 10.0, units));
    }

    #[test]
    fn what_was_charged_between_two_moments_without_allowance_is_the_limit() {
        let mut charged = Charged::new(Slots::new());
        charge(&mut charged, 0..10, 500.0);
        assert_eq!(charged.exhausted(10.0), None, "what it held before is unknown");
        charge(&mut charged, 10..15, 130.0);
        charged.add(14.0, -500.0);
        let measured = charged.exhausted(15.0).unwrap();
        assert!(
            (measured.rate - 1_200.0).abs() < 1e-6 && (measured.seconds - 5.0).abs() < 1e-9,
            "{measured:?}"
        );
    }

    #[test]
    fn moments_too_close_to_each_other_or_too_far_apart_measure_nothing() {
        let mut charged = Charged::new(Slots::new());
        charged.exhausted(10.0);
        charge(&mut charged, 10..20, 100.0);
        assert_eq!(charged.exhausted(11.9), None);
        assert!(
            (charged.exhausted(20.0).unwrap().seconds - 10.0).abs() < 1e-9,
            "the earlier of the two counts"
        );
        assert_eq!(charged.exhausted(80.1), None);
    }
}
