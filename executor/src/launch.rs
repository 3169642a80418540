//! From the executor's own job file to a [`Job`]: opens the output, reads what validation accepted, opens the input and
//! connects to the provider.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use penstock_batchfile::Detected;
use penstock_job::{
    CanonicalSpec, ExitCode, Identity, Incarnation, JobSpec, Receipt, State, Validation,
    document::{self, DocumentError},
    spec::{
        CanonicalInput, SpecError,
        text::{self, TextError},
    },
    state::Phase,
};
use penstock_storage::{
    ErrorKind, Input, InvalidLocation, Location, ObjectName, StorageError, open_input, open_store,
};
use thiserror::Error;

use crate::{
    error::RunError,
    job::{EndingRequest, Job, requests_in_flight},
    output::Output,
    participate::Participation,
    provider::{Provider, ProviderError},
    report::{Reporting, ReportingError},
    scratch::scratch_folder,
    shared_state::{self, LocationError},
    steps::watched,
};

/// Largest `validation.json`.
const VALIDATION_LIMIT: u64 = 64 << 20;

/// Why a job file could not be launched. Messages read after "failed to".
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The job file cannot be read.
    #[error("read the job file {path}: {source}; check the path and its permissions")]
    Unreadable {
        /// Its path.
        path: String,
        /// The operating system's words.
        source: io::Error,
    },
    /// The job file does not make sense.
    #[error("read the job file {path}: {source}")]
    JobFile {
        /// Its path.
        path: String,
        /// What is wrong.
        source: TextError,
    },
    /// The job file leaves something out.
    #[error("run the job file: it names no `{0}`; add it")]
    Missing(&'static str),
    /// Its input or output is nowhere.
    #[error(transparent)]
    Location(#[from] InvalidLocation),
    /// There is no place for answers that are not durable yet.
    #[error("find a folder for answers that are not stored yet: there is no home; name one with --scratch")]
    NoScratch,
    /// What the job file says does not fit together.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The output or the input does not work.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// `validation.json` cannot be read.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The provider cannot be used.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The place of shared state cannot be used.
    #[error(transparent)]
    SharedState(#[from] LocationError),
    /// Where to report to makes no sense.
    #[error(transparent)]
    Reporting(#[from] ReportingError),
    /// The process cannot listen for signals.
    #[error("listen for signals: {0}; run where signals can be handled")]
    Signals(io::Error),
    /// The run failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl LaunchError {
    /// What the process exits with.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Run(error) => error.exit_code(),
            // A store that does not answer now may do so for the next start; a wrong job file never works.
            Self::Storage(error) if error.kind() == ErrorKind::Unavailable => ExitCode::StorageUnavailable,
            Self::Storage(error) if error.kind() == ErrorKind::Damaged => ExitCode::StorageDamaged,
            _ => ExitCode::Configuration,
        }
    }
}

/// Where a job shares what it learns of its rate with others on its key.
#[derive(Debug, Clone)]
pub struct SharingPlace {
    /// A folder, a path in a bucket, or `none`: see [`shared_state::open`].
    pub uri: String,
    /// How often it tells what it sends; above zero.
    pub every: Duration,
}

/// Opens everything that a job file names. The input counts as lost when the file that was validated is gone or is not
/// at its generation any more; a job file that names another one is for the claim to refuse.
pub async fn launch(
    job_file: &Path,
    scratch: Option<PathBuf>,
    ending: Option<EndingRequest>,
    sharing: Option<SharingPlace>,
) -> Result<Job, LaunchError> {
    let path = job_file.display().to_string();
    let text = match tokio::fs::read_to_string(job_file).await {
        Ok(text) => text,
        Err(source) => return Err(LaunchError::Unreadable { path, source }),
    };
    let spec: JobSpec = text::parse(&text).map_err(|source| LaunchError::JobFile { path, source })?;
    let output = Location::parse(spec.output.as_deref().ok_or(LaunchError::Missing("output"))?)?;
    let input = Location::parse(spec.input.as_deref().ok_or(LaunchError::Missing("input"))?)?;
    let reporting = Reporting::of(&spec)?;
    let participation = match sharing {
        Some(SharingPlace { uri, every }) => {
            shared_state::open(&uri, &output).await?.map(|state| Participation { state, every })
        }
        None => None,
    };
    let (store, steps) = watched(open_store(&output).await?);
    let validation = ObjectName::from_static(penstock_job::layout::VALIDATION);
    let (_, bytes) = store.get(&validation, VALIDATION_LIMIT).await?.ok_or(RunError::NotValidated)?;
    let validated: Validation = document::read(&bytes)?;
    let (named, input) = pinned_input(&input, &validated.spec.input).await?;
    let canonical = canonical(&spec, named, &validated)?;
    let identity = Identity::of(&canonical);
    let timeout = Duration::from_secs(spec.limits.request_timeout_seconds.get());
    let in_flight = requests_in_flight(&spec) as usize;
    let provider = match (&ending, &input) {
        (None, Some(_)) => match Provider::connect(&canonical, &spec.provider, timeout, in_flight) {
            Ok(provider) => Some(provider),
            // A key that is gone by now is no reason to leave a job unpublished.
            Err(_) if is_decided(&Output::new(Arc::clone(&store), steps.clone())).await? => None,
            Err(error) => return Err(error.into()),
        },
        _ => None,
    };
    let scratch = match scratch {
        Some(folder) => folder.join(identity.prefix(16)),
        None => scratch_folder(&output, &identity).ok_or(LaunchError::NoScratch)?,
    };
    Ok(Job {
        spec,
        canonical,
        identity,
        incarnation: Incarnation::draw(),
        store,
        input,
        provider,
        scratch,
        ending,
        steps,
        // A pod waits for a better key, and for an ending when its budget is used up.
        fail_fast: false,
        participation,
        reporting,
        claims: Job::CLAIMS,
    })
}

/// Whether the job's outcome is decided, so that nothing is asked any more. It stays so.
async fn is_decided(output: &Output) -> Result<bool, RunError> {
    if output.document::<Receipt>().await?.is_some() {
        return Ok(true);
    }
    let state = output.document::<State>().await?;
    Ok(state.is_some_and(|(state, _)| state.phase == Phase::Finalizing))
}

/// The canonical spec of the job file over the input that it names; whether it is the validated job is for the claim to
/// say.
fn canonical(
    spec: &JobSpec,
    named: CanonicalInput,
    validated: &Validation,
) -> Result<CanonicalSpec, SpecError> {
    let validated = &validated.spec;
    let detected = Detected { format: validated.format, endpoint: Some(validated.endpoint) };
    spec.canonical(named, detected)
}

/// The input as it is named in the job's identity, and the input itself unless it is lost.
async fn pinned_input(
    location: &Location,
    validated: &CanonicalInput,
) -> Result<(CanonicalInput, Option<Arc<dyn Input>>), StorageError> {
    let opened = match open_input(location).await {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound && leads_to(location, &validated.uri) => {
            return Ok((validated.clone(), None));
        }
        Err(error) => return Err(error),
    };
    let named =
        CanonicalInput { uri: opened.uri().to_owned(), generation: opened.generation().as_str().to_owned() };
    if named.uri == validated.uri && named.generation != validated.generation {
        return Ok((validated.clone(), None));
    }
    Ok((named, Some(opened)))
}

/// Whether a place at which there is nothing is where the validated input was. A wrong path, or a folder that is not
/// mounted, must not end a job.
fn leads_to(location: &Location, uri: &str) -> bool {
    let path = match location {
        Location::Path(path) => path,
        Location::Bucket(place) => return place.to_string() == uri,
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (folder.canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name) == Path::new(uri),
        _ => false,
    }
}
