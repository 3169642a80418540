//! The checks of the job protocol from outside: what lies in the output, what the provider double was asked, and
//! how both changed while a test went on. Nothing here uses Penstock's own readers or counters.
//!
//! | check | where |
//! |---|---|
//! | T1, T2: what is published is what the receipt says, and each line is there once under its own id | `published` |
//! | T3, T4: what the states of one job may say one after another | `history` |
//! | T3 (the listed parts), T9, T10: what may lie in the output at which time | `judge`, told by `watcher` |
//! | T5, T6: what may be asked of the provider again | `requests` |
//!
//! T7, T8, T11 and T12 are scenarios, whose tests end with these checks. T13 is a measure, and belongs to the benchmarks.

mod history;
mod judge;
pub(crate) mod output;
mod published;
mod requests;
mod watcher;

use std::{collections::BTreeSet, fs};

use penstock_simulator::LogEntry;
use serde_json::Value;

use judge::Damaged;
pub(crate) use output::{Contents, Output};
pub(crate) use published::Published;
pub(crate) use requests::Requests;
use watcher::Watcher;

/// One line of the input, as the test wrote it.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// Its id as JSON; null where it has none that can be read.
    pub(crate) id: Value,
    /// What the double logs of its request.
    pub(crate) prompt: String,
    /// Whether validation must reject it.
    pub(crate) rejected: bool,
}

/// Looks on while a job runs, dies and is resumed.
#[derive(Debug)]
pub(crate) struct Witness {
    output: Output,
    lines: Vec<Line>,
    damaged: Damaged,
    watcher: Watcher,
}

/// What was safe at one moment.
#[derive(Debug)]
pub(crate) struct Moment {
    /// How many requests the double had received.
    pub(crate) requests: usize,
    /// The lines held by durable parts of epochs that are not sealed, or listed.
    pub(crate) held: BTreeSet<u64>,
}

impl Witness {
    /// Begins to watch an output, in which nothing need be yet. `lines` are the input's lines that are not blank.
    pub(crate) fn of(output: Output, lines: Vec<Line>) -> Self {
        if let Output::Folder(folder) = &output {
            fs::create_dir_all(folder).unwrap();
        }
        let damaged = Damaged::default();
        let watcher = Watcher::start(&output, damaged.clone());
        Self { output, lines, damaged, watcher }
    }

    /// The test is about to damage or delete an object itself.
    pub(crate) fn expect_damage(&self, name: &str) {
        self.damaged.add(name);
    }

    /// What is safe now, while no executor lives: no later request may be for one of these lines (T5).
    pub(crate) fn moment(&self, log: &[LogEntry]) -> Moment {
        Moment { requests: log.len(), held: output::held(&*self.output.now(), &self.damaged.names()) }
    }

    /// Which requests were for which line.
    pub(crate) fn requests<'a>(&'a self, log: &'a [LogEntry]) -> Requests<'a> {
        Requests::of(&self.lines, log)
    }

    /// T1 and T2, now.
    pub(crate) fn published(&self) -> Published {
        published_now(&self.output, &self.lines)
    }

    /// The same of an output that nobody has watched.
    pub(crate) fn published_in(&self, contents: &dyn Contents) -> Published {
        published::check(contents, &self.lines).unwrap_or_else(|problem| panic!("{problem}"))
    }

    /// Ends the watch; every check over time must have held, and what is published must still be there.
    pub(crate) fn finish(self) -> Published {
        let problems = self.watcher.finish();
        assert!(problems.is_empty(), "{}: {}", self.output, problems.join("; "));
        published_now(&self.output, &self.lines)
    }
}

fn published_now(output: &Output, lines: &[Line]) -> Published {
    published::check(&*output.now(), lines).unwrap_or_else(|problem| panic!("{output}: {problem}"))
}
