//! What a provider says about one limit, and how much of it is believed.
//!
//! Headers and bodies name a limit, what is left of it and when it is full again. Rarely do they name the period
//! that the limit counts in, and some describe the budget of a day where another limit of a minute binds. So a limit
//! is believed only once its period is known: named, or inferred from `limit × reset / used`. A day is a budget, not
//! a pace, and is ignored. A provider that refuses while it claims that something is left is not believed for ten
//! minutes. Nothing here is stored between runs: the first answer tells it again.

use std::time::Duration;

use crate::event::{Dimension, Hint, Hints, Period};

/// How much of a believed limit is used, so that rounding and delays on the way refuse nothing. Each refusal at that
/// pace takes as much again off, down to the least: a limit may be enforced by the second, or in whole requests of a
/// window of ten.
const MARGIN: f64 = 0.997;
const STEP: f64 = 0.003;
const LEAST_MARGIN: f64 = 0.97;
/// No window of a minute is full again later than this, a minute and what clocks and rounding may add.
const LONGEST_PACE: Duration = Duration::from_secs(90);
/// An inferred period below this is no day. What is inferred is exact for buckets alone: a fixed window shows all
/// lengths from very long, when it has just opened, to nothing.
const NO_DAY: f64 = 43_200.0;
/// `reset` is often rounded to whole seconds.
const ROUNDING: f64 = 1.0;
/// A refusal with more than this share left contradicts the hint, unless the pace is as near to it as this.
const CONTRADICTION: f64 = 0.05;
/// A pace that near counts as kept for so long after it was left, since refusals come back later.
const PACE_KEPT: Duration = Duration::from_secs(2);
/// For how long a provider that contradicted itself is not believed.
const DISBELIEF: Duration = Duration::from_mins(10);
/// Below this share left a limit is used up; others that use less than this share of it are noise.
const USED_UP: f64 = 0.03;
/// One step of making room for others on the same limit, at most one each [`EASING_PERIOD`].
const EASING: f64 = 0.9;
/// What is taken back of it in each period in which something is left.
const EASING_RETURNS: f64 = 0.01;
/// Room is made down to this share of the limit.
const LEAST_SHARE: f64 = 0.25;
const EASING_PERIOD: Duration = Duration::from_secs(2);
/// A window that never took longer than this to be full again is shorter than the minute.
const SHORT_RESET: Duration = Duration::from_secs(15);
/// As many readings in a row must show a period below [`SHORT_PERIOD`] seconds.
const SHORT_READINGS: u32 = 8;
const SHORT_PERIOD: f64 = 20.0;
/// A period below a minute is tried at so many times the pace of the minute, and proven once so many times what that
/// allows was admitted in a minute.
const TRIAL: f64 = 1.2;
const PROOF: f64 = 1.05;
/// A reset that differs from that of a bucket by more seconds than it may be rounded by, and by this share, is one of a
/// window.
const UNEVEN: f64 = 0.1;

const MINUTE: Duration = Duration::from_mins(1);

/// What this client uses of a limit, together with the jobs that share their figures with it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct OwnUse {
    /// Units per second at which requests go out now.
    pub(crate) per_second: f64,
    /// Units admitted in the last 60 s.
    pub(crate) last_minute: f64,
}

/// A limit that is believed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Belief {
    /// Units per second that may be used, margin and room for others taken off; to be divided by the number of jobs.
    pub(crate) per_second: f64,
    /// The windows in which it seems to be counted, if it is no bucket.
    pub(crate) windows: Option<Windows>,
}

/// Windows in which a limit seems to be counted: as long as it ever took until all of it was there again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Windows {
    pub(crate) length: Duration,
    /// Units that one holds, room for others taken off; to be divided by the number of jobs.
    pub(crate) holds: f64,
}

/// What was said about one limit so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hinted {
    claim: Option<Claim>,
    disbelieved_until: Duration,
}

/// The newest thing said.
#[derive(Clone, Debug)]
struct Claim {
    /// When the request went out whose answer said it. Answers overtake one another.
    sent_at: Duration,
    /// Units in a period, at least 1.
    limit: f64,
    meaning: Meaning,
    /// When it was first a pace, or last rose.
    since: Duration,
    resets: Resets,
    /// When the pace was last near to what is claimed.
    paced_at: Option<Duration>,
    /// The share of the limit that is used at most, because of refusals at that pace.
    margin: f64,
    /// Refusals before belong to a round that was answered already.
    round_until: Duration,
    /// When the newest request went out that was refused at that pace, while none that went out later was admitted.
    closed_at: Option<Duration>,
    /// The share of the limit that is used at most, to make room for others.
    share: f64,
    shared_at: Duration,
}

/// How long it took until all of the limit was there again, each time that this was said.
#[derive(Clone, Copy, Debug, Default)]
struct Resets {
    longest: Duration,
    /// Not all of them were what a bucket takes to refill.
    are_uneven: bool,
}

/// What the limit counts in.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Meaning {
    /// Not told yet.
    Unknown,
    /// This period, named or proven.
    Per(Duration),
    /// No day. Taken for a minute, which is the rule even where it is enforced by the second; while it might be a
    /// shorter period that the provider does not name, evidence is gathered.
    TakenForMinute(Evidence),
    /// On trial as this shorter period, a little above the pace of a minute: a refusal proves that it was a minute.
    OnTrial(Duration),
    /// Longer than a minute: tells nothing about the pace.
    Budget,
}

/// How the resets looked since the limit was taken for one of a minute.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Evidence {
    began: Duration,
    longest_reset: Duration,
    short_readings: u32,
}

impl Hinted {
    /// A request that went out then was not refused for this limit.
    pub(crate) fn admitted(&mut self, sent_at: Duration) {
        if let Some(claim) = &mut self.claim {
            claim.closed_at = claim.closed_at.filter(|at| sent_at <= *at);
        }
    }

    /// An answer said this. `sent_at` is when its request went out.
    pub(crate) fn observe(&mut self, now: Duration, sent_at: Duration, hint: Hint, own: OwnUse) {
        let Some(limit) = hint.limit.filter(|limit| *limit > 0) else { return };
        let sent_at = sent_at.min(now);
        let claim = match self.claim.take() {
            Some(claim) if sent_at < claim.sent_at => claim,
            Some(claim) => claim.renew(now, sent_at, limit, hint).pace(now, own).make_room(now, hint, own),
            None => Claim::new(now, sent_at, limit, hint),
        };
        self.claim = Some(claim);
    }

    /// A request that counts against this limit was refused, and the refusal said this.
    pub(crate) fn refused(&mut self, now: Duration, sent_at: Duration, hint: Hint, own: OwnUse) {
        self.observe(now, sent_at, hint, own);
        // What went out before anything was said, as the first requests of a job do, says nothing against it.
        let Some(claim) = self.claim.as_mut().filter(|claim| sent_at >= claim.since) else { return };
        if matches!(claim.meaning, Meaning::OnTrial(_)) {
            claim.meaning = Meaning::Per(MINUTE);
            claim.round_until = now.saturating_add(SHORT_RESET);
            return;
        }
        let contradicts = left(hint).is_some_and(|left| left > CONTRADICTION);
        let claimed = claim.per_second().filter(|_| contradicts);
        let Some(claimed) = claimed else { return };
        if claim.closed_at.is_some() {
            // Refused at that pace, and everything since: it is one refusal, however long it lasts.
            claim.closed_at = claim.closed_at.max(Some(sent_at));
        } else if claim.paced_at.is_some_and(|at| sent_at <= at.saturating_add(PACE_KEPT)) {
            claim.narrow(now);
            claim.closed_at = Some(sent_at);
            if matches!(claim.meaning, Meaning::TakenForMinute(_)) {
                // In a shorter period that limit would be more than this pace.
                claim.meaning = Meaning::Per(MINUTE);
            }
        } else if own.per_second <= claimed {
            self.disbelieved_until = now.saturating_add(DISBELIEF);
        }
    }

    /// The limit, if there is one to believe.
    pub(crate) fn belief(&self, now: Duration) -> Option<Belief> {
        let claim = self.claim.as_ref().filter(|_| now >= self.disbelieved_until)?;
        let per_second = claim.per_second()? * claim.share.min(claim.margin);
        Some(Belief { per_second, windows: claim.windows() })
    }

    /// When what is believed changes by itself.
    pub(crate) fn changes_at(&self, now: Duration) -> Option<Duration> {
        (now < self.disbelieved_until).then_some(self.disbelieved_until)
    }
}

impl Claim {
    fn new(now: Duration, sent_at: Duration, limit: u64, hint: Hint) -> Self {
        let unknown = Self {
            sent_at,
            limit: units(limit),
            meaning: Meaning::Unknown,
            since: now,
            resets: Resets::default(),
            paced_at: None,
            margin: MARGIN,
            round_until: now,
            closed_at: None,
            share: 1.0,
            shared_at: now,
        };
        unknown.renew(now, sent_at, limit, hint)
    }

    /// What is claimed once this was said, too. A period that was named for one limit says nothing about another,
    /// and is given up only for one that is a pace as well: a refusal may name the limit of a minute while the headers
    /// of successes describe the day.
    fn renew(mut self, now: Duration, sent_at: Duration, limit: u64, hint: Hint) -> Self {
        let before = self.per_second();
        self.sent_at = sent_at;
        let other = (units(limit) - self.limit).abs() >= 0.5;
        let meaning = match self.meaning {
            Meaning::Per(_) | Meaning::Budget if other => Meaning::Unknown.after(now, hint),
            known => known.after(now, hint),
        };
        if matches!(self.meaning, Meaning::Per(_)) && matches!(meaning, Meaning::Unknown | Meaning::Budget) {
            return self;
        }
        self.limit = units(limit);
        self.meaning = meaning;
        self.resets = self.period().map_or(self.resets, |period| self.resets.and(hint, period));
        let risen = match (before, self.per_second()) {
            (Some(before), Some(after)) => after > before * (1.0 + CONTRADICTION),
            (None, Some(_)) => true,
            (_, None) => false,
        };
        if risen {
            self.since = now;
        }
        self
    }

    /// The period that the limit is one of, as far as is known.
    fn period(&self) -> Option<Duration> {
        match self.meaning {
            Meaning::Per(period) => Some(period),
            Meaning::TakenForMinute(_) | Meaning::OnTrial(_) => Some(MINUTE),
            Meaning::Unknown | Meaning::Budget => None,
        }
    }

    /// The pace that the claim amounts to.
    fn per_second(&self) -> Option<f64> {
        let pace = self.limit / self.period()?.as_secs_f64();
        Some(if matches!(self.meaning, Meaning::OnTrial(_)) { TRIAL * pace } else { pace })
    }

    /// On trial it is seen whether more than the windows hold is admitted.
    fn windows(&self) -> Option<Windows> {
        let period = self.period().filter(|_| !matches!(self.meaning, Meaning::OnTrial(_)))?;
        let length = self.resets.longest.min(period).as_secs_f64().ceil();
        let holds = self.limit * self.share * length / period.as_secs_f64();
        self.resets.are_uneven.then_some(Windows { length: Duration::from_secs_f64(length), holds })
    }

    /// Remembers when the pace was near to what is claimed: refusals at that pace do not contradict the claim.
    fn pace(mut self, now: Duration, own: OwnUse) -> Self {
        if let Meaning::OnTrial(period) = self.meaning
            && own.last_minute > PROOF * self.limit
        {
            self.meaning = Meaning::Per(period);
            self.since = now;
        }
        let near = |claimed: f64| (own.per_second - claimed).abs() <= claimed * CONTRADICTION;
        let near = self.per_second().is_some_and(near);
        self.paced_at = if near { Some(now) } else { self.paced_at };
        self
    }

    /// Refused at the pace of the claim: somewhat less will do, once in a round of refusals.
    fn narrow(&mut self, now: Duration) {
        if now >= self.round_until {
            self.margin = (self.margin - STEP).max(LEAST_MARGIN);
            self.round_until = now.saturating_add(PACE_KEPT);
        }
    }

    /// Where nothing is left and others use the limit too, the one that uses more of it makes room.
    fn make_room(mut self, now: Duration, hint: Hint, own: OwnUse) -> Self {
        let by_minute = matches!(self.meaning, Meaning::Per(MINUTE) | Meaning::TakenForMinute(_));
        let due = now >= self.shared_at.saturating_add(EASING_PERIOD);
        let Some(left) = left(hint).filter(|_| by_minute && due) else { return self };
        self.shared_at = now;
        let own = own.last_minute / self.limit;
        let others = 1.0 - left - own;
        if left >= USED_UP {
            self.share = (self.share + EASING_RETURNS).min(1.0);
        } else if others >= USED_UP && own > others * (1.0 + CONTRADICTION) {
            self.share = (self.share.min(own) * EASING).max(LEAST_SHARE);
        }
        self
    }
}

impl Resets {
    /// These and another one, of a limit of this period.
    fn and(self, hint: Hint, period: Duration) -> Self {
        let Some((reset, used)) = hint.reset.zip(used_share(hint)) else { return self };
        let of_a_bucket = used * period.as_secs_f64();
        let differs = (reset.as_secs_f64() - of_a_bucket).abs() > ROUNDING + UNEVEN * of_a_bucket;
        Self { longest: self.longest.max(reset), are_uneven: self.are_uneven || differs }
    }
}

impl Meaning {
    /// What the limit means once this was said, too.
    fn after(self, now: Duration, hint: Hint) -> Self {
        match hint.period {
            Some(Period::Second) => return Self::Per(Duration::from_secs(1)),
            Some(Period::Minute) => return Self::Per(MINUTE),
            Some(Period::Hour | Period::Day) => return Self::Budget,
            None => {}
        }
        let Some(reset) = hint.reset else { return self };
        match self {
            Self::Per(_) => self,
            _ if reset > LONGEST_PACE => Self::Budget,
            Self::Unknown if is_no_day(hint) => Self::TakenForMinute(Evidence::new(now)),
            Self::TakenForMinute(evidence) => evidence.with(now, reset, hint),
            known => known,
        }
    }
}

impl Evidence {
    fn new(now: Duration) -> Self {
        Self { began: now, longest_reset: Duration::ZERO, short_readings: 0 }
    }

    /// Tries the shorter period once a whole minute spoke for it, at the pace of a limit per minute.
    fn with(mut self, now: Duration, reset: Duration, hint: Hint) -> Meaning {
        self.longest_reset = self.longest_reset.max(reset);
        self.short_readings = match window(hint) {
            Some(period) if period < SHORT_PERIOD => self.short_readings.saturating_add(1),
            Some(_) => 0,
            None => self.short_readings,
        };
        let minute_over = now >= self.began.saturating_add(MINUTE);
        if minute_over && self.short_readings >= SHORT_READINGS && self.longest_reset <= SHORT_RESET {
            let whole_seconds = self.longest_reset.as_secs_f64().ceil().max(1.0);
            return Meaning::OnTrial(Duration::from_secs_f64(whole_seconds));
        }
        Meaning::TakenForMinute(self)
    }
}

/// The dimension that a refusal without a name blames: the only one of which nothing is left.
pub(crate) fn exhausted(hints: Hints) -> Option<Dimension> {
    let all = [Dimension::Requests, Dimension::Tokens, Dimension::InputTokens, Dimension::OutputTokens];
    let mut used_up =
        all.into_iter().filter(|dimension| left(hints.of(*dimension)).is_some_and(|left| left < USED_UP));
    used_up.next().filter(|_| used_up.next().is_none())
}

/// The period in seconds that the hint implies, if the limit refills evenly: `limit × reset / used`.
///
/// A reset of zero, which is often a rounded one, implies nothing.
fn window(hint: Hint) -> Option<f64> {
    let reset = hint.reset.filter(|reset| !reset.is_zero())?;
    Some(reset.as_secs_f64() / used_share(hint)?)
}

fn is_no_day(hint: Hint) -> bool {
    let latest = hint.reset.map(|reset| reset.as_secs_f64() + ROUNDING);
    latest.zip(used_share(hint)).is_some_and(|(latest, used)| latest / used < NO_DAY)
}

/// The share of the limit that is used, if it says so and anything is.
fn used_share(hint: Hint) -> Option<f64> {
    left(hint).map(|left| 1.0 - left).filter(|used| *used > 0.0)
}

/// The share of the limit that is left, from 0 to 1.
fn left(hint: Hint) -> Option<f64> {
    let limit = hint.limit.filter(|limit| *limit > 0)?;
    Some((units(hint.remaining?) / units(limit)).min(1.0))
}

#[expect(clippy::cast_precision_loss, reason = "no limit needs more than 52 bits of precision")]
fn units(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALONE: OwnUse = OwnUse { per_second: 1.0, last_minute: 0.0 };

    fn hint(limit: u64, remaining: u64, reset: f64) -> Hint {
        let reset = Some(Duration::from_secs_f64(reset));
        Hint { limit: Some(limit), remaining: Some(remaining), reset, period: None }
    }

    fn named(limit: u64, period: Period) -> Hint {
        Hint { limit: Some(limit), period: Some(period), ..Hint::default() }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// What is believed per minute after these were said, one each second from second 0.
    fn per_minute(said: impl IntoIterator<Item = Hint>) -> Option<f64> {
        let (hinted, newest) = after(said);
        believed(&hinted, newest)
    }

    fn after(said: impl IntoIterator<Item = Hint>) -> (Hinted, u64) {
        let mut hinted = Hinted::default();
        let mut newest = 0;
        for (second, hint) in (0..).zip(said) {
            hinted.observe(seconds(second), seconds(second), hint, ALONE);
            newest = second;
        }
        (hinted, newest)
    }

    fn believed(hinted: &Hinted, second: u64) -> Option<f64> {
        hinted.belief(seconds(second)).map(|belief| (belief.per_second / MARGIN * 60.0 * 1e6).round() / 1e6)
    }

    #[test]
    fn the_period_is_inferred_from_what_providers_really_sent() {
        let period = |limit, remaining, reset| window(hint(limit, remaining, reset)).unwrap();
        // OpenAI's request limit; its tokens per day where 300,000 per minute bound; Groq's requests per day.
        assert!((period(500, 499, 0.120) - 60.0).abs() < 0.5);
        assert!((period(1_500_000, 1_495_621, 252.172) - 86_400.0).abs() < 30.0);
        assert!((period(14_400, 14_370, 179.56) - 86_400.0).abs() < 300.0);
        assert_eq!(per_minute([hint(500, 499, 0.120)]), Some(500.0));
        assert_eq!(per_minute([hint(1_500_000, 1_495_621, 252.172)]), None);
        assert_eq!(per_minute([hint(14_400, 14_370, 179.56)]), None);
    }

    #[test]
    fn a_budget_of_a_day_is_not_believed_from_its_first_request_on() {
        let day = (1..40_u32).map(|used| hint(14_400, 14_400 - u64::from(used), f64::from(used) * 6.0));
        for said in 1..40 {
            assert_eq!(per_minute(day.clone().take(said)), None, "after {said} requests");
        }
        // A fixed day that is nearly over looks like a minute for a while; it was recognised before.
        let evening = [hint(1_000, 500, 100.0), hint(1_000, 400, 60.0), hint(1_000, 300, 1.0)];
        assert_eq!(per_minute(evening), None);
    }

    #[test]
    fn a_fixed_minute_is_believed_as_soon_as_it_cannot_be_a_day_and_then_for_good() {
        assert_eq!(per_minute([hint(30_000, 29_999, 59.0)]), None);
        let filling = [hint(30_000, 29_999, 59.0), hint(30_000, 29_900, 50.0)];
        assert_eq!(per_minute(filling), Some(30_000.0));
        let rolled = filling.into_iter().chain([hint(30_000, 29_999, 60.0)]);
        assert_eq!(per_minute(rolled), Some(30_000.0));
        let raised = filling.into_iter().chain([hint(90_000, 89_999, 60.0)]);
        assert_eq!(per_minute(raised), Some(90_000.0));
    }

    #[test]
    fn a_named_period_needs_no_proof() {
        assert_eq!(per_minute([named(250_000, Period::Minute)]), Some(250_000.0));
        assert_eq!(per_minute([named(10, Period::Second)]), Some(600.0));
        assert_eq!(per_minute([named(10, Period::Hour)]), None);
        assert_eq!(per_minute([named(10, Period::Day)]), None);
        // A refusal named the minute's limit, the headers of the next answers describe the day.
        assert_eq!(per_minute([named(500, Period::Minute), hint(14_400, 14_370, 179.56)]), Some(500.0));
        assert_eq!(per_minute([named(500, Period::Minute), hint(900, 899, 0.06)]), Some(900.0));
    }

    #[test]
    fn without_a_proof_nothing_is_believed() {
        assert_eq!(per_minute([Hint::default()]), None);
        assert_eq!(per_minute([hint(0, 0, 0.0)]), None);
        assert_eq!(per_minute([hint(500, 500, 0.0)]), None);
        let without_reset = Hint { limit: Some(500), remaining: Some(400), ..Hint::default() };
        assert_eq!(per_minute([without_reset]), None);
    }

    #[test]
    fn only_the_newest_request_counts_whenever_its_answer_comes() {
        let mut hinted = Hinted::default();
        hinted.observe(seconds(20), seconds(10), hint(900, 899, 0.06), ALONE);
        hinted.observe(seconds(30), seconds(5), hint(500, 499, 0.12), ALONE);
        assert_eq!(believed(&hinted, 30), Some(900.0));
        // Sent later than now, says the caller: no more than now.
        hinted.observe(seconds(31), seconds(9_000), hint(700, 699, 0.08), ALONE);
        hinted.observe(seconds(32), seconds(32), hint(600, 599, 0.1), ALONE);
        assert_eq!(believed(&hinted, 32), Some(600.0));
    }

    #[test]
    fn who_refuses_with_something_left_is_not_believed_for_ten_minutes() {
        let (mut hinted, _) = after([hint(500, 499, 0.120)]);
        hinted.refused(seconds(9), seconds(8), hint(500, 10, 58.8), ALONE);
        assert_eq!(believed(&hinted, 9), Some(500.0));
        hinted.refused(seconds(10), seconds(9), hint(500, 300, 24.0), ALONE);
        assert_eq!((believed(&hinted, 609), hinted.changes_at(seconds(609))), (None, Some(seconds(610))));
        assert_eq!((believed(&hinted, 610), hinted.changes_at(seconds(610))), (Some(500.0), None));
    }

    #[test]
    fn a_refusal_at_the_pace_of_the_claim_takes_a_little_off_and_contradicts_nothing() {
        let (mut hinted, _) = after([hint(600, 599, 0.1)]);
        let at_pace = OwnUse { per_second: 9.9, last_minute: 590.0 };
        hinted.observe(seconds(9), seconds(8), hint(600, 500, 10.0), at_pace);
        // The first refusal of the round has slowed it down before the second comes back.
        for own in [at_pace, OwnUse { per_second: 8.8, last_minute: 590.0 }] {
            hinted.refused(seconds(10), seconds(9), hint(600, 500, 10.0), own);
        }
        let per_minute = hinted.belief(seconds(10)).unwrap().per_second * 60.0;
        assert!((per_minute - 600.0 * (MARGIN - STEP)).abs() < 1e-6, "{per_minute}");
        // Above the claim it is refused with reason, clearly below it is not.
        hinted.refused(
            seconds(60),
            seconds(59),
            hint(600, 500, 10.0),
            OwnUse { per_second: 30.0, ..at_pace },
        );
        assert!(hinted.belief(seconds(60)).is_some());
        hinted.admitted(seconds(70));
        hinted.refused(seconds(90), seconds(89), hint(600, 500, 10.0), OwnUse { per_second: 5.0, ..at_pace });
        assert!(hinted.belief(seconds(90)).is_none());
    }

    #[test]
    fn a_refusal_that_goes_on_is_one_refusal() {
        // Ten requests in ten seconds, which the provider calls sixty a minute: nothing is admitted until they are over.
        let full = hint(60, 50, 6.0);
        let mut hinted = after([hint(60, 59, 1.0)]).0;
        let at_pace = OwnUse { per_second: 0.997, last_minute: 10.0 };
        hinted.observe(seconds(3), seconds(3), full, at_pace);
        hinted.refused(seconds(4), seconds(4), full, at_pace);
        let asking = OwnUse { per_second: 0.88, last_minute: 10.0 };
        (7..10).for_each(|at| hinted.refused(seconds(at), seconds(at), full, asking));
        let per_minute = hinted.belief(seconds(10)).unwrap().per_second * 60.0;
        assert!((per_minute - 60.0 * (MARGIN - STEP)).abs() < 1e-6, "{per_minute}");
        // Admitted before it was full, and answered only now, says nothing of an end.
        hinted.admitted(seconds(3));
        hinted.refused(seconds(11), seconds(11), full, asking);
        assert!(hinted.belief(seconds(11)).is_some());
        hinted.admitted(seconds(12));
        hinted.refused(seconds(14), seconds(14), full, asking);
        assert!(hinted.belief(seconds(14)).is_none());
    }

    #[test]
    fn a_refusal_of_what_went_out_before_anything_was_said_contradicts_nothing() {
        // The first answer is a refusal, when nothing is known of the own pace yet; the others come in at the pace of the claim.
        let mut hinted = Hinted::default();
        let bucket_of_a_second = hint(600, 590, 1.0);
        hinted.refused(seconds(2), seconds(1), bucket_of_a_second, OwnUse::default());
        let at_pace = OwnUse { per_second: 9.97, last_minute: 60.0 };
        hinted.observe(seconds(3), seconds(3), bucket_of_a_second, at_pace);
        hinted.refused(seconds(4), seconds(1), bucket_of_a_second, at_pace);
        assert_eq!(believed(&hinted, 4), Some(600.0));
    }

    #[test]
    fn a_refusal_above_the_pace_of_the_claim_takes_nothing_off() {
        let (mut hinted, _) = after([hint(600, 599, 0.1)]);
        let above = OwnUse { per_second: 30.0, last_minute: 590.0 };
        hinted.observe(seconds(9), seconds(8), hint(600, 500, 10.0), above);
        hinted.refused(seconds(10), seconds(9), hint(600, 500, 10.0), above);
        assert_eq!(believed(&hinted, 10), Some(600.0));
    }

    #[test]
    fn a_raised_limit_opens_the_way_again_and_a_jittering_one_does_not() {
        let (mut hinted, _) = after([hint(500, 499, 0.12), hint(510, 509, 0.12), hint(200, 199, 0.3)]);
        assert_eq!(hinted.claim.as_ref().unwrap().since, seconds(0));
        hinted.observe(seconds(9), seconds(9), hint(600, 599, 0.1), ALONE);
        assert_eq!(hinted.claim.as_ref().unwrap().since, seconds(9));
    }

    #[test]
    fn a_limit_by_the_second_without_a_name_is_found_after_a_minute() {
        // Ten per second at most, which the provider calls a limit of ten.
        let by_the_second = hint(10, 9, 1.0);
        let (on_trial, newest) = after((0..=60).map(|_| by_the_second));
        assert_eq!(believed(&on_trial, newest), Some(12.0));
        // More passes than a minute would allow.
        let mut proven = on_trial.clone();
        let own = OwnUse { per_second: 0.2, last_minute: 11.0 };
        proven.observe(seconds(90), seconds(90), by_the_second, own);
        assert_eq!(believed(&proven, 90), Some(600.0));
        assert_eq!(proven.claim.as_ref().unwrap().since, seconds(90));
        // It was a limit by the minute after all, enforced by the second: that is tried once.
        let mut refused = on_trial;
        refused.refused(seconds(62), seconds(62), hint(10, 0, 1.0), ALONE);
        (63..200).for_each(|at| refused.observe(seconds(at), seconds(at), by_the_second, ALONE));
        assert_eq!(believed(&refused, 200), Some(10.0));
    }

    #[test]
    fn a_limit_that_refused_at_its_pace_is_not_tried_as_one_of_a_shorter_period() {
        let by_the_second = hint(10, 9, 1.0);
        let at_pace = OwnUse { per_second: 10.0 / 60.0, last_minute: 10.0 };
        let (mut hinted, _) = after([by_the_second]);
        hinted.observe(seconds(9), seconds(9), by_the_second, at_pace);
        hinted.refused(seconds(10), seconds(10), by_the_second, at_pace);
        (11..200).for_each(|at| hinted.observe(seconds(at), seconds(at), by_the_second, ALONE));
        let per_minute = hinted.belief(seconds(200)).unwrap().per_second * 60.0;
        assert!((per_minute - 10.0 * (MARGIN - STEP)).abs() < 1e-6, "{per_minute}");
    }

    #[test]
    fn windows_show_in_resets_that_no_bucket_would_have() {
        let windows = |said: Vec<Hint>| {
            let (hinted, newest) = after(said);
            hinted.belief(seconds(newest)).unwrap().windows
        };
        // Exact, rounded up, and a bucket that was half empty.
        assert_eq!(windows(vec![hint(500, 499, 0.12), hint(500, 498, 1.0), hint(500, 250, 30.0)]), None);
        let ten_seconds = windows(vec![hint(600, 500, 0.4), hint(600, 599, 9.7), hint(600, 590, 9.0)]);
        assert_eq!(ten_seconds, Some(Windows { length: seconds(10), holds: 100.0 }));
        let sliding = windows(vec![hint(600, 500, 59.9), hint(600, 100, 59.9)]);
        assert_eq!(sliding, Some(Windows { length: seconds(60), holds: 600.0 }));
    }

    #[test]
    fn a_limit_by_the_minute_is_never_taken_for_a_shorter_one() {
        // An even bucket, exact and with a reset rounded up or down; a fixed window of a minute.
        assert_eq!(per_minute((0..200).map(|_| hint(500, 498, 0.24))), Some(500.0));
        assert_eq!(per_minute((0..200).map(|_| hint(500, 498, 1.0))), Some(500.0));
        assert_eq!(per_minute((0..200).map(|_| hint(500, 498, 0.0))), Some(500.0));
        let fixed = |second: u32| hint(600, 599 - u64::from(second % 60) * 10, f64::from(60 - second % 60));
        assert_eq!(per_minute((0..200).map(fixed)), Some(600.0));
    }

    /// Reports each second that nothing is left, from second 1 on.
    fn with_nothing_left(own_minute: f64, until: u64) -> Option<f64> {
        let (mut hinted, _) = after([hint(1_000, 999, 0.06)]);
        let own = OwnUse { per_second: own_minute / 60.0, last_minute: own_minute };
        for second in 1..=until {
            hinted.observe(seconds(second), seconds(second), hint(1_000, 0, 60.0), own);
        }
        hinted.belief(seconds(until)).map(|belief| (belief.per_second * 60.0).round())
    }

    #[test]
    fn who_uses_more_than_the_others_makes_room() {
        assert_eq!(with_nothing_left(700.0, 2), Some(630.0));
        assert_eq!(with_nothing_left(700.0, 4), Some(567.0));
        assert_eq!(with_nothing_left(700.0, 400), Some(250.0));
        // Alone, or the smaller one, it keeps its part.
        assert_eq!(with_nothing_left(980.0, 100), Some(997.0));
        assert_eq!(with_nothing_left(500.0, 100), Some(997.0));
    }

    #[test]
    fn room_that_nobody_takes_is_taken_back() {
        let (mut hinted, _) = after([hint(1_000, 999, 0.06)]);
        let own = OwnUse { per_second: 10.0, last_minute: 700.0 };
        hinted.observe(seconds(4), seconds(4), hint(1_000, 0, 60.0), own);
        let eased = hinted.belief(seconds(4)).unwrap().per_second;
        (5..100).for_each(|at| hinted.observe(seconds(at), seconds(at), hint(1_000, 500, 30.0), own));
        assert!(eased < 10.6);
        assert_eq!(believed(&hinted, 100), Some(1_000.0));
    }

    #[test]
    fn an_unnamed_refusal_blames_the_one_limit_of_which_nothing_is_left() {
        let both =
            Hints { requests: hint(500, 300, 24.0), tokens: hint(30_000, 20, 60.0), ..Hints::default() };
        assert_eq!(exhausted(both), Some(Dimension::Tokens));
        assert_eq!(exhausted(Hints { requests: hint(500, 0, 60.0), ..both }), None);
        assert_eq!(exhausted(Hints::default()), None);
    }

    fn any_hint() -> impl Strategy<Value = Hint> {
        let number = || prop::option::of(prop_oneof![Just(0), Just(u64::MAX), 1_u64..1_000, any::<u64>()]);
        let reset = prop_oneof![Just(Duration::ZERO), Just(Duration::MAX), (0_u64..200).prop_map(seconds)];
        let period = prop::sample::select(vec![Period::Second, Period::Minute, Period::Hour, Period::Day]);
        (number(), number(), prop::option::of(reset), prop::option::of(period))
            .prop_map(|(limit, remaining, reset, period)| Hint { limit, remaining, reset, period })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_is_said_what_is_believed_is_a_pace(
            said in prop::collection::vec(
                (any::<u32>(), any::<u32>(), any_hint(), any::<f64>(), any::<f64>(), any::<bool>()), 1..200),
        ) {
            let mut hinted = Hinted::default();
            let mut newest = Duration::ZERO;
            for (now, sent_at, hint, per_second, last_minute, refused) in said {
                let (now, sent_at) = (Duration::from_millis(now.into()), Duration::from_millis(sent_at.into()));
                newest = newest.max(now);
                let own = OwnUse { per_second, last_minute };
                if refused {
                    hinted.refused(newest, sent_at, hint, own);
                } else {
                    hinted.admitted(sent_at);
                    hinted.observe(newest, sent_at, hint, own);
                }
                if let Some(belief) = hinted.belief(newest) {
                    prop_assert!(belief.per_second > 0.0 && belief.per_second.is_finite(), "{belief:?}");
                }
                prop_assert!(hinted.changes_at(newest).is_none_or(|at| at > newest && at <= newest + DISBELIEF));
            }
        }
    }
}
