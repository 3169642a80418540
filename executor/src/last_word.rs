//! How a process ended, as the pod's termination message and the last report say it.

use penstock_job::{
    Epoch, ExitCode, Identity, Incarnation, JobSpec, LastWord, Reason,
    last_word::{LastWordFormat, ReceiptInBrief},
    receipt::ReceiptEnding,
    report::{Owner, RunRequests},
};

use crate::{board::Progress, clock::now_ms, error::RunError, job::Job, launch::LaunchError, run::Finished};

/// Who speaks: one process of one job.
#[derive(Debug, Clone)]
pub struct Speaker {
    pub(crate) owner: Owner,
    pub(crate) identity: Identity,
    pub(crate) incarnation: Incarnation,
    pub(crate) started_at_ms: u64,
}

impl Speaker {
    /// The process that is about to run this job.
    pub fn of(job: &Job) -> Self {
        let Job { spec: JobSpec { metadata, .. }, identity, incarnation, .. } = job;
        Self {
            owner: metadata.into(),
            identity: identity.clone(),
            incarnation: *incarnation,
            started_at_ms: now_ms(),
        }
    }
}

/// How a process ends.
#[derive(Debug, Clone)]
pub struct End {
    /// What it exits with.
    pub exit_code: ExitCode,
    reason: Option<Reason>,
    message: String,
    receipt: Option<ReceiptInBrief>,
}

impl From<&Finished> for End {
    fn from(finished: &Finished) -> Self {
        match finished {
            Finished::Published { receipt, .. } => Self {
                exit_code: ExitCode::Completed,
                reason: None,
                message: format!("published {}", published(receipt.ending)),
                receipt: Some((&**receipt).into()),
            },
            Finished::Stopped => Self {
                exit_code: ExitCode::Stopped,
                reason: None,
                message: "stopped on request; the same job resumes".to_owned(),
                receipt: None,
            },
        }
    }
}

impl From<&RunError> for End {
    fn from(error: &RunError) -> Self {
        Self {
            exit_code: error.exit_code(),
            reason: error.reason(),
            message: format!("failed to {error}"),
            receipt: None,
        }
    }
}

impl From<&LaunchError> for End {
    fn from(error: &LaunchError) -> Self {
        match error {
            LaunchError::Run(error) => error.into(),
            error => Self {
                exit_code: error.exit_code(),
                reason: None,
                message: format!("failed to {error}"),
                receipt: None,
            },
        }
    }
}

impl End {
    /// Before there was a job to run, for another cause than [`LaunchError`] has words for.
    pub fn before_launch(message: impl Into<String>) -> Self {
        Self { exit_code: ExitCode::Configuration, reason: None, message: message.into(), receipt: None }
    }
}

/// The last word of a process; `speaker` is absent when it ended before it had a job.
pub fn last_word(speaker: Option<&Speaker>, end: &End, progress: &Progress) -> LastWord {
    let End { exit_code, reason, message, receipt } = end.clone();
    // What held the job when it stopped holds the next run too.
    let held_by = progress.reason.as_ref().map(|(reason, _)| *reason);
    LastWord {
        format: LastWordFormat,
        job: speaker.map(|speaker| speaker.owner.clone()).unwrap_or_default(),
        identity: speaker.map(|speaker| speaker.identity.clone()),
        epoch: Epoch(progress.epoch),
        incarnation: speaker.map_or_else(Incarnation::draw, |speaker| speaker.incarnation),
        exit_code,
        stage: progress.stage,
        reason: reason.or(held_by),
        message: message.as_str().into(),
        lines: progress.lines,
        rejected: progress.rejected,
        outcomes: progress.outcomes,
        requests: RunRequests {
            sent: progress.sent,
            throttled: progress.throttled,
            retried: progress.retried,
        },
        tokens: progress.spent.tokens,
        cost: progress.spent.cost,
        receipt,
    }
}

fn published(ending: ReceiptEnding) -> &'static str {
    match ending {
        ReceiptEnding::Completed => "every outcome",
        ReceiptEnding::Cancelled => {
            "what was answered before the job was cancelled; the other lines are recorded as cancelled"
        }
        ReceiptEnding::Expired => {
            "what was answered within the completion window; run the lines recorded as expired again"
        }
        ReceiptEnding::Failed => {
            "what was answered before the job failed; run the lines recorded as abandoned again"
        }
    }
}
