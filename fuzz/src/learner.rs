//! What the learner remembers in `state.json`: opaque there, so the learner itself must cope with anything.

use std::time::Duration;

use penstock_rate::{Cost, Hints, Learner, Limits, Mode, Profile, RequestId, Snapshot, Verdict, Wait};

use crate::bounded;

/// A snapshot, as JSON.
pub fn learner_memory(data: &[u8]) {
    let Ok(snapshot) = serde_json::from_slice::<Snapshot>(bounded(data, 16 << 10)) else { return };
    for mode in Mode::ALL {
        let now = Duration::from_secs(1);
        if let Ok(learner) = Learner::restore(&snapshot, mode, Profile::Unknown, Limits::default(), now) {
            goes_on(learner, now);
        }
    }
}

/// A restored learner goes on: it never makes wait for what is past, and what it remembers is restored once more.
fn goes_on(mut learner: Learner, start: Duration) {
    let cost = Cost { input_tokens: 100, output_tokens: 100 };
    let refused = Verdict::Refused { dimension: None, retry_after: None, hints: Hints::default() };
    let succeeded = Verdict::Succeeded { output_tokens: 100, input_tokens: 100 };
    for (number, verdict) in (0..).zip([succeeded, refused, Verdict::Lost, succeeded]) {
        let now = start + Duration::from_secs(40 * number);
        if let Wait::Until(at) = learner.next(now, cost) {
            assert!(at > now, "{at:?} is not later than {now:?}");
        }
        learner.sent(now, RequestId(number), cost);
        learner.verdict(now, RequestId(number), verdict);
    }
    assert!(!learner.explain().is_empty());
    let written = serde_json::to_string(&learner.snapshot()).expect("a snapshot is JSON");
    let again: Snapshot = serde_json::from_str(&written).expect("what was written reads back");
    Learner::restore(&again, learner.mode(), Profile::Unknown, Limits::default(), start)
        .expect("the learner's own memory");
}
