//! What a window held when it was used up.

use super::super::slots::{Counted, SLOT};
use super::super::stated::Allowed;
use super::super::window::{Opening, Window};
use super::Lane;

/// It is known what a window held since it opened if that moment is known to so many seconds, and if it was open for more
/// than this share of its length.
const KNOWN: f64 = 0.3;
const OPEN: f64 = 0.2;
/// One request, as exactly as it is counted.
const ONE: f64 = 1.2;

impl Lane {
    /// What was admitted until the window was used up, in units a second: all that counted at the last refusal.
    pub(super) fn held_in(&self, length: f64, counted: Counted) -> f64 {
        if counted == Counted::All {
            // Up to the first that found no room: those after it counted without being let in.
            let held = self.slots.tally(self.used_up_at - length, self.used_up_at).sent;
            return held.max(self.unit) / length;
        }
        if let Some(held) = self.held_since_opening(length) {
            return held.max(self.unit) / length;
        }
        let until = self.refused_at + SLOT;
        // Where requests are rare, the oldest that counted went out just a length before.
        let from = if self.spacing() > 2.0 * SLOT { self.refused_at - length } else { until - length };
        let held = match &self.charged {
            Some(charged) => charged.between(until - length, until),
            None => self.slots.tally(from, until).admitted(),
        };
        // A window in which the limit was divided was used up by whoever came first.
        let part = if self.divided_at > until - length { self.rate } else { 0.0 };
        (held.max(self.unit) / length).max(part)
    }

    /// What was admitted in as much time as the windows take that the provider states, up to what it states, in units a
    /// second: no less is held, whatever the windows were taken for.
    pub(super) fn held_as_stated(&self) -> f64 {
        let Some(Allowed { per_second, windows: Some((length, _)) }) = self.cap else { return 0.0 };
        (self.slots.tally(self.used_up_at - length, self.used_up_at).admitted() / length).min(per_second)
    }

    /// Whether a window holds just what this job sends: nothing is charged later or comes back, and no part of it is given
    /// to other jobs that are heard of.
    pub(super) fn holds_what_was_sent(&self) -> bool {
        self.charged.is_none() && !self.refunded && !self.strangers.are_ruled_out
    }

    /// What was admitted in the window that was used up, in units, where it is known when it opened.
    pub(super) fn held_since_opening(&self, length: f64) -> Option<f64> {
        let window =
            self.window.filter(|window| !window.guessed && window.length.total_cmp(&length).is_eq())?;
        let is_exact = window.opening.is_some_and(|opening| opening.by - opening.after < KNOWN);
        let opened_at = window.opened_at(self.used_up_at)?;
        // What passes again before it can be over was not shut by it.
        let is_over = self.sent_at > opened_at + length - KNOWN;
        let is_known = is_exact
            && is_over
            && self.holds_what_was_sent()
            && self.used_up_at - opened_at > OPEN * length
            && self.divided_at < opened_at;
        is_known.then(|| self.slots.tally(opened_at, opened_at + length).admitted())
    }

    /// Whether a window of few requests held what it did before, as far as it is known when it opened.
    pub(super) fn may_have_held_the_same(&self, window: Window) -> bool {
        let known =
            self.is_rare() && self.holds_what_was_sent() && !window.guessed && window.searching.is_none();
        let Some(Opening { after, by }) = window.opening.filter(|_| known) else { return false };
        let opened_by = by + ((self.used_up_at - by) / window.length).floor() * window.length;
        let opened_after = opened_by - (by - after);
        let held = |since: f64| self.slots.tally(since, self.used_up_at).admitted();
        let (least, most) = (held(opened_by + SLOT), held(opened_after));
        let half = self.unit / 2.0;
        (least - half..=most + half).contains(&(window.held * window.length))
    }

    /// Whether a window that was probed held what it did before but for a single request, which may have been counted into
    /// its neighbour. What is taken for too much is used up without a probe the next time.
    pub(super) fn seems_to_hold_one_less(&self, window: Window) -> bool {
        let probed = window.probing.is_some() && window.searching.is_none() && !window.guessed;
        if !probed || window.kind.slides() || self.is_rare() || !self.holds_what_was_sent() {
            return false;
        }
        let less = window.held - self.held_in(window.length, window.kind.counted());
        (0.0..ONE * self.unit / window.length).contains(&less)
    }
}
