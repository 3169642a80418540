//! The executor beside its view, and what is said when it has ended. Shared by `run` and `cancel`.

use std::{path::PathBuf, sync::Arc, time::Duration};

use penstock_executor::{Board, Finished, Job, RunError, Stop};
use penstock_job::{ExitCode, Identity};

use super::OccupiedError;
use crate::{
    attend::{Executing, attend},
    error::CommandError,
    folder::Folder,
    signals::Signals,
    view::{Reporter, Summary, ending_exit_code},
};

/// The scratch folder of a job: on the output's own file system, so that finished parts need no copy.
pub(crate) fn scratch(folder: &Folder, identity: &Identity) -> PathBuf {
    folder.path(".penstock").join("scratch").join(identity.prefix(16))
}

/// Runs a job as far as it goes and says how it ended.
pub(crate) async fn execute(
    job: Job,
    folder: &Folder,
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
            reporter.finished(&Summary { receipt: &receipt, folder, elapsed });
            Ok(ending_exit_code(receipt.ending))
        }
        Ok(Finished::Stopped) => {
            reporter.stopped(&executing.board.progress());
            Ok(ExitCode::Stopped)
        }
        Err(RunError::OutputOccupied { difference }) => Err(OccupiedError::new(folder, difference).into()),
        Err(error) => Err(error.into()),
    }
}
