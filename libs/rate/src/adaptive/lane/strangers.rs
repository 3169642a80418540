//! A window that is used up by jobs of which nothing is heard as well.
//!
//! What a job held of such a window tells neither how long it is nor what its part of it would be, and who sends what it
//! held keeps the part that it came by. So a window that others used up several times is taken for an edge of which
//! nothing is known: who meets it steps back by a share of the rate, and climbs again by as much as the root of the rate
//! is. Steps that grow faster with the rate than climbs do bring all that meet the same edge to the same rate (Bansal and
//! Balakrishnan, "Binomial congestion control algorithms", 2001).

use super::super::shape::Kind;
use super::super::slots::Counted;
use super::super::window::{MINUTE, Window};
use super::Lane;
use super::closing::SHORT;
use super::visits::Visits;

/// A window that others used up so many times within so many seconds is shared with them. A single time may have been a
/// limit that fell.
const TIMES: usize = 4;
const WITHIN: f64 = 1_200.0;
/// They are not looked for where fewer requests than this go out in a second: a single one makes much of a difference to
/// what a minute holds.
const RARE: f64 = 0.5;
/// Who was refused nothing on the way to a rate, and is admitted less than this share of it there, gets what others leave.
const LEFT: f64 = 0.8;
/// ... unless that is what was measured before, to this share.
const SAME: f64 = 0.05;
/// What is used up soon after the last time may have been measured too large then, or hold what was refused: for so many
/// times its length and seconds, or for so many seconds where it slides and refusals do not count.
const LONGER: f64 = 1.2;
const SOON: f64 = 5.0;
const SLIDING: f64 = 10.0;
/// Who probes a window uses it up itself, unless it gets less than this share of what it held, and so many requests less.
const LESS: f64 = 0.97;
const FEWER: f64 = 2.0;
/// ... where it slides, and held the same to a few requests each time,
const LESS_SLIDING: f64 = 0.995;
/// ... where it is known exactly what the window held,
const LESS_EXACTLY: f64 = 0.99;
const FEWER_EXACTLY: f64 = 1.2;
/// ... and where nothing was probed, nothing less.
const ROUNDING: f64 = 0.5;
/// Limits seldom rise by more than this share, and so many requests, and by less than that one. Who finds so much more was
/// left it by others.
const MORE: f64 = 1.02;
const FURTHER: f64 = 2.0;
const RISE: f64 = 1.25;
/// A limit that changes does so at once. What moved further than this share, and as many requests, while it seemed to be the
/// same from each time to the next, is what others leave.
const CREPT: f64 = 0.03;
/// The share of a step back.
const STEP: f64 = 0.05;
/// Growth per second at one request a minute, which falls with the root of the rate, and at most.
const ROOT: f64 = 0.05;
const MOST: f64 = 0.01;
/// When nothing was refused for so many visits, twice the longest that one is waited for, or seconds, the others are gone.
const VISITS: f64 = 3.0;
const TWICE: f64 = 2.0;
const GONE: f64 = 240.0;

/// What shows that others use the window as well.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strangers {
    /// The jobs on the key hear of each other.
    pub(super) are_ruled_out: bool,
    /// What was taken for the limit before, if the edge was met by a search.
    pub(super) known: Option<f64>,
    are_there: bool,
    /// How long their window seemed to be.
    length: f64,
    /// When the window was last used up, whether by a probe of this job, and the last times that others did it.
    used_up_at: f64,
    probed: bool,
    seen_at: [f64; TIMES],
    /// When this job last stepped back for them.
    gave_way_at: f64,
}

impl Default for Strangers {
    fn default() -> Self {
        let never = f64::NEG_INFINITY;
        Self {
            are_ruled_out: false,
            known: None,
            are_there: false,
            length: SHORT,
            used_up_at: never,
            probed: false,
            seen_at: [never; TIMES],
            gave_way_at: never,
        }
    }
}

impl Lane {
    pub(super) fn is_among_strangers(&self) -> bool {
        self.strangers.are_there && !self.strangers.are_ruled_out
    }

    /// The window is used up. If this job did not do it, somebody else did.
    pub(super) fn look_for_strangers(&mut self, now: f64) {
        let passed = self.time_since_last(now);
        let known = self.window.filter(|window| !window.guessed);
        let Some(window) = known.filter(|_| self.may_show_strangers()) else { return };
        let soon = match window.kind {
            Kind::Sliding => SLIDING,
            Kind::Even | Kind::Strict => LONGER * window.length + SOON,
        };
        if passed < soon {
            return;
        }
        let own = match window.searching {
            Some(_) => !self.was_left_more(window),
            None => self.has_used_up(window),
        };
        let own = own && !self.has_crept(window);
        self.strangers.probed = own && window.probing.is_some();
        if !own {
            self.see_strangers(now, window.length.max(SHORT));
        }
    }

    /// A window of which nothing is known ended before this job had done more than visit its edge.
    pub(super) fn look_for_others_at_end(&mut self, now: f64) {
        let passed = self.time_since_last(now);
        if self.may_show_strangers() && passed > LONGER * SHORT + SOON {
            self.see_strangers(now, SHORT);
        }
    }

    /// Seconds from the last time that the window was used up to this one.
    fn time_since_last(&mut self, now: f64) -> f64 {
        let passed = self.used_up_at - self.strangers.used_up_at;
        self.strangers.used_up_at = now;
        passed
    }

    /// A round of refusals was read. Who has little of a window takes it for a bucket, which gives much less whenever others
    /// use it up than shortly before.
    pub(super) fn look_for_leavings(&mut self, now: f64, admitted: f64) {
        // A search uses up what a bucket has saved, which then gives what it gave before.
        let is_same = self.strangers.known.is_some_and(|known| (admitted / known - 1.0).abs() < SAME);
        if self.window.is_none() && self.may_show_strangers() && !is_same && admitted < LEFT * self.met_at {
            self.see_strangers(now, SHORT);
        }
    }

    pub(super) fn may_show_strangers(&self) -> bool {
        self.holds_what_was_sent() && self.rate >= RARE * self.unit
    }

    /// Others use the window, which seems to be so long. After some times it is taken for certain.
    fn see_strangers(&mut self, now: f64, length: f64) {
        self.strangers.seen_at.rotate_left(1);
        self.strangers.seen_at[TIMES - 1] = now;
        if now - self.strangers.seen_at[0] < WITHIN {
            let seen_at = [f64::NEG_INFINITY; TIMES];
            self.visits = Visits::default();
            self.strangers =
                Strangers { are_there: true, length, seen_at, gave_way_at: now, ..self.strangers };
        }
    }

    /// Whether a window was used up by a probe of this job, which got as much as before; or right after a probe, which may
    /// have measured it one request too large.
    fn has_used_up(&self, window: Window) -> bool {
        let held = self.held_in(window.length, window.kind.counted());
        let is_exact = self.held_since_opening(window.length).is_some();
        let (share, fewer) = match window.probing {
            Some(_) if is_exact => (LESS_EXACTLY, FEWER_EXACTLY),
            Some(_) if window.kind == Kind::Sliding => (LESS_SLIDING, FEWER),
            Some(_) => (LESS, FEWER),
            None if self.strangers.probed => (1.0, FEWER_EXACTLY),
            None => (1.0, ROUNDING),
        };
        held > share * window.held - fewer * self.unit / window.length
    }

    /// Whether what a window of even intervals holds has moved far from what it was, though never far at once.
    fn has_crept(&self, window: Window) -> bool {
        let held = self.held_in(window.length, window.kind.counted());
        let most = CREPT * window.at_first + FURTHER * self.unit / window.length;
        window.opening.is_some()
            && (held - window.at_first).abs() > most
            && window.holds_the_same(held, self.unit)
    }

    /// Whether a search found that the window holds somewhat more.
    fn was_left_more(&self, window: Window) -> bool {
        let held = self.held_in(window.length, window.kind.counted());
        let least = MORE * window.held + FURTHER * self.unit / window.length;
        (least..RISE * window.held).contains(&held)
    }

    /// Steps back from an edge that others met as well, once each time.
    pub(super) fn give_way(&mut self, now: f64) {
        self.window = None;
        self.unexplained = 0;
        self.explained.clear();
        if now - self.strangers.gave_way_at < SOON {
            return;
        }
        self.strangers.gave_way_at = now;
        let edge = self.met_at;
        let held = self.held_in(self.strangers.length, Counted::Admitted).max(edge / 4.0);
        self.ceiling = Some(edge);
        self.set_rate(now, (1.0 - STEP) * edge.min(held));
    }

    /// Relative growth per second.
    pub(super) fn growth_among_strangers(&self) -> f64 {
        let per_minute = self.rate / self.unit * MINUTE;
        (ROOT / per_minute.sqrt()).min(MOST)
    }

    /// Seconds until it has climbed as far as it steps back.
    pub(super) fn period_among_strangers(&self) -> f64 {
        STEP / self.growth_among_strangers()
    }

    /// Nothing was refused for so long that nobody else can be there.
    pub(super) fn miss_strangers(&mut self, now: f64) {
        let visits = (TWICE * self.visits.longest()).max(VISITS);
        if now - self.clean_since > (visits * self.period_among_strangers()).min(GONE) {
            self.strangers.are_there = false;
        }
    }
}
