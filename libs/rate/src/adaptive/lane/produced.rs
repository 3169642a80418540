//! A quantity of which answers are charged as they are produced.
//!
//! A refusal says that the allowance is overdrawn: what is sent now is refused until it has recovered, and what is
//! still being produced draws on it meanwhile. So nothing is sent until a single request passes, and the limit is not
//! what was admitted, but what was [charged](super::super::charged) since the allowance was last used up.

use super::super::shape::{Kind, Shape};
use super::super::slots::Counted;
use super::super::turn::Turn;
use super::super::window::{MINUTE, Opening, Window};
use super::closing::{SHORT, SHORT_CLOSURE};
use super::{Lane, Refusal};

/// Seconds between two refusals in which the rate has hardly changed: what was charged meanwhile is the limit.
const SOON: f64 = 10.0;
/// A limit that turns out to be below this share of the rate is another one.
const LOWER: f64 = 0.9;
/// A closure of so many seconds measures the limit, whenever single requests asked for its end.
const LONG: f64 = 5.0;
/// A window opened at its time if it did within this many seconds of it.
const EVEN: f64 = 2.5;
/// The share of what a window holds that it cannot be used up with.
const HARDLY: f64 = 0.25;
/// The share of what a window holds that more than that was charged in, without it being that window.
const MORE: f64 = 1.1;
/// By how much charges scatter in the time of one request, as a share of what it takes. What is under way is known to
/// this share.
const SCATTER: f64 = 0.25;

impl Lane {
    /// An answer of so many tokens is there, of which so many were expected.
    pub(in super::super) fn produced(&mut self, now: f64, sent_at: f64, tokens: f64, expected: f64) {
        self.correct(now, sent_at, tokens - expected);
        if let Some(charged) = &mut self.charged {
            charged.add(now, tokens);
        }
    }

    /// A request was refused, the first since the lane was open.
    pub(super) fn overdrawn(&mut self, now: f64, refusal: Refusal) -> Turn {
        let before = self.rate;
        let measured = self.charged.as_mut().and_then(|charged| charged.exhausted(refusal.sent_at));
        let turn = self.shut(now, refusal.sent_at, refusal.wait);
        let Some(measured) = measured else { return turn };
        if let Some(window) = self.window {
            // More was charged within the window than it holds, and little since it was used up: it is a bucket that was
            // full before.
            let held = self.held_in(window.length, Counted::Admitted);
            if held < MORE * window.held || measured.rate > LOWER * window.held {
                return turn;
            }
            self.window = None;
        }
        let limit = if measured.seconds < SOON {
            measured.rate.max(before / 4.0)
        } else {
            measured.rate.max(self.rate)
        };
        let limit = limit.min(before);
        if limit < LOWER * self.ceiling.unwrap_or(before).min(before) {
            self.regime_since = now;
        }
        self.ceiling = Some(limit);
        self.set_rate(now, limit);
        Turn { to: self.rate, ..turn }
    }

    /// Open again, and a window: one of ten seconds or of a minute, since what answers draw hides when it was used up.
    pub(super) fn used_up_while_produced(&mut self, now: f64, closed_for: f64, shut_at: f64, opened_at: f64) {
        if self.window.is_none() {
            self.regime_since = now;
        }
        let known = self.window.map(Window::shape);
        let seconds = if closed_for > SHORT_CLOSURE { MINUTE } else { known.map_or(SHORT, Shape::length) };
        let early = self.window.and_then(|window| window.opens_at(shut_at)).map(|at| at - opened_at);
        let kind = match early {
            Some(early) if early.abs() < EVEN => Kind::Even,
            Some(early) if early > EVEN => Kind::Sliding,
            _ => known.map_or(Kind::Even, |shape| shape.kind),
        };
        let opening = Opening { after: opened_at, by: opened_at };
        self.measure(now, Shape::of(seconds, kind), false, Some(opening));
    }

    /// A window that is used up before half of its length is over, or with hardly anything used, is a longer one.
    pub(super) fn doubt_window(&mut self, now: f64, shut_at: f64) {
        let Some(window) = self.window.filter(|window| self.charged.is_some() && window.length < MINUTE)
        else {
            return;
        };
        let opened_at = window.opening.map_or(f64::NEG_INFINITY, |opening| opening.by);
        let used = self.slots.tally(opened_at, shut_at).admitted();
        if shut_at - window.since < window.length / 2.0 || used < HARDLY * window.held * window.length {
            self.window = Some(Window { length: MINUTE, since: now, ..window });
        }
    }

    /// Open again, and no window: an allowance that was used up for so long gave meanwhile what was charged. The answers to
    /// what did not go will be missing later, when a bucket would be full for want of them, so they are made up for.
    pub(super) fn recovered(&mut self, now: f64, closed_for: f64) {
        let Some(charged) = &self.charged else { return };
        let measured = charged.overdrawn() / closed_for;
        if closed_for > LONG && measured < self.rate {
            self.regime_since = now;
            self.ceiling = Some(measured);
            self.set_rate(now, measured.max(self.rate / 4.0));
        }
        self.missed = self.rate * closed_for.min(LONG);
    }

    /// Seconds for which what was under way kept a limit of so many units a second used up.
    pub(super) fn recovery(&self, per_second: f64) -> f64 {
        self.charged.as_ref().map_or(0.0, |charged| charged.overdrawn() / per_second)
    }

    /// By what share the charges of so many seconds scatter, as answers differ in length.
    pub(super) fn scatter(&self, seconds: f64) -> f64 {
        if self.charged.is_some() { SCATTER * (self.unit / (self.rate * seconds)).sqrt() } else { 0.0 }
    }
}
