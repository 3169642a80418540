//! The collect loop: appends outcomes to the parts under construction and hands full or old ones to their uploaders.

use std::{
    collections::BTreeMap,
    io,
    path::PathBuf,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use penstock_batchfile::{Ordinal, OutcomeKind};
use penstock_job::{
    Epoch, OrdinalSet, Reason, Step,
    layout::{Kind, PartName},
    state::Part,
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    interval::flush_interval,
    part_file::PartFile,
    upload::{Order, upload},
};
use crate::{
    board::Board,
    budget::Reservation,
    error::RunError,
    halt::Halt,
    ledger::Ledger,
    meter::{Meter, Paid},
    output::Output,
    state_object::REFUSED_PAUSE,
};

/// Outcomes in one part, by count.
const FLUSH_OUTCOMES: usize = 500;
/// Records of undone lines in one part: they are small and come all at once.
const FLUSH_UNDONE: usize = 50_000;
/// Outcomes in one part, by bytes.
const FLUSH_BYTES: u64 = 50_000_000;
/// Outcomes appended with one write.
const BATCH: usize = 256;

/// A final outcome of one line with its record.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) ordinal: Ordinal,
    pub(crate) outcome: OutcomeKind,
    /// One line of JSON with its newline.
    pub(crate) record: Vec<u8>,
    /// What was paid for it, where anybody counted that.
    pub(crate) paid: Option<Paid>,
    /// What the line holds until the record is appended; `None` for records that hold nothing.
    pub(crate) hold: Option<Hold>,
}

/// What a line holds until its record is appended: the memory of its answer, and its slot. A line is in flight until
/// then, so a killed process sends no more lines again than were in flight.
#[derive(Debug)]
#[expect(dead_code, reason = "held for their drop, which tells whoever waits")]
pub(crate) struct Hold {
    pub(crate) reservation: Reservation,
    pub(crate) appended: oneshot::Sender<()>,
}

/// What the collect loop is told.
#[derive(Debug)]
pub(crate) enum Entry {
    Outcome(Answered),
    /// Make everything before this durable and listed, then answer.
    Flush(oneshot::Sender<()>),
}

/// The collect loop's state.
#[derive(Debug)]
pub(crate) struct Collector {
    pub(crate) output: Output,
    pub(crate) ledger: Ledger,
    pub(crate) meter: Arc<Meter>,
    pub(crate) board: Arc<Board>,
    pub(crate) scratch: PathBuf,
    pub(crate) epoch: Epoch,
    /// The next part's sequence; it outlives the loop, since a job may go through several.
    pub(crate) sequence: u32,
    /// Lines that have an outcome: one slot for each (R1).
    pub(crate) taken: OrdinalSet,
    /// Parts in the manifest.
    pub(crate) rows: usize,
    /// Of these, made because time was up.
    pub(crate) by_time: u32,
}

/// Whether a listed part was closed before it was full.
pub(crate) fn made_by_time(part: &Part) -> bool {
    (part.lines as usize) < FLUSH_OUTCOMES && part.size_bytes < FLUSH_BYTES
}

/// Runs until every sender is gone and everything is listed, or until `halt`. After `quit` nothing is uploaded any more,
/// and what still comes is only appended, for the next run on this machine. Returns the next sequence.
pub(crate) async fn collect(
    collector: Collector,
    entries: mpsc::Receiver<Entry>,
    halt: Halt,
    quit: CancellationToken,
) -> u32 {
    let mut uploads = JoinSet::new();
    let mut uploaders = BTreeMap::new();
    for kind in Kind::ALL {
        // One part under way and one waiting; a third makes the loop wait, and dispatch with it.
        let (orders, received) = mpsc::channel(1);
        uploads.spawn(upload(
            received,
            collector.output.clone(),
            collector.ledger.clone(),
            Arc::clone(&collector.board),
            halt.clone(),
            quit.clone(),
        ));
        uploaders.insert(kind, orders);
    }
    let mut parts = Parts { collector, uploaders, quit, open: BTreeMap::new() };
    tokio::select! {
        result = parts.run(entries) => if let Err(cause) = result { halt.because(cause) },
        () = halt.wait() => {}
    }
    let Parts { collector, uploaders, .. } = parts;
    drop(uploaders);
    uploads.join_all().await;
    collector.sequence
}

#[derive(Debug)]
struct Parts {
    collector: Collector,
    uploaders: BTreeMap<Kind, mpsc::Sender<Order>>,
    quit: CancellationToken,
    open: BTreeMap<Kind, PartFile>,
}

impl Parts {
    async fn run(&mut self, mut entries: mpsc::Receiver<Entry>) -> Result<(), RunError> {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let due = self.open.values().map(|part| part.since + self.interval()).min();
            tokio::select! {
                received = entries.recv_many(&mut batch, BATCH) => {
                    if received == 0 {
                        break;
                    }
                    // The first outcome wakes this loop at once. Who else is ready hands over now, so that one write
                    // takes many: 100,000 requests on one core switch threads 15,000 times instead of 110,000.
                    tokio::task::yield_now().await;
                    while batch.len() < BATCH
                        && let Ok(entry) = entries.try_recv()
                    {
                        batch.push(entry);
                    }
                    self.take(&mut batch).await?;
                }
                () = async { tokio::time::sleep_until(due.unwrap_or_else(Instant::now)).await }, if due.is_some() => {
                    self.flush_old().await?;
                }
            }
        }
        self.flush_all().await
    }

    fn interval(&self) -> Duration {
        flush_interval(self.collector.by_time, self.collector.rows)
    }

    async fn take(&mut self, batch: &mut Vec<Entry>) -> Result<(), RunError> {
        let mut outcomes = Vec::with_capacity(batch.len());
        for entry in batch.drain(..) {
            match entry {
                Entry::Outcome(answered) => outcomes.push(answered),
                Entry::Flush(reached) => {
                    self.append(std::mem::take(&mut outcomes)).await?;
                    self.flush_all().await?;
                    // Whoever asked may have given up waiting.
                    let _ = reached.send(());
                }
            }
        }
        self.append(outcomes).await
    }

    /// Appends outcomes, each to the part of its kind; a line that has an outcome already keeps its first.
    async fn append(&mut self, outcomes: Vec<Answered>) -> Result<(), RunError> {
        let mut accepted: Vec<Answered> = Vec::with_capacity(outcomes.len());
        for answered in outcomes {
            if self.collector.taken.insert(answered.ordinal) {
                accepted.push(answered);
            } else {
                tracing::warn!(ordinal = %answered.ordinal, "a second outcome of one line was dropped");
            }
        }
        let (results, errors): (Vec<_>, Vec<_>) =
            accepted.into_iter().partition(|answered| answered.outcome == OutcomeKind::Succeeded);
        for (kind, outcomes) in [(Kind::Results, results), (Kind::Errors, errors)] {
            if !outcomes.is_empty() {
                self.append_kind(kind, outcomes).await?;
            }
        }
        Ok(())
    }

    async fn append_kind(&mut self, kind: Kind, outcomes: Vec<Answered>) -> Result<(), RunError> {
        let mut records = Vec::with_capacity(outcomes.iter().map(|answered| answered.record.len()).sum());
        let mut lines = Vec::with_capacity(outcomes.len());
        let mut holds = Vec::with_capacity(outcomes.len());
        let mut paid = Vec::with_capacity(outcomes.len());
        for answered in outcomes {
            records.extend_from_slice(&answered.record);
            lines.push((answered.ordinal, answered.outcome));
            paid.extend(answered.paid);
            holds.push(answered.hold);
        }
        let Some(mut part) = self.write(kind, records, lines.clone()).await? else {
            return Ok(());
        };
        self.collector.output.steps().after(Step::Append).await;
        for paid in &paid {
            part.pay(paid);
            self.collector.meter.count(paid);
        }
        self.collector.board.spends(self.collector.meter.spent());
        // The answers are in the file now: memory and slots are given back.
        drop(holds);
        let undone =
            lines.iter().all(|(_, outcome)| !matches!(outcome, OutcomeKind::Succeeded | OutcomeKind::Failed));
        let most = if undone { FLUSH_UNDONE } else { FLUSH_OUTCOMES };
        let full = part.lines() >= most || part.size_bytes() >= FLUSH_BYTES;
        self.open.insert(kind, part);
        self.collector.board.unlisted.fetch_add(lines.len() as u64, Relaxed);
        self.collector.board.count(&lines.iter().map(|(_, outcome)| *outcome).collect::<Vec<_>>());
        if full { self.flush(kind).await } else { Ok(()) }
    }

    /// Writes until it works: the answers are paid for. Gives back the part, which is not in `open` meanwhile; `None`
    /// when the run must leave first.
    async fn write(
        &mut self,
        kind: Kind,
        records: Vec<u8>,
        lines: Vec<(Ordinal, OutcomeKind)>,
    ) -> Result<Option<PartFile>, RunError> {
        let mut part = self.open.remove(&kind);
        let name = part.as_ref().map_or_else(|| self.next_name(kind), PartFile::name);
        let mut content = (records, lines);
        loop {
            let folder = self.collector.scratch.clone();
            let attempt = tokio::task::spawn_blocking(move || {
                let opened = part.map_or_else(|| PartFile::create(&folder, name), Ok);
                match opened {
                    Ok(mut file) => {
                        let result = file.append(&content.0, &content.1);
                        (Some(file), content, result)
                    }
                    Err(error) => (None, content, Err(error)),
                }
            });
            match attempt.await.map_err(|error| RunError::Defect(error.to_string()))? {
                (Some(file), _, Ok(())) => {
                    self.collector.board.clear(Reason::StorageRefused);
                    return Ok(Some(file));
                }
                _ if self.quit.is_cancelled() => return Ok(None),
                (file, returned, result) => {
                    (part, content) = (file, returned);
                    self.refused(result.err()).await;
                }
            }
        }
    }

    fn next_name(&mut self, kind: Kind) -> PartName {
        let name = PartName { epoch: self.collector.epoch, sequence: self.collector.sequence, kind };
        self.collector.sequence += 1;
        name
    }

    async fn refused(&self, error: Option<io::Error>) {
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        let folder = self.collector.scratch.display();
        self.collector
            .board
            .raise(Reason::StorageRefused, format!("failed to write below {folder}: {error}"));
        // A run that must leave tries once more at once.
        let _ = tokio::time::timeout(REFUSED_PAUSE, self.quit.cancelled()).await;
    }

    async fn flush_old(&mut self) -> Result<(), RunError> {
        let now = Instant::now();
        let interval = self.interval();
        let old: Vec<_> = self
            .open
            .iter()
            .filter(|(_, part)| part.since + interval <= now)
            .map(|(kind, _)| *kind)
            .collect();
        for kind in old {
            self.collector.by_time += 1;
            self.flush(kind).await?;
        }
        Ok(())
    }

    /// Makes everything appended so far durable and listed.
    async fn flush_all(&mut self) -> Result<(), RunError> {
        for kind in Kind::ALL {
            self.flush(kind).await?;
        }
        for orders in self.uploaders.values() {
            let (reached, barrier) = oneshot::channel();
            if orders.send(Order::Barrier(reached)).await.is_ok() {
                // An uploader that ends without an answer has halted the run or was told to quit.
                let _ = barrier.await;
            }
        }
        Ok(())
    }

    async fn flush(&mut self, kind: Kind) -> Result<(), RunError> {
        let Some(part) = self.open.remove(&kind) else {
            return Ok(());
        };
        self.collector.rows += 1;
        let order = Order::Upload(Box::new(part.close()));
        let uploader = self.uploaders.get(&kind).expect("there is one uploader for each kind");
        match uploader.send(order).await {
            // The file stays in scratch for the next run.
            Err(_) if self.quit.is_cancelled() => Ok(()),
            sent => sent.map_err(|_| RunError::Defect("the uploader has ended too early".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use penstock_job::checksum::Crc32c;

    use super::*;

    #[test]
    fn a_part_of_an_earlier_run_that_was_not_full_counts_as_made_by_time() {
        let part = |lines, size_bytes| {
            let name = PartName { epoch: Epoch(1), sequence: 1, kind: Kind::Results };
            Part { name, generation: "1".into(), lines, size_bytes, crc32c: Crc32c(0) }
        };
        assert!(made_by_time(&part(499, 1_000)));
        assert!(!made_by_time(&part(500, 1_000)), "full by count");
        assert!(!made_by_time(&part(3, FLUSH_BYTES)), "full by bytes");
    }
}
