//! How fast the rate rises while nothing is refused.

use super::super::window::{MINUTE, Window};
use super::memory::RISE;
use super::{Lane, Stage};

/// Seconds in which the rate doubles while the allowance lasts, and while it is below what the provider states.
const QUICK_DOUBLING: f64 = 1.0;
const STATED_DOUBLING: f64 = 0.4;
/// ... and after the provider asked for a slower rise.
const GENTLE_DOUBLING: f64 = 60.0;
/// The share of a step back right after the limit changed, at last, and in how many seconds it halves.
const FIRST_STEP: f64 = 0.12;
const LAST_STEP: f64 = 0.01;
const HALF_LIFE: f64 = 120.0;
/// Growth per second on the way back to an edge that is known.
const RETURN: f64 = 0.02;
/// A rate below this share of the ceiling is on its way back.
const NEAR: f64 = 0.9;

/// Growth per second of a search at its beginning, in how many seconds it doubles, and at most.
struct Search {
    first: f64,
    doubling: f64,
    most: f64,
}

const SEARCH: Search = Search { first: 0.002, doubling: 8.0, most: 0.07 };
/// ... where the edge was met regularly until then.
const SURE_SEARCH: Search = Search { first: 0.005, doubling: 5.0, most: 0.07 };
const WINDOW_SEARCH: Search = Search { first: 0.005, doubling: 5.0, most: 0.05 };
/// ... where a window has opened at even intervals and held the same for so many seconds, up to so many times that: used up
/// sooner it gives no less, and only what is under way then is refused. What others use as well does not hold the same.
const EVEN_SEARCH: Search = Search { first: 0.02, doubling: 3.0, most: 0.15 };
const STEADY: f64 = 600.0;
const QUICKLY_UP_TO: f64 = 3.0;
/// Growth per second of a window's probe, and by what share and how many requests it goes beyond what the window held. One
/// that holds little gets there in so many seconds, unless it slides, where each probe ends with something refused.
const PROBE: f64 = 0.002;
const BEYOND: f64 = 1.02;
const FURTHER: f64 = 1.5;
const PROBE_IN: f64 = 20.0;
/// By what share more must have been admitted than a window held to prove that it holds more, also where it slides, where
/// more is refused at once ...
const PROOF: f64 = 1.01;
const SLIDING_PROOF: f64 = 1.002;
/// ... and by how many requests: one, as exactly as it is counted, or two where it is not known when a window begins.
const ONE_MORE: f64 = 0.5;
const HALVES: f64 = 1.0;
/// How long a sliding window is held, and is probed, at least and at most, in seconds.
const SLIDING_HOLD: f64 = 20.0;
const SLIDING_PROBE: f64 = 15.0;
/// A window that answers overdraw stays used up for what was under way: no more than this share of the time.
const USED_UP_SHARE: f64 = 0.01;
/// Where the verdict on a whole window is late, by this many seconds.
const LATE: f64 = 2.0;

/// The most by which the rate grows with one request, at the start and later.
const MOST_AT_START: f64 = 2.0;
const MOST: f64 = 1.1;

impl Search {
    fn growth(&self, seconds: f64) -> f64 {
        (self.first * (seconds / self.doubling).exp2()).min(self.most)
    }
}

fn doubling_in(seconds: f64) -> f64 {
    std::f64::consts::LN_2 / seconds
}

impl Lane {
    /// One request less that may go quickly. After the last, what a minute must hold if it held all of them is proven.
    pub(super) fn spend_allowance(&mut self, now: f64) {
        if self.allowance > 0.0 {
            self.allowance -= 1.0;
            if self.allowance <= 0.0 {
                let proven = self.tuning.allowance * self.unit / MINUTE;
                self.set_rate(now, self.rate.min(proven));
            }
        }
    }

    /// The share by which the rate steps back from the edge.
    pub(super) fn step_back(&self, now: f64) -> f64 {
        let least = LAST_STEP.max(self.scatter(MINUTE));
        (FIRST_STEP * (-(now - self.regime_since) / HALF_LIFE).exp2()).max(least)
    }

    /// Whether the rate is rising faster than the edge would be visited.
    pub(super) fn is_searching(&self, now: f64) -> bool {
        self.growth(now) > 2.0 * self.step_back(now) / self.period()
    }

    /// The lane was busy for this many seconds.
    pub(super) fn grow(&mut self, now: f64, busy: f64) {
        self.look_for_more(now);
        self.miss_strangers(now);
        let growth = self.growth(now);
        // One request proves only so much, however long it took.
        let most = if matches!(self.stage, Stage::Starting) { MOST_AT_START } else { MOST };
        let rate = (self.rate * (growth * busy).exp().min(most)).min(self.top());
        self.rate = rate.max(self.rate.min(self.top()));
    }

    /// Searches at once, as if the edge had not been met for long.
    pub(super) fn search(&mut self, now: f64) {
        self.clean_since = now - self.patience();
    }

    /// Nothing was refused since the limit is stated so, or the last time far beyond what is stated.
    fn is_free_up_to_stated(&self) -> bool {
        self.cap.is_some_and(|cap| self.cap_rose_at > self.refused_at || self.met_at > RISE * cap.per_second)
    }

    /// Relative growth per second.
    fn growth(&self, now: f64) -> f64 {
        match self.stage {
            Stage::Reading { .. } | Stage::Shut(_) => return 0.0,
            _ if now < self.gentle_until => return doubling_in(GENTLE_DOUBLING),
            _ if self.is_free_up_to_stated() => return doubling_in(STATED_DOUBLING),
            Stage::Starting if self.allowance > 0.0 => return doubling_in(QUICK_DOUBLING),
            Stage::Starting => return doubling_in(self.tuning.doubling),
            Stage::Riding => {}
        }
        if self.window.is_some() {
            return self.growth_in_window(now);
        }
        let clean = now - self.clean_since;
        let below = self.ceiling.is_some_and(|ceiling| self.rate < NEAR * ceiling);
        let searching = clean - self.patience();
        if self.returning || (clean > 3.0 && below) {
            RETURN
        } else if self.is_among_strangers() {
            self.growth_among_strangers()
        } else if searching > 0.0 {
            let search = if self.misses_the_edge_at_once() { SURE_SEARCH } else { SEARCH };
            search.growth(searching)
        } else {
            self.step_back(now) / self.period()
        }
    }

    /// In a window the rate holds what it held, until a whole window is used to see whether it holds more.
    fn growth_in_window(&self, now: f64) -> f64 {
        let Some(window) = self.window else { return 0.0 };
        if let Some(since) = window.searching {
            let is_steady = window.opening.is_some() && now - window.since > STEADY;
            let quickly = is_steady && self.holds_what_was_sent() && self.rate < QUICKLY_UP_TO * window.held;
            if quickly { EVEN_SEARCH } else { WINDOW_SEARCH }.growth(now - since)
        } else if self.rate < 0.98 * window.held {
            RETURN
        } else if window.probing.is_some() {
            let most = BEYOND * window.held + FURTHER * self.unit / window.length;
            let in_time =
                if window.kind.slides() { 0.0 } else { (most - window.held) / (PROBE_IN * self.rate) };
            if self.rate < most { PROBE.max(in_time) } else { 0.0 }
        } else {
            0.0
        }
    }

    /// Begins to probe a window when it is time, and to search when it holds more than it did.
    fn look_for_more(&mut self, now: f64) {
        let Some(Window { held, .. }) = self.window else { return };
        let period = self.period().max(self.recovery(held) / USED_UP_SHARE);
        let is_exact = self.holds_what_was_sent();
        let may_be_shared = self.may_show_strangers();
        let Some(window) = &mut self.window else { return };
        // A window that opens at even intervals is used up at its end only, so a whole one is probed.
        let (hold, probe) = if window.kind.slides() {
            (period.max(SLIDING_HOLD), SLIDING_PROBE.min(window.length + LATE))
        } else {
            let later = may_be_shared && window.is_probed_later(now, self.clean_since);
            let windows = (period / window.length).round().max(1.0) + if later { 1.0 } else { 0.0 };
            (windows * window.length, window.length + LATE)
        };
        let clean = now - self.clean_since;
        match window.probing {
            None if clean > hold => window.probing = Some(now),
            Some(since) if window.searching.is_none() && now > since + probe => {
                let whole = window.opened_at(now).filter(|_| is_exact);
                let used = match whole {
                    Some(opened_at) if opened_at <= window.judged_until => return,
                    Some(opened_at) => {
                        window.judged_until = opened_at;
                        self.slots.tally(opened_at - window.length, opened_at).admitted()
                    }
                    None => self.slots.within(now, window.length, window.kind.counted()),
                };
                let proof = if window.kind.slides() { SLIDING_PROOF } else { PROOF };
                // The halves of two windows that follow each other may hold more than one can.
                let exact = whole.is_some() || (window.kind.slides() && window.holds_few(self.unit));
                let more = if exact { ONE_MORE } else { HALVES };
                if used >= proof * window.held * window.length + more * self.unit {
                    window.searching = Some(now);
                }
            }
            _ => {}
        }
    }
}
