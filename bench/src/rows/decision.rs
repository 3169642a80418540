//! What the learner takes for one request: asking when it may go, telling that it went, and what became of it.

use std::{hint::black_box, time::Duration, time::Instant};

use penstock_rate::{Cost, Hints, Learner, Limits, Mode, Profile, RequestId, Verdict, Wait};

use crate::{
    row::{Bound, Row, Unit, grouped},
    spread::{Spread, number},
    workplace::Workplace,
};

/// Requests of one round.
const REQUESTS: u64 = 1_000_000;
/// An answer comes when so many more have gone.
const IN_FLIGHT: u64 = 200;
/// One request in so many is refused.
const REFUSED: u64 = 250;

pub(super) fn measure(place: &Workplace) -> Row {
    let figure = Spread::of((0..place.sizes.rounds).map(|_| round()));
    Row {
        measure: "the learner's decisions about one request".to_owned(),
        floor: Bound::AtMost(1.0),
        aim: Some(Bound::AtMost(0.5)),
        unit: Unit::Microseconds,
        figure,
        judged: figure.median,
        details: vec![format!(
            "when it may go, that it went, that it was let in, what it used: {} requests, {IN_FLIGHT} in flight, one in \
             {REFUSED} refused, in virtual time",
            grouped(number(REQUESTS))
        )],
        commands: Vec::new(),
    }
}

/// Microseconds a request.
fn round() -> f64 {
    let limits = Limits::default();
    let mut learner = Learner::new(Mode::Adaptive, Profile::OpenAi, limits, Duration::ZERO);
    let cost = Cost { input_tokens: 150, output_tokens: 200 };
    let mut now = Duration::ZERO;
    let begun = Instant::now();
    for request in 0..REQUESTS {
        if let Some(answered) = request.checked_sub(IN_FLIGHT) {
            answer(&mut learner, now, answered);
        }
        while let Wait::Until(at) = black_box(learner.next(now, cost)) {
            now = learner.changes_at().map_or(at, |change| change.clamp(now, at));
        }
        learner.sent(now, RequestId(request), cost);
    }
    begun.elapsed().as_secs_f64() * 1e6 / number(REQUESTS)
}

fn answer(learner: &mut Learner, now: Duration, request: u64) {
    let (id, hints) = (RequestId(request), Hints::default());
    if request.is_multiple_of(REFUSED) {
        learner.verdict(now, id, Verdict::Refused { dimension: None, retry_after: None, hints });
    } else {
        learner.verdict(now, id, Verdict::Admitted { hints });
        learner.verdict(now, id, Verdict::Succeeded { output_tokens: 180, input_tokens: 150 });
    }
}
