//! The executor beside its view, and what is said when it has ended. Shared by `run` and `cancel`.

use std::{path::PathBuf, sync::Arc, time::Duration};

use penstock_executor::{Board, Finished, Job, RunError, Stop, scratch_folder};
use penstock_job::{ExitCode, Identity};

use super::OccupiedError;
use crate::{
    attend::{Executing, attend},
    error::CommandError,
    output::Output,
    signals::Signals,
    view::{Reporter, Summary, ending_exit_code},
};

/// The scratch folder of a job.
pub(crate) fn scratch(output: &Output, identity: &Identity) -> Result<PathBuf, CommandError> {
    scratch_folder(output.location(), identity).ok_or(CommandError::NoStateFolder)
}

/// The folder whose run lock keeps the runs of a job on this machine apart. A bucket has no such lock, so there it is the
/// job's scratch folder, and runs on other machines are kept apart by their claims alone.
pub(crate) fn lock_folder(output: &Output, identity: &Identity) -> Result<PathBuf, CommandError> {
    output.folder().map_or_else(|| scratch(output, identity), |folder| Ok(folder.to_owned()))
}

/// Runs a job as far as it goes and says how it ended.
pub(crate) async fn execute(
    job: Job,
    output: &Output,
    reporter: &mut Reporter,
    signals: &mut Signals,
) -> Result<ExitCode, CommandError> {
    let limits = &job.spec.limits;
    let executing = Executing {
        board: Arc::new(Board::default()),
        stop: Stop::new(),
        request_timeout: Duration::from_secs(limits.request_timeout_seconds.get()),
        drain: Duration::from_secs(limits.drain_seconds),
    };
    // On the heap: it is larger than all else that is waited for here.
    let work = Box::pin(penstock_executor::run(job, Arc::clone(&executing.board), executing.stop.clone()));
    match attend(work, &executing, reporter, signals).await? {
        Ok(Finished::Published { receipt, before }) => {
            let elapsed = (!before).then(|| reporter.elapsed());
            reporter.finished(&Summary { receipt: &receipt, output, elapsed });
            Ok(ending_exit_code(receipt.ending))
        }
        Ok(Finished::Stopped) => {
            reporter.stopped(&executing.board.progress());
            Ok(ExitCode::Stopped)
        }
        Err(RunError::OutputOccupied { difference }) => Err(OccupiedError::new(output, difference).into()),
        Err(error) => Err(error.into()),
    }
}
