//! The panel on a terminal: always as many lines, whatever happens. Pure.

use std::time::Duration;

use penstock_executor::Spent;
use penstock_job::money::Cost;

use super::{
    Moment, done, outcomes,
    pace::Remaining,
    quantity::{duration, grouped, per_mille, percent, request_rate, short},
    stage_word, throttled_share,
};

/// One line of the panel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// What it is about; drawn in a column of its own.
    pub(super) label: &'static str,
    pub(super) text: String,
}

/// Where the bar stops growing with the terminal.
const LONGEST_BAR: usize = 42;

/// The panel for a terminal of `width` columns.
pub(super) fn panel(moment: &Moment<'_>, width: usize) -> Vec<Line> {
    let (now, help) = now(moment);
    let mut panel = vec![
        Line { label: "", text: title(moment) },
        Line { label: "", text: bar(moment, width) },
        Line { label: "lines", text: lines(moment) },
        Line { label: "rate", text: rate(moment) },
        Line { label: "tokens", text: tokens(moment) },
    ];
    panel.extend(cost(moment).map(|text| Line { label: "cost", text }));
    panel.extend([
        Line { label: "now", text: now },
        Line { label: "help", text: help },
        Line { label: "safe", text: safe(moment) },
    ]);
    panel
}

/// The panel's place while the input is validated.
pub(super) fn validating(heading: &str, percent: u8, comparing: bool) -> Line {
    let what = if comparing { "comparing ids" } else { "validating" };
    Line { label: "", text: format!("{heading}  {what} {percent} %") }
}

fn title(moment: &Moment<'_>) -> String {
    let Moment { heading, progress, elapsed, .. } = moment;
    let epoch = if progress.epoch > 1 { format!(" · epoch {}", progress.epoch) } else { String::new() };
    format!("{heading}  {}{epoch}  for {}", stage_word(progress.stage), duration(*elapsed))
}

fn bar(moment: &Moment<'_>, width: usize) -> String {
    let progress = moment.progress;
    if progress.lines == 0 {
        return "-".to_owned();
    }
    let done = done(progress);
    let figures = format!(
        "{}  {} / {}  ETA {}",
        percent(done, progress.lines),
        grouped(done),
        grouped(progress.lines),
        eta(moment.remaining())
    );
    let columns = width.saturating_sub(figures.len() + 4).clamp(10, LONGEST_BAR);
    let filled = usize::try_from(per_mille(done, progress.lines)).unwrap_or(0) * columns / 1_000;
    format!("{}{}  {figures}", "█".repeat(filled), "░".repeat(columns - filled))
}

/// `6m40s (6m10s-7m30s)`, or `-` where nothing can be told.
pub(super) fn eta(remaining: Option<Remaining>) -> String {
    let whole = |time: Duration| duration(time.max(Duration::from_secs(1)));
    match remaining {
        None => "-".to_owned(),
        Some(Remaining { expected, low, high }) if whole(low) == whole(high) => whole(expected),
        Some(Remaining { expected, low, high }) => {
            format!("{} ({}-{})", whole(expected), whole(low), whole(high))
        }
    }
}

fn lines(moment: &Moment<'_>) -> String {
    let progress = moment.progress;
    let outcomes = progress.outcomes.with_rejected(progress.rejected);
    let mut parts = vec![outcomes::counts(&outcomes), format!("in flight {}", grouped(progress.in_flight))];
    if progress.retried > 0 {
        parts.push(format!(
            "retries {} ({} waiting)",
            grouped(progress.retried),
            grouped(progress.waiting_for_retry)
        ));
    }
    parts.join(" · ")
}

fn rate(moment: &Moment<'_>) -> String {
    let progress = moment.progress;
    let requests = request_rate(moment.pace.requests_per_second());
    let share = throttled_share(progress.throttled, progress.sent);
    // What the learner believes is often also what holds the job back; then it stands there.
    let is_told = progress.reason.as_ref().is_some_and(|(_, evidence)| *evidence == progress.rate);
    if progress.rate.is_empty() || (is_told && moment.stopping.is_none()) {
        format!("{requests} · 429s {share}")
    } else {
        format!("{requests} · 429s {share} · {}", progress.rate)
    }
}

fn tokens(moment: &Moment<'_>) -> String {
    let progress = moment.progress;
    let speed = moment.pace.tokens_per_minute().map_or_else(String::new, |per_minute| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded for display")]
        let per_minute = per_minute as u64;
        format!(" · {}/min", short(per_minute))
    });
    let Spent { tokens, budget, .. } = progress.spent;
    let cached = if tokens.cached_input > 0 {
        format!(" ({} cached)", percent(tokens.cached_input, tokens.input))
    } else {
        String::new()
    };
    let cap = budget.tokens.map_or_else(String::new, |most| format!(" · cap {}", grouped(most.get())));
    format!("in {}{cached} · out {}{speed}{cap}", short(tokens.input), short(tokens.output))
}

/// What the job has cost, will cost and may cost; a job without prices has no such line.
fn cost(moment: &Moment<'_>) -> Option<String> {
    let progress = moment.progress;
    let Spent { cost, budget, .. } = progress.spent;
    let cap = budget.cost.map(|most| format!("cap {most}"));
    let told = match cost {
        None => format!("not known · {}", cap?),
        Some(cost) => {
            let answered = progress.outcomes.succeeded + progress.outcomes.failed;
            let valid = progress.lines.saturating_sub(progress.rejected);
            let projected = cost.amount.projected(answered, valid);
            let projected = projected.map_or("-".to_owned(), |amount| Cost { amount, ..cost }.to_string());
            let told = [Some(cost.to_string()), Some(format!("projected {projected}")), cap];
            told.into_iter().flatten().collect::<Vec<_>>().join(" · ")
        }
    };
    Some(told)
}

/// Why the job is not further, and what helps.
fn now(moment: &Moment<'_>) -> (String, String) {
    if let Some(wait) = moment.stopping {
        let requests = grouped(moment.progress.in_flight);
        return (
            format!("stopping: answers are awaited for {} at most, in flight {requests}", duration(wait)),
            "Ctrl-C again stops at once; these requests are then sent again.".to_owned(),
        );
    }
    match &moment.progress.reason {
        Some((reason, evidence)) => (format!("{reason}: {evidence}"), reason.help().to_owned()),
        None => ("nothing holds the job back".to_owned(), "-".to_owned()),
    }
}

fn safe(moment: &Moment<'_>) -> String {
    let checkpoint = match moment.progress.checkpoint_age {
        None => "no checkpoint yet".to_owned(),
        Some(age) => format!("checkpoint {} ago", duration(age)),
    };
    let exposed = match moment.progress.exposed {
        1 => "1 line".to_owned(),
        exposed => format!("{} lines", grouped(exposed)),
    };
    format!("{checkpoint} · at most {exposed} would be sent again")
}

#[cfg(test)]
mod tests {
    use penstock_executor::{Progress, Stage};
    use penstock_job::{Reason, money::Currency, spec::Budget, state::PartOutcomes, usage::Tokens};

    use super::*;
    use crate::view::pace::Pace;

    fn progress() -> Progress {
        Progress {
            stage: Stage::Running,
            lines: 10_000_000,
            rejected: 12,
            outcomes: PartOutcomes { succeeded: 6_118_188, failed: 214, ..PartOutcomes::default() },
            in_flight: 1_204,
            sent: 1_000,
            throttled: 4,
            epoch: 3,
            reason: Some((Reason::RunningAtLimit, "429 at 9,900 a minute".to_owned())),
            rate: "learned 9,900 a minute".to_owned(),
            checkpoint_age: Some(Duration::from_secs(8)),
            exposed: 1_704,
            ..Progress::default()
        }
    }

    fn drawn(progress: &Progress, stopping: Option<Duration>) -> String {
        let pace = Pace::default();
        let elapsed = Duration::from_mins(602);
        let moment = Moment { heading: "nightly", progress, pace: &pace, elapsed, stopping };
        let lines = panel(&moment, 80).into_iter().map(|line| format!("{:7}{}", line.label, line.text));
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_panel_tells_state_progress_reason_and_risk_in_words() {
        let drawn = drawn(&progress(), None);
        for told in [
            "nightly  running · epoch 3  for 10h02m",
            "61.1 %  6,118,414 / 10,000,000  ETA -",
            "succeeded 6,118,188 · failed 214 · rejected 12 · in flight 1,204",
            "429s 0.4 % · learned 9,900 a minute",
            "RunningAtLimit: 429 at 9,900 a minute",
            Reason::RunningAtLimit.help(),
            "checkpoint 8.0s ago · at most 1,704 lines would be sent again",
        ] {
            assert!(drawn.contains(told), "{told} is not in\n{drawn}");
        }
    }

    #[test]
    fn what_a_job_costs_stands_beside_what_it_will_and_may_cost() {
        let told = |spent: Spent| drawn(&Progress { spent, ..progress() }, None);
        assert!(!told(Spent::default()).contains("cost"), "nothing has a price");
        let tokens = Tokens { input: 1_210_000, cached_input: 774_400, output: 402_000 };
        let cost = Some(Cost { amount: "312.40".parse().unwrap(), currency: Currency::default() });
        let budget = Budget { tokens: 3_000_000.try_into().ok(), cost: "600".parse().ok() };
        let drawn = told(Spent { tokens, before: 0, cost, budget });
        assert!(drawn.contains("tokens in 1.21M (64.0 % cached) · out 402k · cap 3,000,000"), "{drawn}");
        assert!(drawn.contains("cost   312.40 USD · projected 510.60 USD · cap 600.00"), "{drawn}");
        let unpriced = told(Spent { tokens, before: 0, cost: None, budget });
        assert!(unpriced.contains("cost   not known · cap 600.00"), "{unpriced}");
    }

    #[test]
    fn a_rate_that_is_also_the_reason_is_told_once() {
        let learning = "10/min: the start".to_owned();
        let progress = Progress {
            reason: Some((Reason::Learning, learning.clone())),
            rate: learning.clone(),
            ..progress()
        };
        assert_eq!(drawn(&progress, None).matches(&learning).count(), 1);
        assert_eq!(drawn(&progress, Some(Duration::ZERO)).matches(&learning).count(), 1);
    }

    #[test]
    fn a_stop_is_confirmed_with_what_is_awaited() {
        let drawn = drawn(&progress(), Some(Duration::from_mins(10)));
        assert!(drawn.contains("answers are awaited for 10m00s at most, in flight 1,204"), "{drawn}");
        assert!(drawn.contains("Ctrl-C again stops at once"), "{drawn}");
    }

    #[test]
    fn the_time_left_is_an_interval_unless_it_is_certain() {
        let seconds = |low, expected, high| {
            let [low, expected, high] = [low, expected, high].map(Duration::from_secs);
            eta(Some(Remaining { expected, low, high }))
        };
        assert_eq!(seconds(370, 400, 450), "6m40s (6m10s-7m30s)");
        assert_eq!(seconds(400, 400, 400), "6m40s");
        assert_eq!(seconds(0, 0, 0), "1.0s");
        assert_eq!(eta(None), "-");
    }
}
