//! Every row of the crash table: a run is killed directly before or after each step, its scratch folder kept or lost, and
//! the next one goes on.

use penstock_job::Step;

use crate::{
    drawn::drawn,
    rows::run_all,
    site::Kind,
    situation::{IN_FLIGHT, Situation, situations, time},
    workplace::Workplace,
};

/// One row.
#[derive(Debug, Clone, Copy)]
struct Row {
    step: Step,
    situation: Situation,
    action: &'static str,
    scratch_lost: bool,
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for step in Step::ALL {
        for &situation in situations(step) {
            rows.push(Row { step, situation, action: "kill", scratch_lost: false });
            if step.writes() || step == Step::Send {
                rows.push(Row { step, situation, action: "kill-before", scratch_lost: false });
            }
            if holds_answers(step) {
                rows.push(Row { step, situation, action: "kill", scratch_lost: true });
            }
        }
    }
    rows
}

/// Whether a run may hold answers in scratch at this step.
fn holds_answers(step: Step) -> bool {
    (Step::Seal..=Step::Drain).contains(&step)
}

async fn check(kind: Kind, row: Row) {
    let place = row.situation.arrange(kind).await;
    let rule = format!("{}@{}:{}", row.action, row.step, time(row.step));
    row.situation.subject(&place).inject(&rule).start().is_killed().await;
    let asked = place.witness.requests(&place.server.log()).asked();
    let safe = place.moment();
    if row.scratch_lost {
        assert!(place.site.lose_scratch());
    }
    resume(&place).await;
    place.assert_nothing_safe_was_asked_since(&safe);
    let mut bound = IN_FLIGHT * (row.situation.kills() + 1) + row.situation.lost();
    if row.scratch_lost {
        bound += asked.difference(&safe.held).count();
    }
    let repeated = place.repeated();
    assert!(repeated <= bound, "{repeated} lines were sent again, {bound} may be");
    place.finish().await;
}

/// Runs the job to its receipt, undisturbed, and says so of its exit code.
pub(crate) async fn resume(place: &Workplace) {
    let mut run = place.start(&[]);
    let code = run.wait().await;
    assert_eq!(code, Some(expected_code(place)), "{}", run.errors());
}

/// What `penstock run` exits with, by the receipt.
pub(crate) fn expected_code(place: &Workplace) -> i32 {
    let receipt = place.document("receipt.json");
    match receipt.as_ref().and_then(|receipt| receipt["ending"].as_str()) {
        Some("cancelled" | "expired") => 4,
        Some("completed") => 0,
        other => panic!("the ending is {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_survives_the_end_of_its_process_at_every_step() {
    run_all(rows(), |row| check(Kind::Folder, row)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_in_a_bucket_survives_the_end_of_its_process_at_every_step() {
    run_all(drawn(rows()), |row| check(Kind::Bucket, row)).await;
}
