//! How long a limit's window is, from the moments at which it was used up: only the right length explains them all.
//!
//! A limiter with a window refuses when the window holds all that it may. So whenever that happened, as much had been
//! admitted in one length of the window before, and never more in between. Where the window slides, room comes back
//! when the oldest of it is one length old: each closure is the echo of an earlier pause. Where it starts anew at even
//! intervals, it opens at whole multiples of its length. Lengths are whole seconds, up to a minute.

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::slots::{History, SLOT};

/// The longest length that is looked at, in seconds.
pub(super) const LONGEST: usize = 60;
/// So many moments are remembered, and so many must be explained to give up a length that explained others.
const KEPT: usize = 3;
/// What two counts that should be the same may differ by, in units and as a share of them.
const ROUNDING: f64 = 1.2;
const TOLERANCE: f64 = 0.02;
/// ... and more where it is not known when exactly a window began.
const BEGINNING: f64 = 0.1;
/// Where that leaves it open what a window held by more than this share, it explains nothing.
const DOUBT: f64 = 0.1;
/// What holds less than so many units could have any length.
const LEAST: f64 = 5.0;
/// How exact times are, in seconds.
const MOMENT: f64 = 0.2;
/// Where no more than so many are admitted in a minute, each refusal counts.
const FEW: f64 = 12.0;
/// The lengths that most providers use.
const USUAL: [usize; 2] = [10, 60];
/// A shape that explained others is given up only for so many times that.
const CONTRADICTION: f64 = 3.0;
/// An error that is as good as none, and one that is as good as the least.
const EXACT: f64 = 0.01;
const ALMOST: f64 = 1.5;
/// ... and for a usual length.
const USUAL_EXACT: f64 = 0.08;
const USUAL_ALMOST: f64 = 3.0;

/// The steps in which a sliding window is looked at, in seconds.
const STEP: f64 = 0.5;

/// What was admitted in the last 0, 1, 2 ... 60 seconds before some moment.
type Past = [f64; LONGEST + 1];

/// A window that was used up.
#[derive(Clone, Copy, Debug)]
pub(super) struct UsedUp {
    /// The first and the last request that it refused.
    pub(super) first_refused: f64,
    pub(super) last_refused: f64,
    /// The first that it admitted again.
    pub(super) opened_at: f64,
}

/// The same with what was admitted before each of these moments.
#[derive(Clone, Copy, Debug)]
struct Seen {
    used_up: UsedUp,
    before_shut: Past,
    before_refused: Past,
    before_opened: Past,
}

/// A window's length in seconds, and how it opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) seconds: usize,
    pub(super) slides: bool,
}

/// The last times at which the limit was used up, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Explained {
    times: VecDeque<Seen>,
}

impl Explained {
    pub(super) fn add(&mut self, used_up: UsedUp, history: &History) {
        if self.times.len() == KEPT {
            self.times.pop_front();
        }
        let until = used_up.last_refused + SLOT;
        self.times.push_back(Seen {
            used_up,
            before_shut: past(history, used_up.first_refused + SLOT, used_up.first_refused + SLOT),
            before_refused: past(history, until, until),
            before_opened: past(history, used_up.opened_at + MOMENT, used_up.opened_at.max(until)),
        });
    }

    /// When the newest request was refused that showed that the window was used up.
    pub(super) fn newest(&self) -> f64 {
        self.times.back().map_or(f64::NEG_INFINITY, |time| time.used_up.last_refused)
    }

    /// Whether one of them was a closure that was seen to end.
    pub(super) fn closed(&self) -> bool {
        self.times.iter().any(|time| time.used_up.opened_at > time.used_up.last_refused)
    }

    /// It did not open at this moment.
    pub(super) fn forget(&mut self, opened_at: f64) {
        self.times.retain(|time| time.used_up.opened_at.total_cmp(&opened_at).is_ne());
    }

    pub(super) fn clear(&mut self) {
        self.times.clear();
    }

    /// The length that the first closure suggests: of all that it can have been, the one that lets most through. Too
    /// much shows soon, since the window is used up early, and costs no throughput; too little shows late.
    pub(super) fn quickest(&self, unit: f64) -> usize {
        let Some(newest) = self.times.back() else { return LONGEST };
        let closed = newest.used_up.last_refused - newest.used_up.first_refused;
        if newest.before_opened[LONGEST] < FEW * unit {
            return USUAL.into_iter().find(|seconds| number(*seconds) >= closed).unwrap_or(LONGEST);
        }
        let rate = |seconds: usize| newest.before_opened[seconds] / number(seconds);
        let possible = (1..=LONGEST).filter(|seconds| number(*seconds) >= closed);
        possible.max_by(|one, other| rate(*one).total_cmp(&rate(*other))).unwrap_or(LONGEST)
    }

    /// The shape that explains the last `count` times: the `present` one unless they contradict it.
    pub(super) fn shape(
        &self,
        history: &History,
        unit: f64,
        present: Option<Shape>,
        count: usize,
    ) -> Option<Shape> {
        if self.times.len() < count {
            return None;
        }
        let times: Vec<&Seen> = self.times.range(self.times.len() - count..).collect();
        if let Some(present) =
            present.filter(|present| present.error(&times, history, unit, CONTRADICTION).is_some())
        {
            return Some(present);
        }
        let all = (1..=LONGEST).flat_map(|seconds| [false, true].map(|slides| Shape { seconds, slides }));
        let explaining = all.filter_map(|shape| Some((shape, shape.error(&times, history, unit, 1.0)?)));
        let explaining: Vec<_> = explaining.collect();
        let least = explaining.iter().map(|(_, error)| *error).fold(f64::INFINITY, f64::min);
        // Of several windows after one another, which explain what one does, the shortest.
        let rank = |(shape, error): &(Shape, f64)| (shape.seconds, *error);
        let shortest = |exact: f64, usual: bool| {
            let good =
                explaining.iter().filter(|(shape, error)| *error <= exact && (shape.is_usual() || !usual));
            good.min_by(|one, other| rank(one).partial_cmp(&rank(other)).unwrap_or(Ordering::Equal))
        };
        let usual = shortest((USUAL_ALMOST * least).max(USUAL_EXACT), true);
        usual.or_else(|| shortest((ALMOST * least).max(EXACT), false)).map(|(shape, _)| *shape)
    }
}

impl Shape {
    /// A length in seconds.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most a minute")]
    pub(super) fn of(length: f64, slides: bool) -> Self {
        Self { seconds: (length.round() as usize).min(LONGEST), slides }
    }

    pub(super) fn length(self) -> f64 {
        number(self.seconds)
    }

    /// No window refuses everything for longer than it is long.
    pub(super) fn can_be_shut_for(self, seconds: f64) -> bool {
        seconds < self.length() + MOMENT
    }

    fn is_usual(self) -> bool {
        USUAL.contains(&self.seconds)
    }

    /// By which share the amounts differ that should be the same; `None` if this is not the shape. What is known from
    /// before is given some slack.
    fn error(self, times: &[&Seen], history: &History, unit: f64, slack: f64) -> Option<f64> {
        if times
            .iter()
            .any(|time| !self.can_be_shut_for(time.used_up.last_refused - time.used_up.first_refused))
        {
            return None;
        }
        let held = if self.slides {
            self.echoes(times, history, unit, slack)
        } else {
            self.repeats(times, history, unit, slack)
        };
        let Held { amount, gap, doubt } = held?;
        ((amount >= LEAST * unit || slack > 1.0) && gap <= slack * (ROUNDING * unit + TOLERANCE * amount))
            .then(|| (gap + doubt + unit) / amount)
    }

    /// What a sliding window of this length held whenever it refused, if it was never fuller.
    fn echoes(self, times: &[&Seen], history: &History, unit: f64, slack: f64) -> Option<Held> {
        let held = |past: &Past| past[self.seconds];
        let full = times.iter().flat_map(|time| [held(&time.before_shut), held(&time.before_refused)]);
        let (least, most) =
            full.fold((f64::INFINITY, 0.0_f64), |(least, most), held| (least.min(held), most.max(held)));
        let full = Held { amount: most, gap: most - least, doubt: 0.0 };
        let opened = times.iter().all(|time| {
            time.used_up.opened_at <= time.used_up.last_refused
                || held(&time.before_opened) < held(&time.before_refused) - unit / 2.0
        });
        let fuller = || {
            history.most_within(self.length(), history.end(), STEP)
                > most + slack * (ROUNDING * unit + TOLERANCE * most)
        };
        ((opened || slack > 1.0) && !fuller()).then_some(full)
    }

    /// What windows of this length, one after the other, held when they were used up, if none held more.
    fn repeats(self, times: &[&Seen], history: &History, unit: f64, slack: f64) -> Option<Held> {
        let (newest, earlier) = times.split_last()?;
        let length = self.length();
        // It opened at some time after the last refusal.
        let even = earlier.iter().all(|time| {
            let soonest = newest.used_up.last_refused - time.used_up.opened_at - slack * MOMENT;
            let latest = newest.used_up.opened_at - time.used_up.last_refused + slack * MOMENT;
            let passed = (latest / length).floor();
            passed >= 1.0 && passed * length >= soonest
        });
        // ... and so it began at some time a length before that.
        let least = times.iter().map(|time| time.before_opened[self.seconds]).fold(0.0, f64::max);
        let most = times.iter().map(|time| time.before_refused[self.seconds]).fold(f64::INFINITY, f64::min);
        let held = Held {
            amount: least.max(most),
            gap: (least - most).max(0.0),
            doubt: (most - least).max(0.0) / 2.0,
        };
        let fuller = || {
            let UsedUp { last_refused, opened_at, .. } = newest.used_up;
            let most = |opened_at| history.most_within(length, opened_at - length, length);
            let most = most(last_refused).min(most(opened_at));
            most > held.amount + slack * (unit + BEGINNING * held.amount)
        };
        let certain = held.doubt <= slack * (unit / 2.0 + DOUBT * held.amount);
        (even && certain && !fuller()).then_some(held)
    }
}

/// What a window held each time that it was full.
#[derive(Clone, Copy, Debug)]
struct Held {
    amount: f64,
    /// By how much that differed, and by how much it may have differed from this.
    gap: f64,
    doubt: f64,
}

fn past(history: &History, since: f64, at: f64) -> Past {
    std::array::from_fn(|seconds| history.between(since - number(seconds), at))
}

#[expect(clippy::cast_precision_loss, reason = "at most a minute")]
fn number(seconds: usize) -> f64 {
    seconds as f64
}

#[cfg(test)]
mod tests {
    use super::super::slots::Slots;
    use super::*;

    /// Uses up a limiter again and again, faster each time, and asks twice a second whether it is open again. What
    /// explains the first times that it was used up?
    fn explained(times: usize, mut admits: impl FnMut(f64) -> bool) -> (Explained, Option<Shape>) {
        let (mut slots, mut explained, mut shape) = (Slots::new(), Explained::default(), None);
        let (mut first_refused, mut last_refused) = (None, 0.0);
        let (mut now, mut every) = (0.0, 0.2);
        while explained.times.len() < times && now < 600.0 {
            slots.sent(now, 1.0);
            if !admits(now) {
                slots.refused(now, 1.0);
                last_refused = now;
                first_refused.get_or_insert(now);
            } else if let Some(first_refused) = first_refused.take() {
                let history = slots.history();
                explained.add(UsedUp { first_refused, last_refused, opened_at: now }, &history);
                shape = explained.shape(&history, 1.0, None, 2).or(shape);
                every *= 0.8;
            }
            now += if first_refused.is_some() { 0.5 } else { every };
        }
        (explained, shape)
    }

    /// So many in each window of this length, the first of which began before.
    fn fixed(seconds: f64, limit: u32) -> impl FnMut(f64) -> bool {
        let (mut window, mut used) = (0.0, 0);
        move |now| {
            let present = ((now + 0.3 * seconds) / seconds).floor();
            used = if present > window { 0 } else { used };
            window = present;
            used += u32::from(used <= limit);
            used <= limit
        }
    }

    fn sliding(seconds: f64, limit: usize) -> impl FnMut(f64) -> bool {
        let mut log = VecDeque::new();
        move |now| {
            log.retain(|at| now - at < seconds);
            let admits = log.len() < limit;
            log.extend(admits.then_some(now));
            admits
        }
    }

    #[test]
    fn a_window_that_starts_anew_is_as_long_as_its_openings_are_apart() {
        let (_, shape) = explained(3, fixed(29.0, 80));
        assert_eq!(shape, Some(Shape { seconds: 29, slides: false }));
        let (_, shape) = explained(3, fixed(10.0, 30));
        assert_eq!(shape, Some(Shape { seconds: 10, slides: false }));
    }

    #[test]
    fn a_sliding_window_opens_when_the_oldest_of_it_is_as_old() {
        let (_, shape) = explained(2, sliding(17.0, 40));
        assert_eq!(shape, Some(Shape { seconds: 17, slides: true }));
        let (_, shape) = explained(2, sliding(60.0, 150));
        assert_eq!(shape, Some(Shape { seconds: 60, slides: true }));
    }

    #[test]
    fn one_closure_tells_no_length_but_what_lets_most_through() {
        let (explained, shape) = explained(1, fixed(29.0, 80));
        assert_eq!(shape, None);
        let quickest = explained.quickest(1.0);
        assert!((4..=29).contains(&quickest), "{quickest} s");
    }

    #[test]
    fn no_window_is_shut_for_longer_than_it_is_long() {
        let minute = Shape::of(60.0, true);
        assert!(minute.can_be_shut_for(59.0) && !Shape { seconds: 34, ..minute }.can_be_shut_for(35.0));
    }
}
