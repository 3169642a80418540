//! Every write whose fate stays unknown: not applied and reported failed, applied and reported failed, or reported failed
//! and landing later, when its sender is done or dead.

use penstock_job::Step;
use rustix::process::Signal;

use crate::{
    drawn::drawn,
    killed::{expected_code, resume},
    rows::run_all,
    site::Kind,
    situation::{IN_FLIGHT, Situation, situations, time},
    workplace::{Run, Workplace},
};

/// One row.
#[derive(Debug, Clone, Copy)]
struct Row {
    step: Step,
    situation: Situation,
    fate: Fate,
}

/// What becomes of the write.
#[derive(Debug, Clone, Copy)]
enum Fate {
    /// It is lost; its sender goes on.
    Lost,
    /// It is applied; its sender goes on.
    Applied,
    /// It lands when its sender is done.
    LandsAfterItsSender,
    /// Its sender dies, and it lands before the successor begins.
    LandsBeforeTheSuccessor,
    /// Its sender dies, and it lands when the successor has come as far as [`meeting`].
    LandsBesideTheSuccessor,
    /// Its sender dies, and it lands when the successor has published.
    LandsAfterTheSuccessor,
}

const FATES: [Fate; 6] = [
    Fate::Lost,
    Fate::Applied,
    Fate::LandsAfterItsSender,
    Fate::LandsBeforeTheSuccessor,
    Fate::LandsBesideTheSuccessor,
    Fate::LandsAfterTheSuccessor,
];

/// Where a late write of a dead run meets its successor: after the seal, or where the successor makes the same write.
/// `None` where a receipt keeps a successor from doing anything.
fn meeting(step: Step) -> Option<&'static str> {
    match step {
        Step::StoreRejected | Step::CommitValidation => Some("stop-before@commit-validation"),
        Step::Claim => Some("stop-before@claim"),
        Step::Seal
        | Step::Upload
        | Step::Checkpoint
        | Step::End
        | Step::Rewrite
        | Step::Repair
        | Step::Freeze => Some("stop@seal"),
        Step::ComposeIntermediate => Some("stop-before@compose-intermediate"),
        Step::ComposeFinal => Some("stop-before@compose-final"),
        Step::WriteReceipt => Some("stop-before@write-receipt"),
        Step::Clean => None,
        Step::Look
        | Step::Adopt
        | Step::Recover
        | Step::Send
        | Step::Append
        | Step::List
        | Step::Drain
        | Step::RecordUndone
        | Step::Reconcile
        | Step::ReadReceipt => unreachable!("{step} writes nothing"),
    }
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for step in Step::ALL.into_iter().filter(|step| step.writes()) {
        for &situation in situations(step) {
            rows.extend(FATES.map(|fate| Row { step, situation, fate }));
        }
    }
    rows.retain(|row| !matches!(row.fate, Fate::LandsBesideTheSuccessor) || meeting(row.step).is_some());
    rows
}

async fn check(kind: Kind, row: Row) {
    let Row { step, situation, fate } = row;
    let place = situation.arrange(kind).await;
    let at = format!("{step}:{}", time(step));
    let subject = situation.subject(&place);
    match fate {
        Fate::Lost => goes_on(&place, subject.inject(&format!("lose@{at}")).start()).await,
        Fate::Applied => goes_on(&place, subject.inject(&format!("doubt@{at}")).start()).await,
        Fate::LandsAfterItsSender => {
            goes_on(&place, subject.inject(&format!("late@{at}")).start()).await;
            place.land().await;
        }
        Fate::LandsBeforeTheSuccessor | Fate::LandsBesideTheSuccessor | Fate::LandsAfterTheSuccessor => {
            subject.inject(&format!("late@{at},kill@{at}")).start().is_killed().await;
            succeed(&place, row).await;
        }
    }
    let bound = IN_FLIGHT * (situation.kills() + 1) + situation.lost();
    let repeated = place.repeated();
    assert!(repeated <= bound, "{repeated} lines were sent again, {bound} may be");
    place.finish().await;
}

/// The run does not mind.
async fn goes_on(place: &Workplace, mut run: Run) {
    let code = run.wait().await;
    assert!(run.errors().contains("misled"), "nothing has happened to it: {}", run.errors());
    assert_eq!(code, Some(expected_code(place)), "{}", run.errors());
}

/// What comes after a run that has died with a write under way.
async fn succeed(place: &Workplace, Row { step, fate, .. }: Row) {
    match fate {
        Fate::LandsBeforeTheSuccessor => {
            place.land().await;
        }
        Fate::LandsBesideTheSuccessor => {
            let mut successor = place.run(&[]).inject(meeting(step).unwrap()).start();
            assert!(
                successor.is_stopped().await,
                "the successor is not to get so far: {}",
                successor.errors()
            );
            place.land().await;
            successor.signal(Signal::CONT);
            let code = successor.wait().await;
            // A claim that meets another one may lose.
            let loses = step == Step::Claim && code == Some(76);
            assert!(loses || code == Some(expected_code(place)), "{code:?}: {}", successor.errors());
        }
        Fate::LandsAfterTheSuccessor => {
            resume(place).await;
            place.witness.published();
            place.land().await;
        }
        Fate::Lost | Fate::Applied | Fate::LandsAfterItsSender => {}
    }
    resume(place).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_survives_each_write_whose_fate_is_unknown() {
    run_all(rows(), |row| check(Kind::Folder, row)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_in_a_bucket_survives_each_write_whose_fate_is_unknown() {
    run_all(drawn(rows()), |row| check(Kind::Bucket, row)).await;
}
