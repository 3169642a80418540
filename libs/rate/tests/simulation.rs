//! The learner against a provider double with a hidden limit, in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use penstock_rate::{Cost, Hints, Learner, Limits, Mode, Profile, RequestId, Verdict, Wait};

const COST: Cost = Cost { input_tokens: 100, output_tokens: 600 };

/// A token bucket that fills evenly and refuses when it is empty.
struct Provider {
    per_second: f64,
    depth: f64,
    level: f64,
    filled_at: Duration,
}

impl Provider {
    /// A limit of `rpm` that forgives what `depth` of it amounts to.
    fn new(rpm: u32, depth: Duration) -> Self {
        let per_second = f64::from(rpm) / 60.0;
        let depth = (per_second * depth.as_secs_f64()).max(1.0);
        Self { per_second, depth, level: depth, filled_at: Duration::ZERO }
    }

    fn admits(&mut self, now: Duration) -> bool {
        let gained = now.saturating_sub(self.filled_at).as_secs_f64() * self.per_second;
        self.level = (self.level + gained).min(self.depth);
        self.filled_at = now;
        let admits = self.level >= 1.0;
        if admits {
            self.level -= 1.0;
        }
        admits
    }
}

/// What became of a run.
#[derive(Default)]
struct Course {
    admitted: Vec<Duration>,
    refused: Vec<Duration>,
    /// The target at each full second.
    targets: Vec<u32>,
}

impl Course {
    fn admitted_between(&self, from: Duration, until: Duration) -> usize {
        self.admitted.iter().filter(|at| (from..until).contains(at)).count()
    }

    fn refused_share(&self) -> f64 {
        let (refused, admitted) = (self.refused.len(), self.admitted.len());
        ratio(refused, refused + admitted)
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of some thousands")]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

/// Sends from an endless backlog for this long. Answers take two seconds, refusals a tenth.
fn run(learner: &mut Learner, provider: &mut Provider, length: Duration) -> Course {
    let mut course = Course::default();
    let mut answers: BinaryHeap<Reverse<(Duration, u64, bool)>> = BinaryHeap::new();
    let mut id = 0;
    let mut now = Duration::ZERO;
    while now < length {
        while let Some(&Reverse((at, answered, admitted))) = answers.peek()
            && at <= now
        {
            answers.pop();
            learner.verdict(at, RequestId(answered), answer(admitted));
        }
        let wait = learner.next(now, COST);
        let target = learner.gauges().rpm_target.unwrap_or_default();
        while course.targets.len() as u64 <= now.as_secs() {
            course.targets.push(target);
        }
        if wait == Wait::Now {
            learner.sent(now, RequestId(id), COST);
            let admitted = provider.admits(now);
            let (log, delay) =
                if admitted { (&mut course.admitted, 2_000) } else { (&mut course.refused, 100) };
            log.push(now);
            answers.push(Reverse((now + Duration::from_millis(delay), id, admitted)));
            id += 1;
            continue;
        }
        let free_at = if let Wait::Until(at) = wait { Some(at) } else { None };
        let answered_at = answers.peek().map(|Reverse((at, ..))| *at);
        let wakes = [free_at, answered_at, learner.changes_at()];
        now = wakes.into_iter().flatten().min().expect("something is always awaited");
    }
    course
}

fn answer(admitted: bool) -> Verdict {
    if admitted {
        Verdict::Succeeded { output_tokens: 300, input_tokens: COST.input_tokens }
    } else {
        Verdict::Refused { dimension: None, retry_after: None, hints: Hints::default() }
    }
}

fn hours(hours: u64) -> Duration {
    Duration::from_hours(hours)
}

/// Whole hours of the run after the first, in which the rate is being found.
fn later_hours() -> impl Iterator<Item = (Duration, Duration)> {
    (1..6).map(|hour| (hours(hour), hours(hour + 1)))
}

#[test]
fn aimd_doubles_its_way_to_a_limit_of_500_within_five_minutes() {
    let mut learner = Learner::new(Mode::Aimd, Profile::Unknown, Limits::default(), Duration::ZERO);
    let course = run(&mut learner, &mut Provider::new(500, Duration::from_secs(1)), hours(1));
    assert_eq!(course.targets[299], 366);
    assert_eq!(course.targets[301], 549);
    let first_refusal = course.refused[0].as_secs();
    assert!((300..330).contains(&first_refusal), "first refused at {first_refusal} s");
    assert_eq!(course.targets[usize::try_from(first_refusal).unwrap() + 2], 411);
}

#[test]
fn aimd_saws_between_three_quarters_and_the_whole_of_a_limit_judged_each_second() {
    let mut learner = Learner::new(Mode::Aimd, Profile::Unknown, Limits::default(), Duration::ZERO);
    let course = run(&mut learner, &mut Provider::new(500, Duration::from_secs(1)), hours(6));
    for (from, until) in later_hours() {
        let used = ratio(course.admitted_between(from, until), 30_000);
        assert!((0.86..0.90).contains(&used), "{used:.3} of the limit used from {from:?} on");
    }
    let settled = &course.targets[3_600..];
    assert!(settled.iter().all(|target| (375..510).contains(target)));
    assert!(course.refused_share() < 0.001, "{:.4} refused", course.refused_share());
}

#[test]
fn aimd_saws_around_a_limit_that_forgives_a_minute() {
    let mut learner = Learner::new(Mode::Aimd, Profile::Unknown, Limits::default(), Duration::ZERO);
    let course = run(&mut learner, &mut Provider::new(500, Duration::from_mins(1)), hours(6));
    for (from, until) in later_hours() {
        let used = ratio(course.admitted_between(from, until), 30_000);
        assert!((0.93..0.98).contains(&used), "{used:.3} of the limit used from {from:?} on");
    }
    let settled = &course.targets[3_600..];
    assert!(settled.iter().all(|target| (400..560).contains(target)));
    assert!(course.refused_share() < 0.005, "{:.4} refused", course.refused_share());
}

#[test]
fn whoever_knows_the_limit_and_sets_it_is_not_refused() {
    let limits = Limits { rpm: NonZeroU32::new(500), ..Limits::default() };
    for (mode, least) in [(Mode::Fixed, 30_000), (Mode::Aimd, 27_500)] {
        let mut learner = Learner::new(mode, Profile::Unknown, limits, Duration::ZERO);
        let course = run(&mut learner, &mut Provider::new(500, Duration::from_secs(1)), hours(1));
        assert_eq!(course.refused, [], "mode {mode}");
        assert!(course.admitted.len() >= least, "mode {mode}: {} admitted", course.admitted.len());
    }
}

#[test]
fn a_token_limit_paces_each_mode_by_its_own_measure() {
    let limits = Limits { tpm: NonZeroU64::new(84_000), ..Limits::default() };
    // Fixed reserves the 700 tokens of each request, aimd counts the 300 that nearly all answers use.
    for (mode, per_minute) in [(Mode::Fixed, 120), (Mode::Aimd, 280)] {
        let mut learner = Learner::new(mode, Profile::Unknown, limits, Duration::ZERO);
        let course = run(&mut learner, &mut Provider::new(10_000, Duration::from_mins(1)), hours(1));
        let settled = course.admitted_between(Duration::from_mins(30), Duration::from_mins(31));
        assert_eq!(settled, per_minute, "mode {mode}");
    }
}
