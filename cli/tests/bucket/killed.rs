//! A run is killed directly after, or before, each step that a job in a bucket comes by; the next one goes on. What a
//! folder's crash table has beside these steps needs no bucket: repairs, endings and rejected lines.

use std::os::unix::process::ExitStatusExt;

use crate::{
    place::{IN_FLIGHT, Place},
    rows::run_all,
};

/// The kills of successive runs.
type Row = &'static [&'static str];

const ROWS: &[Row] = &[
    &["kill-before@commit-validation"],
    &["kill@commit-validation"],
    &["kill@look"],
    &["kill-before@claim"],
    &["kill@claim"],
    &["kill@send:700"],
    &["kill@append:20"],
    &["kill-before@upload"],
    &["kill@upload"],
    &["kill@upload:2"],
    &["kill@list"],
    &["kill-before@checkpoint"],
    &["kill@checkpoint"],
    &["kill-before@reconcile"],
    &["kill@reconcile"],
    &["kill-before@freeze"],
    &["kill@freeze"],
    &["kill-before@compose-intermediate"],
    &["kill@compose-intermediate:2"],
    &["kill-before@compose-final"],
    &["kill@compose-final"],
    &["kill-before@write-receipt"],
    &["kill@write-receipt"],
    &["kill@read-receipt"],
    &["kill-before@clean"],
    &["kill@clean"],
    // What was uploaded and is not listed is adopted, what is in scratch taken over, and the epoch sealed.
    &["kill@upload", "kill@adopt"],
    &["kill@upload", "kill-before@seal"],
    &["kill@upload", "kill@seal"],
    &["kill@append:20", "kill@recover"],
    &["kill@upload", "kill@upload:2", "kill@freeze", "kill@compose-final"],
];

/// Milliseconds until a prompt is answered.
const LATENCY: f64 = 2.0;
/// The same where a checkpoint is waited for, which comes once a second while lines are answered.
const LONG_LATENCY: f64 = 40.0;

async fn check(row: Row) {
    let awaits_checkpoint = row.iter().any(|rule| rule.ends_with("@checkpoint"));
    let mut place = Place::new(1_700, if awaits_checkpoint { LONG_LATENCY } else { LATENCY }).await;
    let mut safe = Vec::new();
    for rule in row {
        let mut run = place.run();
        run.env("PENSTOCK_INJECT", rule).env("PENSTOCK_INJECT_COMPOSE_LIMIT", "2");
        let said = place.say(run).await;
        assert_eq!(said.status.signal(), Some(9), "{rule}: {}: {}", said.status, said.stderr);
        safe.push(place.moment().await);
    }
    place.say(place.run()).await.with(0);
    for moment in &safe {
        place.assert_nothing_safe_was_asked_since(moment);
    }
    let (repeated, bound) = (place.repeated(), IN_FLIGHT * row.len());
    assert!(repeated <= bound, "{repeated} lines were sent again, {bound} may be");
    assert_eq!(place.finish().await.count("succeeded"), 1_700);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_in_a_bucket_survives_the_end_of_its_process_at_every_step() {
    run_all(ROWS.to_vec(), check).await;
}
