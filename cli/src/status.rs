//! `penstock status`: where a job is and why it is not further, from the files of its folder.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use penstock_intake::Verdict;
use penstock_job::{
    ExitCode, Reason,
    receipt::ReceiptEnding,
    state::{Outcomes, Phase, Requests},
};
use penstock_storage::{Generation, Holder, RunLock};
use serde::Serialize;

use crate::{
    arguments::FolderArguments,
    error::CommandError,
    folder::{Folder, Standing},
    lines::Lines,
    view::{duration, grouped, outcomes, percent},
};

/// What is known of a job.
#[derive(Debug, PartialEq, Serialize)]
struct Status {
    /// `Validating`, `Running`, `Finalizing`, `Stopped`, `Completed`, `Cancelled`, `Expired` or `Failed`.
    state: &'static str,
    /// Why it is not further, where there is a word for it.
    reason: Option<Reason>,
    /// What to do next.
    next: String,
    /// Who runs it, where that is known.
    pid: Option<u32>,
    /// How many claims it took so far.
    epoch: u32,
    /// Non-blank lines of the input.
    lines: u64,
    /// Lines with an outcome, as of the last checkpoint: what was answered since is stored too.
    done: u64,
    /// How many lines ended in which way.
    outcomes: Outcomes,
    /// Requests as far as they are known.
    requests: Requests,
    /// Since the last checkpoint; `null` before the first and after the end.
    checkpoint_age_ms: Option<u64>,
}

/// Says where the job of a folder is.
pub(crate) fn status(arguments: &FolderArguments) -> Result<ExitCode, CommandError> {
    let folder = Folder::new(&arguments.folder);
    let standing = folder.standing()?;
    let holder = RunLock::holder(folder.root())?;
    let place = folder.root().display().to_string();
    let Some(status) = describe(standing, holder, &place, now_ms()) else {
        return Err(CommandError::NoJob(place));
    };
    let mut stdout = Lines::stdout();
    if arguments.json {
        stdout.json(&status);
    } else {
        stdout.text(&status.text(&place));
    }
    stdout.flush()?;
    Ok(ExitCode::Completed)
}

/// What the documents and the lock say together; `None` when there is no job.
fn describe(standing: Standing, holder: Option<Holder>, place: &str, now_ms: u64) -> Option<Status> {
    let is_run = holder.is_some();
    let mut status = match standing {
        Standing::Nothing if is_run => Status::new("Validating", "wait for it"),
        Standing::Nothing => return None,
        // The generation plays no part in the verdict.
        Standing::Validated(validation) => match Verdict::of(*validation, Generation::new("")) {
            Verdict::Refused(refusal) => Status {
                reason: Some(refusal.reason),
                lines: refusal.validation.lines,
                ..Status::new("Failed", refusal.message)
            },
            Verdict::Accepted(validation, _) => Status { lines: validation.lines, ..live(is_run, place) },
        },
        Standing::Begun(state) => Status {
            state: match state.phase {
                Phase::Finalizing if is_run => "Finalizing",
                _ => live(is_run, place).state,
            },
            epoch: state.epoch.0,
            lines: state.input.lines,
            done: state.completed.len() + state.input.rejected,
            outcomes: state.outcomes.with_rejected(state.input.rejected),
            requests: state.requests,
            checkpoint_age_ms: Some(now_ms.saturating_sub(state.updated_at_ms)),
            ..live(is_run, place)
        },
        Standing::Over(receipt) => {
            let (state, reason) = match receipt.ending {
                ReceiptEnding::Completed => ("Completed", None),
                ReceiptEnding::Cancelled => ("Cancelled", None),
                ReceiptEnding::Expired => ("Expired", Some(Reason::CompletionWindowOver)),
                ReceiptEnding::Failed => ("Failed", Some(Reason::InputModified)),
            };
            let next = reason.map_or_else(
                || format!("the results are in {place}; check them with `penstock verify {place}`"),
                |reason| reason.help().to_owned(),
            );
            Status {
                reason,
                epoch: receipt.epochs.0,
                lines: receipt.lines,
                done: receipt.lines,
                outcomes: receipt.outcomes,
                requests: receipt.requests,
                ..Status::new(state, next)
            }
        }
    };
    status.pid = holder.and_then(|holder| holder.pid);
    Some(status)
}

/// A job that is not over.
fn live(is_run: bool, place: &str) -> Status {
    if is_run {
        Status::new("Running", format!("wait for it, or end it with `penstock cancel {place}`"))
    } else {
        let next = format!("run the same command again to go on, or end it with `penstock cancel {place}`");
        Status::new("Stopped", next)
    }
}

impl Status {
    fn new(state: &'static str, next: impl Into<String>) -> Self {
        Self {
            state,
            reason: None,
            next: next.into(),
            pid: None,
            epoch: 0,
            lines: 0,
            done: 0,
            outcomes: Outcomes::default(),
            requests: Requests::default(),
            checkpoint_age_ms: None,
        }
    }

    fn text(&self, place: &str) -> String {
        let reason = self.reason.map_or_else(String::new, |reason| format!(" · {reason}"));
        let pid = self.pid.map_or_else(String::new, |pid| format!(" as pid {pid}"));
        let mut rows = vec![format!("{place}: {}{reason}{pid}", self.state)];
        let mut row = |label: &str, value: String| rows.push(format!("  {label:11} {value}"));
        if self.lines > 0 {
            let share = percent(self.done, self.lines);
            // What was answered since the last checkpoint is stored too, and counted when the job goes on.
            let bound = if self.checkpoint_age_ms.is_some() { "at least " } else { "" };
            row("lines", format!("{bound}{} of {} done ({share})", grouped(self.done), grouped(self.lines)));
            if self.done > 0 {
                row("outcomes", outcomes::counts(&self.outcomes));
            }
        }
        if let Some(age) = self.checkpoint_age_ms {
            let age = duration(Duration::from_millis(age));
            row("checkpoint", format!("{age} ago, epoch {}", self.epoch));
        }
        row("next", self.next.clone());
        rows.join("\n")
    }
}

fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing(holder: Option<Holder>) -> Option<Status> {
        describe(Standing::Nothing, holder, "out", 0)
    }

    #[test]
    fn the_documented_fields_are_those_of_the_program() {
        let least = live(false, "out");
        let most = Status {
            reason: Some(Reason::EmptyInput),
            pid: Some(7),
            checkpoint_age_ms: Some(0),
            ..live(true, "out")
        };
        let written = [least, most].map(|status| serde_json::to_value(status).unwrap());
        crate::documented::check_fields("status --json", &written);
    }

    #[test]
    fn an_empty_folder_holds_a_job_only_while_somebody_runs_there() {
        assert_eq!(nothing(None), None);
        let status = nothing(Some(Holder { pid: Some(7) })).unwrap();
        assert_eq!((status.state, status.pid), ("Validating", Some(7)));
    }

    #[test]
    fn a_job_that_nobody_runs_is_stopped_and_says_how_to_go_on() {
        assert_eq!(live(true, "out").state, "Running");
        let stopped = live(false, "out");
        assert_eq!(stopped.state, "Stopped");
        assert!(stopped.text("out").contains("run the same command again"));
    }

    #[test]
    fn what_a_checkpoint_counts_is_told_as_a_lower_bound() {
        let stopped = Status { lines: 300, checkpoint_age_ms: Some(15_000), ..live(false, "out") };
        assert!(stopped.text("out").contains("at least 0 of 300 done"), "{}", stopped.text("out"));
    }
}
