//! `penstock cancel`: ends a job before it is done. What was answered is published; the rest is recorded as cancelled.
//!
//! A run on this machine is asked to stop first, so that the answers under way, which are paid for, are stored.

use std::{path::Path, time::Duration};

use penstock_executor::{EndingRequest, Job, watched};
use penstock_intake::Verdict;
use penstock_job::{CanonicalSpec, ExitCode, Identity, Incarnation, JobSpec};
use penstock_storage::{Generation, Location, RunLock, RunLockError};
use rustix::process::{Pid, Signal, kill_process};
use thiserror::Error;
use tokio::time::Instant;

use crate::{
    arguments::CancelArguments,
    error::CommandError,
    output::{Output, OutputError, Standing},
    run::{InputError, execute, lock_folder, same_input, scratch},
    signals::Signals,
    view::{Reporter, Screen, Summary, ending_exit_code},
};

/// How long a run may take to leave: a drain of ten seconds, and its last writes.
const PATIENCE: Duration = Duration::from_secs(15);
/// Time between two looks at whether it has left.
const PAUSE: Duration = Duration::from_millis(100);

/// Why a job could not be cancelled.
#[derive(Debug, Error)]
pub(crate) enum CancelError {
    /// Somebody runs it, and it is not known who.
    #[error("stop the run of this job: its process is not known; stop it, then run `penstock cancel` again")]
    Unknown,
    /// The system does not let us.
    #[error(
        "stop the run of this job, pid {pid}: {source}; stop it as its owner, then run `penstock cancel` again"
    )]
    Signal {
        /// Whose process.
        pid: u32,
        /// What the system says.
        source: std::io::Error,
    },
    /// Nobody wants to wait for it any more.
    #[error(
        "wait for the run of this job, pid {pid}, to leave: interrupted; it was asked to stop, so run `penstock cancel` \
         again when it has"
    )]
    Interrupted {
        /// Whose process.
        pid: u32,
    },
    /// It does not leave.
    #[error(
        "stop the run of this job, pid {pid}: it still drains; run `penstock cancel` again when it has ended"
    )]
    Slow {
        /// Whose process.
        pid: u32,
    },
}

impl CancelError {
    /// What the process exits with.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Unknown | Self::Slow { .. } => ExitCode::ClaimLost,
            Self::Interrupted { .. } => ExitCode::Stopped,
            Self::Signal { .. } => ExitCode::Configuration,
        }
    }
}

/// Cancels the job of an output, unless it is over.
pub(crate) async fn cancel(arguments: &CancelArguments, screen: &Screen) -> Result<ExitCode, CommandError> {
    let output = Output::at(Location::parse(&arguments.output).map_err(OutputError::from)?).await?;
    let mut signals = Signals::listen()?;
    let over = |receipt: &penstock_job::Receipt| {
        let mut reporter = Reporter::new(arguments.view, screen, String::new());
        reporter.finished(&Summary { receipt, output: &output, elapsed: None });
        Ok(ending_exit_code(receipt.ending))
    };
    // Without a job there is nothing to lock, and no folder is made.
    let identity = match target(&output).await? {
        Target::Live(spec) => Identity::of(&spec),
        Target::Over(receipt) => return over(&receipt),
    };
    // A run on another machine, as of a bucket there may be, cannot be asked: the claim takes the job over from it.
    let _lock = free(&lock_folder(&output, &identity)?, arguments, screen, &mut signals).await?;
    let spec = match target(&output).await? {
        Target::Live(spec) => *spec,
        Target::Over(receipt) => return over(&receipt),
    };
    let mut reporter = Reporter::new(arguments.view, screen, format!("cancelling {}", output.location()));
    let identity = Identity::of(&spec);
    let (store, steps) = watched(output.store().await?);
    let job = Job {
        spec: JobSpec::default(),
        scratch: scratch(&output, &identity)?,
        input: same_input(&spec).await?,
        canonical: spec,
        identity,
        incarnation: Incarnation::draw(),
        store,
        provider: None,
        ending: Some(EndingRequest::cancelled()),
        steps,
        fail_fast: false,
        participation: None,
        reporting: None,
        claims: Job::CLAIMS,
    };
    execute(job, &output, &mut reporter, &mut signals).await
}

/// What there is to cancel.
enum Target {
    Live(Box<CanonicalSpec>),
    Over(Box<penstock_job::Receipt>),
}

async fn target(output: &Output) -> Result<Target, CommandError> {
    match output.standing().await? {
        Standing::Nothing => Err(CommandError::NoJob(output.location().to_string())),
        Standing::Over(receipt) => Ok(Target::Over(receipt)),
        Standing::Begun(state) => Ok(Target::Live(Box::new(state.job.spec))),
        // An input that was refused has no job; what is said of it is what `run` said. The generation plays no part.
        Standing::Validated(validation) => match Verdict::of(*validation, Generation::new("")) {
            Verdict::Accepted(validation, _) => Ok(Target::Live(Box::new(validation.spec))),
            Verdict::Refused(refusal) => {
                Err(InputError::Refused { refusal: Box::new(refusal), output: output.location().to_string() }
                    .into())
            }
        },
    }
}

/// Takes the run lock, from another process if need be.
async fn free(
    folder: &Path,
    arguments: &CancelArguments,
    screen: &Screen,
    signals: &mut Signals,
) -> Result<RunLock, CommandError> {
    match RunLock::acquire(folder) {
        Err(RunLockError::Held { pid, .. }) => {
            let pid = pid.ok_or(CancelError::Unknown)?;
            let reporter = Reporter::new(arguments.view, screen, String::new());
            reporter
                .note(&format!("asking the run of this job, pid {pid}, to store what is answered and leave"));
            evict(folder, pid, signals).await
        }
        taken => Ok(taken?),
    }
}

/// Asks the run that holds the run lock to stop, and takes the lock when it has.
async fn evict(folder: &Path, pid: u32, signals: &mut Signals) -> Result<RunLock, CommandError> {
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(CancelError::Unknown)?;
    kill_process(process, Signal::TERM).map_err(|errno| CancelError::Signal { pid, source: errno.into() })?;
    let until = Instant::now() + PATIENCE;
    loop {
        match RunLock::acquire(folder) {
            Ok(lock) => return Ok(lock),
            Err(RunLockError::Held { .. }) if Instant::now() < until => {}
            Err(RunLockError::Held { .. }) => return Err(CancelError::Slow { pid }.into()),
            Err(error) => return Err(error.into()),
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            _ = signals.next() => return Err(CancelError::Interrupted { pid }.into()),
        }
    }
}
