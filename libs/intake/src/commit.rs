//! `validation.json` in the output: read, and written as the last step of an attempt.
//!
//! An existing one of the same identity wins over any attempt. One of another identity is replaced as long as neither
//! `state.json` nor `receipt.json` shows that its job has begun, so that a mended input can be run again.

use bytes::Bytes;
use penstock_job::{
    CanonicalSpec, Identity, Receipt, State, Validation,
    document::{self, Document},
    identity::first_difference,
};
use penstock_storage::{Action, ErrorKind, Generation, ObjectName, StorageError, Store};

use crate::{
    IntakeError, Verdict,
    retry::{Repeats, retry, within_deadline},
};

/// The largest document that is read.
const DOCUMENT_BYTES: u64 = 256 << 20;

/// The verdict of an earlier validation of the same job, if its `validation.json` is in the output.
///
/// The verdict may be a refusal: then it holds again, without a look at the input. A `validation.json` of another
/// identity is no verdict; whether it may be replaced is decided by [`validate`](crate::validate()).
pub async fn accepted(store: &dyn Store, spec: &CanonicalSpec) -> Result<Option<Verdict>, IntakeError> {
    let found = read::<Validation>(store).await?;
    Ok(found
        .filter(|(validation, _)| validation.identity == Identity::of(spec))
        .map(|(validation, generation)| Verdict::of(validation, generation)))
}

/// Who committed a validation.
#[derive(Debug)]
pub(crate) enum Committed {
    /// This attempt.
    Own(Generation),
    /// Another attempt for the same job came first.
    Other(Box<Validation>, Generation),
}

/// Why `validation.json` was not written, or may not have been.
#[derive(Debug)]
pub(crate) enum CommitError {
    /// It was not, and will not be any more.
    Refused(IntakeError),
    /// It may have been, or may still land.
    Unknown(IntakeError),
}

impl CommitError {
    /// `error` is the last answer, and `validation.json` is not there.
    fn after_reading_back(error: StorageError) -> Self {
        // A store that will not write does not do so later either.
        let verdict = if error.kind() == ErrorKind::Refused { Self::Refused } else { Self::Unknown };
        verdict(IntakeError::Storage(error))
    }
}

/// Writes `validation.json`, reading back after every answer that is not a plain success.
pub(crate) async fn commit(store: &dyn Store, validation: &Validation) -> Result<Committed, CommitError> {
    let name = ObjectName::from_static(Validation::NAME);
    let content = Bytes::from(document::write(validation));
    let mut repeats = Repeats::new(store.mutation_interval());
    let mut failed: fn(IntakeError) -> CommitError = CommitError::Refused;
    let mut doubt = None;
    loop {
        let replaced = match look(store, &validation.spec).await.map_err(failed)? {
            Standing::Validated(found, generation) if found.attempt == validation.attempt => {
                return Ok(Committed::Own(generation));
            }
            Standing::Validated(found, generation) => return Ok(Committed::Other(found, generation)),
            Standing::Free(replaced) => replaced,
        };
        if let Some(error) = doubt.take() {
            repeats.after(error).await.map_err(CommitError::after_reading_back)?;
            continue;
        }
        let written = if let Some(generation) = replaced {
            let replace = store.replace(&name, content.clone(), &generation);
            within_deadline(Action::Replace, Validation::NAME, replace).await
        } else {
            let create = store.create(&name, content.clone());
            within_deadline(Action::Create, Validation::NAME, create).await
        };
        match written {
            Ok(meta) => return Ok(Committed::Own(meta.generation)),
            Err(error) if error.ambiguous() => {
                failed = CommitError::Unknown;
                doubt = Some(error);
            }
            Err(error) => return Err(failed(IntakeError::Storage(error))),
        }
    }
}

/// What an output means to a job that wants to be validated there.
#[derive(Debug)]
pub(crate) enum Standing {
    /// The job is validated already.
    Validated(Box<Validation>, Generation),
    /// It is not. `validation.json` of this generation, if there is one, is of another job and may be replaced.
    Free(Option<Generation>),
}

/// Looks at an output. That it belongs to another job, which has begun, is an error.
pub(crate) async fn look(store: &dyn Store, spec: &CanonicalSpec) -> Result<Standing, IntakeError> {
    let begun = if let Some((receipt, _)) = read::<Receipt>(store).await? {
        refuse_if_different(Receipt::NAME, &receipt.job.spec, spec)?;
        true
    } else if let Some((state, _)) = read::<State>(store).await? {
        refuse_if_different(State::NAME, &state.job.spec, spec)?;
        true
    } else {
        false
    };
    let Some((found, generation)) = read::<Validation>(store).await? else {
        return Ok(Standing::Free(None));
    };
    match refuse_if_different(Validation::NAME, &found.spec, spec) {
        Ok(()) => Ok(Standing::Validated(Box::new(found), generation)),
        Err(occupied) if begun => Err(occupied),
        Err(_) => Ok(Standing::Free(Some(generation))),
    }
}

fn refuse_if_different(
    document: &'static str,
    theirs: &CanonicalSpec,
    ours: &CanonicalSpec,
) -> Result<(), IntakeError> {
    match first_difference(theirs, ours) {
        None => Ok(()),
        Some(field) => Err(IntakeError::OutputOccupied { document, field }),
    }
}

async fn read<D: Document>(store: &dyn Store) -> Result<Option<(D, Generation)>, IntakeError> {
    let name = ObjectName::from_static(D::NAME);
    let found = retry(Action::Read, D::NAME, || store.get(&name, DOCUMENT_BYTES))
        .await
        .map_err(IntakeError::Storage)?;
    let Some((meta, content)) = found else {
        return Ok(None);
    };
    Ok(Some((document::read(&content)?, meta.generation)))
}

#[cfg(test)]
mod tests {
    use penstock_batchfile::{Format, Position};
    use penstock_job::{
        Epoch, Incarnation, OrdinalSet, layout,
        spec::OnInvalid,
        state::{
            Discarded, Finalization, Outcomes, PartOutcomes, Phase, Requests, StateFormat, StateInput,
            StateJob, ValidationReference,
        },
    };
    use penstock_storage::{
        MemoryStore,
        faults::{Call, Fault, FaultyStore, seeded},
    };

    use super::*;
    use crate::fixtures::{TextInput, names, validate_for};

    fn input(text: &str) -> (TextInput, CanonicalSpec) {
        let input = TextInput::new(text.to_owned());
        let spec = input.spec(Format::Prompts, OnInvalid::Skip);
        (input, spec)
    }

    const ONE_BAD: &str = "{\"prompt_id\":1,\"prompt\":\"a\"}\nx\n";

    /// `store` holds exactly one attempt, and it is the one that `validation.json` commits.
    async fn only_the_committed_attempt_is_there(store: &dyn Store, spec: &CanonicalSpec) {
        let verdict = accepted(store, spec).await.unwrap().unwrap();
        let prefix = format!("{}{}/", layout::INTAKE, verdict.validation().attempt);
        let names = names(store, layout::INTAKE).await;
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(names.iter().all(|name| name.starts_with(&prefix)), "{names:?}");
    }

    #[tokio::test]
    async fn a_mended_input_replaces_the_validation_of_the_one_before() {
        let store = MemoryStore::new();
        let (first, first_spec) = input("x\n");
        let (mended, mended_spec) = input(ONE_BAD);
        let refused = validate_for(&first, &store, &first_spec).await.unwrap();
        assert!(matches!(refused, Verdict::Refused(_)));
        assert_eq!(accepted(&store, &mended_spec).await.unwrap(), None);
        let verdict = validate_for(&mended, &store, &mended_spec).await.unwrap();
        assert!(matches!(verdict, Verdict::Accepted(..)));
        assert_eq!(accepted(&store, &mended_spec).await.unwrap(), Some(verdict));
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_attempts_at_once_the_loser_takes_the_winners_and_deletes_its_own() {
        let store = MemoryStore::new();
        let (input, spec) = input(ONE_BAD);
        let (one, other) =
            tokio::join!(validate_for(&input, &store, &spec), validate_for(&input, &store, &spec));
        assert_eq!(one.unwrap(), other.unwrap());
        only_the_committed_attempt_is_there(&store, &spec).await;
    }

    /// Whatever the fate of the write of `validation.json`, it is read back and the attempt committed once.
    #[tokio::test(start_paused = true)]
    async fn an_ambiguous_commit_is_read_back() {
        for fault in [Fault::Before, Fault::After, Fault::Late { calls: 3 }, Fault::Late { calls: 30 }] {
            for earlier in [None, Some("x\n")] {
                let plain = MemoryStore::new();
                if let Some(text) = earlier {
                    let (first, first_spec) = input(text);
                    validate_for(&first, &plain, &first_spec).await.unwrap();
                    let names = names(&plain, layout::INTAKE).await;
                    for name in names {
                        let name = ObjectName::parse(name).unwrap();
                        let meta = plain.head(&name).await.unwrap().unwrap();
                        plain.delete(&name, &meta.generation).await.unwrap();
                    }
                }
                let failed = std::sync::atomic::AtomicBool::new(false);
                let store = FaultyStore::new(plain, move |call: &Call<'_>| {
                    let write = matches!(call.action, Action::Create | Action::Replace);
                    let first = write
                        && call.object == Validation::NAME
                        && !failed.swap(true, std::sync::atomic::Ordering::Relaxed);
                    first.then_some(fault)
                });
                let (input, spec) = input(ONE_BAD);
                let verdict = validate_for(&input, &store, &spec).await.unwrap();
                store.land().await;
                assert_eq!(accepted(store.inner(), &spec).await.unwrap(), Some(verdict), "{fault:?}");
                only_the_committed_attempt_is_there(store.inner(), &spec).await;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn faults_anywhere_do_not_change_what_is_committed() {
        let (input, spec) = input(ONE_BAD);
        for seed in 0..200 {
            let store = FaultyStore::new(MemoryStore::new(), seeded(seed, 4));
            let verdict = validate_for(&input, &store, &spec).await;
            store.land().await;
            let found = accepted(store.inner(), &spec).await.unwrap();
            match verdict {
                Ok(verdict) => {
                    assert_eq!(found.as_ref(), Some(&verdict), "seed {seed}");
                    for file in &verdict.validation().rejected_files {
                        let name = ObjectName::parse(file.name.clone()).unwrap();
                        let meta = store.inner().head(&name).await.unwrap().unwrap();
                        assert_eq!(meta.generation.as_str(), file.generation, "seed {seed}");
                    }
                }
                Err(error) => panic!("seed {seed}: {error}"),
            }
        }
    }

    /// The state of a job that has begun, or, frozen, is about to get its receipt.
    fn begun(validation: &Validation, frozen: bool) -> State {
        let writer = Incarnation::draw();
        let finalization = Finalization {
            finals: Vec::new(),
            outcomes: Outcomes::default(),
            decision: String::new(),
            identity_found: None,
            frozen_by_epoch: Epoch(1),
            frozen_at_ms: 1,
        };
        State {
            format: StateFormat,
            job: StateJob {
                identity: validation.identity.clone(),
                spec: validation.spec.clone(),
                uid: String::new(),
                namespace: String::new(),
                name: String::new(),
            },
            created_at_ms: 1,
            epoch: Epoch(1),
            sealed: Epoch::NONE,
            incarnation: writer,
            write: 1,
            phase: if frozen { Phase::Finalizing } else { Phase::Running },
            ending: None,
            input: StateInput {
                uri: validation.input.uri.clone(),
                generation: validation.input.generation.clone(),
                size_bytes: validation.input.size_bytes,
                crc32c: validation.input.crc32c,
                lines: validation.lines,
                rejected: validation.rejected,
            },
            validation: ValidationReference { name: Validation::NAME.to_owned(), generation: String::new() },
            completed: OrdinalSet::new(),
            cursor: Position::START,
            parts: Vec::new(),
            outcomes: PartOutcomes::default(),
            requests: Requests::default(),
            discarded: Discarded::default(),
            usage: penstock_job::usage::Usage::default(),
            epochs: Vec::new(),
            learner: None,
            finalization: frozen.then_some(finalization),
            updated_at_ms: 1,
        }
    }

    async fn put(store: &dyn Store, document: &impl Document) {
        let name = ObjectName::parse(name_of(document)).unwrap();
        store.create(&name, Bytes::from(document::write(document))).await.unwrap();
    }

    fn name_of<D: Document>(_: &D) -> &'static str {
        D::NAME
    }

    #[tokio::test]
    async fn an_output_whose_job_has_begun_or_ended_takes_no_other_job_and_no_change() {
        for ended in [false, true] {
            let store = MemoryStore::new();
            let (theirs, their_spec) = input(ONE_BAD);
            let verdict = validate_for(&theirs, &store, &their_spec).await.unwrap();
            let state = begun(verdict.validation(), ended);
            let occupied_by = if ended {
                put(&store, &Receipt::of(&state, verdict.validation(), [], 1).unwrap()).await;
                Receipt::NAME
            } else {
                put(&store, &state).await;
                State::NAME
            };
            let before = names(&store, "").await;

            let (ours, our_spec) = input("{\"prompt_id\":1,\"prompt\":\"a\"}\n");
            match validate_for(&ours, &store, &our_spec).await.unwrap_err() {
                IntakeError::OutputOccupied { document, field } => {
                    assert_eq!((document, field.as_str()), (occupied_by, "input.generation"));
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(names(&store, "").await, before);
            assert_eq!(validate_for(&theirs, &store, &their_spec).await.unwrap(), verdict);
        }
    }

    #[tokio::test]
    async fn the_validation_of_another_job_is_not_replaced_once_a_job_has_begun() {
        let store = MemoryStore::new();
        let (theirs, their_spec) = input(ONE_BAD);
        let verdict = validate_for(&theirs, &store, &their_spec).await.unwrap();
        let (ours, our_spec) = input("x\n");
        let our_state = Validation { spec: our_spec.clone(), ..verdict.validation().clone() };
        put(&store, &begun(&our_state, false)).await;
        let error = validate_for(&ours, &store, &our_spec).await.unwrap_err();
        let document = Validation::NAME;
        assert!(matches!(error, IntakeError::OutputOccupied { document: found, .. } if found == document));
    }

    #[tokio::test]
    async fn a_job_that_begins_during_the_pass_is_not_disturbed() {
        let store = MemoryStore::new();
        let (theirs, their_spec) = input(ONE_BAD);
        let verdict = validate_for(&theirs, &store, &their_spec).await.unwrap();
        put(&store, &begun(verdict.validation(), false)).await;

        let (_, our_spec) = input("x\n");
        let late =
            Validation { identity: Identity::of(&our_spec), spec: our_spec, ..verdict.validation().clone() };
        let late = Validation { attempt: uuid::Uuid::new_v4(), ..late };
        let refused = commit(&store, &late).await;
        assert!(
            matches!(refused, Err(CommitError::Refused(IntakeError::OutputOccupied { .. }))),
            "{refused:?}"
        );
        assert_eq!(accepted(&store, &their_spec).await.unwrap(), Some(verdict));
    }

    #[tokio::test]
    async fn a_document_that_cannot_be_read_is_named_and_not_replaced() {
        for name in [Validation::NAME, State::NAME, Receipt::NAME] {
            let store = MemoryStore::new();
            let (input, spec) = input(ONE_BAD);
            let object = ObjectName::from_static(name);
            store.create(&object, Bytes::from_static(b"{\"format\":\"theirs/9\"}")).await.unwrap();
            let error = validate_for(&input, &store, &spec).await.unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("theirs/9"), "{error}");
            assert_eq!(names(&store, "").await, [name]);
        }
    }
}
