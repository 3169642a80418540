//! The intake of a job: what its output already holds, else one validating pass over its input.
//!
//! It runs in the operator for small inputs, and as a short-lived pod of its own otherwise (`penstock-operator intake`),
//! with the same code. What it finds is one [`Word`]; what the word means for the job is for `decide` to say.

mod word;

use std::{path::Path, sync::Arc, time::Duration};

use penstock_batchfile::{Detected, UnknownFormat};
use penstock_intake::{DetectError, IntakeError, Reading, Verdict, detect, validate};
use penstock_job::{
    CanonicalSpec, Identity, JobSpec, Reason, Receipt, State, Validation, document, document::Document,
    identity, spec::CanonicalInput,
};
use penstock_storage::{ErrorKind, Input, Location, ObjectName, StorageError, Store, open_input, open_store};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub use self::word::{Over, Validated, Word};

/// Largest document: 10,000,000 lines take about 5 MiB.
const DOCUMENT_LIMIT: u64 = 256 << 20;
/// How long opening a bucket, or reading a document, may take.
const CALL: Duration = Duration::from_mins(1);

/// Looks at the output of a job, and validates its input unless that was done before. An input of more than `largest`
/// bytes is left to a pod of its own.
pub async fn intake(spec: &JobSpec, scratch: &Path, largest: Option<u64>, stop: &CancellationToken) -> Word {
    look(spec, scratch, largest, stop).await.unwrap_or_else(|word| word)
}

async fn look(
    spec: &JobSpec,
    scratch: &Path,
    largest: Option<u64>,
    stop: &CancellationToken,
) -> Result<Word, Word> {
    let input = place(spec.input.as_deref())?;
    let output = place(spec.output.as_deref())?;
    let store = within(open_store(&output)).await.map_err(Failure::into_word)?;
    let standing = Standing::read(&*store).await?;
    let opened = match within(open_input(&input)).await {
        Ok(opened) => opened,
        Err(failure) => {
            return standing.without_input(spec, &input).ok_or_else(|| failure.of_input());
        }
    };
    let named =
        CanonicalInput { uri: opened.uri().to_owned(), generation: opened.generation().as_str().to_owned() };
    let detected = match standing.detected(&named) {
        Some(detected) => detected,
        None => detect(&*opened, spec.max_line_bytes, spec.format.named()).await.map_err(undetected)?,
    };
    let canonical = spec.canonical(named, detected).map_err(|error| Word::misconfigured(&error))?;
    if let Some(word) = standing.settles(&canonical) {
        return Ok(word);
    }
    if largest.is_some_and(|largest| opened.size_bytes() > largest) && !standing.has_validated(&canonical) {
        return Ok(Word::TooLarge { size_bytes: opened.size_bytes() });
    }
    check(&opened, &*store, &canonical, scratch, stop).await
}

fn place(named: Option<&str>) -> Result<Location, Word> {
    Location::parse(named.unwrap_or_default()).map_err(|error| Word::misconfigured(&error))
}

/// The pass itself.
async fn check(
    input: &Arc<dyn Input>,
    store: &dyn Store,
    canonical: &CanonicalSpec,
    scratch: &Path,
    stop: &CancellationToken,
) -> Result<Word, Word> {
    let folder = tempfile::tempdir_in(scratch).map_err(|error| {
        Word::trouble(format!("use the scratch folder {}: {error}; give it space", scratch.display()))
    })?;
    let reading = Reading { input: &**input, scratch: folder.path(), progress: &|_| (), stop };
    match validate(&reading, store, canonical).await {
        Ok(Verdict::Accepted(validation, _)) => Ok(Word::Accepted(Validated::from(&validation))),
        Ok(Verdict::Refused(refusal)) => Ok(Word::Refused {
            reason: refusal.reason,
            message: refusal.message,
            validated: Some(Validated::from(&refusal.validation)),
        }),
        Err(IntakeError::OutputOccupied { field, .. }) => Err(Word::occupied(&field)),
        Err(IntakeError::Storage(error)) => Err(of_storage(&error)),
        Err(error @ (IntakeError::Document(_) | IntakeError::TooManyLines)) => {
            Err(Word::misconfigured(&error))
        }
        Err(error) => Err(Word::trouble(error)),
    }
}

/// What the output holds already.
enum Standing {
    Nothing,
    Validated(Box<Validation>),
    Begun(Box<State>),
    Over(Box<Receipt>),
}

impl Standing {
    async fn read(store: &dyn Store) -> Result<Self, Word> {
        if let Some(receipt) = read::<Receipt>(store).await? {
            return Ok(Self::Over(Box::new(receipt)));
        }
        if let Some(state) = read::<State>(store).await? {
            return Ok(Self::Begun(Box::new(state)));
        }
        let validation = read::<Validation>(store).await?;
        Ok(validation.map_or(Self::Nothing, |validation| Self::Validated(Box::new(validation))))
    }

    fn spec(&self) -> Option<&CanonicalSpec> {
        match self {
            Self::Nothing => None,
            Self::Validated(validation) => Some(&validation.spec),
            Self::Begun(state) => Some(&state.job.spec),
            Self::Over(receipt) => Some(&receipt.job.spec),
        }
    }

    /// What an earlier look at the same bytes has told.
    fn detected(&self, input: &CanonicalInput) -> Option<Detected> {
        self.spec().filter(|spec| spec.input == *input).map(told)
    }

    fn has_validated(&self, canonical: &CanonicalSpec) -> bool {
        matches!(self, Self::Validated(validation) if validation.spec == *canonical)
    }

    /// The word where nothing need be validated any more.
    fn settles(&self, canonical: &CanonicalSpec) -> Option<Word> {
        let begun = match self {
            Self::Nothing | Self::Validated(_) => return None,
            Self::Begun(_) | Self::Over(_) => self.spec()?,
        };
        if Identity::of(begun) != Identity::of(canonical) {
            let field = identity::first_difference(begun, canonical);
            return Some(Word::occupied(field.as_deref().unwrap_or("identity")));
        }
        match self {
            Self::Over(receipt) => Some(Word::Over(Box::new(Over::from(&**receipt)))),
            // Begun, but validation.json tells what was found.
            _ => None,
        }
    }

    /// The word where the input is gone: a job that is over needs it no more, and one that has begun ends by itself.
    fn without_input(&self, spec: &JobSpec, input: &Location) -> Option<Word> {
        let theirs = self.spec()?;
        let ours = spec.canonical(theirs.input.clone(), told(theirs)).ok()?;
        if theirs.input.uri != input.to_string() || ours != *theirs {
            return None;
        }
        match self {
            Self::Over(receipt) => Some(Word::Over(Box::new(Over::from(&**receipt)))),
            Self::Begun(state) => Some(Word::Accepted(Validated::from(&**state))),
            Self::Nothing | Self::Validated(_) => None,
        }
    }
}

fn told(spec: &CanonicalSpec) -> Detected {
    Detected { format: spec.format, endpoint: Some(spec.endpoint) }
}

async fn read<D: Document>(store: &dyn Store) -> Result<Option<D>, Word> {
    let name = ObjectName::from_static(D::NAME);
    let read = within(store.get(&name, DOCUMENT_LIMIT)).await.map_err(Failure::into_word)?;
    let Some((_, bytes)) = read else { return Ok(None) };
    document::read(&bytes).map(Some).map_err(|error| Word::misconfigured(&error))
}

fn undetected(error: DetectError) -> Word {
    match error {
        DetectError::Unknown(cause) => {
            let reason = match cause {
                UnknownFormat::Empty => Reason::EmptyInput,
                UnknownFormat::Neither { .. } => Reason::InvalidInput,
            };
            Word::Refused { reason, message: cause.to_string(), validated: None }
        }
        DetectError::Storage(error) => of_storage(&error),
    }
}

/// A call to storage that came to nothing.
enum Failure {
    Storage(StorageError),
    TimedOut,
}

impl Failure {
    fn into_word(self) -> Word {
        match self {
            Self::Storage(error) => of_storage(&error),
            Self::TimedOut => Word::trouble(format!(
                "hear from the storage within {} s; see whether it can be reached",
                CALL.as_secs()
            )),
        }
    }

    /// What it means for the input, which may still come.
    fn of_input(self) -> Word {
        match self {
            Self::Storage(error) if error.kind() == ErrorKind::NotFound => {
                Word::Absent { message: format!("failed to {error}") }
            }
            other => other.into_word(),
        }
    }
}

async fn within<T>(call: impl Future<Output = penstock_storage::Result<T>>) -> Result<T, Failure> {
    timeout(CALL, call).await.map_err(|_| Failure::TimedOut)?.map_err(Failure::Storage)
}

/// What a failed call to storage means. A person must help with most of them, and the look is repeated all the same.
fn of_storage(error: &StorageError) -> Word {
    match error.kind() {
        ErrorKind::Unavailable | ErrorKind::Changed | ErrorKind::Exists => Word::trouble(error),
        ErrorKind::Refused => Word::Denied { message: error.to_string() },
        ErrorKind::NotFound | ErrorKind::Damaged | ErrorKind::Invalid => Word::misconfigured(error),
    }
}

#[cfg(test)]
mod tests;
