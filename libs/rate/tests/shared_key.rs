//! Learners in mode `adaptive` whose jobs share a key and tell each other what they send.

use std::num::NonZeroU32;
use std::time::Duration;

use penstock_rate::{
    Cost, Dimension, Hint, Hints, Learner, Limits, Mode, Period, Profile, RequestId, Shared, Verdict, Wait,
};

const COST: Cost = Cost { input_tokens: 10, output_tokens: 10 };
const MINUTE: Duration = Duration::from_mins(1);

fn adaptive(now: Duration) -> Learner {
    Learner::new(Mode::Adaptive, Profile::OpenAi, Limits::default(), now)
}

/// Lets a learner meet a limit: ten requests a second for a minute, the last of which is refused.
fn limited() -> Learner {
    let mut learner = adaptive(Duration::ZERO);
    for id in 0..600 {
        let now = Duration::from_millis(100 * id);
        learner.sent(now, RequestId(id), COST);
        learner.verdict(now, RequestId(id), Verdict::Succeeded { output_tokens: 10, input_tokens: 10 });
    }
    learner.sent(MINUTE, RequestId(600), COST);
    let refused = Verdict::Refused { dimension: None, retry_after: None, hints: Hints::default() };
    learner.verdict(MINUTE, RequestId(600), refused);
    learner
}

/// What all of them are told at `now`, and each takes to heart.
fn exchange(now: Duration, learners: &mut [&mut Learner]) {
    let jobs = learners.iter().fold(0, |jobs, _| jobs + 1);
    let jobs = NonZeroU32::new(jobs).expect("somebody is there");
    let sum: f64 = learners.iter().filter_map(|learner| learner.rate_rpm()).sum();
    let mean_rpm = (sum > 0.0).then(|| sum / f64::from(jobs.get()));
    for learner in learners {
        learner.shared(now, Shared { jobs, mean_rpm });
    }
}

fn assert_close(one: f64, other: f64) {
    assert!((one / other - 1.0).abs() < 1e-6, "{one} is not {other}");
}

#[test]
fn a_newcomer_takes_an_equal_part_at_once_and_begins_with_no_claim_of_its_own() {
    let mut elder = limited();
    exchange(MINUTE, &mut [&mut elder]);
    let alone = elder.rate_rpm().unwrap();

    let mut newcomer = adaptive(MINUTE);
    newcomer.sent(MINUTE, RequestId(0), COST);
    assert_eq!(newcomer.rate_rpm(), Some(0.0));
    exchange(MINUTE, &mut [&mut elder, &mut newcomer]);
    for learner in [&elder, &newcomer] {
        assert_close(learner.rate_rpm().unwrap(), alone / 2.0);
    }
}

#[test]
fn who_is_allowed_less_than_its_part_pulls_nobody_down() {
    let mut elder = limited();
    exchange(MINUTE, &mut [&mut elder]);
    let part = elder.rate_rpm().unwrap() / 2.0;
    let allowed = Limits { rpm: NonZeroU32::new(60), ..Limits::default() };
    let mut modest = Learner::new(Mode::Adaptive, Profile::OpenAi, allowed, MINUTE);
    modest.sent(MINUTE, RequestId(0), COST);
    for _ in 0..10 {
        exchange(MINUTE, &mut [&mut elder, &mut modest]);
    }
    assert_close(elder.rate_rpm().unwrap(), part);
    assert_eq!(modest.gauges().effective_rpm, Some(60.0));
}

#[test]
fn what_a_user_allows_is_not_remembered_as_what_the_key_is_allowed() {
    let mut elder = limited();
    exchange(MINUTE, &mut [&mut elder]);
    let allowed = Limits { rpm: NonZeroU32::new(60), ..Limits::default() };
    let mut modest = Learner::new(Mode::Adaptive, Profile::OpenAi, allowed, MINUTE);
    modest.sent(MINUTE, RequestId(0), COST);
    exchange(MINUTE, &mut [&mut elder, &mut modest]);
    assert!(modest.found().is_empty(), "{:?}", modest.found());
    assert!(elder.found().contains_key(&Dimension::Requests));
    // What is stated is more than it is allowed.
    let mut held = Learner::new(Mode::Adaptive, Profile::OpenAi, allowed, Duration::ZERO);
    let limit = Hint { limit: Some(600), period: Some(Period::Minute), ..Hint::default() };
    held.sent(Duration::ZERO, RequestId(0), COST);
    let hints = Hints { requests: limit, ..Hints::default() };
    held.verdict(Duration::ZERO, RequestId(0), Verdict::Admitted { hints });
    assert!(held.found().is_empty(), "{:?}", held.found());
}

#[test]
fn a_newcomer_stops_to_rise_as_steeply_as_at_a_start() {
    let (mut elder, mut newcomer) = (limited(), adaptive(MINUTE));
    exchange(MINUTE, &mut [&mut elder]);
    newcomer.sent(MINUTE, RequestId(0), COST);
    exchange(MINUTE, &mut [&mut elder, &mut newcomer]);
    let part = newcomer.rate_rpm().unwrap();
    let mut now = MINUTE;
    for id in 1..100 {
        while let Wait::Until(at) = newcomer.next(now, COST) {
            now = at;
        }
        newcomer.sent(now, RequestId(id), COST);
    }
    let (passed, rate) = (now.saturating_sub(MINUTE).as_secs_f64(), newcomer.rate_rpm().unwrap());
    assert!(passed > 5.0 && rate < 1.2 * part, "{part} became {rate} in {passed} s");
}

#[test]
fn what_is_remembered_is_the_limit_of_all_jobs_together() {
    let mut jobs = [limited(), limited(), limited(), limited()];
    let alone = jobs[0].found()[&Dimension::Requests];
    exchange(MINUTE, &mut jobs.each_mut().map(|job| job));
    let part = jobs[0].rate_rpm().unwrap();
    assert_close(jobs[0].found()[&Dimension::Requests], 4.0 * part);
    assert!(alone < 2.0 * part, "{alone} was the part of one, {part} is");
}
