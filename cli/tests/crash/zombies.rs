//! Every step again, with a zombie: a run is stopped there, a successor takes the job over, and the zombie wakes when the
//! successor has sealed, frozen or published (T7). It exits 76, or with the receipt, and what is published stays.

use penstock_job::Step;
use rustix::process::Signal;

use crate::{
    drawn::drawn,
    killed::{expected_code, resume},
    rows::run_all,
    site::Kind,
    situation::{Situation, situations, time},
};

/// How often a row is begun anew before it fails.
const ATTEMPTS: usize = 5;

/// One row.
#[derive(Debug, Clone, Copy)]
struct Row {
    step: Step,
    situation: Situation,
    action: &'static str,
    /// Where the successor is when the zombie wakes; `None` when it has published.
    successor_at: Option<&'static str>,
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for step in Step::ALL {
        for &situation in situations(step) {
            let row = Row { step, situation, action: "stop", successor_at: None };
            rows.push(row);
            if (Step::Claim..=Step::Freeze).contains(&step) {
                rows.push(Row { successor_at: Some("stop@seal"), ..row });
                rows.push(Row { successor_at: Some("stop@freeze"), ..row });
            }
            if step.writes() {
                rows.push(Row { action: "stop-before", ..row });
            }
        }
    }
    rows
}

async fn check(kind: Kind, row: Row) {
    for _ in 0..ATTEMPTS {
        if attempt(kind, row).await {
            return;
        }
    }
    panic!("the zombie was stopped within a write of the folder each time");
}

/// `false` when the zombie was stopped within a write. It then holds the lock of the folder, and its successor waits for
/// it; that is so of a folder alone, and the job protocol has no part in it.
async fn attempt(kind: Kind, Row { step, situation, action, successor_at }: Row) -> bool {
    let place = situation.arrange(kind).await;
    let rule = format!("{action}@{step}:{}", time(step));
    let mut zombie = situation.subject(&place).inject(&rule).start();
    assert!(zombie.is_stopped().await, "it does not come to its step: {}", zombie.errors());
    if place.site.is_locked() {
        return false;
    }
    let mut successor = place.run(&["--take-over"]).inject(successor_at.unwrap_or_default()).start();
    let waits = successor.is_stopped().await;
    let published = (!waits).then(|| place.witness.published());
    zombie.signal(Signal::CONT);
    let code = zombie.wait().await;
    let over = place.document("receipt.json").is_some();
    assert!(code == Some(76) || over && code == Some(expected_code(&place)), "{code:?}: {}", zombie.errors());
    if waits {
        successor.signal(Signal::CONT);
    }
    let code = successor.wait().await;
    assert_eq!(code, Some(expected_code(&place)), "{}", successor.errors());
    resume(&place).await;
    let now = place.finish().await;
    assert_eq!(published.unwrap_or_else(|| now.clone()), now);
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_sleeps_at_any_step_and_wakes_after_its_successor_changes_nothing() {
    run_all(rows(), |row| check(Kind::Folder, row)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_bucket_a_run_that_sleeps_at_any_step_and_wakes_after_its_successor_changes_nothing() {
    run_all(drawn(rows()), |row| check(Kind::Bucket, row)).await;
}
