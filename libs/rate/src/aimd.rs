//! Mode `aimd`: additive increase, multiplicative decrease of an integer number of requests per minute.
//!
//! The target starts at 10 and grows to ⌊1.5 t⌋ every 30 s (10, 15, 22, 33, 49, 73) until the first refusal. A
//! refusal cuts it to max(1, ⌊0.75 t⌋) and holds it for 60 s, after which it gains 1 every 30 s until the next
//! refusal. Where the user names a token limit, the effective rate is at most that limit divided by the 95th
//! percentile of output tokens. What the rule leaves open is decided so:
//!
//! - refusals during a hold change nothing, so a burst of them is one back-off; the first after it is a new one;
//! - the hold keeps the rate, it does not stop dispatch;
//! - the first gain of 1 comes 30 s after the hold ends;
//! - only refusals for the rate count, neither exhausted quotas nor server errors.

use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::gauges::ratio;
use crate::limits::Limits;
use crate::pacing::{Pace, interval};

/// Requests per minute at the start, unless the user's limit is lower.
const START: u32 = 10;
/// Between two increases.
const PERIOD: Duration = Duration::from_secs(30);
/// How long the rate stays after a cut.
const HOLD: Duration = Duration::from_mins(1);

/// The target, what will change it next, and the lane that keeps requests apart.
#[derive(Clone, Debug)]
pub(crate) struct Aimd {
    target: u32,
    ceiling: u32,
    /// The target before a lower limit was set, as long as no refusal has shown that it is too much.
    unlimited: Option<u32>,
    stage: Stage,
    /// When the stage takes its next step.
    due: Duration,
    tpm: Option<NonZeroU64>,
    p95: Option<u32>,
    pace: Pace,
}

/// What has happened so far, as far as it decides what comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stage {
    /// No refusal yet: half as much again every period.
    Growing,
    /// Just cut: the rate stays.
    Holding,
    /// One more every period.
    Climbing,
}

/// What a later run needs to go on; times are relative to the moment of recording.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AimdRecord {
    target: NonZeroU32,
    stage: Stage,
    due_in: Duration,
    busy: Duration,
}

/// One change of the target, as it goes into the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Half as much again, in requests per minute.
    Grew { from: u32, to: u32 },
    /// A refusal took a quarter away.
    Cut { from: u32, to: u32 },
    /// The hold after a cut is over.
    Released { at: u32 },
    /// One more, or several if nobody looked for several periods.
    Climbed { from: u32, to: u32 },
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Grew { from, to } => {
                write!(formatter, "grew x1.5 from {from} to {to}/min after 30 s without a refusal")
            }
            Self::Cut { from, to } => {
                write!(formatter, "cut x0.75 from {from} to {to}/min after a refusal, to be held for 60 s")
            }
            Self::Released { at } => write!(formatter, "climbing from {at}/min, the hold of 60 s is over"),
            Self::Climbed { from, to } => {
                write!(formatter, "climbed from {from} to {to}/min, 1 per 30 s without a refusal")
            }
        }
    }
}

impl Aimd {
    pub(crate) fn new(limits: Limits, now: Duration) -> Self {
        let ceiling = limits.rpm.map_or(u32::MAX, NonZeroU32::get);
        Self {
            target: START.min(ceiling),
            ceiling,
            unlimited: None,
            stage: Stage::Growing,
            due: now.saturating_add(PERIOD),
            tpm: limits.tpm,
            p95: None,
            pace: Pace::new(now),
        }
    }

    /// Goes on where the record ends, within the limits of today.
    pub(crate) fn restore(record: &AimdRecord, limits: Limits, p95: Option<u32>, now: Duration) -> Self {
        let mut aimd = Self {
            target: record.target.get(),
            stage: record.stage,
            due: now.saturating_add(record.due_in),
            p95,
            pace: Pace::restore(now, record.busy),
            ..Self::new(limits, now)
        };
        aimd.retarget(now, aimd.target.min(aimd.ceiling));
        aimd
    }

    pub(crate) fn record(&self, now: Duration) -> AimdRecord {
        AimdRecord {
            target: NonZeroU32::new(self.unlimited.unwrap_or(self.target)).unwrap_or(NonZeroU32::MIN),
            stage: self.stage,
            due_in: self.due.saturating_sub(now),
            busy: self.pace.record(now),
        }
    }

    /// Other limits hold from now on. A higher one gives back what a lower one took. All steps due by `now` must have been
    /// made.
    pub(crate) fn limit(&mut self, now: Duration, limits: Limits) {
        if self.changes_at().is_none() {
            // The time at the limit earned no step.
            self.due = now.saturating_add(PERIOD);
        }
        let (before, learned) = (self.interval(), self.unlimited.unwrap_or(self.target));
        self.ceiling = limits.rpm.map_or(u32::MAX, NonZeroU32::get);
        self.tpm = limits.tpm;
        self.target = learned.min(self.ceiling);
        self.unlimited = (learned > self.target).then_some(learned);
        self.pace.change(now, before, self.interval());
    }

    /// When the target changes unless a refusal comes first; never at the user's limit, where nothing is left to gain.
    pub(crate) fn changes_at(&self) -> Option<Duration> {
        let at_rest = self.stage != Stage::Holding && self.target >= self.ceiling;
        (!at_rest && self.due < Duration::MAX).then_some(self.due)
    }

    /// Makes the oldest change that is due by `now`, if any; the caller repeats it until there is none.
    pub(crate) fn step(&mut self, now: Duration) -> Option<(Duration, Change)> {
        let due = self.changes_at().filter(|due| *due <= now)?;
        let from = self.target;
        let (at, to, change) = match self.stage {
            Stage::Growing => {
                let to = grown(from).min(self.ceiling);
                (due, to, Change::Grew { from, to })
            }
            Stage::Holding => (due, from, Change::Released { at: from }),
            Stage::Climbing => {
                // Any number of missed gains is one step, so that a long silence costs no more than a short one.
                let missed = now.saturating_sub(due).as_secs() / PERIOD.as_secs();
                let gained = u32::try_from(missed).unwrap_or(u32::MAX).saturating_add(1);
                let to = from.saturating_add(gained).min(self.ceiling);
                let at = due + Duration::from_secs(missed * PERIOD.as_secs());
                (at, to, Change::Climbed { from, to })
            }
        };
        if self.stage == Stage::Holding {
            self.stage = Stage::Climbing;
        }
        self.due = at.saturating_add(PERIOD);
        self.retarget(at, to);
        Some((at, change))
    }

    /// A refusal for the rate: a cut, unless one is being held. All steps due by `now` must have been made.
    pub(crate) fn refused(&mut self, now: Duration) -> Option<Change> {
        if self.stage == Stage::Holding {
            return None;
        }
        let from = self.target;
        let to = cut(from);
        self.unlimited = None;
        self.stage = Stage::Holding;
        self.due = now.saturating_add(HOLD);
        self.retarget(now, to);
        Some(Change::Cut { from, to })
    }

    /// The 95th percentile of output tokens is now this.
    pub(crate) fn measured(&mut self, now: Duration, p95: Option<u32>) {
        let before = self.interval();
        self.p95 = p95;
        self.pace.change(now, before, self.interval());
    }

    pub(crate) fn sent(&mut self, now: Duration) {
        self.pace.take(now, self.interval());
    }

    pub(crate) fn free_at(&self) -> Duration {
        self.pace.free_at()
    }

    pub(crate) fn target(&self) -> u32 {
        self.target
    }

    /// min(target, tokens per minute / p95).
    pub(crate) fn effective_rpm(&self) -> f64 {
        let target = f64::from(self.target);
        self.token_bound().map_or(target, |(tpm, p95)| target.min(ratio(tpm, p95)))
    }

    pub(crate) fn explain(&self) -> String {
        let target = self.target;
        if let Some((tpm, p95)) = self.token_bound()
            && ratio(tpm, p95) < f64::from(target)
        {
            let rate = ratio(tpm, p95);
            return format!(
                "{rate:.1}/min: {tpm} tokens/min at {p95} output tokens per answer (p95), below the target of {target}/min"
            );
        }
        let why = match self.stage {
            Stage::Holding => "cut x0.75 after a refusal, held for 60 s",
            _ if target == self.ceiling => "the request limit that is set",
            Stage::Growing if target <= START => "the start, grows x1.5 every 30 s until the first refusal",
            Stage::Growing => "grew x1.5 after 30 s without a refusal",
            Stage::Climbing => "climbs by 1 every 30 s without a refusal",
        };
        format!("{target}/min: {why}")
    }

    fn retarget(&mut self, now: Duration, target: u32) {
        let before = self.interval();
        self.target = target;
        self.pace.change(now, before, self.interval());
    }

    /// The time between two requests at the effective rate.
    fn interval(&self) -> Duration {
        let by_target = interval(1, self.target.into());
        self.token_bound().map_or(by_target, |(tpm, p95)| by_target.max(interval(p95, tpm)))
    }

    /// Tokens per minute and the tokens one answer takes of them; nothing while either is unknown.
    fn token_bound(&self) -> Option<(u64, u64)> {
        let tpm = self.tpm?.get();
        let p95 = self.p95.filter(|p95| *p95 > 0)?;
        Some((tpm, p95.into()))
    }
}

/// ⌊1.5 t⌋, but more than t: a target of 1, which only a limit of 1 brings about, must not stay for ever once
/// that limit is raised.
fn grown(target: u32) -> u32 {
    target.saturating_add((target / 2).max(1))
}

/// max(1, ⌊0.75 t⌋).
fn cut(target: u32) -> u32 {
    (target - target.div_ceil(4)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn limits(rpm: u32, tpm: u64) -> Limits {
        Limits { rpm: NonZeroU32::new(rpm), tpm: NonZeroU64::new(tpm), max_in_flight: None }
    }

    fn start(limits: Limits) -> Aimd {
        Aimd::new(limits, Duration::ZERO)
    }

    fn target_at(aimd: &mut Aimd, second: u64) -> u32 {
        while aimd.step(seconds(second)).is_some() {}
        aimd.target()
    }

    fn refuse_at(aimd: &mut Aimd, second: u64) -> Option<Change> {
        target_at(aimd, second);
        aimd.refused(seconds(second))
    }

    #[test]
    fn before_any_refusal_the_target_grows_by_half_every_thirty_seconds() {
        let mut aimd = start(Limits::default());
        let targets: Vec<_> = (0..=6).map(|step| target_at(&mut aimd, 30 * step)).collect();
        assert_eq!(targets, [10, 15, 22, 33, 49, 73, 109]);
        assert_eq!(target_at(&mut aimd, 209), 109);
        assert_eq!(target_at(&mut aimd, 210), 163);
    }

    #[test]
    fn a_lower_limit_holds_at_once_and_gives_back_what_it_took_when_it_is_lifted() {
        let mut aimd = start(Limits::default());
        assert_eq!(target_at(&mut aimd, 120), 49);
        aimd.limit(seconds(121), limits(20, 0));
        assert_eq!(target_at(&mut aimd, 3_600), 20, "nothing is learned at a limit");
        aimd.limit(seconds(3_600), limits(30, 0));
        assert_eq!(target_at(&mut aimd, 3_600), 30);
        aimd.limit(seconds(3_700), Limits::default());
        assert_eq!(target_at(&mut aimd, 3_729), 49);
        assert_eq!(target_at(&mut aimd, 3_730), 73);
        aimd.limit(seconds(3_731), limits(20, 0));
        refuse_at(&mut aimd, 3_740);
        aimd.limit(seconds(3_741), Limits::default());
        assert_eq!(
            target_at(&mut aimd, 3_741),
            15,
            "a refusal below the limit says that the rest was too much"
        );
    }

    #[test]
    fn a_refusal_takes_a_quarter_and_leaves_at_least_one() {
        let cuts = [
            (1, 1),
            (2, 1),
            (3, 2),
            (4, 3),
            (10, 7),
            (15, 11),
            (73, 54),
            (109, 81),
            (u32::MAX, 3_221_225_471),
        ];
        for (from, to) in cuts {
            assert_eq!(cut(from), to, "cut of {from}");
        }
        let mut aimd = start(Limits::default());
        assert_eq!(refuse_at(&mut aimd, 150), Some(Change::Cut { from: 73, to: 54 }));
        assert_eq!(aimd.target(), 54);
    }

    #[test]
    fn after_a_cut_the_rate_is_held_for_a_minute_and_then_gains_one_every_thirty_seconds() {
        let mut aimd = start(Limits::default());
        refuse_at(&mut aimd, 151);
        let expected = [(151, 54), (211, 54), (240, 54), (241, 55), (270, 55), (271, 56), (301, 57)];
        for (second, target) in expected {
            assert_eq!(target_at(&mut aimd, second), target, "at {second} s");
        }
    }

    #[test]
    fn a_burst_of_refusals_is_one_back_off() {
        let mut aimd = start(Limits::default());
        assert!(refuse_at(&mut aimd, 150).is_some());
        for second in 150..210 {
            assert_eq!(refuse_at(&mut aimd, second), None, "at {second} s");
        }
        assert_eq!(aimd.target(), 54);
        assert_eq!(aimd.changes_at(), Some(seconds(210)));
    }

    #[test]
    fn the_first_refusal_after_the_hold_is_a_new_back_off() {
        let mut aimd = start(Limits::default());
        refuse_at(&mut aimd, 150);
        assert_eq!(refuse_at(&mut aimd, 210), Some(Change::Cut { from: 54, to: 40 }));
        assert_eq!(target_at(&mut aimd, 299), 40);
        assert_eq!(target_at(&mut aimd, 300), 41);
    }

    #[test]
    fn holding_does_not_stop_dispatch() {
        let mut aimd = start(Limits::default());
        refuse_at(&mut aimd, 150);
        aimd.sent(seconds(151));
        assert!(aimd.free_at() < seconds(153));
    }

    #[test]
    fn the_users_request_limit_bounds_the_target_from_the_start() {
        assert_eq!(start(limits(4, 0)).target(), 4);
        let mut aimd = start(limits(40, 0));
        let targets: Vec<_> = (0..=5).map(|step| target_at(&mut aimd, 30 * step)).collect();
        assert_eq!(targets, [10, 15, 22, 33, 40, 40]);
        assert_eq!(aimd.changes_at(), None);
        assert_eq!(aimd.explain(), "40/min: the request limit that is set");
    }

    #[test]
    fn a_target_of_one_grows_again_when_its_limit_is_raised() {
        let record = start(limits(1, 0)).record(Duration::ZERO);
        let mut aimd = Aimd::restore(&record, Limits::default(), None, Duration::ZERO);
        assert_eq!(target_at(&mut aimd, 30), 2);
        assert_eq!(target_at(&mut aimd, 60), 3);
    }

    #[test]
    fn a_long_silence_is_made_up_for_in_one_step() {
        let mut aimd = start(Limits::default());
        refuse_at(&mut aimd, 0);
        target_at(&mut aimd, 60);
        let change = aimd.step(seconds(60 + 30 * 1_000 + 29));
        assert_eq!(change, Some((seconds(60 + 30 * 1_000), Change::Climbed { from: 7, to: 1_007 })));
        assert_eq!(aimd.changes_at(), Some(seconds(60 + 30 * 1_001)));
        assert_eq!(target_at(&mut aimd, u64::MAX), u32::MAX);
    }

    #[test]
    fn tokens_bound_the_rate_by_the_length_of_nearly_all_answers() {
        let mut aimd = start(limits(0, 6_000));
        assert_eq!(target_at(&mut aimd, 150), 73);
        for (p95, effective) in
            [(None, 73.0), (Some(0), 73.0), (Some(50), 73.0), (Some(600), 10.0), (Some(9_000), 6.0 / 9.0)]
        {
            aimd.measured(seconds(150), p95);
            assert!((aimd.effective_rpm() - effective).abs() < 1e-9, "p95 of {p95:?}");
        }
        assert_eq!(
            aimd.explain(),
            "0.7/min: 6000 tokens/min at 9000 output tokens per answer (p95), below the target of 73/min"
        );
        aimd.sent(seconds(150));
        assert_eq!(aimd.free_at().as_secs(), 150 + 89);
    }

    #[test]
    fn a_new_measurement_holds_for_a_wait_that_has_begun() {
        let mut aimd = start(limits(0, 6_000));
        aimd.sent(Duration::ZERO);
        assert_eq!(aimd.free_at(), seconds(6));
        aimd.measured(seconds(3), Some(1_200));
        assert_eq!(aimd.free_at(), seconds(9));
    }

    #[test]
    fn every_stage_says_why_the_rate_is_what_it_is() {
        let mut aimd = start(Limits::default());
        assert_eq!(aimd.explain(), "10/min: the start, grows x1.5 every 30 s until the first refusal");
        target_at(&mut aimd, 150);
        assert_eq!(aimd.explain(), "73/min: grew x1.5 after 30 s without a refusal");
        refuse_at(&mut aimd, 160);
        assert_eq!(aimd.explain(), "54/min: cut x0.75 after a refusal, held for 60 s");
        target_at(&mut aimd, 250);
        assert_eq!(aimd.explain(), "55/min: climbs by 1 every 30 s without a refusal");
    }
}
