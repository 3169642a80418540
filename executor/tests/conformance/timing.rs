//! What passing time brings about in the code, where a model has no time: when a completion window must be over so that
//! a run ends a job where its trace says, and which traces time cannot bring about.

use std::time::Duration;

use penstock_job::{Step, layout::Kind};
use penstock_model::{
    Action, Trace,
    process::{Executor, Process, Stage},
    storage::Incarnation,
    trace::Moment,
};

use crate::world::CHECKPOINT;

/// The completion window of a run, counted from when it begins to answer: over behind as many checkpoints as the trace
/// says; `None` when the trace has no such end.
pub(crate) fn window(trace: &Trace, number: Incarnation) -> Option<Duration> {
    let mut checkpoints = 0;
    let mut before: Option<&Executor> = None;
    for moment in trace.moments() {
        if let Action::Take { process, step, .. } = moment.action
            && process == number
        {
            match step {
                Step::End => return Some(CHECKPOINT * checkpoints + CHECKPOINT / 2),
                Step::Checkpoint
                    if before.is_some_and(|me| me.stage == Stage::Answering && me.unsure.is_none()) =>
                {
                    checkpoints += 1;
                }
                _ => {}
            }
        }
        before = executor(moment, number);
    }
    None
}

/// Whether the code can take this action next. A checkpoint and the end of the window take so much time that an open part
/// is closed meanwhile, and nothing more is appended to it; and a run that finishes removes the scratch folder, after which
/// others find out that they have lost and nothing else.
pub(crate) fn allows(trace: &Trace, action: &Action) -> bool {
    let Action::Take { process, step, .. } = action else { return true };
    let kind = match step {
        Step::Append => Kind::Results,
        Step::RecordUndone => Kind::Errors,
        Step::Recover | Step::Upload => return !has_finished(trace),
        _ => return true,
    };
    !has_finished(trace) && !is_closed(trace, *process, kind)
}

fn is_closed(trace: &Trace, number: Incarnation, kind: Kind) -> bool {
    let (mut closed, mut given_up) = (false, false);
    for moment in trace.moments() {
        let Some(me) = executor(moment, number) else { continue };
        let taken = match moment.action {
            Action::Take { process, step, .. } if process == number => Some(step),
            _ => None,
        };
        let is_long = matches!(taken, Some(Step::Checkpoint | Step::End));
        closed = !me.files.open[kind].lines.is_empty() && (closed || is_long);
        // Answers are not awaited for so long once the ending is stored.
        let awaits = me.stage == Stage::Answering && me.book.ending;
        given_up = awaits && (given_up || taken == Some(Step::Checkpoint));
    }
    closed || given_up
}

fn has_finished(trace: &Trace) -> bool {
    trace.moments().iter().any(|moment| match moment.action {
        Action::Take { process, step: Step::Clean, .. } => executor(moment, process).is_none(),
        _ => false,
    })
}

fn executor(moment: &Moment, number: Incarnation) -> Option<&Executor> {
    match moment.state.processes.get(usize::from(number)) {
        Some(Process::Alive(executor)) => Some(executor),
        _ => None,
    }
}
