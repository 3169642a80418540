//! Decisions, event by event, and what repeated passes lead to.

use std::sync::Arc;

use penstock_crds::reason::explain;
use penstock_job::{receipt::ReceiptEnding, report};

use super::*;
use crate::{
    intake::Word,
    observe::IntakeSeen,
    workload::{Farewell, Stage, Suspender, Workload},
};

mod convergence;
mod scene;

use scene::*;
pub(crate) use scene::{batch_job, report};

/// What happened, and the state, the reason and the actions that follow.
type Row = (&'static str, Observed, Option<State>, Option<Reason>, Vec<Action>);

/// What is said and done, in brief.
fn told(decision: &Decision) -> (Option<State>, Option<Reason>, Vec<Action>) {
    let finding = decision.finding.as_ref();
    let reason = finding.and_then(|finding| explain(finding.state, &finding.evidence).reason);
    (finding.map(|finding| finding.state), reason, decision.actions.clone())
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table has as many rows as there are events")]
fn each_event_has_its_answer() {
    use penstock_job::ExitCode as Code;
    let execute = || Action::Create(Work::Execute);
    let finish = |ending| Action::Create(Work::Finish(ending));
    let suspend = |suspend| Action::Suspend { uid: "job-1".to_owned(), suspend };
    let refused = |code| workload(Stage::Refused(last_word_text(code, None)));
    let refused_by_storage =
        || workload(Stage::Refused(farewell(Code::Configuration, Some(Reason::StorageRefused), None)));
    let succeeded =
        |ending| workload(Stage::Succeeded(last_word_text(Code::Completed, Some(receipt(ending)))));
    let suspended_by = |by| Workload { suspended_by: Some(by), ..workload(Stage::Waiting(None)) };
    let (suspended, suspended_by_others) =
        (|| suspended_by(Suspender::Operator), || suspended_by(Suspender::Other));
    let lost = |lost| Workload { lost, ..workload(Stage::Waiting(None)) };
    let deleting = || Workload { is_deleting: true, ..workload(Stage::Running) };
    let (validating, queued, running) =
        (|| seen(Some(State::Validating)), || seen(Some(State::Queued)), || seen(Some(State::Running)));
    let table: Vec<Row> = vec![
        ("nobody looked at it", seen(None), Some(State::Validating), None, vec![]),
        ("accepted", validating(), Some(State::Validating), None, vec![Action::Intake]),
        (
            "its Provider is missing",
            Observed { problem: Some("no".into()), ..validating() },
            Some(State::Validating),
            Some(Reason::Misconfigured),
            vec![],
        ),
        (
            "its input is not there",
            validating().said(Word::Absent { message: "no".into() }),
            Some(State::AwaitingUpload),
            None,
            vec![],
        ),
        (
            "validated",
            validating().said(Word::Accepted(validated())),
            Some(State::Queued),
            Some(Reason::WaitingForPod),
            vec![],
        ),
        (
            "no line is valid",
            validating().said(Word::Refused {
                reason: Reason::InvalidInput,
                message: "no".into(),
                validated: Some(validated()),
            }),
            Some(State::Failed),
            Some(Reason::InvalidInput),
            vec![],
        ),
        (
            "done before it was applied",
            validating().said(over(ReceiptEnding::Completed)),
            Some(State::Completed),
            None,
            vec![Action::StopIntake],
        ),
        (
            "its output is another job's",
            validating().said(Word::Occupied { message: "no".into() }),
            Some(State::Failed),
            Some(Reason::OutputOccupied),
            vec![],
        ),
        (
            "its input is large",
            validating().said(Word::TooLarge { size_bytes: 1 << 40 }),
            Some(State::Validating),
            None,
            vec![Action::Create(Work::Validate)],
        ),
        (
            "only its own account may read",
            validating().said(Word::Denied { message: "no".into() }),
            Some(State::Validating),
            None,
            vec![Action::Create(Work::Validate)],
        ),
        (
            "cancelled before anything",
            validating().spec(|spec| spec.cancel = true),
            Some(State::Cancelled),
            None,
            vec![Action::StopIntake],
        ),
        ("its turn", queued(), Some(State::Queued), Some(Reason::WaitingForPod), vec![execute()]),
        (
            "suspended before its turn",
            queued().spec(|spec| spec.suspend = true),
            Some(State::Queued),
            Some(Reason::Suspended),
            vec![],
        ),
        (
            "cancelled before its turn",
            queued().spec(|spec| spec.cancel = true),
            Some(State::Cancelling),
            None,
            vec![finish(EndingReason::Cancelled)],
        ),
        (
            "another job writes there",
            Observed { rival: Some("a/b".into()), ..queued() },
            Some(State::Failed),
            Some(Reason::OutputOccupied),
            vec![],
        ),
        (
            "its Secret is missing",
            Observed { problem: Some("no".into()), ..queued() },
            Some(State::Queued),
            Some(Reason::Misconfigured),
            vec![],
        ),
        (
            "its Job was made",
            queued().executor(workload(Stage::Waiting(None))),
            Some(State::Queued),
            Some(Reason::WaitingForPod),
            vec![],
        ),
        ("its pod runs", queued().executor(workload(Stage::Running)), Some(State::Running), None, vec![]),
        (
            "its pod reports",
            queued().executor(workload(Stage::Running)).heard(report::Stage::Running, 1),
            Some(State::Running),
            None,
            vec![],
        ),
        (
            "it publishes",
            running().executor(workload(Stage::Running)).heard(report::Stage::Publishing, 1),
            Some(State::Finalizing),
            None,
            vec![],
        ),
        ("its Job is gone", running(), Some(State::Running), Some(Reason::WaitingForPod), vec![execute()]),
        (
            "suspended",
            running().spec(|spec| spec.suspend = true).executor(workload(Stage::Running)),
            Some(State::Running),
            Some(Reason::Suspended),
            vec![suspend(true)],
        ),
        (
            "suspended, and it is",
            running().spec(|spec| spec.suspend = true).executor(suspended()),
            Some(State::Queued),
            Some(Reason::Suspended),
            vec![],
        ),
        ("resumed", queued().executor(suspended()), Some(State::Queued), None, vec![suspend(false)]),
        (
            "suspended by somebody else",
            running().executor(suspended_by_others()),
            Some(State::Queued),
            Some(Reason::Suspended),
            vec![],
        ),
        (
            "suspended by somebody else after pods were lost",
            running().executor(Workload { lost: 3, ..suspended_by_others() }),
            Some(State::Queued),
            Some(Reason::Suspended),
            vec![],
        ),
        (
            "suspended by its queue",
            queued().labelled().executor(suspended_by_others()),
            Some(State::Queued),
            Some(Reason::Suspended),
            vec![],
        ),
        (
            "suspended under a queue",
            running().labelled().spec(|spec| spec.suspend = true).executor(workload(Stage::Running)),
            Some(State::Running),
            Some(Reason::Suspended),
            vec![],
        ),
        (
            "three pods were lost",
            running().executor(lost(3)),
            Some(State::Running),
            Some(Reason::WaitingForPod),
            vec![delete(Child::Executor)],
        ),
        (
            "three pods were lost under a queue",
            running().labelled().executor(lost(3)),
            Some(State::Running),
            Some(Reason::WaitingForPod),
            vec![],
        ),
        (
            "its Job is being replaced",
            running().executor(deleting()),
            Some(State::Running),
            Some(Reason::WaitingForPod),
            vec![],
        ),
        (
            "cancelled while it listens",
            running()
                .spec(|spec| spec.cancel = true)
                .executor(workload(Stage::Running))
                .heard(report::Stage::Running, 5),
            Some(State::Cancelling),
            None,
            vec![],
        ),
        (
            "cancelled, and nobody listens",
            running()
                .spec(|spec| spec.cancel = true)
                .executor(workload(Stage::Running))
                .heard(report::Stage::Running, 61),
            Some(State::Cancelling),
            None,
            vec![delete(Child::Executor)],
        ),
        (
            "cancelled without a pod",
            running().spec(|spec| spec.cancel = true).executor(workload(Stage::Waiting(None))),
            Some(State::Cancelling),
            None,
            vec![delete(Child::Executor)],
        ),
        (
            "cancelled without a Job",
            running().spec(|spec| spec.cancel = true),
            Some(State::Cancelling),
            None,
            vec![finish(EndingReason::Cancelled)],
        ),
        (
            "expired while suspended",
            queued().expired().executor(suspended()),
            Some(State::Finalizing),
            None,
            vec![delete(Child::Executor)],
        ),
        (
            "expired without a Job",
            queued().expired(),
            Some(State::Finalizing),
            None,
            vec![finish(EndingReason::Expired)],
        ),
        (
            "expired while it runs",
            running().expired().executor(workload(Stage::Running)),
            Some(State::Running),
            None,
            vec![],
        ),
        (
            "its Job gave up",
            running().executor(workload(Stage::GivenUp("no".into()))),
            Some(State::Finalizing),
            None,
            vec![delete(Child::Executor)],
        ),
        (
            "completed",
            running().executor(succeeded(ReceiptEnding::Completed)),
            Some(State::Completed),
            None,
            vec![Action::StopIntake],
        ),
        (
            "cancelled by the executor",
            seen(Some(State::Cancelling)).executor(succeeded(ReceiptEnding::Cancelled)),
            Some(State::Cancelled),
            None,
            vec![Action::StopIntake],
        ),
        (
            "expired by the executor",
            running().executor(succeeded(ReceiptEnding::Expired)),
            Some(State::Expired),
            Some(Reason::CompletionWindowOver),
            vec![Action::StopIntake],
        ),
        (
            "completed, but its pod is gone",
            running().executor(workload(Stage::Succeeded(Farewell::default()))),
            Some(State::Finalizing),
            None,
            vec![Action::Intake],
        ),
        (
            "its configuration is refused",
            running().executor(refused(Code::Configuration)),
            Some(State::Failed),
            Some(Reason::Misconfigured),
            vec![],
        ),
        (
            "it may not write its output, as of now",
            queued().executor(Workload { made_at: Some(ago(1)), ..refused_by_storage() }),
            Some(State::Queued),
            Some(Reason::StorageRefused),
            vec![],
        ),
        (
            "it may not write its output, as of two minutes ago",
            running().executor(refused_by_storage()),
            Some(State::Running),
            Some(Reason::StorageRefused),
            vec![delete(Child::Executor)],
        ),
        (
            "it may not write its output, and is cancelled",
            running().spec(|spec| spec.cancel = true).executor(refused_by_storage()),
            Some(State::Cancelling),
            None,
            vec![delete(Child::Executor)],
        ),
        (
            "its output is occupied",
            running().executor(refused(Code::OutputOccupied)),
            Some(State::Failed),
            Some(Reason::OutputOccupied),
            vec![],
        ),
        (
            "its parts are damaged",
            running().executor(refused(Code::StorageDamaged)),
            Some(State::Failed),
            Some(Reason::FinalizationFailed),
            vec![],
        ),
        (
            "published without an executor",
            seen(Some(State::Cancelling)).finalizer(succeeded(ReceiptEnding::Cancelled)),
            Some(State::Cancelled),
            None,
            vec![Action::StopIntake],
        ),
        (
            "it cannot be published",
            seen(Some(State::Finalizing)).finalizer(workload(Stage::GivenUp("no".into()))),
            Some(State::Failed),
            Some(Reason::FinalizationFailed),
            vec![],
        ),
        (
            "it is being published",
            seen(Some(State::Finalizing)).finalizer(workload(Stage::Running)),
            Some(State::Finalizing),
            None,
            vec![],
        ),
        ("over", seen(Some(State::Completed)), None, None, vec![]),
        (
            "over, and its time to live as well",
            seen(Some(State::Failed)).spec(|spec| spec.ttl_seconds_after_finished = Some(60)),
            None,
            None,
            vec![Action::DeleteBatchJob],
        ),
        (
            "over, and its time to live is not",
            seen(Some(State::Failed)).spec(|spec| spec.ttl_seconds_after_finished = Some(61)),
            None,
            None,
            vec![],
        ),
        (
            "over, and a Job still runs",
            seen(Some(State::Failed)).executor(workload(Stage::Running)),
            None,
            None,
            vec![delete(Child::Executor)],
        ),
    ];
    for (name, seen, state, reason, actions) in table {
        let decision = decide(&seen);
        assert_eq!(told(&decision), (state, reason, actions), "{name}: {decision:?}");
        if let Some(state) = state {
            assert!(state.may_follow(seen.state()), "{name}: {state} after {:?}", seen.state());
        }
    }
}

#[test]
fn a_job_that_is_being_deleted_is_left_to_the_garbage_collector() {
    for state in State::ALL {
        let mut seen = seen(Some(state)).executor(workload(Stage::Running)).spec(|spec| spec.cancel = true);
        Arc::make_mut(&mut seen.batch_job).metadata.deletion_timestamp = Some(ago(1));
        assert_eq!(told(&decide(&seen)), (None, None, vec![Action::StopIntake]));
    }
}
