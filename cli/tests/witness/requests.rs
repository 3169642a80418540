//! What the provider double was asked (T5, T6, and the bound on lines that are sent again).

use std::collections::{BTreeSet, HashMap};

use penstock_simulator::{Fault, LogAnswer, LogEntry};

use super::{Line, Moment};

/// The requests of a log, by line.
#[derive(Debug)]
pub(crate) struct Requests<'a> {
    /// Of each request, in order of arrival, the line.
    lines: Vec<(u64, &'a LogEntry)>,
}

impl<'a> Requests<'a> {
    /// Requests whose prompt is that of none of the lines do not count; prompts must tell the lines apart.
    pub(super) fn of(lines: &[Line], log: &'a [LogEntry]) -> Self {
        let ordinals: HashMap<&str, u64> = lines
            .iter()
            .zip(0u64..)
            .filter(|(line, _)| !line.rejected)
            .map(|(line, ordinal)| (line.prompt.as_str(), ordinal))
            .collect();
        let of_line = |entry: &'a LogEntry| Some((*ordinals.get(entry.prompt.as_str())?, entry));
        Self { lines: log.iter().filter_map(of_line).collect() }
    }

    /// The lines that were asked at all.
    pub(crate) fn asked(&self) -> BTreeSet<u64> {
        self.lines.iter().map(|(ordinal, _)| *ordinal).collect()
    }

    /// How many requests were sent although the one before them, for the same line, was not refused and did not fail: it
    /// was answered, or its client went away.
    pub(crate) fn repeats(&self) -> usize {
        let mut unfailed: BTreeSet<u64> = BTreeSet::new();
        let mut repeats = 0;
        for (ordinal, entry) in &self.lines {
            if unfailed.contains(ordinal) {
                repeats += 1;
            }
            if entry.answer.is_some_and(failed) {
                unfailed.remove(ordinal);
            } else {
                unfailed.insert(*ordinal);
            }
        }
        repeats
    }

    /// T5: the lines that a durable part held at `moment` and that were asked again later; there must be none.
    pub(crate) fn asked_again_since(&self, moment: &Moment) -> BTreeSet<u64> {
        // Sequences count the arrivals from 0.
        let later = self.lines.iter().filter(|(_, entry)| entry.sequence >= moment.requests as u64);
        later.map(|(ordinal, _)| *ordinal).filter(|ordinal| moment.held.contains(ordinal)).collect()
    }
}

/// Whether the provider, not its client, ended the request without a whole answer.
fn failed(answer: LogAnswer) -> bool {
    let whole = matches!(answer.fault, None | Some(Fault::SlowBody { .. } | Fault::OversizedBody { .. }));
    !answer.client_closed && (answer.status != Some(200) || !whole)
}
