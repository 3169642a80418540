//! The last lines of a run: what came out, and where it is. Pure.

use std::time::Duration;

use penstock_job::{
    Epoch, ExitCode, Reason, Receipt,
    layout::{Kind, RECEIPT},
    receipt::ReceiptEnding,
    state::Requests,
    usage::Tokens,
};

use super::{
    event::{Event, milliseconds},
    outcomes,
    quantity::{duration, grouped},
    throttled_share,
};
use crate::output::Output;

/// A job that is over.
#[derive(Debug)]
pub(crate) struct Summary<'a> {
    /// Its proof.
    pub(crate) receipt: &'a Receipt,
    /// Where its files are.
    pub(crate) output: &'a Output,
    /// How long this run took; `None` when the job was over before.
    pub(crate) elapsed: Option<Duration>,
}

/// What `penstock run` exits with when it has read a receipt with this ending.
pub(crate) const fn ending_exit_code(ending: ReceiptEnding) -> ExitCode {
    match ending {
        ReceiptEnding::Completed => ExitCode::Completed,
        ReceiptEnding::Failed => ExitCode::Failed,
        ReceiptEnding::Cancelled | ReceiptEnding::Expired => ExitCode::EndedEarly,
    }
}

impl Summary<'_> {
    /// As text of several lines.
    pub(super) fn text(&self) -> String {
        let Receipt { lines, ending, requests, epochs, .. } = self.receipt;
        let word = ending_word(*ending);
        let lines = grouped(*lines);
        let title = match self.elapsed {
            Some(elapsed) => format!("{word}: {lines} lines in {}", duration(elapsed)),
            None => format!("already {word}: {lines} lines; nothing was sent"),
        };
        let mut rows =
            vec![("lines", outcomes::counts(&self.receipt.outcomes)), ("requests", sent(*requests, *epochs))];
        let tokens = self.receipt.usage.models.total();
        rows.extend((tokens.total() > 0).then(|| ("tokens", used(tokens))));
        rows.extend(self.receipt.cost.map(|cost| ("cost", cost.to_string())));
        rows.extend(self.paths(Kind::Results).into_iter().map(|path| ("results", path)));
        rows.extend(self.paths(Kind::Errors).into_iter().map(|path| ("errors", path)));
        rows.push(("receipt", self.path(RECEIPT)));
        rows.extend(help(*ending).map(|help| ("help", help.to_owned())));
        let rows = rows.into_iter().map(|(label, value)| format!("  {label:9} {value}"));
        [title].into_iter().chain(rows).collect::<Vec<_>>().join("\n")
    }

    /// For programs.
    pub(super) fn event(&self) -> Event<'static> {
        let receipt = self.receipt;
        Event::Finished {
            ending: receipt.ending,
            before: self.elapsed.is_none(),
            lines: receipt.lines,
            outcomes: receipt.outcomes,
            sent: receipt.requests.sent,
            throttled: receipt.requests.throttled,
            tokens: receipt.usage.models.total(),
            cost: receipt.cost,
            results: self.paths(Kind::Results),
            errors: self.paths(Kind::Errors),
            receipt: self.path(RECEIPT),
            elapsed_ms: self.elapsed.map(milliseconds),
            exit_code: ending_exit_code(receipt.ending).code(),
        }
    }

    fn paths(&self, kind: Kind) -> Vec<String> {
        let files = self.receipt.outputs.iter().filter(|output| output.kind == kind);
        files.map(|output| self.path(&output.name)).collect()
    }

    fn path(&self, name: &str) -> String {
        self.output.location().join(name).to_string()
    }
}

/// Requests of all runs. A run that was killed could not say how many of them were its last.
fn sent(requests: Requests, epochs: Epoch) -> String {
    let bound = if epochs > Epoch(1) { "at least " } else { "" };
    let share = throttled_share(requests.throttled, requests.sent);
    format!("{bound}{} sent · 429s {share}", grouped(requests.sent))
}

/// Tokens of all runs.
pub(crate) fn used(tokens: Tokens) -> String {
    let cached = match tokens.cached_input {
        0 => String::new(),
        cached => format!(" ({} cached)", grouped(cached)),
    };
    format!("in {}{cached} · out {}", grouped(tokens.input), grouped(tokens.output))
}

const fn ending_word(ending: ReceiptEnding) -> &'static str {
    match ending {
        ReceiptEnding::Completed => "completed",
        ReceiptEnding::Cancelled => "cancelled",
        ReceiptEnding::Expired => "expired",
        ReceiptEnding::Failed => "failed",
    }
}

/// An input that changed is the only thing that a run fails for with a receipt.
fn help(ending: ReceiptEnding) -> Option<&'static str> {
    match ending {
        ReceiptEnding::Completed => None,
        ReceiptEnding::Cancelled => {
            Some("The lines recorded as cancelled are in the errors; run them as a new job.")
        }
        ReceiptEnding::Expired => Some(Reason::CompletionWindowOver.help()),
        ReceiptEnding::Failed => Some(Reason::InputModified.help()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_several_runs_are_a_lower_bound() {
        let requests = Requests { sent: 271, throttled: 0 };
        assert_eq!(sent(requests, Epoch(1)), "271 sent · 429s 0.0 %");
        assert_eq!(sent(requests, Epoch(2)), "at least 271 sent · 429s 0.0 %");
    }

    #[test]
    fn endings_map_to_the_documented_exit_codes() {
        let codes = [
            (ReceiptEnding::Completed, 0),
            (ReceiptEnding::Failed, 3),
            (ReceiptEnding::Cancelled, 4),
            (ReceiptEnding::Expired, 4),
        ];
        for (ending, code) in codes {
            assert_eq!(ending_exit_code(ending).code(), code);
        }
    }
}
