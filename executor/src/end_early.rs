//! Ending early (E4 of the job protocol): a record for each undone line, in the order of the input.
//!
//! Runs only after the ending was stored (E2) and nothing is in flight (E3).

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use bytes::Bytes;
use penstock_batchfile::{Content, LineName, LineSplitter, Ordinal, Position, RawId, RecordWriter};
use penstock_job::{CanonicalSpec, OrdinalSet, Step, state::Ending};
use penstock_storage::{Chunks, ErrorKind, Input};
use tokio::sync::mpsc;

use crate::{
    results::{Answered, Entry},
    steps::Steps,
};

/// How long to wait before a failed read is repeated.
const READ_PAUSE: Duration = Duration::from_secs(1);

/// The lines to be recorded and how.
#[derive(Debug)]
pub(crate) struct Undone {
    pub(crate) input: Option<Arc<dyn Input>>,
    pub(crate) spec: CanonicalSpec,
    pub(crate) writer: RecordWriter,
    pub(crate) ending: Ending,
    pub(crate) lines: Ordinal,
    pub(crate) completed: OrdinalSet,
    pub(crate) rejected: Arc<OrdinalSet>,
    pub(crate) steps: Steps,
}

/// Sends a record for each undone line; stops early when nobody takes them.
pub(crate) async fn record_undone(undone: Undone, entries: mpsc::Sender<Entry>) {
    let mut next = Ordinal::new(0);
    if let Some(input) = &undone.input {
        // Whatever the input no longer tells is recorded without ids below.
        next = undone.with_ids(&**input, &entries).await;
    }
    while next < undone.lines {
        if undone.is_undone(next) && undone.hand_over(undone.record(next, None), &entries).await.is_err() {
            return;
        }
        next = next.next();
    }
}

impl Undone {
    fn is_undone(&self, ordinal: Ordinal) -> bool {
        !self.completed.contains(ordinal) && !self.rejected.contains(ordinal)
    }

    /// Records lines with their ids, as far as the input can be read; returns the first line not looked at.
    async fn with_ids(&self, input: &dyn Input, entries: &mpsc::Sender<Entry>) -> Ordinal {
        let mut splitter = LineSplitter::new(Position::START, self.spec.max_line_bytes);
        let mut reading = Reading { input, chunks: input.chunks(0..input.size_bytes()), offset: 0 };
        while let Some(chunk) = reading.next(entries).await {
            let mut records = Vec::new();
            let mut visit = |line: penstock_batchfile::Line<'_>| {
                let ordinal = line.position.ordinal;
                if let Content::Whole(bytes) = line.content
                    && ordinal < self.lines
                    && self.is_undone(ordinal)
                {
                    records.push(self.record(ordinal, RawId::find(bytes, self.spec.format).as_ref()));
                }
                ControlFlow::Continue(())
            };
            let _ = splitter.feed(&chunk, &mut visit);
            if reading.offset == input.size_bytes() {
                let _ = splitter.finish(&mut visit);
            }
            for record in records {
                if self.hand_over(record, entries).await.is_err() {
                    return self.lines;
                }
            }
        }
        splitter.position().ordinal
    }

    /// Fails when nobody takes records any more.
    async fn hand_over(
        &self,
        record: Entry,
        entries: &mpsc::Sender<Entry>,
    ) -> Result<(), mpsc::error::SendError<Entry>> {
        self.steps.before(Step::RecordUndone).await;
        entries.send(record).await?;
        self.steps.after(Step::RecordUndone).await;
        Ok(())
    }

    fn record(&self, ordinal: Ordinal, id: Option<&RawId<'_>>) -> Entry {
        let mut record = Vec::with_capacity(256);
        let name = LineName { ordinal, id: id.map(RawId::token) };
        self.writer.undone(name, self.ending.reason.into(), &self.ending.message, &[], &mut record);
        Entry::Outcome(Answered {
            ordinal,
            outcome: self.ending.reason.outcome(),
            record,
            paid: None,
            hold: None,
        })
    }
}

/// The input as far as it was read.
#[derive(Debug)]
struct Reading<'a> {
    input: &'a dyn Input,
    chunks: Box<dyn Chunks + 'a>,
    offset: u64,
}

impl Reading<'_> {
    /// The next bytes; `None` at the end, when the input is not what it was, and when nobody waits any more.
    async fn next(&mut self, entries: &mpsc::Sender<Entry>) -> Option<Bytes> {
        loop {
            match self.chunks.next().await {
                Ok(chunk) => {
                    self.offset += chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
                    return chunk;
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Refused)
                        && !entries.is_closed() =>
                {
                    tracing::warn!(%error, "a read of the input will be repeated");
                    tokio::time::sleep(READ_PAUSE).await;
                    self.chunks = self.input.chunks(self.offset..self.input.size_bytes());
                }
                Err(error) => {
                    tracing::warn!(%error, "the input cannot be read any more; undone lines are recorded without their ids");
                    return None;
                }
            }
        }
    }
}
