//! The ledger: manifest and completed set, always changed together, and the checkpoints that make them known.
//!
//! `completed` in any `state.json` is exactly the union of the ordinals of its listed parts (R4): a part enters both in
//! one step, under the lock of the book. That lock is never held while storage is waited for, so a store that does not
//! answer holds up nobody but the next write; two writes never overlap.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use penstock_batchfile::{Ordinal, Position};
use penstock_job::{
    Epoch, OrdinalSet, State, Step, Validation,
    spec::Budget,
    state::{Ending, Part, PartOutcomes, Requests},
    usage::TokensByModel,
};
use serde_json::Value;
use tokio::{
    sync::{Mutex, Notify},
    time::Instant,
};

use crate::{
    board::Board,
    claim::Claimed,
    clock::now_ms,
    error::RunError,
    job::EndingRequest,
    state_object::{OnRefusal, StateObject},
};

/// Without a successful checkpoint for so long, no new request is started (R6).
pub(crate) const FENCE: Duration = Duration::from_mins(2);

/// A durable part with what it holds.
#[derive(Debug)]
pub(crate) struct Durable {
    pub(crate) part: Part,
    pub(crate) ordinals: OrdinalSet,
    pub(crate) outcomes: PartOutcomes,
    pub(crate) tokens: TokensByModel,
}

/// Where the learner's memory and the request counts of this run come from.
pub(crate) trait Recollection: Send + Sync + std::fmt::Debug {
    /// The learner's memory.
    fn learner(&self) -> Option<Value>;
    /// Requests of this run.
    fn requests(&self) -> Requests;
}

/// A shared handle to the ledger.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    book: Arc<Mutex<Book>>,
    object: Arc<Mutex<StateObject>>,
    rejected: Arc<OrdinalSet>,
    board: Arc<Board>,
    fence: Arc<std::sync::Mutex<Instant>>,
    listed: Arc<Notify>,
}

#[derive(Debug)]
struct Book {
    state: State,
    validation: Validation,
    /// Windows that may hold undone lines, oldest first: where each begins and ends.
    windows: VecDeque<(Position, Position)>,
    /// Requests of earlier runs.
    requests_before: Requests,
    recollection: Option<Arc<dyn Recollection>>,
}

impl Ledger {
    pub(crate) fn open(claimed: Claimed, board: Arc<Board>) -> Self {
        let Claimed { state, object, validation, rejected } = claimed;
        let requests_before = state.requests;
        let book = Book { state, validation, windows: VecDeque::new(), requests_before, recollection: None };
        Self {
            book: Arc::new(Mutex::new(book)),
            object: Arc::new(Mutex::new(object)),
            rejected: Arc::new(rejected),
            board,
            fence: Arc::new(std::sync::Mutex::new(Instant::now())),
            listed: Arc::default(),
        }
    }

    /// Gives back what [`open`](Self::open) took; every other handle must be gone.
    pub(crate) fn close(self) -> Option<Claimed> {
        let Book { state, validation, .. } = Arc::into_inner(self.book)?.into_inner();
        let object = Arc::into_inner(self.object)?.into_inner();
        let rejected = Arc::unwrap_or_clone(self.rejected);
        Some(Claimed { state, object, validation, rejected })
    }

    /// Where the run shows what keeps it.
    pub(crate) fn board(&self) -> &Board {
        &self.board
    }

    /// The lines that validation rejected.
    pub(crate) fn rejected(&self) -> &Arc<OrdinalSet> {
        &self.rejected
    }

    /// A look at the state.
    pub(crate) async fn look<T>(&self, look: impl FnOnce(&State, &Validation) -> T) -> T {
        let book = self.book.lock().await;
        look(&book.state, &book.validation)
    }

    /// From now on checkpoints carry what this source remembers.
    pub(crate) async fn remember(&self, recollection: Option<Arc<dyn Recollection>>) {
        let mut book = self.book.lock().await;
        if let Some(old) = std::mem::replace(&mut book.recollection, recollection) {
            let sent = old.requests();
            book.requests_before.sent += sent.sent;
            book.requests_before.throttled += sent.throttled;
            book.state.requests = book.requests_before;
            book.state.learner = old.learner();
        }
    }

    /// A window is about to be dispatched.
    pub(crate) async fn window_opened(&self, start: Position, end: Position) {
        self.book.lock().await.windows.push_back((start, end));
    }

    /// A part is durable: it enters the manifest and the completed set.
    pub(crate) async fn list(&self, durable: Durable) {
        let mut book = self.book.lock().await;
        let state = &mut book.state;
        debug_assert!(state.completed.is_disjoint(&durable.ordinals), "one slot for each line");
        state.completed.unite(&durable.ordinals);
        state.outcomes.add(durable.outcomes);
        state.usage.models.add(&durable.tokens);
        // Uploads of the two kinds end in any order; the manifest is in order of sequence.
        let at = state.parts.partition_point(|part| part.name < durable.part.name);
        state.parts.insert(at, durable.part);
        book.move_cursor(&self.rejected);
        drop(book);
        self.listed.notify_one();
    }

    /// Returns when a part was listed since the last return. For one listener.
    pub(crate) async fn listed(&self) {
        self.listed.notified().await;
    }

    /// From now on checkpoints say that this budget is used up.
    pub(crate) async fn budget_reached(&self, reached: Option<Budget>) {
        self.book.lock().await.state.usage.reached = reached;
    }

    /// Writes a checkpoint. Fails with [`RunError::ClaimLost`] when another executor has taken the job over.
    pub(crate) async fn checkpoint(&self) -> Result<(), RunError> {
        self.store(Step::Checkpoint).await
    }

    async fn store(&self, step: Step) -> Result<(), RunError> {
        let mut object = self.object.lock().await;
        let content = self.book.lock().await.prepare(&mut object);
        object.send(step, content, &self.board, OnRefusal::Wait).await?;
        self.renew_fence();
        Ok(())
    }

    /// Decides that the job ends early (E2). The first ending stays. No record of an undone line may be written before
    /// this has succeeded.
    pub(crate) async fn end(&self, request: &EndingRequest) -> Result<(), RunError> {
        let asked = || Ending {
            reason: request.reason,
            code: request.code.clone(),
            message: request.message.clone(),
            at_ms: now_ms(),
        };
        let ending = self.book.lock().await.state.ending.get_or_insert_with(asked).clone();
        self.store(Step::End).await?;
        // Nothing is waited for behind the write: the time that answers are given begins with it.
        self.board.ends(Some(&ending));
        Ok(())
    }

    /// Changes the manifest as reconciliation asks and writes it (F2).
    pub(crate) async fn repair(&self, repair: impl FnOnce(&mut State)) -> Result<(), RunError> {
        {
            let mut book = self.book.lock().await;
            repair(&mut book.state);
            // The cursor may have gone back: the windows seen so far say nothing about it any more.
            book.windows.clear();
        }
        self.store(Step::Repair).await
    }

    /// Whether requests may be started: the last successful checkpoint is not older than [`FENCE`].
    pub(crate) fn fence_holds(&self) -> bool {
        self.fence.lock().is_ok_and(|renewed| renewed.elapsed() < FENCE)
    }

    fn renew_fence(&self) {
        if let Ok(mut renewed) = self.fence.lock() {
            *renewed = Instant::now();
        }
        self.board.checkpointed();
    }
}

impl Book {
    fn prepare(&mut self, object: &mut StateObject) -> Bytes {
        if let Some(recollection) = &self.recollection {
            let now = recollection.requests();
            self.state.requests.sent = self.requests_before.sent + now.sent;
            self.state.requests.throttled = self.requests_before.throttled + now.throttled;
            self.state.learner = recollection.learner();
        }
        object.prepare(&mut self.state)
    }

    /// The cursor stands at the start of the oldest window with an undone line.
    fn move_cursor(&mut self, rejected: &OrdinalSet) {
        while let Some((start, end)) = self.windows.front().copied() {
            if undone(&self.state.completed, rejected, start.ordinal, end.ordinal) > 0 {
                self.state.cursor = start;
                return;
            }
            self.state.cursor = end;
            self.windows.pop_front();
        }
    }
}

/// How many lines of `start..end` have no outcome.
pub(crate) fn undone(completed: &OrdinalSet, rejected: &OrdinalSet, start: Ordinal, end: Ordinal) -> u64 {
    let all = u64::from(end.get().saturating_sub(start.get()));
    all.saturating_sub(completed.count_within(start, end) + rejected.count_within(start, end))
}

/// The highest sequence that a listed part of `epoch` has; 0 when there is none.
pub(crate) fn highest_sequence(parts: &[Part], epoch: Epoch) -> u32 {
    parts.iter().filter(|part| part.name.epoch == epoch).map(|part| part.name.sequence).max().unwrap_or(0)
}

/// The ordinal behind the last line.
pub(crate) fn lines(state: &State) -> Ordinal {
    Ordinal::new(u32::try_from(state.input.lines).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_undone_until_they_are_completed_or_rejected() {
        let set = |ordinals: &[u32]| ordinals.iter().copied().map(Ordinal::new).collect::<OrdinalSet>();
        let (start, end) = (Ordinal::new(2), Ordinal::new(6));
        assert_eq!(undone(&set(&[]), &set(&[]), start, end), 4);
        assert_eq!(undone(&set(&[1, 2, 6]), &set(&[3]), start, end), 2);
        assert_eq!(undone(&set(&[2, 4, 5]), &set(&[3]), start, end), 0);
    }
}
