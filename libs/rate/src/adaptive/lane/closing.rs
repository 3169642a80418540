//! A lane that is shut, and what its reopening says.

use std::ops::Range;

use super::super::shape::{Kind, LONGEST, Shape, UsedUp};
use super::super::shut::Shut;
use super::super::slots::{Counted, History, SLOT};
use super::super::turn::{Turn, Why};
use super::super::window::{MINUTE, Opening, Window};
use super::{Lane, Reopened, Stage};

/// A closure of this many seconds, and two requests more, was the rest of a window.
const WINDOW_CLOSURE: f64 = 2.5;
/// A longer closure than this is one of a minute, where nothing else tells how long a window is.
pub(super) const SHORT_CLOSURE: f64 = 11.0;
pub(super) const SHORT: f64 = 10.0;
/// Of what a window was seen to hold, this share is used.
const HELD: f64 = 0.997;
/// Units, in requests, that measure a rate at all, and well.
const SOME: f64 = 3.0;
const ENOUGH: f64 = 8.0;
/// A bucket that was empty so many seconds ago, and is again, gave meanwhile what it gained.
const RECENT: Range<f64> = 2.0..60.0;
/// Closures within so many seconds are one overrun.
const AGAIN: f64 = 20.0;
/// If the window will open within so many seconds, or times what lies between two admissions, it is waited for.
const SOON: f64 = 2.0;
/// A closure of this many seconds is longer than any window of a minute.
const LONGEST_CLOSURE: f64 = 61.0;
/// So many times in a row that a shape does not explain, and it is given up.
const DOUBTFUL: u32 = 5;
/// ... while the window goes on to open as it did: then all that was remembered is from after a change of the limit.
const PATIENCE: u32 = 3;
/// A limit does not fall to less than this part at once: the rest of what the window held went to others.
const FALL: f64 = 10.0;
/// What was admitted in less than this time in seconds measures nothing.
const MEASURABLE: f64 = 10.0;

/// What a bucket admitted while it was empty.
#[derive(Clone, Copy, Debug)]
struct Passed {
    rate: f64,
    /// So little that it tells the rate only roughly.
    is_little: bool,
}

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
        self.doubt_window(now, from);
        let rare = MINUTE * self.unit / self.slots.tally(now - MINUTE, now).admitted().max(self.unit);
        let mut shut = Shut::new(now, from, self.delay.until_known(), self.spacing(), rare);
        // Each refusal counts where few are sent: none is spent on knowing the moment better. Nor is it known better if the
        // pace lets the request go only later.
        let is_rare = self.is_rare();
        let opens = |window: Window| if is_rare { window.opens_by(now) } else { window.opens_at(now) };
        let opens_at = self.window.and_then(opens);
        let soon = if is_rare { SOON * rare } else { SOON };
        if let Some(opens_at) = opens_at.filter(|opens_at| *opens_at < now + soon) {
            shut.next_at = opens_at;
            self.free_at = self.free_at.min(opens_at);
        }
        shut.opens_at = opens_at.filter(|_| self.charged.is_none());
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
        self.reopened = self.charged.is_none().then_some(Reopened {
            ping,
            shut,
            window: self.window,
            rate: self.rate,
            ceiling: self.ceiling,
            regime_since: self.regime_since,
            shut_before: self.shut_before,
            open_since: self.open_since,
            admitted: self.admitted - self.unit,
        });
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
        let length = if closed_for > SHORT_CLOSURE { MINUTE } else { SHORT };
        let held = self.held_in(length, Counted::Admitted);
        let explained = WINDOW_CLOSURE + 2.0 * self.unit / held + self.recovery(held);
        let is_window = (explained..=LONGEST_CLOSURE).contains(&closed_for);
        if self.charged.is_some() {
            if self.window.is_some() || is_window {
                self.used_up_while_produced(now, closed_for, shut.since, ping);
            } else {
                self.recovered(now, closed_for);
            }
        } else {
            let passed = self.passed(now, shut, ping);
            let too_little = passed.is_some_and(|passed| self.is_full_of_earlier(now, passed.rate));
            // What comes back passes as well, whenever it does.
            let passes_little = !self.refunded && (shut.does_not_fill() || too_little);
            if self.window.is_some() || is_window || passes_little {
                if self.window.is_none() {
                    self.regime_since = now;
                }
                self.used_up(now, shut.since, self.refused_at.max(shut.told_until.min(ping)), ping);
            } else if self.is_among_strangers() {
                self.give_way(now);
            } else if let Some(passed) = passed {
                self.emptied(now, passed);
            } else if self.holds_what_was_sent() {
                self.shut_for_a_moment(now, shut.since, self.refused_at.max(shut.told_until.min(ping)), ping);
            }
        }
        // A bucket that counts refusals gave all that it gained to them until the last.
        self.shut_before = Some(self.refused_at.max(shut.since));
        self.free_at = now.max(ping + self.spacing());
        Turn {
            at: before,
            to: self.rate,
            why: Why::Reopened { seconds: closed_for, window: self.window.map(|window| window.length) },
        }
    }

    /// The ping that was taken for admitted is refused late: it is still shut, and nothing was learned.
    pub(super) fn shut_after_all(&mut self, now: f64, reopened: &Reopened, retry_after: Option<f64>) -> Turn {
        let before = self.rate;
        let (ping, mut shut) = (reopened.ping, reopened.shut);
        self.explained.forget(ping);
        self.window = reopened.window;
        self.ceiling = reopened.ceiling;
        self.regime_since = reopened.regime_since;
        self.shut_before = reopened.shut_before;
        self.open_since = reopened.open_since;
        self.admitted = reopened.admitted;
        self.set_rate(now, reopened.rate);
        shut.refused(now, ping, retry_after);
        self.stage = Stage::Shut(shut);
        self.cut_at = now;
        self.clean_since = now;
        Turn { at: before, to: self.rate, why: Why::Closed }
    }

    /// It is a sliding minute, which is used up.
    pub(super) fn slide(&mut self, now: f64) {
        self.measure(now, Shape { seconds: LONGEST, kind: Kind::Sliding }, true, None);
        self.regime_since = now;
    }

    /// No window of a minute is closed for so long: refusals count against the limit as well.
    fn start_over(&mut self, now: f64, ping: f64) {
        self.forget_window(now, ping, MINUTE);
    }

    /// It is no window of which anything is known. Then all that was admitted since the lane was last open for the first
    /// time, or in so many seconds, is what the limit gives.
    fn forget_window(&mut self, now: f64, ping: f64, least: f64) {
        let measured = self.admitted.max(self.unit) / (ping - self.open_since).max(least);
        self.window = None;
        self.unexplained = 0;
        self.explained.clear();
        self.regime_since = now;
        self.shut_before = Some(ping);
        self.set_ceiling(now, measured);
        self.set_rate(now, HELD * measured);
        self.open_since = ping;
        self.admitted = 0.0;
        self.free_at = now.max(ping + self.spacing());
    }

    /// What was admitted since the lane was shut before, if that was just now, or since it is shut.
    fn passed(&self, now: f64, shut: Shut, ping: f64) -> Option<Passed> {
        let (from, until) = match self.shut_before {
            None => (shut.since, shut.began),
            Some(before) if shut.since - before < AGAIN => (before, shut.since),
            Some(_) => return None,
        };
        let admitted = self.slots.tally(from, until).admitted();
        let rate = if admitted >= SOME * self.unit {
            admitted / (until - from).max(SLOT)
        } else {
            self.slots.tally(from, now).admitted().max(self.unit) / (ping - from).max(SLOT)
        };
        let rate = rate.max(self.gained_until(shut.since));
        Some(Passed { rate, is_little: admitted < ENOUGH * self.unit })
    }

    /// What a bucket gained since it was empty, if it is again, in units a second: all that it gave meanwhile. What passes
    /// while it is empty can be far less where it is a sliding window in truth: as much as was sent a length of it before.
    pub(super) fn gained_until(&self, until: f64) -> f64 {
        let lately = self.emptied_at.filter(|at| RECENT.contains(&(until - at)));
        lately.map_or(0.0, |at| self.slots.tally(at, until).admitted() / (until - at))
    }

    /// It was a bucket that had been emptied far too fast: what it gave meanwhile is what it gets.
    fn emptied(&mut self, now: f64, passed: Passed) {
        let first = self.shut_before.is_none();
        self.emptied_at = Some(self.refused_at);
        self.regime_since = now;
        self.returning = first;
        self.set_ceiling(now, passed.rate);
        self.set_rate(now, passed.rate.min(self.rate));
        if first && passed.is_little {
            self.stage = Stage::Starting;
            self.allowance = 0.0;
        }
    }

    /// Remembers when the window was used up, by a request that was sent at `shut_at`.
    fn note_used_up(&mut self, history: &History, shut_at: f64, refused_at: f64, opened_at: f64) {
        // Refusals do not arrive in the order in which they were sent.
        let soonest = shut_at - self.delay.until_known();
        self.used_up_at = history.first_refused(soonest, shut_at).unwrap_or(shut_at);
        let used_up = UsedUp { first_refused: self.used_up_at, last_refused: refused_at, opened_at };
        // A shape that is known is given up for several closures, not for one that goes on. Of a limit that is divided, a
        // part is all that is seen.
        if self.holds_what_was_sent() && self.window.is_some_and(|window| !window.guessed) {
            self.explained.add_once(used_up, history);
        } else {
            self.explained.add(used_up, history);
        }
    }

    /// Shut at an edge that was visited before, and open again at once. A bucket refuses evenly there, so it was the end of
    /// a window: of one's own if it explains the last times, else of one that others use up as well.
    fn shut_for_a_moment(&mut self, now: f64, shut_at: f64, refused_at: f64, opened_at: f64) {
        let history = self.slots.history();
        self.note_used_up(&history, shut_at, refused_at, opened_at);
        match self.explained.shape(&history, self.unit, None, 3) {
            Some(shape) => self.measure(now, shape, false, None),
            None => self.look_for_others_at_end(now),
        }
    }

    /// The shape that explains the last times. The known one is kept for a while if only what the window held is another:
    /// the limit may have changed.
    fn explain(&mut self, history: &History, known: Option<Shape>) -> Option<Shape> {
        let count = if known.is_some() { 3 } else { 2 };
        let explanation = self.explained.shape(history, self.unit, known, count);
        let kept = known.filter(|known| {
            explanation != Some(*known) && self.contradicted < PATIENCE && self.explained.opens_like(*known)
        });
        self.contradicted = if kept.is_some() { self.contradicted + 1 } else { 0 };
        kept.or(explanation)
    }

    /// A window was used up by a request that was sent at `shut_at`, and opened again: goes on with what it held.
    pub(super) fn used_up(&mut self, now: f64, shut_at: f64, refused_at: f64, opened_at: f64) {
        let history = self.slots.history();
        self.note_used_up(&history, shut_at, refused_at, opened_at);
        let known = self.window.filter(|window| !window.guessed).map(Window::shape);
        let explanation = self.explain(&history, known);
        self.unexplained = if explanation.is_some() { 0 } else { self.unexplained + 1 };
        let known =
            known.filter(|known| self.unexplained < DOUBTFUL && known.can_be_shut_for(refused_at - shut_at));
        let (shape, guessed) = match explanation.or(known) {
            Some(shape) => (shape, false),
            // Others use it up as well.
            None if self.unexplained > 1
                && self.holds_what_was_sent()
                && opened_at - self.open_since < MINUTE
                && self.explained.opened_while_full(self.unit) =>
            {
                self.forget_window(now, opened_at, MEASURABLE);
                return;
            }
            None => self.guess(),
        };
        let opening = Some(Opening { after: refused_at, by: opened_at }).filter(|_| opened_at > refused_at);
        let known = self.window.filter(|window| window.shape() == shape).and_then(|window| window.opening);
        let opening = match (known, opening) {
            (Some(known), Some(opening)) => Some(opening.also(known, shape.length())),
            (known, opening) => opening.or(known),
        };
        self.measure(now, shape, guessed, opening.filter(|_| !guessed && !shape.kind.slides()));
    }

    /// What an unexplained window is taken for, and whether that is a guess which the next times are to tell.
    fn guess(&self) -> (Shape, bool) {
        let stated = self.cap.and_then(|cap| cap.windows).map(|(length, _)| length);
        match stated.filter(|length| *length < MINUTE) {
            Some(length) => (Shape::of(length, Kind::Even), true),
            None if self.unexplained > 1 => (Shape { seconds: LONGEST, kind: Kind::Sliding }, false),
            None => (Shape { seconds: self.explained.quickest(self.unit), kind: Kind::Even }, true),
        }
    }

    /// Goes on with what the window was just seen to hold.
    pub(super) fn measure(&mut self, now: f64, shape: Shape, guessed: bool, opening: Option<Opening>) {
        if !guessed {
            self.look_for_strangers(now);
        }
        if self.is_among_strangers() {
            self.give_way(now);
            return;
        }
        let length = shape.length();
        let held = match self.window.filter(|window| window.shape() == shape) {
            Some(window) if self.may_have_held_the_same(window) => window.held,
            Some(window) if self.seems_to_hold_one_less(window) => window.held,
            _ => self.held_in(length, shape.kind.counted()).max(self.held_as_stated()).max(self.rate / FALL),
        };
        let before = self.window.filter(|window| window.length.total_cmp(&length).is_eq());
        let (since, at_first, changed) = match before {
            Some(window) if window.holds_the_same(held, self.unit) => {
                (window.since, window.at_first, window.changed)
            }
            other => (now, held, other.is_some()),
        };
        self.set_ceiling(now, held);
        self.window = Some(Window {
            length,
            held,
            guessed,
            since,
            at_first,
            changed,
            kind: shape.kind,
            opening,
            probing: None,
            searching: None,
            judged_until: f64::NEG_INFINITY,
        });
        let part = if guessed { 1.0 } else { HELD - self.scatter(length) };
        self.set_rate(now, part * held);
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
