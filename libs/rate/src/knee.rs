//! How many requests may be in flight at once at a server that saturates instead of refusing.
//!
//! Such a server never says 429. Beyond a number of requests in flight, the knee, its throughput stays and only the
//! queue grows. The knee is found by [measuring](crate::throughput): the number doubles while twice as many requests
//! yield clearly more tokens per second, and then stays at the least number that yields nearly all of it. From time
//! to time a trial of a few more or fewer follows what the server has become; trials that change nothing get rarer.
//!
//! A 503 closes the slot it came for, and what was in flight then stays out of reach for ten minutes. Where the
//! server tells how many requests wait in its queue, that is believed instead, and the queue kept short.
//!
//! Without a search (see [`Knee::unbounded`]) only overload limits the number, until answers take many times as long as
//! before with many in flight: then the server saturates, whatever it was taken for, and the search begins.

mod change;
mod overload;
mod search;
#[cfg(test)]
mod tests;
mod trials;
mod watch;

use std::time::Duration;

pub(crate) use change::KneeChange;
use overload::Overload;
use trials::Trials;
use watch::Watch;

use crate::throughput::{Answers, Throughput};

/// Where the search starts.
const START: u32 = 16;
/// The queue that is kept at a server which tells its length, as a share of what it works on.
const WAITING: f64 = 0.05;
/// What this learner keeps at such a server where others fill the queue, as a share of what it works on.
const LEAST_PART: f64 = 0.1;
/// Of the requests of a greater number one in so many may be left when a lesser one is measured: they have waited in a
/// queue, and the longest answers come last.
const FEW_LEFT: u32 = 20;
/// Some of them may never be answered: after so many times the number in answers they are not waited for.
const PATIENCE: u32 = 6;
/// A reading of the queue counts for this long.
const READING_LASTS: Duration = Duration::from_secs(30);

/// What a server says of itself, as vLLM does in its metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saturation {
    /// Requests that it works on.
    pub running: u32,
    /// Requests in its queue.
    pub waiting: u32,
}

/// The number of requests that may be in flight, and the search for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Knee {
    /// The number now. It moves towards the level's by one per answer when it rises, at once when it falls.
    limit: u32,
    level: Level,
    stage: Stage,
    /// What the user, and memory, allow.
    most: u32,
    overload: Option<Overload>,
}

/// A number that is being gone to, and what is measured there.
#[derive(Clone, Copy, Debug)]
struct Level {
    in_flight: u32,
    /// Answers that still belong to the number before.
    foreign: u32,
    /// Those of a greater number may have waited for it, so each of them counts by itself until hardly any is left.
    from_above: Option<FromAbove>,
    answers: Answers,
}

/// A number that was gone to from a greater one.
#[derive(Clone, Copy, Debug, Default)]
struct FromAbove {
    /// When no more than this number were in flight.
    reached_at: Option<Duration>,
    /// Answers since then.
    answers: u32,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// No search, but for whether there is need for one.
    Unbounded(Watch),
    /// Doubling; what was measured before the last doubling.
    Starting(Option<Throughput>),
    /// At the knee, as far as is known; what was measured there before.
    Holding(Option<Throughput>, Trials),
    /// Trying another number than this one's.
    Trying(Throughput, Trials),
    /// Following the server's own readings; `full` once a queue was seen.
    Reading { at: Duration, full: bool },
}

impl Knee {
    /// Searches the knee, among at most this many.
    pub(crate) fn searching(most: u32) -> Self {
        Self::new(START, Stage::Starting(None), most)
    }

    /// Goes on from what an earlier search [found](Self::found).
    pub(crate) fn resumed(now: Duration, found: u32, most: u32) -> Self {
        let knee = Self::new(found, Stage::Holding(None, Trials::new(now)), most);
        Self { limit: knee.limit.min(START), ..knee }
    }

    /// No search: as many as there may be, unless the server says that it is overloaded.
    pub(crate) fn unbounded(most: u32) -> Self {
        Self::new(most, Stage::Unbounded(Watch::default()), most)
    }

    fn new(limit: u32, stage: Stage, most: u32) -> Self {
        let most = most.max(1);
        let limit = limit.clamp(1, most);
        Self { limit, level: Level::at(limit), stage, most, overload: None }
    }

    /// Requests that may be in flight at once, at least 1.
    pub(crate) fn limit(&self) -> u32 {
        match self.stage {
            // A start at full speed must not fill the queue of a server that saturates before its answers tell.
            Stage::Unbounded(watch) => self.limit.min(watch.most()),
            _ => self.limit,
        }
    }

    /// The number that the search came to, for a later run; none without a search.
    pub(crate) fn found(&self) -> Option<u32> {
        match self.stage {
            Stage::Unbounded(_) => None,
            Stage::Trying(base, _) => Some(base.in_flight),
            Stage::Starting(_) | Stage::Holding(..) | Stage::Reading { .. } => Some(self.level.in_flight),
        }
    }

    /// An answer is complete. `in_flight` still counts it.
    pub(crate) fn succeeded(
        &mut self,
        now: Duration,
        sent_at: Duration,
        output_tokens: u32,
        in_flight: u32,
    ) -> Option<KneeChange> {
        self.forget(now);
        if let Some(overload) = &mut self.overload {
            overload.answered();
        }
        if let Stage::Unbounded(watch) = &mut self.stage
            && let Some(saturated) = watch.succeeded(now, sent_at, output_tokens, in_flight)
        {
            self.stage = Stage::Starting(None);
            self.go_to(saturated.at_work);
            return Some(KneeChange::Saturated { in_flight: self.level.in_flight, slower: saturated.slower });
        }
        if !self.is_full(in_flight) {
            return None;
        }
        if self.limit < self.level.in_flight {
            self.limit += 1;
            return None;
        }
        if in_flight > self.limit {
            return None;
        }
        if self.level.is_foreign(now, sent_at) {
            return None;
        }
        if matches!(self.stage, Stage::Unbounded(_)) {
            return None;
        }
        self.level.answers.add(output_tokens, now.saturating_sub(sent_at));
        self.consider(now)
    }

    /// The server said that it has too much to do. `in_flight` no longer counts this request, and its slot is closed.
    pub(crate) fn overloaded(
        &mut self,
        now: Duration,
        sent_at: Duration,
        in_flight: u32,
    ) -> Option<KneeChange> {
        self.forget(now);
        let with = in_flight.saturating_add(1).min(self.limit);
        let (is_first, before) = (self.overload.is_none(), self.level.in_flight);
        self.limit = self.limit.min(in_flight).max(1);
        if let Some(overload) = &mut self.overload {
            if !overload.refused(now, sent_at, with) {
                return None;
            }
        } else {
            self.overload = Some(Overload::new(now, with));
        }
        let (number, stage) = match self.stage {
            Stage::Starting(_) => (self.level.in_flight, Stage::Holding(None, Trials::new(now))),
            Stage::Trying(base, trials) => {
                (base.in_flight, Stage::Holding(Some(base), trials.after_failure(now)))
            }
            Stage::Unbounded(_) | Stage::Holding(..) | Stage::Reading { .. } => {
                (self.level.in_flight, self.stage)
            }
        };
        self.stage = stage;
        self.go_to(number);
        let in_flight = self.level.in_flight;
        // Below one at once nothing can be cut.
        (is_first || in_flight < before).then_some(KneeChange::Overloaded { with, in_flight })
    }

    /// The server told its queue. `in_flight` counts the requests of this learner.
    pub(crate) fn saturation(
        &mut self,
        now: Duration,
        told: Saturation,
        in_flight: u32,
    ) -> Option<KneeChange> {
        self.forget(now);
        let wanted = share(told.running, WAITING).max(1);
        let was_full = matches!(self.stage, Stage::Reading { full: true, .. });
        self.stage = Stage::Reading { at: now, full: was_full || told.waiting > 0 };
        if told.waiting > wanted {
            let least = share(told.running, LEAST_PART).min(in_flight);
            self.go_to(in_flight.saturating_sub(told.waiting - wanted).max(least));
            let long = told.waiting > wanted.saturating_mul(2);
            return long.then_some(KneeChange::Queued { waiting: told.waiting, in_flight: self.limit });
        }
        if told.waiting < wanted && self.is_full(in_flight) {
            // A server that was full once takes what is missing from its queue. Another may be far from full, but a
            // short queue that refuses the rest must not be flooded.
            let (more, at_once) = if was_full {
                (wanted - told.waiting, u32::MAX)
            } else {
                (self.limit, (self.limit / 4).max(1))
            };
            let limit = self.limit.saturating_add(at_once);
            self.go_to(self.limit.saturating_add(more));
            self.limit = limit.min(self.level.in_flight);
        }
        None
    }

    /// Whether it is this limit that holds requests back, and nothing else does.
    fn is_full(&self, in_flight: u32) -> bool {
        u64::from(in_flight) * 10 >= u64::from(self.limit) * 9
    }

    /// Makes this the number, as far as it is allowed. It is reached at once if it is lower.
    fn go_to(&mut self, in_flight: u32) {
        let before = self.level.in_flight;
        self.level = Level::at(in_flight.clamp(1, self.highest()));
        self.level.from_above = (self.level.in_flight < before).then(FromAbove::default);
        self.limit = self.limit.min(self.level.in_flight);
    }

    fn highest(&self) -> u32 {
        self.overload.map_or(self.most, |overload| overload.most.min(self.most))
    }

    /// Drops what was true for a while only.
    fn forget(&mut self, now: Duration) {
        if self.overload.is_some_and(|overload| overload.is_over(now)) {
            self.overload = None;
            if matches!(self.stage, Stage::Unbounded(_)) {
                self.go_to(self.most);
            }
        }
        if let Stage::Reading { at, .. } = self.stage
            && now > at.saturating_add(READING_LASTS)
        {
            self.stage = Stage::Holding(None, Trials::new(now));
            self.go_to(self.limit);
        }
    }
}

impl Level {
    fn at(in_flight: u32) -> Self {
        Self { in_flight, foreign: in_flight, from_above: None, answers: Answers::default() }
    }

    /// Whether an answer says nothing about this number yet.
    fn is_foreign(&mut self, now: Duration, sent_at: Duration) -> bool {
        let Some(above) = &mut self.from_above else {
            let foreign = self.foreign > 0;
            self.foreign = self.foreign.saturating_sub(1);
            return foreign;
        };
        above.answers = above.answers.saturating_add(1);
        if sent_at < *above.reached_at.get_or_insert(now) {
            self.foreign = self.foreign.saturating_sub(1);
        }
        let left = self.foreign > self.in_flight / FEW_LEFT;
        if !left || above.answers > self.in_flight.saturating_mul(PATIENCE) {
            self.from_above = None;
            self.foreign = 0;
        }
        true
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of at most 1 of a count"
)]
fn share(count: u32, share: f64) -> u32 {
    (f64::from(count) * share) as u32
}
