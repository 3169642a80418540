//! What was sent in the last minute and what of it was refused, by the time of sending.
//!
//! A request counts as admitted when it was not refused: refusals come back at once, answers take seconds.

use std::ops::Range;

/// Length of a slot in seconds.
pub(super) const SLOT: f64 = 0.05;
/// 130 s: a window of a minute before another that refused everything, and what comes back late.
const SLOTS: usize = 2_600;

/// A ring of slots, 31 kB.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    ring: Box<[Slot]>,
    /// The number of the newest slot since the learner's clock began.
    newest: u64,
    /// The oldest slot that counts as within the window, and what was sent from it on.
    within_from: u64,
    within: Tally,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    sent: f32,
    refused: f32,
    /// What came back then of what was sent before.
    returned: f32,
}

/// Units sent in a stretch of time, how many of them were refused, and how many came back in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tally {
    pub(super) sent: f64,
    pub(super) refused: f64,
    returned: f64,
}

/// What of the requests that were sent counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    Admitted,
    /// Those that were refused as well.
    All,
}

impl Tally {
    fn add(&mut self, slot: Slot) {
        self.sent += f64::from(slot.sent);
        self.refused += f64::from(slot.refused);
        self.returned += f64::from(slot.returned);
    }

    fn remove(&mut self, slot: Slot) {
        self.sent -= f64::from(slot.sent);
        self.refused -= f64::from(slot.refused);
        self.returned -= f64::from(slot.returned);
    }

    pub(super) fn scaled(self, factor: f64) -> Self {
        Self { sent: self.sent * factor, refused: self.refused * factor, returned: self.returned * factor }
    }

    fn since(self, before: Self) -> Self {
        Self {
            sent: self.sent - before.sent,
            refused: self.refused - before.refused,
            returned: self.returned - before.returned,
        }
    }

    pub(super) fn counted(self, counted: Counted) -> f64 {
        match counted {
            Counted::Admitted => self.sent - self.refused - self.returned,
            Counted::All => self.sent - self.returned,
        }
    }

    pub(super) fn admitted(self) -> f64 {
        (self.sent - self.refused - self.returned).max(0.0)
    }

    /// The share that was refused, none of nothing.
    pub(super) fn refused_share(self) -> f64 {
        if self.sent > 0.0 { self.refused / self.sent } else { 0.0 }
    }
}

impl Slots {
    pub(super) fn new() -> Self {
        Self {
            ring: vec![Slot::default(); SLOTS].into_boxed_slice(),
            newest: 0,
            within_from: 0,
            within: Tally::default(),
        }
    }

    /// The same history in another unit, of which each of these units takes `factor`.
    pub(super) fn scaled(&self, factor: f64) -> Self {
        let mut scaled = self.clone();
        scaled.scale(factor);
        scaled
    }

    /// What went out, and was refused, counts so many times.
    pub(super) fn scale(&mut self, factor: f64) {
        for slot in &mut self.ring {
            slot.sent = narrow(f64::from(slot.sent) * factor);
            slot.refused = narrow(f64::from(slot.refused) * factor);
            slot.returned = narrow(f64::from(slot.returned) * factor);
        }
        // What is within the window is summed up anew.
        self.within_from = u64::MAX;
    }

    /// As if so many units a second had been admitted all along.
    pub(super) fn even(now: f64, per_second: f64) -> Self {
        let slot = Slot { sent: narrow(per_second * SLOT), ..Slot::default() };
        Self {
            ring: vec![slot; SLOTS].into_boxed_slice(),
            newest: number(now),
            within_from: u64::MAX,
            within: Tally::default(),
        }
    }

    pub(super) fn sent(&mut self, at: f64, units: f64) {
        self.advance(number(at));
        self.change(at, |slot| slot.sent += narrow(units));
    }

    /// What counts of the last `window` seconds.
    pub(super) fn within(&mut self, now: f64, window: f64, counted: Counted) -> f64 {
        self.advance(number(now));
        let first = number(now - window).max(self.newest.saturating_sub(SLOTS as u64 - 1));
        if first < self.within_from || self.newest - self.within_from >= SLOTS as u64 {
            self.within = self.tally(now - window, now + 2.0 * SLOT);
            self.within_from = first;
        }
        while self.within_from < first {
            let slot = self.ring[index(self.within_from)];
            self.within.remove(slot);
            self.within_from += 1;
        }
        self.within.counted(counted)
    }

    /// When so much of what counts of the last `window` seconds has grown too old that no more than `most` is left.
    pub(super) fn room_at(&mut self, now: f64, window: f64, counted: Counted, most: f64) -> f64 {
        let mut used = self.within(now, window, counted);
        let mut at = now;
        for number in self.within_from..=self.newest {
            if used <= most {
                break;
            }
            let slot = self.ring[index(number)];
            if slot.sent > 0.0 {
                let mut tally = Tally::default();
                tally.add(slot);
                used -= tally.counted(counted);
                at = end(number) + window;
            }
        }
        at
    }

    /// When the next of what was sent in the last `window` seconds has grown too old, if more than `most` counts: so what is
    /// too much goes bit by bit. Waiting for all of it found a raise of a fixed minute at 10,000 a minute after 99 s on
    /// average instead of 69.
    pub(super) fn some_room_at(&mut self, now: f64, window: f64, counted: Counted, most: f64) -> f64 {
        if self.within(now, window, counted) <= most {
            return now;
        }
        let next = (self.within_from..=self.newest).find(|number| self.ring[index(*number)].sent > 0.0);
        next.map_or(now, |number| end(number) + window)
    }

    /// Something that was sent then turned out to weigh this much more, or less.
    pub(super) fn correct(&mut self, sent_at: f64, units: f64) {
        self.change(sent_at, |slot| slot.sent = (slot.sent + narrow(units)).max(0.0));
    }

    pub(super) fn refused(&mut self, sent_at: f64, units: f64) {
        self.change(sent_at, |slot| slot.refused += narrow(units));
    }

    /// So much of what was sent before has come back.
    pub(super) fn returned(&mut self, at: f64, units: f64) {
        self.advance(number(at));
        self.change(at, |slot| slot.returned += narrow(units));
    }

    /// Changes a slot that is not forgotten yet, and what is within the window by exactly as much.
    fn change(&mut self, at: f64, change: impl FnOnce(&mut Slot)) {
        let number = number(at);
        let within = number >= self.within_from;
        let Some(slot) = self.slot(number) else { return };
        let before = *slot;
        change(slot);
        let after = *slot;
        if within {
            self.within.add(after);
            self.within.remove(before);
        }
    }

    /// What was sent from one moment until before another, to the accuracy of a slot.
    pub(super) fn tally(&self, from: f64, until: f64) -> Tally {
        let oldest = self.newest.saturating_sub(SLOTS as u64 - 1);
        let (first, end) = (number(from).max(oldest), number(until).min(self.newest + 1));
        let mut tally = Tally::default();
        for number in first..end {
            tally.add(self.ring[index(number)]);
        }
        tally
    }

    /// What was admitted until each slot ended, to be asked for many stretches at once.
    pub(super) fn history(&self) -> History {
        let oldest = self.newest.saturating_sub(SLOTS as u64 - 1);
        let sums = (oldest..=self.newest).scan(Tally::default(), |sum, number| {
            sum.add(self.ring[index(number)]);
            Some(*sum)
        });
        History { oldest, sums: std::iter::once(Tally::default()).chain(sums).collect() }
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

/// What was sent, as sums from the oldest slot on.
#[derive(Clone, Debug)]
pub(super) struct History {
    oldest: u64,
    /// Before each slot, and after the last.
    sums: Vec<Tally>,
}

impl History {
    /// What was sent from one moment until before another.
    pub(super) fn between(&self, from: f64, until: f64) -> Tally {
        self.before(until).since(self.before(from))
    }

    /// The most that was admitted in any stretch of this length, of those that lie `step` seconds apart, and end after one
    /// moment and by another.
    pub(super) fn most_within(&self, length: f64, ends: Range<f64>, step: f64) -> f64 {
        let Range { start, end: until } = ends;
        let ends = (0..).map(|count| until - f64::from(count) * step).take_while(|end| *end > start);
        let ends = ends.take_while(|end| number(end - length) > self.oldest && *end >= length);
        ends.map(|end| self.between(end - length, end).admitted()).fold(0.0, f64::max)
    }

    /// The most that was sent in any stretch of this length that ends with something that was admitted, up to `until`.
    pub(super) fn most_admitted_after(&self, length: f64, until: f64) -> f64 {
        let slots = slots_in(length);
        let last = self.index(until);
        let ends = (slots..last).filter(|index| {
            let slot = self.sums[index + 1].since(self.sums[*index]);
            slot.sent > 0.0 && slot.refused <= 0.0
        });
        ends.map(|index| self.sums[index + 1].since(self.sums[index + 1 - slots]).sent).fold(0.0, f64::max)
    }

    /// The first slot of these in which something was refused.
    pub(super) fn first_refused(&self, from: f64, until: f64) -> Option<f64> {
        let mut slots = self.index(from)..self.index(until);
        let first = slots.find(|index| self.sums[index + 1].since(self.sums[*index]).refused > 0.0)?;
        Some(self.begins(first))
    }

    /// The first slot after this moment's in which something was sent.
    pub(super) fn first_sent_after(&self, at: f64) -> Option<f64> {
        let mut slots = self.index(at) + 1..self.index(self.end());
        let first = slots.find(|index| self.sums[index + 1].since(self.sums[*index]).sent > 0.0)?;
        Some(self.begins(first))
    }

    /// When the newest slot ends.
    pub(super) fn end(&self) -> f64 {
        end(self.oldest + self.sums.len() as u64 - 2)
    }

    fn before(&self, at: f64) -> Tally {
        self.sums[self.index(at)]
    }

    fn begins(&self, slot: usize) -> f64 {
        end(self.oldest + slot as u64) - SLOT
    }

    fn index(&self, at: f64) -> usize {
        let slots = usize::try_from(number(at).saturating_sub(self.oldest)).unwrap_or(usize::MAX);
        slots.min(self.sums.len() - 1)
    }
}

/// How many slots make up so many seconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most a minute")]
fn slots_in(seconds: f64) -> usize {
    (seconds / SLOT).round() as usize
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_in_another_unit_is_summed_up_in_that_unit() {
        let mut slots = Slots::new();
        (0..10).for_each(|second| slots.sent(f64::from(second), 1.0));
        assert!((slots.within(10.0, 60.0, Counted::Admitted) - 10.0).abs() < 1e-9);
        assert!((slots.scaled(300.0).within(10.0, 60.0, Counted::Admitted) - 3_000.0).abs() < 1e-3);
    }

    #[test]
    fn a_part_of_a_history_is_a_part_of_what_is_within_a_window() {
        let mut slots = Slots::even(100.0, 8.0);
        assert!((slots.within(100.0, 10.0, Counted::Admitted) - 80.0).abs() < 1.0);
        slots.scale(0.25);
        assert!((slots.within(100.0, 10.0, Counted::Admitted) - 20.0).abs() < 0.25);
        slots.sent(101.0, 3.0);
        assert!((slots.within(109.0, 10.0, Counted::Admitted) - 5.0).abs() < 0.25);
    }

    #[test]
    fn what_is_within_a_window_follows_corrections_exactly() {
        let mut slots = Slots::new();
        slots.sent(1.0, 5.0);
        slots.correct(1.0, -8.0);
        slots.sent(2.0, 3.0);
        assert!(
            (slots.within(3.0, 10.0, Counted::Admitted) - 3.0).abs() < 1e-9,
            "nothing weighs less than nothing"
        );
        assert!(slots.within(13.0, 10.0, Counted::Admitted).abs() < 1e-9);
    }

    #[test]
    fn a_history_sums_up_any_stretch() {
        let mut slots = Slots::new();
        (0..400).for_each(|second| slots.sent(f64::from(second), 1.0));
        let history = slots.history();
        assert!((history.between(300.0, 350.0).admitted() - 50.0).abs() < 1e-9);
        assert!((history.most_within(10.0, 0.0..history.end(), 0.5) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn a_window_in_which_refusals_count_has_room_when_as_many_have_grown_too_old() {
        let mut slots = Slots::new();
        (0..10).for_each(|second| slots.sent(f64::from(second), 1.0));
        slots.refused(9.0, 1.0);
        let room_at = |slots: &mut Slots, counted, most| slots.room_at(9.5, 20.0, counted, most);
        assert!((room_at(&mut slots, Counted::All, 10.0) - 9.5).abs() < 1e-9, "there is room");
        assert!((room_at(&mut slots, Counted::All, 9.0) - 20.0).abs() < 2.0 * SLOT);
        assert!((room_at(&mut slots, Counted::All, 6.5) - 23.0).abs() < 2.0 * SLOT);
        assert!((slots.some_room_at(9.5, 20.0, Counted::All, 6.5) - 20.0).abs() < 2.0 * SLOT);
    }

    #[test]
    fn what_was_refused_counts_if_it_is_to() {
        let mut slots = Slots::new();
        (0..100).for_each(|second| slots.sent(f64::from(second), 1.0));
        (50..60).for_each(|second| slots.refused(f64::from(second), 1.0));
        assert!((slots.within(99.0, 59.5, Counted::Admitted) - 50.0).abs() < 1e-9);
        assert!((slots.within(99.0, 59.5, Counted::All) - 60.0).abs() < 1e-9);
        let history = slots.history();
        assert!((history.first_refused(40.0, 99.0).unwrap() - 50.0).abs() < 1e-9);
        assert_eq!(history.first_refused(60.5, 99.0), None);
        slots.sent(55.5, 5.0);
        slots.refused(55.5, 5.0);
        let history = slots.history();
        assert!((history.most_admitted_after(3.0, 58.0) - 3.0).abs() < 1e-9, "only refusals follow the five");
        assert!((history.most_admitted_after(10.0, 99.0) - 15.0).abs() < 1e-9);
    }
}
