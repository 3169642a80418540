//! How long a limit's window is, from the moments at which it was used up: only the right length explains them all.
//!
//! A limiter with a window refuses when the window holds all that it may. So whenever that happened, as much had been
//! admitted in one length of the window before, and never more in between. Where the window slides, room comes back
//! when the oldest of it is one length old: each closure is the echo of an earlier pause. Where it starts anew at even
//! intervals, it opens at whole multiples of its length. Lengths are whole seconds, up to a minute.
//!
//! Some providers count what they refuse as well. In a window that starts anew that changes nothing, but one that slides
//! then holds all that was sent: it is as full as at other times when the first request is refused, and fuller after that.

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::slots::{Counted, History, SLOT, Tally};

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
/// That refused requests count is believed if it explains the times with less than this share of the error.
const CLEARLY: f64 = 0.6;
/// ... and where none had been refused before, and a usual length explains them too, of this share.
const UNSEEN: f64 = 0.15;

/// An error weighs less, but no less than so much, if something else would hardly open as evenly, where a window holds so
/// many, or has a usual length.
const MANY: f64 = 50.0;
const CHANCE: f64 = 0.2;

/// The steps in which a sliding window is looked at, in seconds.
const STEP: f64 = 0.5;

/// What was sent in the last 0, 1, 2 ... 60 seconds before some moment.
type Past = [Tally; LONGEST + 1];

/// A window that was used up.
#[derive(Clone, Copy, Debug)]
pub(super) struct UsedUp {
    /// The first and the last request that it refused.
    pub(super) first_refused: f64,
    pub(super) last_refused: f64,
    /// The first that it admitted again.
    pub(super) opened_at: f64,
}

/// The same with what was sent before each of these moments.
#[derive(Clone, Copy, Debug)]
struct Seen {
    used_up: UsedUp,
    /// What was refused in the slot of the first refusal, which is within what was sent before it.
    refused_first: f64,
    before_shut: Past,
    before_refused: Past,
    before_opened: Past,
}

/// How a window opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It starts anew at even intervals. What is refused in between makes no difference.
    Even,
    /// It slides: as what was admitted grows too old.
    Sliding,
    /// It slides, and what was refused counts in it as well.
    Strict,
}

/// A window's length in seconds, and how it opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) seconds: usize,
    pub(super) kind: Kind,
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
        let shut = used_up.first_refused + SLOT;
        self.times.push_back(Seen {
            used_up,
            refused_first: history.between(used_up.first_refused, shut).refused,
            before_shut: past(history, shut, shut),
            before_refused: past(history, until, until),
            before_opened: past(history, used_up.opened_at + MOMENT, used_up.opened_at.max(until)),
        });
    }

    /// The same, where what begins while the last time is still going on is that time again.
    pub(super) fn add_once(&mut self, used_up: UsedUp, history: &History) {
        self.times.pop_back_if(|last| used_up.first_refused < last.used_up.last_refused + SLOT);
        self.add(used_up, history);
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

    /// What was sent counts so many times.
    pub(super) fn scale(&mut self, factor: f64) {
        for seen in &mut self.times {
            seen.refused_first *= factor;
            let pasts = [&mut seen.before_shut, &mut seen.before_refused, &mut seen.before_opened];
            pasts.into_iter().flatten().for_each(|sent| *sent = sent.scaled(factor));
        }
    }

    pub(super) fn clear(&mut self) {
        self.times.clear();
    }

    /// Whether it opened the last times as windows of this shape do, whatever they held.
    pub(super) fn opens_like(&self, shape: Shape) -> bool {
        let times: Vec<&Seen> = self.times.iter().collect();
        shape.kind == Kind::Even && times.len() == KEPT && shape.opens_evenly(&times, CONTRADICTION)
    }

    /// Whether it opened last though nothing of the minute before had grown too old. No sliding minute that one job uses
    /// alone does that.
    pub(super) fn opened_while_full(&self, unit: f64) -> bool {
        self.times.back().is_some_and(|Seen { used_up, before_refused, before_opened, .. }| {
            used_up.opened_at > used_up.last_refused
                && before_opened[LONGEST].admitted() >= before_refused[LONGEST].admitted() - unit / 2.0
        })
    }

    /// The length that the first closure suggests: of all that it can have been, the one that lets most through. Too
    /// much shows soon, since the window is used up early, and costs no throughput; too little shows late.
    pub(super) fn quickest(&self, unit: f64) -> usize {
        let Some(newest) = self.times.back() else { return LONGEST };
        let closed = newest.used_up.last_refused - newest.used_up.first_refused;
        if newest.before_opened[LONGEST].admitted() < FEW * unit {
            return USUAL.into_iter().find(|seconds| number(*seconds) >= closed).unwrap_or(LONGEST);
        }
        let rate = |seconds: usize| newest.before_opened[seconds].admitted() / number(seconds);
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
        let present = present.filter(|shape| shape.holds(&times, history, unit, CONTRADICTION).is_some());
        if present.is_some() {
            return present;
        }
        let explaining = |kinds: &[Kind], may_count: bool| -> Vec<(Shape, f64)> {
            let shapes = (1..=LONGEST).flat_map(|seconds| kinds.iter().map(move |kind| (seconds, *kind)));
            let shapes = shapes.map(|(seconds, kind)| Shape { seconds, kind });
            let weighed = |shape: Shape| {
                let held = shape.holds(&times, history, unit, 1.0)?;
                Some((shape, shape.weight(&times, held, unit, may_count) * held.error(unit)))
            };
            shapes.filter_map(weighed).collect()
        };
        // Whether anything was refused that could have counted.
        let some = times.iter().any(|time| time.before_shut[LONGEST].refused - time.refused_first > unit);
        let strict = explaining(&[Kind::Strict], some);
        let lenient = explaining(&[Kind::Even, Kind::Sliding], some && !strict.is_empty());
        // Where hardly anything was refused, both kinds that slide explain the times, and few providers are strict.
        let least = |of: &[(Shape, f64)]| of.iter().map(|(_, error)| *error).fold(f64::INFINITY, f64::min);
        let usual: Vec<_> = lenient.iter().copied().filter(|(shape, _)| shape.is_usual()).collect();
        let clearly = least(&strict) < CLEARLY * least(&lenient);
        let explaining =
            if clearly && (some || least(&strict) < UNSEEN * least(&usual)) { strict } else { lenient };
        let least = least(&explaining);
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

impl Kind {
    pub(super) fn slides(self) -> bool {
        self != Self::Even
    }

    pub(super) fn counted(self) -> Counted {
        match self {
            Self::Even | Self::Sliding => Counted::Admitted,
            Self::Strict => Counted::All,
        }
    }
}

impl Shape {
    /// A length in seconds.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most a minute")]
    pub(super) fn of(length: f64, kind: Kind) -> Self {
        Self { seconds: (length.round() as usize).min(LONGEST), kind }
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

    /// What it held each time, if this is the shape. What is known from before is given some slack.
    fn holds(self, times: &[&Seen], history: &History, unit: f64, slack: f64) -> Option<Held> {
        if times
            .iter()
            .any(|time| !self.can_be_shut_for(time.used_up.last_refused - time.used_up.first_refused))
        {
            return None;
        }
        let held = match self.kind {
            Kind::Even => self.repeats(times, history, unit, slack),
            Kind::Sliding => self.echoes(times, history, unit, slack),
            Kind::Strict => self.strictly_echoes(times, history, unit, slack),
        };
        held.filter(|Held { amount, gap, .. }| {
            (*amount >= LEAST * unit || slack > 1.0) && *gap <= slack * (ROUNDING * unit + TOLERANCE * amount)
        })
    }

    /// How much an error of this shape weighs. Of few requests each length explains some times, and what is refused may
    /// explain them as well.
    fn weight(self, times: &[&Seen], held: Held, unit: f64, may_count: bool) -> f64 {
        let is_telling = held.amount >= MANY * unit || (self.is_usual() && !may_count);
        if self.kind == Kind::Even && is_telling { self.chance(times).max(CHANCE) } else { 1.0 }
    }

    /// What a sliding window of this length held whenever it refused, if it was never fuller.
    fn echoes(self, times: &[&Seen], history: &History, unit: f64, slack: f64) -> Option<Held> {
        let held = |past: &Past| past[self.seconds].admitted();
        let full = times.iter().flat_map(|time| [held(&time.before_shut), held(&time.before_refused)]);
        let (least, most) =
            full.fold((f64::INFINITY, 0.0_f64), |(least, most), held| (least.min(held), most.max(held)));
        let full = Held { amount: most, gap: most - least, doubt: 0.0 };
        let opened = times.iter().all(|time| {
            time.used_up.opened_at <= time.used_up.last_refused
                || held(&time.before_opened) < held(&time.before_refused) - unit / 2.0
        });
        let fuller = || {
            history.most_within(self.length(), 0.0..history.end(), STEP)
                > most + slack * (ROUNDING * unit + TOLERANCE * most)
        };
        ((opened || slack > 1.0) && !fuller()).then_some(full)
    }

    /// The same where what was refused counts as well: as much had been sent whenever it began to refuse, not less until
    /// it opened, and never more before anything that was admitted.
    fn strictly_echoes(self, times: &[&Seen], history: &History, unit: f64, slack: f64) -> Option<Held> {
        let held = |past: &Past| past[self.seconds].sent;
        let full = times.iter().map(|time| held(&time.before_shut) - time.refused_first);
        let (least, most) =
            full.fold((f64::INFINITY, 0.0_f64), |(least, most), held| (least.min(held), most.max(held)));
        let allowed = slack * (ROUNDING * unit + TOLERANCE * most);
        let stayed_full = times.iter().all(|time| held(&time.before_refused) > least - allowed);
        let opened = times.iter().all(|time| {
            time.used_up.opened_at <= time.used_up.last_refused || held(&time.before_opened) < most + allowed
        });
        let newest = times.last()?.used_up;
        let fuller = || {
            let until = newest.opened_at.max(newest.last_refused);
            history.most_admitted_after(self.length(), until) > most + allowed
        };
        (stayed_full && opened && !fuller()).then_some(Held { amount: most, gap: most - least, doubt: 0.0 })
    }

    /// What windows of this length, one after the other, held when they were used up, if none held more.
    fn repeats(self, times: &[&Seen], history: &History, unit: f64, slack: f64) -> Option<Held> {
        let (oldest, newest) = (times.first()?, times.last()?);
        let length = self.length();
        // It began at some time a length before that.
        let least = times.iter().map(|time| time.before_opened[self.seconds].admitted()).fold(0.0, f64::max);
        let most = times
            .iter()
            .map(|time| time.before_refused[self.seconds].admitted())
            .fold(f64::INFINITY, f64::min);
        let held = Held {
            amount: least.max(most),
            gap: (least - most).max(0.0),
            doubt: (most - least).max(0.0) / 2.0,
        };
        let fuller = || {
            let UsedUp { last_refused, opened_at, .. } = newest.used_up;
            // The limit may have been another before, which says nothing against a usual length.
            let since = if self.is_usual() { oldest.used_up.first_refused } else { 0.0 };
            let most = |opened_at| history.most_within(length, since..opened_at - length, length);
            let most = most(last_refused).min(most(opened_at));
            most > held.amount + slack * (unit + BEGINNING * held.amount)
        };
        let certain = held.doubt <= slack * (unit / 2.0 + DOUBT * held.amount);
        (self.opens_evenly(times, slack) && certain && !fuller()).then_some(held)
    }

    /// How likely something else opens as evenly by chance.
    fn chance(self, times: &[&Seen]) -> f64 {
        let Some((newest, earlier)) = times.split_last() else { return 1.0 };
        let width = |time: &Seen| (time.used_up.opened_at - time.used_up.last_refused).max(0.0);
        earlier
            .iter()
            .map(|time| ((width(time) + width(newest) + 2.0 * MOMENT) / self.length()).min(1.0))
            .product()
    }

    /// Whether the moments at which it opened, each at some time after the last refusal, are whole lengths apart.
    fn opens_evenly(self, times: &[&Seen], slack: f64) -> bool {
        let Some((newest, earlier)) = times.split_last() else { return true };
        let length = self.length();
        earlier.iter().all(|time| {
            let soonest = newest.used_up.last_refused - time.used_up.opened_at - slack * MOMENT;
            let latest = newest.used_up.opened_at - time.used_up.last_refused + slack * MOMENT;
            let passed = (latest / length).floor();
            passed >= 1.0 && passed * length >= soonest
        })
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

impl Held {
    /// By which share the amounts differ that should be the same.
    fn error(self, unit: f64) -> f64 {
        (self.gap + self.doubt + unit) / self.amount
    }
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
    fn explained(times: usize, admits: impl FnMut(f64) -> bool) -> (Explained, Option<Shape>) {
        explained_at(times, 0.2, 0.5, admits)
    }

    /// The same with so many seconds between two requests at first, and between two that ask.
    fn explained_at(
        times: usize,
        mut every: f64,
        asks_every: f64,
        mut admits: impl FnMut(f64) -> bool,
    ) -> (Explained, Option<Shape>) {
        let (mut slots, mut explained, mut shape) = (Slots::new(), Explained::default(), None);
        let (mut first_refused, mut last_refused) = (None, 0.0);
        let mut now = 0.0;
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
            now += if first_refused.is_some() { asks_every } else { every };
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
        assert_eq!(shape, Some(Shape { seconds: 29, kind: Kind::Even }));
        let (_, shape) = explained(3, fixed(10.0, 30));
        assert_eq!(shape, Some(Shape { seconds: 10, kind: Kind::Even }));
    }

    #[test]
    fn a_sliding_window_opens_when_the_oldest_of_it_is_as_old() {
        let (_, shape) = explained(2, sliding(17.0, 40));
        assert_eq!(shape, Some(Shape { seconds: 17, kind: Kind::Sliding }));
        let (_, shape) = explained(2, sliding(60.0, 150));
        assert_eq!(shape, Some(Shape { seconds: 60, kind: Kind::Sliding }));
    }

    /// A sliding window in which what it refuses counts as well.
    fn strict(seconds: f64, limit: u32) -> impl FnMut(f64) -> bool {
        let mut log = VecDeque::new();
        move |now| {
            log.retain(|at| now - at < seconds);
            log.push_back(now);
            log.len() <= usize::try_from(limit).unwrap()
        }
    }

    #[test]
    fn where_refused_requests_count_in_a_sliding_window_it_shows() {
        for (seconds, limit) in [(9, 379), (44, 70), (55, 75)] {
            let length = f64::from(seconds);
            let spacing = length / f64::from(limit);
            let (_, shape) = explained_at(2, 0.6 * spacing, 2.0 * spacing, strict(length, limit));
            assert_eq!(shape, Some(Shape::of(length, Kind::Strict)));
        }
    }

    #[test]
    fn a_closure_that_is_seen_twice_counts_once() {
        let (mut explained, _) = explained(1, fixed(10.0, 20));
        let mut again = explained.times[0].used_up;
        again.opened_at += 1.0;
        explained.add_once(again, &Slots::new().history());
        assert_eq!(explained.times.len(), 1);
        again.first_refused = again.opened_at + 1.0;
        explained.add_once(again, &Slots::new().history());
        assert_eq!(explained.times.len(), 2);
    }

    #[test]
    fn one_closure_tells_no_length_but_what_lets_most_through() {
        let (explained, shape) = explained(1, fixed(29.0, 80));
        assert_eq!(shape, None);
        let quickest = explained.quickest(1.0);
        assert!((4..=29).contains(&quickest), "{quickest} s");
    }

    #[test]
    fn a_window_whose_limit_fell_opens_as_it_did() {
        let (mut before, mut after) = (fixed(10.0, 30), fixed(10.0, 12));
        let (explained, _) = explained(3, |now| if now < 16.0 { before(now) } else { after(now) });
        assert!(explained.opens_like(Shape { seconds: 10, kind: Kind::Even }));
        assert!(!explained.opens_like(Shape { seconds: 7, kind: Kind::Even }));
    }

    #[test]
    fn a_sliding_minute_opens_only_when_something_in_it_has_grown_too_old() {
        let (slid, _) = explained(1, sliding(60.0, 150));
        assert!(!slid.opened_while_full(1.0));
        let (started_anew, _) = explained(1, fixed(29.0, 80));
        assert!(started_anew.opened_while_full(1.0));
    }

    #[test]
    fn no_window_is_shut_for_longer_than_it_is_long() {
        let minute = Shape::of(60.0, Kind::Sliding);
        assert!(minute.can_be_shut_for(59.0) && !Shape { seconds: 34, ..minute }.can_be_shut_for(35.0));
    }
}
