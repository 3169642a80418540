//! What was sent in the last minute and what of it was refused, by the time of sending.
//!
//! A request counts as admitted when it was not refused: refusals come back at once, answers take seconds.

/// Length of a slot in seconds.
pub(super) const SLOT: f64 = 0.05;
/// 70 s: a window of a minute, and what comes back late.
const SLOTS: usize = 1_400;

/// A ring of slots, 11 kB.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    ring: Box<[Slot]>,
    /// The number of the newest slot since the learner's clock began.
    newest: u64,
    /// The oldest slot that counts as within the window, and what was admitted from it on.
    within_from: u64,
    within: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    sent: f32,
    refused: f32,
}

/// Units sent in a stretch of time, and how many of them were refused.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tally {
    pub(super) sent: f64,
    pub(super) refused: f64,
}

impl Tally {
    pub(super) fn admitted(self) -> f64 {
        (self.sent - self.refused).max(0.0)
    }

    /// The share that was refused, none of nothing.
    pub(super) fn refused_share(self) -> f64 {
        if self.sent > 0.0 { self.refused / self.sent } else { 0.0 }
    }
}

impl Slots {
    pub(super) fn new() -> Self {
        Self { ring: vec![Slot::default(); SLOTS].into_boxed_slice(), newest: 0, within_from: 0, within: 0.0 }
    }

    /// The same history in another unit, of which each of these units takes `factor`.
    pub(super) fn scaled(&self, factor: f64) -> Self {
        let mut scaled = self.clone();
        for slot in &mut scaled.ring {
            slot.sent = narrow(f64::from(slot.sent) * factor);
            slot.refused = narrow(f64::from(slot.refused) * factor);
        }
        scaled
    }

    pub(super) fn sent(&mut self, at: f64, units: f64) {
        self.advance(number(at));
        if let Some(slot) = self.slot(number(at)) {
            slot.sent += narrow(units);
        }
        self.within += units;
    }

    /// What was admitted in the last `window` seconds, and when the next of it will be older than that.
    pub(super) fn within(&mut self, now: f64, window: f64) -> (f64, f64) {
        self.advance(number(now));
        let first = number(now - window).max(self.newest.saturating_sub(SLOTS as u64 - 1));
        if first < self.within_from || self.newest - self.within_from >= SLOTS as u64 {
            self.within = self.tally(now - window, now + 2.0 * SLOT).admitted();
            self.within_from = first;
        }
        while self.within_from < first {
            let slot = self.ring[index(self.within_from)];
            self.within -= f64::from(slot.sent) - f64::from(slot.refused);
            self.within_from += 1;
        }
        let next = (self.within_from..=self.newest).find(|number| self.ring[index(*number)].sent > 0.0);
        (self.within, next.map_or(now, |number| end(number) + window))
    }

    /// Something that was sent then turned out to weigh this much more, or less.
    pub(super) fn correct(&mut self, sent_at: f64, units: f64) {
        if let Some(slot) = self.slot(number(sent_at)) {
            slot.sent = (slot.sent + narrow(units)).max(0.0);
        }
        if number(sent_at) >= self.within_from {
            self.within += units;
        }
    }

    pub(super) fn refused(&mut self, sent_at: f64, units: f64) {
        if let Some(slot) = self.slot(number(sent_at)) {
            slot.refused += narrow(units);
        }
        if number(sent_at) >= self.within_from {
            self.within -= units;
        }
    }

    /// What was sent from one moment until before another, to the accuracy of a slot.
    pub(super) fn tally(&self, from: f64, until: f64) -> Tally {
        let oldest = self.newest.saturating_sub(SLOTS as u64 - 1);
        let (first, end) = (number(from).max(oldest), number(until).min(self.newest + 1));
        let mut tally = Tally::default();
        for number in first..end {
            let slot = self.ring[index(number)];
            tally.sent += f64::from(slot.sent);
            tally.refused += f64::from(slot.refused);
        }
        tally
    }

    fn advance(&mut self, to: u64) {
        let skipped = to.saturating_sub(self.newest).min(SLOTS as u64);
        for number in to.saturating_sub(skipped)..to {
            self.ring[index(number + 1)] = Slot::default();
        }
        self.newest = self.newest.max(to);
    }

    /// A slot that is not forgotten yet.
    fn slot(&mut self, number: u64) -> Option<&mut Slot> {
        let kept = number <= self.newest && self.newest - number < SLOTS as u64;
        kept.then(|| &mut self.ring[index(number)])
    }
}

/// When a slot ends.
#[expect(clippy::cast_precision_loss, reason = "exact for millions of years")]
fn end(number: u64) -> f64 {
    (number + 1) as f64 * SLOT
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of a fraction saturates")]
fn number(at: f64) -> u64 {
    // One less than the largest, so that its successor exists.
    ((at / SLOT) as u64).min(u64::MAX - 1)
}

#[expect(clippy::cast_possible_truncation, reason = "a remainder of a small number")]
fn index(number: u64) -> usize {
    (number % SLOTS as u64) as usize
}

#[expect(clippy::cast_possible_truncation, reason = "units of 50 ms, exact up to 16 million")]
fn narrow(units: f64) -> f32 {
    units as f32
}
