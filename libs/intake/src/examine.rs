//! The passes over an input, with the threads that they work on. Both users of the intake go through here.

use std::{path::PathBuf, sync::Arc};

use crate::{
    IntakeError,
    digest::Digests,
    external_sort::{ExternalSort, Record},
    fault::FaultSink,
    feed::{Chunks, answer, feed, work},
    pass::first_pass,
    reading::{Reading, Stage},
    repeated::second_pass,
    rules::LineRules,
    seen::{KeyOf, key_of},
    summary::Summary,
};

/// Memory of each sort; two are at work at once at most.
const SORT_BYTES: usize = 8 << 20;

/// How lines are checked and ids compared.
#[derive(Debug)]
pub(crate) struct Method {
    pub(crate) rules: LineRules,
    pub(crate) key_of: KeyOf,
    /// The folder for what does not fit into memory.
    pub(crate) scratch: PathBuf,
    /// How much a sort holds in memory.
    pub(crate) sort_bytes: usize,
}

impl Method {
    /// A sort as large as this method allows.
    pub(crate) fn sort<R: Record>(&self) -> ExternalSort<R> {
        ExternalSort::new(&self.scratch, self.sort_bytes)
    }

    /// The usual method for these rules.
    pub(crate) fn new(rules: LineRules, reading: &Reading<'_>) -> Self {
        Self { rules, key_of, scratch: reading.scratch.to_owned(), sort_bytes: SORT_BYTES }
    }
}

/// Examines the whole input. The faults go to `sink`, which is dropped at the end.
pub(crate) async fn examine<S: FaultSink>(
    reading: &Reading<'_>,
    method: Method,
    mut sink: S,
) -> Result<Summary, IntakeError> {
    let method = Arc::new(method);
    let size_bytes = reading.input.size_bytes();

    let (lines_outlet, lines) = Chunks::channel(size_bytes);
    let (digest_outlet, bytes) = Chunks::channel(size_bytes);
    let digesting = work(move || Digests::of(bytes));
    let checking = work({
        let method = Arc::clone(&method);
        move || first_pass(lines, &method, &mut sink).map(|found| (found, sink))
    });
    let fed = feed(reading, Stage::Checking, vec![lines_outlet, digest_outlet]).await;
    let (checked, digests) = (answer(checking).await, answer(digesting).await);
    // Why a worker ended early is known to the feed, or else to the worker itself.
    fed?;
    let ((mut found, mut sink), digests) = (checked?, digests?);

    if !found.suspects.is_empty() {
        let (outlet, lines) = Chunks::channel(size_bytes);
        let comparing = work(move || second_pass(lines, &method, &mut found, &mut sink).map(|()| found));
        let fed = feed(reading, Stage::ComparingIds, vec![outlet]).await;
        let compared = answer(comparing).await;
        fed?;
        found = compared?;
    }
    Ok(found.tally.summary(digests.describe(reading.input)))
}
