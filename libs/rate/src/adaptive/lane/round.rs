//! A round of refusals: how it begins, and how it is read.

use super::super::recent::Recent;
use super::super::slots::SLOT;
use super::super::turn::{Turn, Why};
use super::super::window::MINUTE;
use super::{Lane, Refusal, Stage};

/// Verdicts that a round needs to be read.
const READABLE: f64 = 8.0;
/// No round is read sooner than after this many seconds: a window that just ends looks like a bucket's overrun.
pub(super) const SHORTEST: f64 = 0.45;
/// A round with at most this share of refusals was the edge.
const ISOLATED: f64 = 0.15;
/// With more than this share refused, nothing is waited for.
const CLOSED_EARLY: f64 = 0.7;
const EARLY: f64 = 6.0;
/// The steps back of a start and of a search.
const START_STEP: f64 = 0.5;
const SEARCH_STEP: f64 = 0.04;
/// Of the rate that was measured while a bucket overran, this share is used.
const MEASURED: f64 = 0.97;
/// A minute that holds at least so many requests, and a rate that is this share of what was admitted in it.
const FULL_OF: f64 = 20.0;
const EARLIER: f64 = 0.25;
/// A sliding window that was full so many seconds ago and refuses everything again holds less than before.
const WHILE: f64 = 10.0;
/// So many in a row mean that the lane is shut, so many of the last twelve that it overruns.
const IN_A_ROW: u32 = 3;
const MANY: usize = 5;

impl Lane {
    /// Whether verdicts come so rarely that each is looked at by itself.
    fn is_slow(&self) -> bool {
        self.rate * self.delay.until_known() < READABLE * self.unit
    }

    /// A request was refused.
    pub(in super::super) fn refused(&mut self, now: f64, refusal: Refusal) -> Option<Turn> {
        let Refusal { sent_at, amount, wait: retry_after, .. } = refusal;
        self.slots.refused(sent_at, amount.expected);
        if let Some(charged) = &mut self.charged {
            charged.add(sent_at, -amount.at_once);
        }
        self.recent.refused(sent_at);
        self.admitted -= amount.expected;
        self.delay.observe(now - sent_at);
        self.refused_at = self.refused_at.max(sent_at);
        self.in_round += 1.0;
        if let Some(reopened) = self.reopened.take_if(|reopened| reopened.ping.total_cmp(&sent_at).is_eq()) {
            return Some(self.shut_after_all(now, &reopened, retry_after));
        }
        let riding = matches!(self.stage, Stage::Starting | Stage::Riding);
        if riding && sent_at > self.cut_at && self.window.is_none() && self.is_full_of_earlier(now, self.rate)
        {
            self.slide(now);
            return Some(self.shut(now, sent_at, retry_after));
        }
        if riding && self.charged.is_some() {
            return (sent_at > self.cut_at).then(|| self.overdrawn(now, refusal));
        }
        match self.stage {
            Stage::Shut(ref mut shut) => {
                shut.refused(now, sent_at, retry_after);
                None
            }
            Stage::Reading { from, .. } => {
                let known = self.slots.tally(from, now - self.delay.mostly());
                let closed = self.in_round >= EARLY
                    && known.sent >= EARLY * self.unit
                    && known.refused_share() > CLOSED_EARLY;
                (closed && !self.is_sliding_edge(from)).then(|| self.shut(now, from, retry_after))
            }
            Stage::Starting | Stage::Riding if self.is_slow() => {
                self.refused_slowly(now, sent_at, retry_after)
            }
            Stage::Starting | Stage::Riding if sent_at > self.cut_at => Some(self.open_round(now, sent_at)),
            Stage::Starting | Stage::Riding => None,
        }
    }

    /// Refused at far less than was admitted in the last minute, which no bucket does: it is a sliding minute that is
    /// still full of what went before.
    pub(super) fn is_full_of_earlier(&self, now: f64, rate: f64) -> bool {
        let admitted = self.slots.tally(now - MINUTE, now).admitted();
        admitted >= FULL_OF * self.unit && rate * MINUTE < EARLIER * admitted
    }

    fn refused_slowly(&mut self, now: f64, sent_at: f64, retry_after: Option<f64>) -> Option<Turn> {
        let is_new = sent_at > self.cut_at;
        let in_a_row = self.recent.in_a_row(now - self.delay.until_known());
        if in_a_row >= IN_A_ROW || (is_new && self.window.is_some() && !self.slides()) {
            return Some(self.shut(now, sent_at, retry_after));
        }
        if self.window.is_some() {
            return is_new.then(|| self.slid(now));
        }
        if self.recent.refused_count() >= MANY
            && let Some(admitted) = self.recent.admitted_per_second(now)
        {
            self.recent = Recent::default();
            return Some(self.overrun(now, admitted));
        }
        if !is_new {
            return None;
        }
        let again = f64::from(1_u32 << (in_a_row.clamp(1, IN_A_ROW) - 1));
        let usual = (self.step_back_now(now) * again).min(START_STEP);
        let share = self.step_from_overshoot(now, usual);
        let turn = self.take_step(now, share);
        self.stage = Stage::Riding;
        if self.is_among_strangers() {
            self.give_way(now);
        }
        Some(turn)
    }

    /// A sliding window is full, and has room again as soon as the oldest request in it is old enough.
    fn slid(&mut self, now: f64) -> Turn {
        let before = self.rate;
        self.begin_round(now);
        self.used_up(now, self.refused_at, self.refused_at, self.refused_at);
        Turn { at: before, to: self.rate, why: Why::Refused }
    }

    fn open_round(&mut self, now: f64, sent_at: f64) -> Turn {
        let start = matches!(self.stage, Stage::Starting);
        let turn = self.take_step(now, self.step_back_now(now));
        self.stage = Stage::Reading { from: sent_at, since: now, start };
        turn
    }

    fn step_back_now(&self, now: f64) -> f64 {
        match self.stage {
            // What is stated ends a start: it was not on its way to anywhere else.
            Stage::Starting if self.cap.is_none_or(|cap| self.rate < cap.per_second) => START_STEP,
            _ if self.is_searching(now) => self.step_back(now).max(SEARCH_STEP),
            _ => self.step_back(now),
        }
    }

    fn take_step(&mut self, now: f64, share: f64) -> Turn {
        let before = self.rate;
        self.begin_round(now);
        if self.window.is_none() {
            self.set_ceiling(now, before);
        }
        self.set_rate(now, before * (1.0 - share));
        Turn { at: before, to: self.rate, why: Why::Refused }
    }

    /// What was sent until now belongs to this round.
    pub(super) fn begin_round(&mut self, now: f64) {
        if matches!(self.stage, Stage::Starting | Stage::Riding) {
            self.note_visit(now);
            if self.has_risen_from_few() {
                // One length or another would explain a time before together with this one.
                self.explained.clear();
            }
            self.met_at = self.rate;
            self.strangers.known = self.ceiling.filter(|_| self.window.is_none() && self.is_searching(now));
        }
        self.per_round = (self.per_round + (self.in_round.min(1_000.0) - self.per_round) / 4.0).max(1.0);
        self.in_round = 0.0;
        self.cut_at = now;
        self.clean_since = now;
        self.returning = false;
    }

    /// Time has passed: reads a round whose verdicts are there.
    pub(super) fn read(&mut self, now: f64, from: f64, since: f64, start: bool) -> Option<Turn> {
        let delay = self.delay.until_known();
        if now < since + delay {
            return None;
        }
        // Whole slots only, and not the one that the round began in.
        let from_slot = ((from / SLOT).floor() + 1.0) * SLOT;
        let until = ((now - delay) / SLOT).floor() * SLOT;
        let late = now > since + 4.0 * delay.max(SHORTEST);
        if until - from_slot < SHORTEST - SLOT {
            return None;
        }
        let middle = f64::midpoint(from_slot, until);
        let (first, last) = (self.slots.tally(from_slot, middle), self.slots.tally(middle, until));
        let sent = first.sent + last.sent;
        if sent < READABLE * self.unit && !late {
            return None;
        }
        let share = (first.refused + last.refused) / sent.max(self.unit);
        let closed = last.sent > 0.0 && last.refused_share() > 0.99 && share > 0.5;
        if closed && !self.is_sliding_edge(from) {
            return Some(self.shut(now, from, None));
        }
        let admitted = (first.admitted() + last.admitted()) / (until - from_slot);
        if closed || share <= ISOLATED || last.refused_share() <= ISOLATED {
            self.stage = Stage::Riding;
            return self.isolated(now, from, start.then_some(admitted));
        }
        let (one, other) = (first.refused_share(), last.refused_share());
        (late || one.max(other) < 2.0 * one.min(other)).then(|| self.overrun(now, admitted))
    }

    /// Whether it is a window that is known to slide, and was seen to lately.
    fn slides(&self) -> bool {
        self.window.is_some_and(|window| window.kind.slides() && !window.guessed) && self.explained.closed()
    }

    /// Refused for the first time in a while by a window that is known to slide: what is in it is known as well, and
    /// when there will be room again.
    fn is_sliding_edge(&self, from: f64) -> bool {
        self.slides() && from > self.explained.newest() + WHILE
    }

    /// It was the edge. The step back of a start was far too long for that, and a start that met others' edge is far below
    /// its own.
    fn isolated(&mut self, now: f64, from: f64, admitted: Option<f64>) -> Option<Turn> {
        let before = self.rate;
        self.emptied_at = None;
        if self.is_among_strangers() {
            self.give_way(now);
        } else if let Some(window) = self.window {
            // Where it opens at even intervals, it did so before anything else went out.
            let next = |_| self.slots.history().first_sent_after(self.refused_at);
            let opened_at = window.opening.and_then(next).unwrap_or(self.refused_at);
            self.used_up(now, from, self.refused_at, opened_at);
        } else if let Some(admitted) = admitted {
            self.set_rate(now, before.max(MEASURED * admitted));
            self.search(now);
        }
        (self.rate > 1.02 * before).then_some(Turn { at: before, to: self.rate, why: Why::Edge })
    }

    /// More is sent than admitted: what is admitted is the limit.
    fn overrun(&mut self, now: f64, admitted: f64) -> Turn {
        let before = self.rate;
        self.begin_round(now);
        // What was sent too fast says nothing of the rate that follows, even where its refusals are still to come. That
        // tokens come back does not depend on the rate.
        if !self.refunded {
            self.recent = Recent::default();
        }
        self.stage = Stage::Riding;
        self.look_for_leavings(now, admitted);
        if self.is_among_strangers() {
            self.give_way(now);
        } else if self.window.is_some() {
            self.used_up(now, self.refused_at, self.refused_at, self.refused_at);
        } else {
            let admitted = admitted.max(self.gained_until(now - self.delay.until_known()));
            self.emptied_at = Some(now);
            self.set_ceiling(now, admitted.max(before / 4.0));
            self.regime_since = now;
            self.returning = true;
            self.set_rate(now, (MEASURED * admitted).clamp(before / 4.0, before));
        }
        Turn { at: before, to: self.rate, why: Why::Overrun }
    }
}
