//! `penstock status`: where a job is and why it is not further, from the documents of its output.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use penstock_executor::{Learned, RateGauges, learned};
use penstock_intake::Verdict;
use penstock_job::{
    ExitCode, Identity, Reason, State,
    money::Cost,
    receipt::ReceiptEnding,
    state::{Outcomes, Phase, Requests},
    usage::Tokens,
};
use penstock_storage::{Generation, Holder, Location, RunLock};
use serde::Serialize;

use crate::{
    arguments::StatusArguments,
    error::CommandError,
    lines::Lines,
    output::{Output, OutputError, Standing},
    run::lock_folder,
    view::{duration, grouped, outcomes, percent, used},
};

/// Changes of the rate that are shown unless all are asked for.
const CHANGES: usize = 3;

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
    /// Tokens of all runs, as of the last checkpoint.
    tokens: Tokens,
    /// What they cost; `null` where a price is not known.
    cost: Option<Cost>,
    /// Since the last checkpoint; `null` before the first and after the end.
    checkpoint_age_ms: Option<u64>,
    /// What is believed of the rate and why, as of the last checkpoint; `null` before the first request.
    rate: Option<String>,
    /// The same in numbers.
    gauges: Option<RateGauges>,
    /// The last changes of the rate, oldest first.
    decisions: Vec<Change>,
}

/// A change of the rate.
#[derive(Debug, PartialEq, Serialize)]
struct Change {
    /// How long ago; time between two runs does not count.
    ago_ms: u64,
    /// The model that it is about.
    model: String,
    /// What was decided and why.
    words: String,
}

/// A run writes a checkpoint every 30 s, so three that are missing are a sign that nobody runs.
const SILENCE: Duration = Duration::from_secs(100);

/// What tells whether somebody runs the job.
#[derive(Debug, Clone, Copy)]
struct Sign {
    /// Who holds its run lock on this machine.
    holder: Option<Holder>,
    /// Whether the run lock tells all. Of a job in a bucket there may be a run on another machine, whose one sign of life
    /// is that its last checkpoint is young.
    is_alone: bool,
}

/// Says where the job of an output is.
pub(crate) async fn status(arguments: &StatusArguments) -> Result<ExitCode, CommandError> {
    let location = Location::parse(&arguments.output.output).map_err(OutputError::from)?;
    let output = Output::at(location).await?;
    let standing = output.standing().await?;
    // A job that is over still has its last checkpoint, but its rate matters only to who asks for it.
    let state = match &standing {
        Standing::Begun(state) => Some((**state).clone()),
        Standing::Over(_) if arguments.decisions => output.read::<State>().await?,
        _ => None,
    };
    let sign = sign(&output, &standing)?;
    let place = output.location().to_string();
    let Some(mut status) = describe(standing, sign, &place, now_ms()) else {
        return Err(CommandError::NoJob(place));
    };
    if let Some(state) = state
        && let Some(learned) = learned(state.learner.as_ref())
    {
        let since = Duration::from_millis(now_ms().saturating_sub(state.updated_at_ms));
        let most = if arguments.decisions { usize::MAX } else { CHANGES };
        status.tell_rate(learned, since, most);
    }
    let mut stdout = Lines::stdout();
    if arguments.output.json {
        stdout.json(&status);
    } else {
        stdout.text(&status.text(&place));
    }
    stdout.flush()?;
    Ok(ExitCode::Completed)
}

fn sign(output: &Output, standing: &Standing) -> Result<Sign, CommandError> {
    let folder = match (output.folder(), standing) {
        (Some(folder), _) => Some(folder.to_owned()),
        // Without a place for the states of jobs none has run on this machine.
        (None, Standing::Begun(state)) => lock_folder(output, &Identity::of(&state.job.spec)).ok(),
        (None, Standing::Validated(validation)) => lock_folder(output, &Identity::of(&validation.spec)).ok(),
        (None, Standing::Nothing | Standing::Over(_)) => None,
    };
    let holder = folder.map(|folder| RunLock::holder(&folder)).transpose()?.flatten();
    Ok(Sign { holder, is_alone: output.folder().is_some() })
}

/// What the documents and the sign of life say together; `None` when there is no job.
fn describe(standing: Standing, sign: Sign, place: &str, now_ms: u64) -> Option<Status> {
    let is_run_elsewhere = match &standing {
        Standing::Begun(state) if !sign.is_alone => {
            Duration::from_millis(now_ms.saturating_sub(state.updated_at_ms)) < SILENCE
        }
        _ => false,
    };
    let is_run = sign.holder.is_some() || is_run_elsewhere;
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
            tokens: state.usage.models.total(),
            cost: state.usage.cost(),
            checkpoint_age_ms: Some(now_ms.saturating_sub(state.updated_at_ms)),
            ..if state.usage.reached.is_some() { used_up(is_run, place) } else { live(is_run, place) }
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
                tokens: receipt.usage.models.total(),
                cost: receipt.cost,
                ..Status::new(state, next)
            }
        }
    };
    status.pid = sign.holder.and_then(|holder| holder.pid);
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

/// A job whose budget is used up.
fn used_up(is_run: bool, place: &str) -> Status {
    let next = format!(
        "run the same command with a larger budget to go on, or end the job with `penstock cancel {place}`"
    );
    Status { reason: Some(Reason::CostCapReached), next, ..live(is_run, place) }
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
            tokens: Tokens::default(),
            cost: None,
            checkpoint_age_ms: None,
            rate: None,
            gauges: None,
            decisions: Vec::new(),
        }
    }

    /// What was learned as of a checkpoint this long ago, with so many of the last changes.
    fn tell_rate(&mut self, learned: Learned, since: Duration, most: usize) {
        let Learned { belief, gauges, mut decisions } = learned;
        decisions.drain(..decisions.len().saturating_sub(most));
        let changes = decisions.into_iter().map(|decision| Change {
            ago_ms: u64::try_from((decision.before + since).as_millis()).unwrap_or(u64::MAX),
            model: decision.model,
            words: decision.words,
        });
        self.decisions = changes.collect();
        self.rate = Some(belief);
        self.gauges = Some(gauges);
    }

    /// Changes of the rate, each with how long ago it was made, and with its model where there are several.
    fn changes(&self) -> Vec<String> {
        let several = self.decisions.iter().any(|change| change.model != self.decisions[0].model);
        let told = |Change { ago_ms, model, words }: &Change| {
            let ago = format!("{} ago", duration(Duration::from_millis(*ago_ms)));
            if several { format!("{ago:>10}  {model}: {words}") } else { format!("{ago:>10}  {words}") }
        };
        self.decisions.iter().map(told).collect()
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
        if self.tokens.total() > 0 {
            row("tokens", used(self.tokens));
        }
        if let Some(cost) = self.cost {
            row("cost", cost.to_string());
        }
        if let Some(rate) = &self.rate {
            row("rate", rate.clone());
        }
        for (index, change) in self.changes().into_iter().enumerate() {
            row(if index == 0 { "changes" } else { "" }, change);
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
    use penstock_executor::Decision;
    use penstock_job::money::Currency;

    use super::*;

    /// What was learned of these models, with four changes of each.
    fn rate(models: &[&str]) -> Learned {
        let decision = |number: u64, model: &str| Decision {
            before: Duration::from_secs(100 - number),
            model: model.to_owned(),
            words: format!("change {number}"),
        };
        let decisions = (0..4).flat_map(|number| models.iter().map(move |model| decision(number, model)));
        let gauges = RateGauges {
            rpm_target: Some(60),
            effective_rpm: Some(60.0),
            p95_tokens: Some(7),
            refusals: 0,
            learned_utilisation: Some(0.98),
            stated_utilisation: Some(0.98),
        };
        Learned { belief: "holding 60/min".to_owned(), gauges, decisions: decisions.collect() }
    }

    fn nothing(holder: Option<Holder>) -> Option<Status> {
        describe(Standing::Nothing, Sign { holder, is_alone: true }, "out", 0)
    }

    #[test]
    fn the_documented_fields_are_those_of_the_program() {
        let least = live(false, "out");
        let most = Status {
            reason: Some(Reason::EmptyInput),
            pid: Some(7),
            checkpoint_age_ms: Some(0),
            cost: Some(Cost { amount: "0.25".parse().unwrap(), currency: Currency::default() }),
            ..live(true, "out")
        };
        let mut most = most;
        most.tell_rate(rate(&["one"]), Duration::ZERO, 1);
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
    fn the_rate_is_told_with_its_last_changes() {
        let mut status = live(true, "out");
        status.tell_rate(rate(&["m"]), Duration::from_secs(30), CHANGES);
        let text = status.text("out");
        for line in [
            "  rate        holding 60/min\n",
            "  changes      2m09s ago  change 1\n",
            "               2m07s ago  change 3\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert!(!text.contains("change 0"), "{text}");
        status.tell_rate(rate(&["one", "two"]), Duration::from_secs(30), usize::MAX);
        assert!(status.text("out").contains("2m10s ago  one: change 0"), "{}", status.text("out"));
        assert_eq!(status.decisions.len(), 8);
    }

    #[test]
    fn what_a_checkpoint_counts_is_told_as_a_lower_bound() {
        let stopped = Status { lines: 300, checkpoint_age_ms: Some(15_000), ..live(false, "out") };
        assert!(stopped.text("out").contains("at least 0 of 300 done"), "{}", stopped.text("out"));
    }
}
