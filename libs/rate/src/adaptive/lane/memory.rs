//! What a lane is told from outside, and what it leaves to others.

use serde::{Deserialize, Serialize};

use super::super::amount::{Amount, Charging};
use super::super::charged::Charged;
use super::super::slots::Slots;
use super::super::stated::Allowed;
use super::super::tuning::Tuning;
use super::super::turn::{Turn, Why};
use super::super::window::{MINUTE, Window};
use super::visits::Fall;
use super::{Lane, Stage, TICK};

/// The share of a remembered rate to start from.
const RESUMED: f64 = 0.7;
/// What is stated rises if it rises to so many times.
pub(super) const RISE: f64 = 1.05;
/// Seconds in which the rate rises slowly after the provider asked for that.
const GENTLE: f64 = 900.0;
/// Who shares a key gains at most this many times its rate at once.
const MOST_GAIN: f64 = 3.0;

/// What a later run needs to go on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(in super::super) struct LaneRecord {
    rate: f64,
    unit: f64,
    ceiling: Option<f64>,
}

impl Lane {
    /// The rate that another job on the same key may start from; none while nothing limited this one but its user.
    pub(in super::super) fn found(&self) -> Option<f64> {
        (self.rate < self.bound && (self.ceiling.is_some() || self.cap.is_some())).then_some(self.rate)
    }

    pub(in super::super) fn admitted_last_minute(&self, now: f64) -> f64 {
        self.slots.tally(now - MINUTE, now + TICK).admitted()
    }

    /// What a request used turned out to differ from what it was expected to use.
    pub(in super::super) fn correct(&mut self, now: f64, sent_at: f64, difference: f64) {
        if self.free_at > now {
            // Until now it was the lane that kept requests from going.
            self.held_at = now;
        }
        self.slots.correct(sent_at, difference);
        self.free_at += difference / self.rate;
    }

    /// A request was refused for another quantity: it has used up nothing of this one.
    pub(in super::super) fn undo(&mut self, now: f64, sent_at: f64, amount: Amount) {
        self.correct(now, sent_at, -amount.expected);
        if let Some(charged) = &mut self.charged {
            charged.add(sent_at, -amount.at_once);
        }
    }

    /// The provider states this limit, or none that can be believed.
    pub(in super::super) fn believe(&mut self, now: f64, cap: Option<Allowed>) -> Option<Turn> {
        let before = self.rate;
        let rises = |cap: Allowed| self.cap.is_none_or(|known| cap.per_second > RISE * known.per_second);
        if cap.is_some_and(rises) {
            self.cap_rose_at = now;
        }
        self.cap = cap;
        if before <= self.top() {
            return None;
        }
        self.set_rate(now, before);
        Some(Turn { at: before, to: self.rate, why: Why::Stated })
    }

    /// So many jobs on the key hear of each other.
    pub(in super::super) fn hear_of(&mut self, jobs: f64) {
        self.strangers.are_ruled_out = jobs > 1.0;
    }

    /// Half way to the mean of all jobs on the key.
    pub(in super::super) fn share(&mut self, now: f64, mean: f64) -> Option<Turn> {
        let before = self.rate;
        let change = ((mean - before) / 2.0).min(MOST_GAIN * before);
        if !change.is_finite() || (change / before).abs() < 0.01 {
            return None;
        }
        self.set_rate(now, before + change);
        self.count_for(self.rate / before);
        Some(Turn { at: before, to: self.rate, why: Why::Shared })
    }

    /// The limit is divided among more jobs than before: a part for each, at once. What is used up of it is divided as
    /// well: who was there before keeps this share of what it has used up, and a newcomer takes over as much.
    pub(in super::super) fn divide(&mut self, now: f64, part: f64, kept: Option<f64>) -> Option<Turn> {
        if !(part.is_finite() && part > 0.0) {
            return None;
        }
        self.allowance = 0.0;
        if kept.is_none() || self.window.is_some() {
            self.divided_at = now;
        }
        if kept.is_none() {
            self.explained.clear();
            self.window = None;
            self.ceiling = Some(part);
            self.fall = Fall::default();
            if matches!(self.stage, Stage::Starting) {
                self.stage = Stage::Riding;
            }
        }
        let before = self.rate;
        self.set_rate(now, part);
        match kept {
            Some(kept) => self.count_for(kept),
            None => self.slots = Slots::even(now, self.rate),
        }
        Some(Turn { at: before, to: self.rate, why: Why::Shared })
    }

    /// What is known of a former part of the limit is known of one that is so many times as large.
    fn count_for(&mut self, times: f64) {
        self.slots.scale(times);
        self.explained.scale(times);
        self.ceiling = self.ceiling.map(|ceiling| ceiling * times);
        self.fall.scale(times);
        self.window = self.window.map(|window| Window { held: window.held * times, ..window });
    }

    /// Starts below the rate that another job found.
    pub(in super::super) fn remember(&mut self, now: f64, rate: f64) {
        if rate.is_finite() && rate > 0.0 {
            self.allowance = 0.0;
            self.set_rate(now, RESUMED * rate);
        }
    }

    /// The provider asked for a slower rise. Requests that were sent before it last did so ask for the same.
    pub(in super::super) fn slow_down(&mut self, now: f64, sent_at: f64) -> Option<Turn> {
        if sent_at < self.gentle_until - GENTLE {
            return None;
        }
        let before = self.rate;
        self.allowance = 0.0;
        self.gentle_until = now + GENTLE;
        self.clean_since = now;
        self.set_rate(now, before / 2.0);
        Some(Turn { at: before, to: self.rate, why: Why::SlowDown })
    }

    /// A lane for another quantity, of which a request uses `unit`, that begins now with what is known of this one.
    pub(in super::super) fn beside(&self, bound: f64, unit: f64, charging: Charging, now: f64) -> Self {
        let factor = unit / self.unit;
        let mut lane = Self::new(self.tuning, bound, unit, charging, now);
        lane.slots = self.slots.scaled(factor);
        lane.charged = lane.charged.map(|_| Charged::new(lane.slots.clone()));
        lane.delay = self.delay;
        lane.strangers.are_ruled_out = self.strangers.are_ruled_out;
        lane.stage = Stage::Riding;
        lane.allowance = 0.0;
        lane.set_rate(now, self.rate * factor);
        lane
    }

    pub(in super::super) fn record(&self) -> LaneRecord {
        LaneRecord { rate: self.rate, unit: self.unit, ceiling: self.ceiling }
    }

    /// Goes on below the rate of the record; what cannot be a rate is forgotten.
    pub(in super::super) fn restore(
        record: LaneRecord,
        tuning: Tuning,
        bound: f64,
        charging: Charging,
        now: f64,
    ) -> Self {
        let sane = |value: f64| value.is_finite() && value > 0.0;
        let unit = if sane(record.unit) { record.unit } else { 1.0 };
        let mut lane = Self::new(tuning, bound, unit, charging, now);
        if sane(record.rate) {
            lane.remember(now, record.rate);
            lane.ceiling = record.ceiling.filter(|ceiling| sane(*ceiling));
        }
        lane
    }
}
