//! Repeated passes converge: whatever happens to a job and in whatever order, once nothing happens any more it comes to an
//! end, or rests where a person has put it, and its states never lead back.

use penstock_job::ExitCode;
use proptest::prelude::*;

use super::*;
use crate::status::status;

/// What may happen between two passes.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// The cluster does its part: validation ends, pods start and end, deletions are done.
    Time,
    /// The operator is another process, which knows only what is in the cluster.
    OperatorRestarts,
    PodLost,
    JobDeletedByOthers,
    JobGivesUp,
    QueueSuspends,
    QueueResumes,
    UserSuspends,
    UserResumes,
    UserCancels,
    WindowOver,
    ProviderGone,
    ProviderBack,
}

const EVENTS: [Event; 13] = [
    Event::Time,
    Event::OperatorRestarts,
    Event::PodLost,
    Event::JobDeletedByOthers,
    Event::JobGivesUp,
    Event::QueueSuspends,
    Event::QueueResumes,
    Event::UserSuspends,
    Event::UserResumes,
    Event::UserCancels,
    Event::WindowOver,
    Event::ProviderGone,
    Event::ProviderBack,
];

impl Observed {
    fn happens(&mut self, event: Event) {
        let executor = &mut self.jobs.executor;
        match event {
            Event::Time => self.passes_time(),
            Event::OperatorRestarts => (self.intake, self.heard) = (IntakeSeen::None, None),
            Event::PodLost => {
                if let Some(executor) = executor.as_mut().filter(|executor| executor.stage == Stage::Running)
                {
                    executor.stage = Stage::Waiting(None);
                    executor.pods.clear();
                    executor.lost += 1;
                }
            }
            Event::JobDeletedByOthers => *executor = None,
            Event::JobGivesUp => {
                if let Some(executor) = executor.as_mut().filter(|executor| !executor.is_over()) {
                    executor.stage = Stage::GivenUp("too many".to_owned());
                    executor.pods.clear();
                }
            }
            Event::QueueSuspends | Event::QueueResumes => {
                if let Some(executor) = executor.as_mut().filter(|executor| !executor.is_over()) {
                    executor.suspended_by = matches!(event, Event::QueueSuspends).then_some(Suspender::Other);
                }
            }
            Event::UserSuspends => self.spec_mut().suspend = true,
            Event::UserResumes => self.spec_mut().suspend = false,
            Event::UserCancels => self.spec_mut().cancel = true,
            Event::WindowOver => {
                if let Some(status) = &mut Arc::make_mut(&mut self.batch_job).status {
                    status.deadline = Some(ago(1));
                }
            }
            Event::ProviderGone => self.problem = Some("it is not there".to_owned()),
            Event::ProviderBack => self.problem = None,
        }
    }

    fn spec_mut(&mut self) -> &mut penstock_crds::BatchJobSpec {
        &mut Arc::make_mut(&mut self.batch_job).spec
    }

    fn passes_time(&mut self) {
        if self.intake == IntakeSeen::Running {
            let word = Word::Accepted(validated());
            self.intake = IntakeSeen::Said { word, ago: Duration::ZERO, tries: 1 };
        }
        let (cancelled, expired) = (self.is_cancelled(), self.is_expired());
        let ending = match (cancelled, expired) {
            (true, _) => ReceiptEnding::Cancelled,
            (_, true) => ReceiptEnding::Expired,
            _ => ReceiptEnding::Completed,
        };
        for job in [&mut self.jobs.executor, &mut self.jobs.finalizer] {
            let Some(workload) = job else { continue };
            if workload.is_deleting {
                *job = None;
                continue;
            }
            match workload.stage {
                _ if workload.suspended_by.is_some() => {
                    workload.pods.clear();
                    workload.stage = Stage::Waiting(None);
                }
                Stage::Waiting(_) => {
                    *workload = Workload {
                        lost: workload.lost,
                        before: workload.before,
                        ..super::workload(Stage::Running)
                    }
                }
                Stage::Running => {
                    workload.pods.clear();
                    workload.stage =
                        Stage::Succeeded(last_word_text(ExitCode::Completed, Some(receipt(ending))));
                }
                Stage::Succeeded(_) | Stage::Refused(_) | Stage::GivenUp(_) => {}
            }
        }
    }

    /// One pass, with what it does and says.
    fn pass(&mut self) -> bool {
        let before = self.batch_job.status.clone();
        let decision = decide(self);
        for action in &decision.actions {
            match action {
                Action::Intake if self.intake == IntakeSeen::None => self.intake = IntakeSeen::Running,
                Action::Create(Work::Execute) => {
                    let before = self.before();
                    let made = || Workload { before, ..workload(Stage::Waiting(None)) };
                    self.jobs.executor.get_or_insert_with(made);
                }
                Action::Create(Work::Finish(_)) => {
                    self.jobs.finalizer.get_or_insert_with(|| workload(Stage::Waiting(None)));
                }
                Action::Delete { child: Child::Executor, .. } => {
                    if let Some(executor) = &mut self.jobs.executor {
                        executor.is_deleting = true;
                    }
                }
                Action::Suspend { suspend, .. } => {
                    if let Some(executor) = &mut self.jobs.executor {
                        executor.suspended_by = suspend.then_some(Suspender::Operator);
                    }
                }
                _ => {}
            }
        }
        if let Some(finding) = &decision.finding {
            assert!(finding.state.may_follow(self.state()), "{:?} -> {}", self.state(), finding.state);
            let told = status(&self.batch_job, finding, self.now);
            Arc::make_mut(&mut self.batch_job).status = Some(told);
        }
        let is_quiet = decision.actions.iter().all(|action| *action == Action::StopIntake);
        is_quiet && self.batch_job.status == before
    }
}

proptest! {
    #[test]
    fn whatever_happens_a_job_comes_to_an_end_or_rests_where_a_person_has_put_it(
        events in prop::collection::vec((0..EVENTS.len(), any::<bool>()), 0..40),
        queued: bool,
    ) {
        let mut seen = if queued { seen(None).labelled() } else { seen(None) };
        for (event, passes) in events {
            seen.happens(EVENTS[event]);
            if passes {
                seen.pass();
            }
        }
        // What others suspend they resume, and what is missing is brought; what a user wants stays.
        seen.happens(Event::ProviderBack);
        seen.happens(Event::QueueResumes);
        for _ in 0..40 {
            seen.pass();
            seen.happens(Event::Time);
        }
        prop_assert!(seen.pass(), "it does not rest: {:?}", decide(&seen));
        let state = seen.state().unwrap();
        let held = seen.batch_job.spec.suspend && !seen.is_cancelled() && !seen.is_expired();
        prop_assert!(state.is_over() || held, "{state}: {:?}", decide(&seen));
    }

    #[test]
    fn a_job_that_is_over_stays_so(event in 0..EVENTS.len(), state in 0..State::ALL.len()) {
        let state = State::ALL[state];
        prop_assume!(state.is_over());
        let mut seen = seen(Some(state)).executor(workload(Stage::Running));
        seen.happens(EVENTS[event]);
        prop_assert_eq!(decide(&seen).finding, None);
    }
}
