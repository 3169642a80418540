//! One limited quantity: the rate at which it is used, and what its refusals say about it.
//!
//! The lane rides the edge of the limit and reads the refusals there. Whatever the limiter is, it refuses only when
//! its allowance is used up, so what it admitted between two such moments is the limit:
//!
//! - refused *evenly*: a bucket that is emptied faster than it fills. What it admits meanwhile is the limit.
//! - refused *entirely, then not at all*: a window. What it admitted in one is the limit.
//! - refused *once*: the edge itself. A small step back, and a slow climb to it again.

mod climb;
mod closing;
mod held;
mod memory;
mod overshoot;
mod produced;
mod refunded;
mod round;
mod strangers;
mod visits;

use self::overshoot::Overshoot;
use self::strangers::Strangers;
use self::visits::{Fall, Visits};
use super::amount::{Amount, Charging};
use super::charged::Charged;
use super::delay::VerdictDelay;
use super::phase;
use super::recent::Recent;
use super::shape::Explained;
use super::shut::Shut;
use super::slots::{Counted, Slots};
use super::stated::Allowed;
use super::tuning::Tuning;
use super::window::{MINUTE, Window};

pub(super) use memory::LaneRecord;

/// How late a timer may wake without losing throughput, in seconds.
const TICK: f64 = 0.005;
/// ... and where short answers give back what was expected of them, or charged.
const RETURNS: f64 = 0.25;
/// Requests per second at the start.
const START: f64 = 4.0;
/// A lane that is idle for more than this share of the time is bound by something else, and does not grow. Where
/// nothing was refused yet, it keeps out of the way of what binds.
const IDLE: f64 = 0.1;
const IDLE_AT_START: f64 = 0.75;
/// No rate is lower than this many requests a second.
const LEAST: f64 = 1e-3;
/// Where a window was not used as it might be, it is caught up with at this pace, if it is behind by that share.
const CATCH_UP: f64 = 1.05;
const BEHIND: f64 = 0.98;
/// ... if it holds many, is shorter than a minute, of which a closure is a larger part, and does not slide.
const BEHIND_SHORT: f64 = 0.99;
/// ... and at this one where answers kept requests from going.
const MAKE_UP: f64 = 1.1;

/// A large request takes so many times what one takes on average, and room for it is left if that costs no more than this
/// share of a window.
const LARGE: f64 = 1.7;
const CARE: f64 = 0.03;

/// A lane; all times are in seconds of the learner's clock, all rates in units per second.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    tuning: Tuning,
    /// The user's bound.
    bound: f64,
    /// What the provider states, and when it last rose.
    cap: Option<Allowed>,
    cap_rose_at: f64,
    rate: f64,
    /// Units of a request on average.
    unit: f64,
    slots: Slots,
    /// Where answers are charged as they are produced: what was charged when.
    charged: Option<Charged>,
    /// What a request did not use of what it was charged comes back.
    refunded: bool,
    recent: Recent,
    delay: VerdictDelay,
    /// When the next request may go, as far as pacing is concerned.
    free_at: f64,
    /// By how many seconds it goes later than that.
    offset: f64,
    /// The last moment at which the lane itself kept requests from going.
    held_at: f64,
    sent_at: f64,
    /// The share of the time that is not used.
    idle: f64,
    stage: Stage,
    /// Requests that may still go faster than the start would let them.
    allowance: f64,
    /// Refusals of what was sent before belong to a round that was answered already.
    cut_at: f64,
    /// Since when nothing was refused.
    clean_since: f64,
    /// Since when the limit is what it is.
    regime_since: f64,
    /// Until when the provider wants it to rise slowly.
    gentle_until: f64,
    /// The rate at which the last round of refusals began.
    met_at: f64,
    /// The rate at which it was last refused, or that was last measured.
    ceiling: Option<f64>,
    visits: Visits,
    fall: Fall,
    /// When the limit was last divided among more jobs, by which a part of it became known.
    divided_at: f64,
    window: Option<Window>,
    strangers: Strangers,
    explained: Explained,
    /// A cut went too deep, on purpose: up to the edge at once.
    returning: bool,
    shut_before: Option<f64>,
    /// When the edge was last met by so much that it was taken for a bucket which was empty.
    emptied_at: Option<f64>,
    reopened: Option<Reopened>,
    /// How many times in a row the window was used up in a way that its shape does not explain.
    unexplained: u32,
    /// ... and how many times it held something else than before, but opened as the known shape does.
    contradicted: u32,
    /// Since when the lane was last open for the first time, and what was admitted since.
    open_since: f64,
    admitted: f64,
    /// The newest request that was refused.
    refused_at: f64,
    /// The first request that a window refused the last time that it was used up.
    used_up_at: f64,
    /// Refusals of the present round, and of a round on average.
    in_round: f64,
    per_round: f64,
    /// A search that went too far.
    overshoot: Option<Overshoot>,
    /// Units that did not go while answers kept the allowance used up, and are to be made up for.
    missed: f64,
}

/// What was before a lane reopened, in case it did not.
#[derive(Clone, Copy, Debug)]
struct Reopened {
    ping: f64,
    shut: Shut,
    window: Option<Window>,
    rate: f64,
    ceiling: Option<f64>,
    regime_since: f64,
    shut_before: Option<f64>,
    open_since: f64,
    admitted: f64,
}

/// What the lane is doing.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Nothing was refused yet.
    Starting,
    /// At the edge, or on the way to it.
    Riding,
    /// Something was refused: waiting to see how.
    Reading { from: f64, since: f64, start: bool },
    /// Everything is refused.
    Shut(Shut),
}

/// A request that was refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refusal {
    pub(super) sent_at: f64,
    pub(super) amount: Amount,
    /// The wait that the provider asks for in seconds.
    pub(super) wait: Option<f64>,
}

impl Lane {
    pub(super) fn new(tuning: Tuning, bound: f64, unit: f64, charging: Charging, now: f64) -> Self {
        Self {
            tuning,
            bound,
            cap: None,
            cap_rose_at: f64::NEG_INFINITY,
            rate: (START * unit).min(bound),
            unit,
            slots: Slots::new(),
            charged: (charging == Charging::AsProduced).then(|| Charged::new(Slots::new())),
            refunded: charging == Charging::Refunded,
            recent: Recent::default(),
            delay: VerdictDelay::default(),
            free_at: now,
            offset: 0.0,
            held_at: now,
            sent_at: now,
            idle: 0.0,
            stage: Stage::Starting,
            allowance: tuning.allowance,
            cut_at: f64::NEG_INFINITY,
            clean_since: now,
            regime_since: now,
            gentle_until: f64::NEG_INFINITY,
            met_at: 0.0,
            ceiling: None,
            visits: Visits::default(),
            fall: Fall::default(),
            divided_at: f64::NEG_INFINITY,
            window: None,
            strangers: Strangers::default(),
            explained: Explained::default(),
            returning: false,
            shut_before: None,
            emptied_at: None,
            reopened: None,
            unexplained: 0,
            contradicted: 0,
            open_since: now,
            admitted: 0.0,
            refused_at: f64::NEG_INFINITY,
            used_up_at: f64::NEG_INFINITY,
            in_round: 0.0,
            per_round: 2.0,
            overshoot: None,
            missed: 0.0,
        }
    }

    /// Whether a refusal of what was sent then is the first in a while.
    pub(super) fn is_new(&self, sent_at: f64) -> bool {
        matches!(self.stage, Stage::Starting | Stage::Riding) && sent_at > self.cut_at
    }

    /// Whether the limit is one of a window.
    pub(super) fn is_window(&self) -> bool {
        self.window.is_some()
    }

    /// Units a second at which requests may go.
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    /// When the next request may go.
    pub(super) fn free_at(&mut self, now: f64) -> f64 {
        let at = match self.stage {
            Stage::Shut(shut) => shut.next_at.max(self.free_at),
            _ => self.leaves_at().max(self.room_at(now)),
        };
        self.held_at = self.held_at.max(at.min(now));
        at
    }

    /// When something is to be decided even if nothing happens until then.
    pub(super) fn wakes_at(&self) -> Option<f64> {
        match self.stage {
            Stage::Shut(shut) => shut.ping.map(|ping| ping + self.ping_delay()),
            Stage::Reading { since, .. } => Some(since + self.delay.until_known().max(round::SHORTEST)),
            Stage::Starting | Stage::Riding => None,
        }
    }

    /// Requests take so many units on average by now.
    pub(super) fn measure_in(&mut self, unit: f64) {
        self.unit = unit;
    }

    /// A request that takes this much has gone out.
    pub(super) fn sent(&mut self, now: f64, amount: Amount) {
        let units = amount.expected;
        self.slots.sent(now, units);
        self.recent.sent(now, units);
        if let Some(charged) = &mut self.charged {
            charged.add(now, amount.at_once);
        }
        self.admitted += units;
        self.missed = (self.missed - units * (1.0 - 1.0 / MAKE_UP)).max(0.0);
        let lost = (now - TICK - self.leaves_at().max(self.held_at)).max(0.0);
        let passed = now - self.sent_at;
        if passed > 0.0 {
            let weight = 1.0 - (-passed / (4.0 * self.spacing()).max(1.0)).exp();
            self.idle += ((lost / passed).min(1.0) - self.idle) * weight;
            let most = if matches!(self.stage, Stage::Starting) { IDLE_AT_START } else { IDLE };
            if self.idle < most {
                self.grow(now, (passed - lost).max(0.0));
            }
        }
        self.sent_at = now;
        self.held_at = now;
        self.free_at = self.free_at.max(now - self.behind() - self.offset) + units / self.pace(now);
        // A round is read from requests that go evenly.
        let riding = matches!(self.stage, Stage::Riding);
        self.offset = if riding { phase::offset(now, self.rate / self.unit) } else { 0.0 };
        match &mut self.stage {
            Stage::Shut(shut) => shut.sent(now),
            Stage::Starting => self.spend_allowance(now),
            Stage::Riding | Stage::Reading { .. } => {}
        }
    }

    /// When the next request leaves, as far as pacing is concerned.
    fn leaves_at(&self) -> f64 {
        self.free_at + self.offset
    }

    /// When the window has room for another request.
    fn room_at(&mut self, now: f64) -> f64 {
        if let Some((length, room)) = self.stated_room() {
            return self.slots.some_room_at(now, length, Counted::Admitted, room);
        }
        let Some(window) = self.window.filter(|window| !window.guessed) else { return now };
        let most = self.rate * window.length - self.unit / 2.0;
        match window.kind.counted() {
            // Each refusal is one more that must grow too old, which counts where few are held.
            Counted::All if window.holds_few(self.unit) => {
                self.slots.room_at(now, window.length, Counted::All, most)
            }
            counted => self.slots.some_room_at(now, window.length, counted, most),
        }
    }

    /// The length of the windows that the provider states, and what may be used in one for another request to find room.
    /// Where such care would cost much, the pace alone keeps it.
    fn stated_room(&self) -> Option<(f64, f64)> {
        let (length, holds) = self.cap?.windows?;
        // All requests are alike but for their tokens.
        let large = if self.unit > 1.0 { LARGE * self.unit } else { self.unit };
        (large <= CARE * holds).then_some((length, holds - large))
    }

    /// By how many seconds a request may be late and those after it still be in time.
    fn behind(&self) -> f64 {
        if self.charged.is_some() || self.refunded { RETURNS } else { TICK }
    }

    fn pace(&mut self, now: f64) -> f64 {
        let Some(window) = self.window else {
            return if self.missed > 0.0 { MAKE_UP * self.rate } else { self.rate };
        };
        let used = self.slots.within(now, window.length, window.kind.counted());
        let behind = 1.0 - used / (self.rate * window.length);
        if self.charged.is_some() {
            // What was missed comes back as a gap a window later. Caught up with evenly, it fades.
            return self.rate * (1.0 + behind.clamp(0.0, CATCH_UP - 1.0));
        }
        let is_short = window.length < MINUTE && !window.kind.slides() && !window.holds_few(self.unit);
        let least = if is_short { BEHIND_SHORT } else { BEHIND };
        if behind > 1.0 - least { CATCH_UP * self.rate } else { self.rate }
    }

    fn top(&self) -> f64 {
        self.bound.min(self.cap.map_or(f64::INFINITY, |cap| cap.per_second))
    }

    /// Seconds between two requests.
    fn spacing(&self) -> f64 {
        self.unit / self.rate
    }

    fn set_rate(&mut self, now: f64, rate: f64) {
        let rate = rate.max(LEAST * self.unit).min(self.top());
        let owed = (self.free_at - now).max(0.0);
        self.free_at = self.free_at.min(now) + owed * self.rate / rate;
        self.rate = rate;
    }
}
