//! One request in twenty to the bucket fails, before or after it was done, or its stream breaks; each job is killed once
//! on its way. `PENSTOCK_BUCKET_SEEDS` says how many jobs (as a rule four).

use std::env;

use penstock_gcs_double::{Calls, Fault, FaultRule, Operation};

use crate::{
    place::{IN_FLIGHT, Place},
    rows::run_all,
};

/// Lines of each job.
const LINES: u64 = 1_300;
/// Runs after which a job must have come to its receipt: each may end because the bucket did not answer a claim.
const RUNS: usize = 12;

fn rules() -> Vec<FaultRule> {
    let share = |share, fault| FaultRule { calls: Calls::Share(share), ..FaultRule::always(fault) };
    let of_reads = |rule: FaultRule| FaultRule { operations: vec![Operation::Read], ..rule };
    let of_writes =
        |rule: FaultRule| FaultRule { operations: vec![Operation::Write, Operation::UploadChunk], ..rule };
    vec![
        share(0.02, Fault::ErrorBefore { status: 503 }),
        share(0.02, Fault::ErrorAfter { status: 503 }),
        share(0.01, Fault::ErrorBefore { status: 429 }),
        of_reads(share(0.05, Fault::BreakResponse { after_bytes: 1_000 })),
        of_writes(share(0.03, Fault::BreakRequest { after_bytes: 100 })),
        of_writes(share(0.03, Fault::BreakResponse { after_bytes: 0 })),
    ]
}

async fn check(seed: u64) {
    let place = Place::new(usize::try_from(LINES).unwrap(), 2.0).await;
    place.set_faults(rules());
    let mut run = place.start(place.run());
    place.answered(1 + seed * 331 % LINES, &mut run).await;
    run.kill();
    let mut said = run.end().await;
    place.set_faults(Vec::new());
    let safe = place.moment();
    place.set_faults(rules());
    let mut runs = 1;
    while said.status.code() != Some(0) {
        assert!(runs < RUNS, "{runs} runs, and no receipt: {}", said.stderr);
        let killed_or_unavailable = matches!(said.status.code(), None | Some(69));
        assert!(killed_or_unavailable, "{}: {}", said.status, said.stderr);
        said = place.say(place.run()).await;
        runs += 1;
    }
    place.set_faults(Vec::new());
    place.assert_nothing_safe_was_asked_since(&safe);
    let (repeated, bound) = (place.repeated(), IN_FLIGHT * runs);
    assert!(repeated <= bound, "{repeated} lines were sent again, {bound} may be");
    assert_eq!(place.finish().await.count("succeeded"), LINES);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_line_is_lost_or_doubled_whatever_a_bucket_answers() {
    let seeds = env::var("PENSTOCK_BUCKET_SEEDS").map_or(4, |count| count.parse().unwrap());
    run_all((0..seeds).collect(), check).await;
}
