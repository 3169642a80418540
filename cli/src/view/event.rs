//! One JSON object a line on stdout, for programs (`--json`). Names and meanings of the fields are an interface.

use penstock_executor::{Progress, RateGauges};
use penstock_job::{
    Reason, money::Cost, receipt::ReceiptEnding, spec::Budget, state::Outcomes, usage::Tokens,
};
use serde::Serialize;

use super::{Moment, done, quantity::per_mille, stage_word};

/// Something that happened. `event` names the kind; durations are whole milliseconds or seconds as their names say.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event<'a> {
    /// The job is known.
    Started {
        /// Canonical path of the input.
        input: &'a str,
        /// The output folder.
        output: &'a str,
        /// The job's identity, 64 hex digits.
        identity: &'a str,
    },
    /// The input is being validated.
    Validating {
        /// Whole percent of the pass.
        percent: u8,
        /// Whether this is the second pass, over ids that may repeat.
        comparing_ids: bool,
    },
    /// The job goes on; about once a second, and whenever `stage` changes.
    Progress(Box<Picture<'a>>),
    /// The run was asked to stop.
    Stopping {
        /// How long answers to requests in flight are awaited.
        wait_seconds: u64,
    },
    /// The last event of a run: the job is over.
    Finished {
        /// `completed`, `cancelled`, `expired` or `failed`.
        ending: ReceiptEnding,
        /// Whether it was over before, so that nothing was sent.
        before: bool,
        /// Non-blank lines of the input.
        lines: u64,
        /// How many lines ended in which way; their sum is `lines`.
        outcomes: Outcomes,
        /// Requests of all runs of the job, at least.
        sent: u64,
        /// Of these, refused for the rate.
        throttled: u64,
        /// Tokens of all runs of the job, at least.
        tokens: Tokens,
        /// What they cost; `null` where a price is not known.
        cost: Option<Cost>,
        /// Paths of the files with the lines that succeeded.
        results: Vec<String>,
        /// Paths of the files with all other lines.
        errors: Vec<String>,
        /// Path of the receipt.
        receipt: String,
        /// How long this run took; `null` when nothing was done.
        elapsed_ms: Option<u64>,
        /// What the process exits with.
        exit_code: u8,
    },
    /// The last event of a run: stopped as asked; the same command resumes.
    Stopped {
        /// Lines that are done.
        done: u64,
        /// Non-blank lines of the input; 0 when it was not yet known.
        lines: u64,
        /// What the process exits with.
        exit_code: u8,
    },
    /// The last event of a run: it failed.
    Failed {
        /// What went wrong and what to do.
        message: &'a str,
        /// The reason, where there is a word for it.
        reason: Option<Reason>,
        /// What the process exits with.
        exit_code: u8,
    },
}

/// A moment of a run, in numbers.
#[derive(Debug, Serialize)]
pub(crate) struct Picture<'a> {
    /// `starting`, `running`, `stopping`, `ending`, `checking` or `publishing`.
    stage: &'static str,
    /// Since this run began.
    elapsed_ms: u64,
    /// Which claim of the job this is; 0 before it.
    epoch: u32,
    /// Non-blank lines of the input.
    lines: u64,
    /// Lines with an outcome.
    done: u64,
    /// The same in percent, to one tenth, rounded down.
    percent: f64,
    /// Lines that were done when this run began.
    adopted: u64,
    /// How many lines ended in which way.
    outcomes: Outcomes,
    /// Requests in flight.
    in_flight: u64,
    /// Lines that wait for another attempt.
    waiting_for_retry: u64,
    /// Attempts of this run that failed and are repeated.
    retried: u64,
    /// Requests of this run.
    sent: u64,
    /// Of these, refused for the rate.
    throttled: u64,
    /// Lately; `null` until it means something.
    requests_per_second: Option<f64>,
    /// What the job has used up, earlier runs included.
    tokens: Tokens,
    /// What that cost; `null` where a price is not known.
    cost: Option<Cost>,
    /// What the job may use up.
    budget: Budget,
    /// What the learner believes, in a sentence.
    rate: &'a str,
    /// The same in numbers.
    gauges: RateGauges,
    /// Why the job is not further; `null` when nothing holds it back.
    reason: Option<Cause<'a>>,
    /// Time until every line is done; `null` until it means something, and while the run is stopping.
    eta_seconds: Option<Eta>,
    /// Since the last checkpoint; `null` before the first.
    checkpoint_age_ms: Option<u64>,
    /// Lines that would be sent again if this machine were lost now.
    exposed: u64,
}

/// Why a job is not further.
#[derive(Debug, Serialize)]
struct Cause<'a> {
    word: Reason,
    evidence: &'a str,
    help: &'static str,
}

/// The time that is left, and the interval around it.
#[derive(Debug, Serialize)]
struct Eta {
    expected: u64,
    low: u64,
    high: u64,
}

impl<'a> Picture<'a> {
    /// The picture of a moment.
    pub(super) fn of(moment: &Moment<'a>) -> Self {
        let Moment { progress, pace, elapsed, .. } = *moment;
        let done = done(progress);
        Self {
            stage: stage_word(progress.stage),
            elapsed_ms: milliseconds(elapsed),
            epoch: progress.epoch,
            lines: progress.lines,
            done,
            percent: percent(done, progress),
            adopted: progress.adopted,
            outcomes: progress.outcomes.with_rejected(progress.rejected),
            in_flight: progress.in_flight,
            waiting_for_retry: progress.waiting_for_retry,
            retried: progress.retried,
            sent: progress.sent,
            throttled: progress.throttled,
            requests_per_second: pace.requests_per_second(),
            tokens: progress.spent.tokens,
            cost: progress.spent.cost,
            budget: progress.spent.budget,
            rate: &progress.rate,
            gauges: progress.gauges,
            reason: progress.reason.as_ref().map(|(word, evidence)| Cause {
                word: *word,
                evidence,
                help: word.help(),
            }),
            eta_seconds: moment.remaining().map(|remaining| Eta {
                expected: remaining.expected.as_secs(),
                low: remaining.low.as_secs(),
                high: remaining.high.as_secs(),
            }),
            checkpoint_age_ms: progress.checkpoint_age.map(milliseconds),
            exposed: progress.exposed,
        }
    }
}

fn percent(done: u64, progress: &Progress) -> f64 {
    // Nothing is known before the claim.
    let per_mille = if progress.lines == 0 { 0 } else { per_mille(done, progress.lines) };
    f64::from(u16::try_from(per_mille).unwrap_or(1_000)) / 10.0
}

/// Whole milliseconds.
pub(super) fn milliseconds(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use penstock_executor::{Spent, Stage};
    use penstock_job::money::Currency;
    use serde_json::{Value, json};

    use super::*;
    use crate::{documented, view::pace::Pace};

    /// The picture of a moment in which everything is known, and of one in which nothing is.
    fn pictures() -> [Value; 2] {
        let mut pace = Pace::default();
        let mut progress = Progress {
            lines: 300,
            reason: Some((Reason::AtOwnLimit, String::new())),
            checkpoint_age: Some(Duration::ZERO),
            gauges: RateGauges { rpm_target: Some(1), ..RateGauges::default() },
            spent: Spent { cost: Some(cost()), ..Spent::default() },
            ..Progress::default()
        };
        for second in 0..60 {
            progress.outcomes.succeeded = second;
            pace.record(Duration::from_secs(second), &progress);
        }
        [(&progress, &pace), (&Progress::default(), &Pace::default())].map(|(progress, pace)| {
            let moment = Moment { heading: "in", progress, pace, elapsed: Duration::ZERO, stopping: None };
            value(&Event::Progress(Box::new(Picture::of(&moment))))
        })
    }

    fn cost() -> Cost {
        Cost { amount: "12.50".parse().unwrap(), currency: Currency::default() }
    }

    /// Each kind of event, with all that it may hold and with as little as it may hold.
    fn samples() -> Vec<Vec<Value>> {
        let finished = |elapsed_ms: Option<u64>| Event::Finished {
            ending: ReceiptEnding::Completed,
            before: elapsed_ms.is_none(),
            lines: 1,
            outcomes: Outcomes::default(),
            sent: 1,
            throttled: 0,
            tokens: Tokens::default(),
            cost: elapsed_ms.map(|_| cost()),
            results: vec![String::new()],
            errors: vec![String::new()],
            receipt: String::new(),
            elapsed_ms,
            exit_code: 0,
        };
        let failed = |reason| Event::Failed { message: "", reason, exit_code: 3 };
        let values = |events: &[Event<'_>]| events.iter().map(value).collect::<Vec<_>>();
        vec![
            values(&[Event::Started { input: "", output: "", identity: "" }]),
            values(&[Event::Validating { percent: 0, comparing_ids: false }]),
            pictures().to_vec(),
            values(&[Event::Stopping { wait_seconds: 0 }]),
            values(&[finished(Some(1)), finished(None)]),
            values(&[Event::Stopped { done: 0, lines: 0, exit_code: 75 }]),
            values(&[failed(Some(Reason::EmptyInput)), failed(None)]),
        ]
    }

    /// An event as it is written. Whoever adds a kind is led here, and from here to the samples.
    fn value(event: &Event<'_>) -> Value {
        let kind = match event {
            Event::Started { .. } => "started",
            Event::Validating { .. } => "validating",
            Event::Progress(_) => "progress",
            Event::Stopping { .. } => "stopping",
            Event::Finished { .. } => "finished",
            Event::Stopped { .. } => "stopped",
            Event::Failed { .. } => "failed",
        };
        let value = serde_json::to_value(event).unwrap();
        assert_eq!(value["event"], kind);
        value
    }

    #[test]
    fn the_documented_events_and_their_fields_are_those_of_the_program() {
        let samples = samples();
        let kinds: Vec<_> = samples.iter().map(|events| events[0]["event"].as_str().unwrap()).collect();
        assert_eq!(documented::headings("###", "Events"), kinds);
        for (kind, events) in kinds.iter().zip(&samples) {
            documented::check_fields(kind, events);
        }
    }

    #[test]
    fn the_documented_stages_are_those_of_the_program() {
        let row = documented::table("progress").into_iter().find(|row| row[0] == "stage").unwrap();
        let words: Vec<_> = row[2].split(", ").map(str::to_owned).collect();
        let stages = [
            Stage::Claiming,
            Stage::Running,
            Stage::Held,
            Stage::Draining,
            Stage::Ending,
            Stage::Reconciling,
            Stage::Publishing,
        ];
        assert_eq!(words, stages.map(stage_word));
    }

    #[test]
    fn a_moment_is_one_flat_object_that_names_its_kind() {
        let progress = Progress {
            lines: 300,
            rejected: 1,
            reason: Some((Reason::AtOwnLimit, "60 a minute".to_owned())),
            rate: "fixed".to_owned(),
            spent: Spent { cost: Some(cost()), ..Spent::default() },
            ..Progress::default()
        };
        let pace = Pace::default();
        let elapsed = Duration::from_millis(1_500);
        let moment = Moment { heading: "in", progress: &progress, pace: &pace, elapsed, stopping: None };
        let event = serde_json::to_value(Event::Progress(Box::new(Picture::of(&moment)))).unwrap();
        let expected = json!({
            "event": "progress", "stage": "starting", "elapsed_ms": 1500, "epoch": 0, "lines": 300, "done": 1,
            "percent": 0.3, "adopted": 0,
            "outcomes": {"succeeded": 0, "failed": 0, "rejected": 1, "expired": 0, "cancelled": 0, "abandoned": 0},
            "in_flight": 0, "waiting_for_retry": 0, "retried": 0, "sent": 0, "throttled": 0,
            "requests_per_second": null, "tokens": {"input": 0, "cached_input": 0, "output": 0},
            "cost": {"amount": "12.50", "currency": "USD"}, "budget": {"tokens": null, "cost": null}, "rate": "fixed",
            "gauges": {
                "rate.rpm_target": null, "rate.effective_rpm": null, "rate.p95_tokens": null, "rate.429_events": 0,
                "rate.learned_utilisation": null, "rate.stated_utilisation": null,
            },
            "reason": {"word": "AtOwnLimit", "evidence": "60 a minute", "help": Reason::AtOwnLimit.help()},
            "eta_seconds": null, "checkpoint_age_ms": null, "exposed": 0,
        });
        assert_eq!(event, expected);
    }
}
