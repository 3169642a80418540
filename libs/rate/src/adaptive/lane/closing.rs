//! A lane that is shut, and what its reopening says.

use super::super::shut::Shut;
use super::super::slots::SLOT;
use super::super::turn::{Turn, Why};
use super::super::window::{MINUTE, Window};
use super::{Lane, Stage};

/// A closure of this many seconds, and two requests more, was the rest of a window.
const WINDOW_CLOSURE: f64 = 2.5;
/// Of what a window was seen to hold, this share is used.
const HELD: f64 = 0.997;
/// Units, in requests, that measure a rate at all, and well.
const SOME: f64 = 3.0;
const ENOUGH: f64 = 8.0;
/// Closures within so many seconds are one overrun.
const AGAIN: f64 = 20.0;
/// If the window will open within so many seconds, it is waited for.
const SOON: f64 = 2.0;
/// A closure of this many seconds is longer than any window of a minute.
const LONGEST_CLOSURE: f64 = 61.0;

impl Lane {
    /// Seconds after which a ping that was not refused counts as admitted. Before anything is known of the limit a
    /// late refusal misleads, so it is waited for longer.
    pub(super) fn ping_delay(&self) -> f64 {
        let certain = self.window.is_some() || self.shut_before.is_some();
        self.delay.until_known() * if certain { 1.0 } else { 2.0 }
    }

    /// Everything since `from` is refused.
    pub(super) fn shut(&mut self, now: f64, from: f64, retry_after: Option<f64>) -> Turn {
        let before = self.rate;
        if from > self.cut_at && matches!(self.stage, Stage::Starting | Stage::Riding) {
            let share = self.step_back(now);
            self.begin_round(now);
            if self.window.is_none() {
                self.ceiling = Some(before);
                self.set_rate(now, before * (1.0 - share));
            }
        }
        let used = |window: &Window| self.slots.tally(window.opened_at, from).admitted();
        if let Some(window) = self.window.filter(|window| window.is_doubtful(from, used(window))) {
            self.window = Some(Window { length: MINUTE, since: now, ..window });
        }
        let rare = MINUTE * self.unit / self.slots.tally(now - MINUTE, now).admitted().max(self.unit);
        let mut shut = Shut::new(now, from, self.delay.until_known(), self.spacing(), rare);
        if let Some(window) = self.window {
            let opens_at = window.opens_at(now);
            if opens_at < now + SOON {
                shut.next_at = opens_at;
            }
        }
        shut.refused(now, f64::NAN, retry_after);
        self.stage = Stage::Shut(shut);
        if let Some(charged) = &mut self.charged {
            charged.shut(now, from);
        }
        self.cut_at = now;
        self.clean_since = now;
        Turn { at: before, to: self.rate, why: Why::Closed }
    }

    /// A ping was admitted.
    pub(super) fn reopen(&mut self, now: f64, shut: Shut, ping: f64) -> Turn {
        let before = self.rate;
        let closed_for = ping - shut.since;
        self.stage = Stage::Riding;
        self.cut_at = ping;
        self.clean_since = ping;
        self.returning = false;
        if let Some(charged) = &mut self.charged {
            charged.reopened();
            // No window, but a bucket that was overdrawn by that much.
            self.window = self.window.filter(|_| closed_for <= LONGEST_CLOSURE);
        } else if closed_for > LONGEST_CLOSURE {
            self.start_over(now, ping);
            return Turn {
                at: before,
                to: self.rate,
                why: Why::Reopened { seconds: closed_for, window: None },
            };
        }
        let length = Window::length_of(closed_for, self.window);
        let held = self.held_in(length);
        let explained = WINDOW_CLOSURE + 2.0 * self.unit / held + self.recovery(held);
        let is_window = (explained..=LONGEST_CLOSURE).contains(&closed_for);
        if self.window.is_some() || is_window {
            if self.window.is_none() {
                self.regime_since = now;
            }
            self.measure(now, length);
            if let Some(window) = &mut self.window {
                window.opened(shut.since, ping);
            }
        } else if self.charged.is_some() {
            self.recovered(now, closed_for);
        } else {
            self.emptied(now, shut, ping);
        }
        self.shut_before = Some(shut.since);
        self.free_at = now.max(ping + self.spacing());
        Turn {
            at: before,
            to: self.rate,
            why: Why::Reopened { seconds: closed_for, window: self.window.map(|window| window.length) },
        }
    }

    /// It is a sliding minute, which is used up.
    pub(super) fn slide(&mut self, now: f64) {
        self.measure(now, MINUTE);
        if let Some(window) = &mut self.window {
            window.slides = true;
        }
        self.regime_since = now;
    }

    /// No window of a minute is closed for so long: refusals count against the limit as well. Then all that was
    /// admitted since the lane was last open for the first time is what the limit gives.
    fn start_over(&mut self, now: f64, ping: f64) {
        let measured = self.admitted.max(self.unit) / (ping - self.open_since).max(MINUTE);
        self.window = None;
        self.regime_since = now;
        self.shut_before = Some(ping);
        self.ceiling = Some(measured);
        self.set_rate(now, HELD * measured);
        self.open_since = ping;
        self.admitted = 0.0;
        self.free_at = now.max(ping + self.spacing());
    }

    /// It was a bucket that had been emptied far too fast: what it gave meanwhile is what it gets.
    fn emptied(&mut self, now: f64, shut: Shut, ping: f64) {
        let first = self.shut_before.is_none();
        let (from, until) = match self.shut_before {
            None => (shut.since, shut.began),
            Some(before) if shut.since - before < AGAIN => (before, shut.since),
            Some(_) => return,
        };
        let admitted = self.slots.tally(from, until).admitted();
        let measured = if admitted >= SOME * self.unit {
            admitted / (until - from).max(SLOT)
        } else {
            self.slots.tally(from, now).admitted().max(self.unit) / (ping - from).max(SLOT)
        };
        self.regime_since = now;
        self.returning = first;
        self.ceiling = Some(measured);
        self.set_rate(now, measured.min(self.rate));
        if first && admitted < ENOUGH * self.unit {
            self.stage = Stage::Starting;
            self.allowance = 0.0;
        }
    }

    /// What was admitted until the window was used up, in units a second: all that counted at the last refusal.
    pub(super) fn held_in(&self, length: f64) -> f64 {
        let until = self.refused_at + SLOT;
        let held = match &self.charged {
            Some(charged) => charged.between(until - length, until),
            None => self.slots.tally(until - length, until).admitted(),
        };
        held.max(self.unit) / length
    }

    /// Goes on with what the window was just seen to hold.
    pub(super) fn measure(&mut self, now: f64, length: f64) {
        let held = self.held_in(length);
        let opened_at = self.window.map_or(now, |window| window.opened_at);
        let slides = self.window.is_some_and(|window| window.slides);
        let same = self.window.filter(|window| window.length.total_cmp(&length).is_eq());
        let since = same.map_or(now, |window| window.since);
        self.ceiling = Some(held);
        self.window = Some(Window { length, held, since, slides, opened_at, probing: None, searching: None });
        let scatter = self.scatter(length);
        self.set_rate(now, (HELD - scatter) * held);
    }

    /// Time has passed.
    pub(in super::super) fn step(&mut self, now: f64) -> Option<Turn> {
        match self.stage {
            Stage::Reading { from, since, start } => self.read(now, from, since, start),
            Stage::Shut(shut) => {
                let ping = shut.ping.filter(|ping| now >= ping + self.ping_delay())?;
                Some(self.reopen(now, shut, ping))
            }
            Stage::Starting | Stage::Riding => None,
        }
    }
}
