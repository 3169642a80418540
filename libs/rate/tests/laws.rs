//! What holds for a learner whatever happens to it, in any order.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use penstock_rate::{
    Cost, Dimension, Hint, Hints, Learner, Limits, Mode, Period, Profile, RequestId, Saturation, Shared,
    Verdict, Wait,
};
use proptest::prelude::*;

/// Something that a caller does; requests are named by small numbers so that they meet.
#[expect(clippy::large_enum_variant, reason = "some hundreds of them at most")]
#[derive(Clone, Debug)]
enum Action {
    Pass(Duration),
    GoBack(Duration),
    Send(u64, Cost),
    Tell(u64, Verdict),
    Share(NonZeroU32, Option<f64>),
    Saturate(Saturation),
    Remember(Dimension, f64),
}

fn mode() -> impl Strategy<Value = Mode> {
    prop::sample::select(Mode::ALL.to_vec())
}

fn profile() -> impl Strategy<Value = Profile> {
    prop::sample::select(Profile::ALL.to_vec())
}

fn limits() -> impl Strategy<Value = Limits> {
    (0_u32..3_000, 0_u64..200_000, 0_u32..20).prop_map(|(rpm, tpm, cap)| Limits {
        // Zero and every third value stand for no limit.
        rpm: NonZeroU32::new(rpm).filter(|rpm| rpm.get() % 3 > 0),
        tpm: NonZeroU64::new(tpm).filter(|tpm| tpm.get() % 3 > 0),
        max_in_flight: NonZeroU32::new(cap).filter(|cap| cap.get() % 3 > 0),
    })
}

fn cost() -> impl Strategy<Value = Cost> {
    (0_u32..5_000, 0_u32..5_000)
        .prop_map(|(input_tokens, output_tokens)| Cost { input_tokens, output_tokens })
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![1 => hints().prop_map(|hints| Verdict::Admitted { hints }), 9 => final_verdict()]
}

fn dimension() -> impl Strategy<Value = Dimension> {
    prop::sample::select(vec![
        Dimension::Requests,
        Dimension::Tokens,
        Dimension::InputTokens,
        Dimension::OutputTokens,
    ])
}

fn final_verdict() -> impl Strategy<Value = Verdict> {
    let dimension = prop::option::of(dimension());
    let wait = || prop::option::of((0_u64..90).prop_map(Duration::from_secs));
    prop_oneof![
        12 => (any::<u16>(), any::<u16>()).prop_map(|(output, input)| Verdict::Succeeded {
            output_tokens: output.into(),
            input_tokens: input.into(),
        }),
        2 => (dimension, wait(), hints()).prop_map(|(dimension, retry_after, hints)| Verdict::Refused {
            dimension,
            retry_after,
            hints,
        }),
        1 => wait().prop_map(|retry_after| Verdict::SlowDown { retry_after }),
        1 => wait().prop_map(|retry_after| Verdict::Overloaded { retry_after }),
        1 => Just(Verdict::Lost),
    ]
}

/// What a provider says of its limits, true or not.
fn hints() -> impl Strategy<Value = Hints> {
    (hint(), hint(), hint(), hint()).prop_map(|(requests, tokens, input_tokens, output_tokens)| Hints {
        requests,
        tokens,
        input_tokens,
        output_tokens,
    })
}

fn hint() -> impl Strategy<Value = Hint> {
    let number = || prop_oneof![Just(0), Just(u64::MAX), 1_u64..1_000, any::<u64>()];
    let reset = prop_oneof![(0_u64..100).prop_map(Duration::from_secs), Just(Duration::MAX)];
    let period = prop::sample::select(vec![Period::Second, Period::Minute, Period::Hour, Period::Day]);
    let said = (
        prop::option::of(number()),
        prop::option::of(number()),
        prop::option::of(reset),
        prop::option::of(period),
    );
    let hint = said.prop_map(|(limit, remaining, reset, period)| Hint { limit, remaining, reset, period });
    prop_oneof![3 => Just(Hint::default()), 1 => hint]
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => (0_u64..20_000).prop_map(|milliseconds| Action::Pass(Duration::from_millis(milliseconds))),
        1 => (0_u64..u64::MAX).prop_map(|nanos| Action::Pass(Duration::from_nanos(nanos))),
        1 => (0_u64..100_000).prop_map(|milliseconds| Action::GoBack(Duration::from_millis(milliseconds))),
        6 => (0_u64..12, cost()).prop_map(|(id, cost)| Action::Send(id, cost)),
        6 => (0_u64..12, verdict()).prop_map(|(id, verdict)| Action::Tell(id, verdict)),
        1 => outside(),
    ]
}

/// What other jobs, earlier jobs and the server tell, true or not.
fn outside() -> impl Strategy<Value = Action> {
    let rate = || prop_oneof![3 => 1.0..50_000.0, 1 => any::<f64>(), 1 => Just(f64::NAN)];
    let jobs = any::<u32>().prop_map(|jobs| NonZeroU32::new(jobs).unwrap_or(NonZeroU32::MIN));
    prop_oneof![
        (jobs, prop::option::of(rate())).prop_map(|(jobs, mean_rpm)| Action::Share(jobs, mean_rpm)),
        (any::<u32>(), any::<u32>())
            .prop_map(|(running, waiting)| Action::Saturate(Saturation { running, waiting })),
        (dimension(), rate()).prop_map(|(dimension, rate)| Action::Remember(dimension, rate)),
    ]
}

/// Does to the learner what the actions say, and calls `look` after each with the newest clock reading.
fn live(learner: &mut Learner, actions: &[Action], mut look: impl FnMut(&mut Learner, Duration)) -> Duration {
    let mut now = Duration::ZERO;
    let mut newest = now;
    for action in actions {
        match *action {
            Action::Pass(time) => now = now.saturating_add(time),
            Action::GoBack(time) => now = now.saturating_sub(time),
            Action::Send(id, cost) => learner.sent(now, RequestId(id), cost),
            Action::Tell(id, verdict) => learner.verdict(now, RequestId(id), verdict),
            Action::Share(jobs, mean_rpm) => learner.shared(now, Shared { jobs, mean_rpm }),
            Action::Saturate(saturation) => learner.saturation(now, saturation),
            Action::Remember(dimension, rate) => learner.remembered(now, &[(dimension, rate)].into()),
        }
        newest = newest.max(now);
        look(learner, newest);
    }
    newest
}

/// A request of a caller that obeys.
#[derive(Clone, Debug)]
struct Request {
    cost: Cost,
    verdict: Verdict,
    /// How much later than allowed it goes.
    late: Duration,
}

fn request() -> impl Strategy<Value = Request> {
    (cost(), final_verdict(), 0_u64..12).prop_map(|(cost, verdict, late)| {
        let late = Duration::from_millis(late);
        Request { cost, verdict, late }
    })
}

/// Sends when allowed, asking again whenever the rate may have changed, and has each request answered at once.
/// Returns when the requests went.
fn follow(learner: &mut Learner, from: Duration, requests: &[Request]) -> Vec<Duration> {
    let mut now = from;
    let mut sent = Vec::new();
    for (id, Request { cost, verdict, late }) in (1_000..).zip(requests) {
        now = loop {
            match learner.next(now, *cost) {
                Wait::Now => break now + *late,
                Wait::Until(at) => now = learner.changes_at().map_or(at, |change| change.min(at)),
                Wait::ForVerdict => unreachable!("every request was answered"),
            }
        };
        learner.sent(now, RequestId(id), *cost);
        learner.verdict(now, RequestId(id), *verdict);
        sent.push(now);
    }
    sent
}

/// The most requests that went within one minute, either end included.
fn busiest_minute(sent: &[Duration]) -> usize {
    let within =
        |first: usize| sent[first..].partition_point(|at| *at <= sent[first] + Duration::from_mins(1));
    (0..sent.len()).map(within).max().unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_events_leaves_a_learner_that_answers_sensibly(
        mode in mode(),
        profile in profile(),
        limits in limits(),
        cost in cost(),
        actions in prop::collection::vec(action(), 1..150),
    ) {
        let mut learner = Learner::new(mode, profile, limits, Duration::ZERO);
        live(&mut learner, &actions, |learner, newest| {
            if let Wait::Until(at) = learner.next(newest, cost) {
                assert!(at > newest, "told at {newest:?} to wait until {at:?}");
            }
            if let Some(at) = learner.changes_at() {
                assert!(at > newest, "told at {newest:?} that the rate changes at {at:?}");
            }
            let gauges = learner.gauges();
            if mode == Mode::Aimd {
                let highest = limits.rpm.map_or(u32::MAX, NonZeroU32::get);
                let target = gauges.rpm_target.expect("aimd always has a target");
                assert!((1..=highest).contains(&target), "target {target} of at most {highest}");
                assert!(gauges.effective_rpm.is_some_and(|rate| rate > 0.0 && rate <= f64::from(target)));
            }
            if mode == Mode::Adaptive {
                let highest = limits.rpm.map_or(f64::INFINITY, |rpm| f64::from(rpm.get()));
                let rate = gauges.effective_rpm.expect("adaptive always has a rate");
                assert!(rate > 0.0 && rate <= highest, "{rate} of at most {highest}");
                assert!(learner.found().values().all(|found| *found > 0.0 && found.is_finite()));
            }
            assert!(gauges.in_flight <= 12);
            assert!(learner.decisions().len() <= 200);
            assert!(!learner.explain().is_empty());
        });
    }

    #[test]
    fn adaptive_never_stops_for_good(
        profile in profile(),
        cost in cost(),
        actions in prop::collection::vec(action(), 1..150),
    ) {
        let mut learner = Learner::new(Mode::Adaptive, profile, Limits::default(), Duration::ZERO);
        let now = live(&mut learner, &actions, |_, _| ());
        (0..12).for_each(|id| learner.verdict(now, RequestId(id), Verdict::Lost));
        // Ten minutes are the longest that a provider is believed to be shut.
        match learner.next(now, cost) {
            Wait::Now => {}
            Wait::Until(at) => prop_assert!(at <= now.saturating_add(Duration::from_secs(601)), "{at:?}"),
            Wait::ForVerdict => prop_assert!(false, "nothing is in flight"),
        }
    }

    #[test]
    fn who_follows_it_never_exceeds_the_request_limit_in_any_minute(
        mode in mode(),
        profile in profile(),
        rpm in 1_u32..250,
        requests in prop::collection::vec(request(), 1..300),
    ) {
        let rpm = NonZeroU32::new(rpm).unwrap();
        let limits = Limits { rpm: Some(rpm), ..Limits::default() };
        let mut learner = Learner::new(mode, profile, limits, Duration::ZERO);
        let sent = follow(&mut learner, Duration::ZERO, &requests);
        prop_assert!(busiest_minute(&sent) <= rpm.get() as usize + 1);
    }

    #[test]
    fn who_follows_it_never_exceeds_a_request_limit_that_is_lowered_and_lifted_again(
        mode in mode(),
        profile in profile(),
        lower in 1_u32..100,
        requests in prop::collection::vec(request(), 3..300),
    ) {
        let own = NonZeroU32::new(100).unwrap();
        let of = |rpm| Limits { rpm: Some(rpm), ..Limits::default() };
        let mut learner = Learner::new(mode, profile, of(own), Duration::ZERO);
        let mut now = Duration::ZERO;
        let third = requests.len() / 3;
        let lower = NonZeroU32::new(lower).unwrap();
        for (rpm, requests) in [own, lower, own].into_iter().zip(requests.chunks(third)) {
            learner.limit(now, of(rpm));
            let sent = follow(&mut learner, now, requests);
            prop_assert!(busiest_minute(&sent) <= rpm.get() as usize + 1);
            now = now.max(*sent.last().unwrap());
        }
    }

    #[test]
    fn who_follows_it_exceeds_the_token_limit_in_any_minute_by_one_request_at_most(
        tpm in 1_u64..500_000,
        costs in prop::collection::vec(cost(), 1..200),
    ) {
        let limits = Limits { tpm: NonZeroU64::new(tpm), ..Limits::default() };
        let mut learner = Learner::new(Mode::Fixed, Profile::Unknown, limits, Duration::ZERO);
        let on_time = |cost: &Cost| Request { cost: *cost, verdict: Verdict::Lost, late: Duration::ZERO };
        let requests: Vec<_> = costs.iter().map(on_time).collect();
        let sent = follow(&mut learner, Duration::ZERO, &requests);
        for first in 0..sent.len() {
            let until = sent[first] + Duration::from_mins(1);
            let minute = costs[first..].iter().zip(&sent[first..]).take_while(|(_, at)| **at < until);
            let tokens: Vec<_> = minute.map(|(cost, _)| cost.reserved_tokens()).collect();
            let (last, before) = tokens.split_last().unwrap();
            prop_assert!(before.iter().sum::<u64>() <= tpm, "{before:?} and {last} of {tpm}");
        }
    }

    #[test]
    fn a_restored_adaptive_learner_begins_below_where_it_stopped(
        profile in profile(),
        limits in limits(),
        actions in prop::collection::vec(action(), 1..100),
        later in (5_u64..1_000_000).prop_map(Duration::from_millis),
    ) {
        let mut original = Learner::new(Mode::Adaptive, profile, limits, Duration::ZERO);
        live(&mut original, &actions, |_, _| ());
        let stored = serde_json::to_string(&original.snapshot()).unwrap();
        let snapshot = serde_json::from_str(&stored).unwrap();
        let mut restored = Learner::restore(&snapshot, Mode::Adaptive, profile, limits, later).unwrap();
        let rate = |learner: &mut Learner| {
            // Who has not heard of others tells nothing.
            learner.shared(Duration::ZERO, Shared { jobs: NonZeroU32::MIN, mean_rpm: None });
            learner.rate_rpm().unwrap()
        };
        let (before, after) = (rate(&mut original), rate(&mut restored));
        prop_assert!(after > 0.0 && after <= before.max(240.0) * 1.000_001, "{after} after {before}");
    }

    #[test]
    fn a_restored_learner_decides_like_the_one_it_was_taken_from(
        mode in prop::sample::select(vec![Mode::Fixed, Mode::Aimd]),
        limits in limits(),
        actions in prop::collection::vec(action(), 1..100),
        requests in prop::collection::vec(request(), 1..30),
        later in (5_u64..1_000_000).prop_map(Duration::from_millis),
    ) {
        let actions: Vec<_> = actions
            .into_iter()
            .filter(|action| !matches!(action, Action::Pass(time) if time.as_secs() > 20))
            .collect();
        let mut original = Learner::new(mode, Profile::Unknown, limits, Duration::ZERO);
        let now = live(&mut original, &actions, |_, _| ());
        (0..12).for_each(|id| original.verdict(now, RequestId(id), Verdict::Lost));

        let stored = serde_json::to_string(&original.snapshot()).unwrap();
        let snapshot = serde_json::from_str(&stored).unwrap();
        let mut restored = Learner::restore(&snapshot, mode, Profile::Unknown, limits, later).unwrap();

        let before = follow(&mut original, now, &requests);
        let after = follow(&mut restored, later, &requests);
        prop_assert_eq!(
            before.iter().map(|at| at.saturating_sub(now)).collect::<Vec<_>>(),
            after.iter().map(|at| at.saturating_sub(later)).collect::<Vec<_>>()
        );
        prop_assert_eq!(original.gauges(), restored.gauges());
        prop_assert_eq!(original.explain(), restored.explain());
    }
}
