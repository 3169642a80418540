//! What one verdict, or a burst of the same, may do to a learner in mode `adaptive`.

use std::time::Duration;

use penstock_rate::{
    Cost, Dimension, Hint, Hints, Learner, Limits, Mode, Period, Profile, RequestId, Verdict, Wait,
};

const SMALL: Cost = Cost { input_tokens: 10, output_tokens: 10 };

fn adaptive() -> Learner {
    Learner::new(Mode::Adaptive, Profile::OpenAi, Limits::default(), Duration::ZERO)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// How long it takes from `now` until a small request may go.
fn wait(learner: &mut Learner, now: Duration) -> Duration {
    let mut at = now;
    loop {
        match learner.next(at, SMALL) {
            Wait::Now => return at.saturating_sub(now),
            Wait::Until(later) => at = later,
            Wait::ForVerdict => panic!("it waits for something that does not come"),
        }
    }
}

#[test]
fn a_request_that_fits_no_limit_holds_up_none_of_the_others() {
    const LARGE: Cost = Cost { input_tokens: 10_000, output_tokens: 10 };
    let mut learner = adaptive();
    let limit = Hint { limit: Some(5_000), period: Some(Period::Minute), ..Hint::default() };
    for id in 0..30 {
        let now = seconds(id);
        learner.sent(now, RequestId(id), SMALL);
        let hints = Hints { tokens: limit, ..Hints::default() };
        learner.verdict(now, RequestId(id), Verdict::Admitted { hints });
        let answer = Verdict::Succeeded { output_tokens: 10, input_tokens: 10 };
        learner.verdict(now, RequestId(id), answer);
    }
    learner.sent(seconds(30), RequestId(30), LARGE);
    learner.verdict(seconds(31), RequestId(30), Verdict::Lost);
    let wait = wait(&mut learner, seconds(31));
    assert!(wait < seconds(10), "the next one waits for {wait:?}");
}

#[test]
fn a_refusal_of_a_request_that_is_larger_than_the_limit_says_nothing_about_the_rate() {
    const LARGE: Cost = Cost { input_tokens: 12_500, output_tokens: 10 };
    let mut learner = Learner::new(Mode::Adaptive, Profile::Anthropic, Limits::default(), Duration::ZERO);
    let limit = Hint { limit: Some(9_000), period: Some(Period::Minute), ..Hint::default() };
    let refused = Verdict::Refused {
        dimension: Some(Dimension::InputTokens),
        retry_after: Some(seconds(12)),
        hints: Hints { input_tokens: limit, ..Hints::default() },
    };
    for id in 0..60 {
        let (now, cost) = (seconds(id), if id % 10 == 5 { LARGE } else { SMALL });
        learner.sent(now, RequestId(id), cost);
        let answer = Verdict::Succeeded { output_tokens: 10, input_tokens: 10 };
        learner.verdict(now, RequestId(id), if cost == LARGE { refused } else { answer });
        let wait = wait(&mut learner, now);
        assert!(wait < seconds(1), "at {now:?} the next one waits for {wait:?}");
    }
}

#[test]
fn a_burst_of_requests_to_slow_down_is_heard_as_one() {
    let mut learner = adaptive();
    for id in 0..50 {
        learner.sent(seconds(1), RequestId(id), SMALL);
    }
    let before = learner.gauges().effective_rpm.unwrap();
    for id in 0..50 {
        learner.verdict(seconds(2), RequestId(id), Verdict::SlowDown { retry_after: None });
    }
    let after = learner.gauges().effective_rpm.unwrap();
    assert!((0.4..0.6).contains(&(after / before)), "from {before} to {after} requests a minute");
}

#[test]
fn a_request_that_is_larger_than_the_limit_and_comes_first_holds_up_none_of_the_others() {
    const LARGE: Cost = Cost { input_tokens: 12_500, output_tokens: 1_024 };
    let mut learner = Learner::new(Mode::Adaptive, Profile::Anthropic, Limits::default(), Duration::ZERO);
    let limit = Hint { limit: Some(9_000), period: Some(Period::Minute), ..Hint::default() };
    let refused = Verdict::Refused {
        dimension: Some(Dimension::InputTokens),
        retry_after: None,
        hints: Hints { input_tokens: limit, ..Hints::default() },
    };
    // Who sends it gives it up at last.
    for (second, verdict) in (0..).zip([refused, refused, refused, refused, Verdict::Lost]) {
        learner.sent(seconds(second), RequestId(second), LARGE);
        learner.verdict(seconds(second), RequestId(second), verdict);
        let wait = wait(&mut learner, seconds(second));
        assert!(wait < seconds(1), "after {second} s the next one waits for {wait:?}");
    }
}
