//! Writing `state.json` by compare-and-swap (S2 of the job protocol): the one place that decides whether a claim holds.

use std::time::Duration;

use bytes::Bytes;
use penstock_job::{Incarnation, Reason, State, Step, document};
use penstock_storage::{ErrorKind, Generation, ObjectName, StorageError};
use tokio::time::Instant;

use crate::{
    board::Board,
    clock::now_ms,
    error::RunError,
    output::{Output, jitter, may_pass},
};

/// What to do when the store refuses a write (no space, no permission), or does not even tell what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnRefusal {
    /// Nothing is at stake yet: say so and end.
    Fail,
    /// Answers are at stake: try again, a refused write every [`REFUSED_PAUSE`], and show the reason.
    Wait,
}

/// How often a refused write is tried again (R9).
pub(crate) const REFUSED_PAUSE: Duration = Duration::from_secs(10);

/// `state.json` as this incarnation sees it.
#[derive(Debug)]
pub(crate) struct StateObject {
    output: Output,
    name: ObjectName,
    incarnation: Incarnation,
    generation: Option<Generation>,
    write: u64,
    last_mutation: Option<Instant>,
}

/// What a read back says about a write.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// It is there.
    Applied(Generation),
    /// It is not there; send the same bytes again on this generation.
    NotApplied(Option<Generation>),
    /// Somebody else has written.
    Lost,
}

impl StateObject {
    /// The object as it was read: `generation` is `None` when it is absent.
    pub(crate) fn new(output: Output, incarnation: Incarnation, generation: Option<Generation>) -> Self {
        let name = ObjectName::from_static(penstock_job::layout::STATE);
        Self { output, name, incarnation, generation, write: 0, last_mutation: None }
    }

    /// Writes `state` in place of the generation last seen; its writer fields are set here.
    ///
    /// Returns when the write is known to be applied, or with [`RunError::ClaimLost`]. The bytes are built once: an
    /// attempt that lands late is then recognised, and no two writes of a job are equal.
    pub(crate) async fn write(
        &mut self,
        step: Step,
        state: &mut State,
        board: &Board,
        on_refusal: OnRefusal,
    ) -> Result<(), RunError> {
        let content = self.prepare(state);
        self.send(step, content, board, on_refusal).await
    }

    /// The bytes of the next write, which [`send`](Self::send) is to be given.
    pub(crate) fn prepare(&mut self, state: &mut State) -> Bytes {
        self.write += 1;
        state.incarnation = self.incarnation;
        state.write = self.write;
        state.updated_at_ms = now_ms();
        Bytes::from(document::write(state))
    }

    /// Sends what was prepared last. When this is dropped, the next write finds out what became of it.
    pub(crate) async fn send(
        &mut self,
        step: Step,
        content: Bytes,
        board: &Board,
        on_refusal: OnRefusal,
    ) -> Result<(), RunError> {
        for attempt in 0u32.. {
            self.await_interval().await;
            self.last_mutation = Some(Instant::now());
            let result = match &self.generation {
                None => self.output.create(step, &self.name, content.clone()).await,
                Some(generation) => self.output.replace(step, &self.name, content.clone(), generation).await,
            };
            self.last_mutation = Some(Instant::now());
            let error = match result {
                Ok(meta) => {
                    self.generation = Some(meta.generation);
                    break;
                }
                Err(error) if !error.ambiguous() => return Err(error.into()),
                Err(error) => error,
            };
            let error = match self.read_back().await {
                Ok(Fate::Applied(generation)) => {
                    self.generation = Some(generation);
                    break;
                }
                Ok(Fate::NotApplied(generation)) => {
                    self.generation = generation;
                    error
                }
                Ok(Fate::Lost) => return Err(RunError::ClaimLost),
                // Its fate stays unknown: the same bytes on the same condition change nothing if it was applied.
                Err(RunError::Storage(unread)) if on_refusal == OnRefusal::Wait && may_pass(&unread) => {
                    unread
                }
                Err(cause) => return Err(cause),
            };
            self.pause(error, attempt, board, on_refusal).await?;
        }
        board.clear(Reason::StorageRefused);
        Ok(())
    }

    async fn read_back(&self) -> Result<Fate, RunError> {
        let found = self.output.document::<State>().await?;
        Ok(self.judge(found.as_ref().map(|(state, generation)| (state.incarnation, state.write, generation))))
    }

    /// S2, pure: what the object's content says about this incarnation's newest write.
    fn judge(&self, found: Option<(Incarnation, u64, &Generation)>) -> Fate {
        match found {
            Some((incarnation, write, generation)) if incarnation == self.incarnation => {
                if write == self.write {
                    Fate::Applied(generation.clone())
                } else {
                    Fate::NotApplied(Some(generation.clone()))
                }
            }
            Some((_, _, generation)) if Some(generation) == self.generation.as_ref() => {
                Fate::NotApplied(Some(generation.clone()))
            }
            None if self.generation.is_none() => Fate::NotApplied(None),
            _ => Fate::Lost,
        }
    }

    async fn pause(
        &self,
        error: StorageError,
        attempt: u32,
        board: &Board,
        on_refusal: OnRefusal,
    ) -> Result<(), RunError> {
        if error.kind() != ErrorKind::Refused {
            tracing::warn!(%error, "the checkpoint will be written again");
            tokio::time::sleep(jitter(Duration::from_millis(200), REFUSED_PAUSE, attempt)).await;
            return Ok(());
        }
        if on_refusal == OnRefusal::Fail {
            return Err(error.into());
        }
        board.raise(Reason::StorageRefused, error.to_string());
        tokio::time::sleep(REFUSED_PAUSE).await;
        Ok(())
    }

    /// S5: the least time between two mutations of one name.
    async fn await_interval(&self) {
        if let Some(last) = self.last_mutation {
            tokio::time::sleep_until(last + self.output.mutation_interval()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use penstock_storage::{
        MemoryStore,
        faults::{Fault, FaultyStore},
    };

    use super::*;
    use crate::steps::Steps;

    #[tokio::test(start_paused = true)]
    async fn a_store_that_answers_nothing_for_minutes_ends_no_run_that_has_answers_to_lose() {
        for (on_refusal, waits) in [(OnRefusal::Wait, true), (OnRefusal::Fail, false)] {
            let deaf =
                FaultyStore::new(MemoryStore::new(), |call| (call.number < 100).then_some(Fault::Before));
            let mut object =
                StateObject::new(Output::new(Arc::new(deaf), Steps::default()), Incarnation::draw(), None);
            let sent =
                object.send(Step::Checkpoint, Bytes::from_static(b"{}"), &Board::default(), on_refusal).await;
            assert_eq!(sent.is_ok(), waits, "{on_refusal:?}: {sent:?}");
        }
    }

    #[test]
    fn what_is_read_back_decides_whether_the_claim_holds() {
        let mine = Incarnation::draw();
        let other = Incarnation::draw();
        let generation = |text: &str| Generation::new(text);
        let mut object = StateObject::new(
            Output::new(Arc::new(MemoryStore::new()), Steps::default()),
            mine,
            Some(generation("4")),
        );
        object.write = 3;
        let judge = |found: Option<(Incarnation, u64, &str)>| {
            let generation = found.map(|(_, _, text)| generation(text));
            object.judge(
                found.map(|(incarnation, write, _)| (incarnation, write, generation.as_ref().unwrap())),
            )
        };
        assert_eq!(judge(Some((mine, 3, "5"))), Fate::Applied(generation("5")));
        assert_eq!(
            judge(Some((mine, 2, "5"))),
            Fate::NotApplied(Some(generation("5"))),
            "an earlier write landed late"
        );
        assert_eq!(
            judge(Some((other, 9, "4"))),
            Fate::NotApplied(Some(generation("4"))),
            "still what was replaced"
        );
        assert_eq!(judge(Some((other, 9, "5"))), Fate::Lost);
        assert_eq!(judge(None), Fate::Lost, "it was there before");
        object.generation = None;
        assert_eq!(object.judge(None), Fate::NotApplied(None));
    }
}
