//! `penstock run`: from the command line to the last lines about a job.
//!
//! The order decides what a user hears first: a finished job needs neither key nor lock, one that is decided needs no key,
//! a foreign output is refused before anything is validated, and a missing key is noticed before a long validation.

mod execute;
mod input;
mod occupied;
mod sharing;
mod validation;

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use penstock_executor::{Job, provider::Provider, requests_in_flight, watched};
use penstock_job::{ExitCode, Identity, JobSpec, Receipt, spec::ProviderKind};
use penstock_simulator::{Distribution, Latency, ProviderSettings, Server};
use penstock_storage::{FileStore, RunLock, RunLockError};

pub(crate) use self::{
    execute::{execute, scratch},
    input::InputError,
    occupied::OccupiedError,
};
use crate::{
    arguments::RunArguments,
    error::CommandError,
    folder::{Folder, Standing},
    signals::Signals,
    spec_file,
    view::{Event, Reporter, Screen, Summary, ending_exit_code},
};

/// Runs or resumes a job.
pub(crate) async fn run(arguments: RunArguments, screen: &Screen) -> Result<ExitCode, CommandError> {
    let (view, take_over) = (arguments.view, arguments.take_over);
    let shared_state = arguments.shared_state.clone();
    let share_every = Duration::from_secs(arguments.share_every.get());
    let mut signals = Signals::listen()?;
    let file = arguments.job.as_deref().map(spec_file::read::<JobSpec>).transpose()?;
    let mut spec = arguments.over(file.unwrap_or_default());
    let (input_path, output) = paths(&spec)?;
    let mut reporter = Reporter::new(view, screen, heading(&input_path));
    let folder = Folder::new(output);
    let standing = folder.standing()?;
    let (input, canonical) = match input::open(&input_path, &spec, &folder, &standing).await? {
        input::Opened::Open(input, canonical) => (input, *canonical),
        input::Opened::Over(receipt) => return Ok(over(receipt, &folder, &mut reporter)),
    };
    if let Some(theirs) = standing.begun() {
        occupied::check(&folder, theirs, &canonical)?;
    }
    if let Standing::Over(receipt) = &standing {
        return Ok(over(receipt, &folder, &mut reporter));
    }
    let participation =
        sharing::participation(shared_state.as_deref(), share_every, &spec, folder.root()).await?;
    let _lock = lock(&folder, take_over)?;
    let identity = Identity::of(&canonical);
    reporter.event(&Event::Started {
        input: &canonical.input.uri,
        output: &folder.root().display().to_string(),
        identity: identity.as_str(),
    });
    let server = simulated(&mut spec).await?;
    let timeout = Duration::from_secs(spec.limits.request_timeout_seconds.get());
    let in_flight = usize::try_from(requests_in_flight(&spec)).unwrap_or(usize::MAX);
    let provider = if standing.is_decided() {
        None
    } else {
        Some(Provider::connect(&canonical, &spec.provider, timeout, in_flight)?)
    };
    let (store, steps) = watched(FileStore::open(folder.root()).await?);
    let scratch = scratch(&folder, &identity);
    let valid =
        validation::validate(&input, &*store, &canonical, &folder, &scratch, &mut reporter, &mut signals)
            .await?;
    if !valid {
        return Ok(ExitCode::Stopped);
    }
    let job = Job {
        spec,
        canonical,
        identity,
        store,
        input: Some(Arc::new(input)),
        provider,
        scratch,
        ending: None,
        steps,
        fail_fast_on_credentials: true,
        participation,
    };
    let code = execute(job, &folder, &mut reporter, &mut signals).await?;
    if let Some(server) = server {
        server.shutdown().await;
    }
    Ok(code)
}

/// Takes the run lock; to take a job over, it need not be free.
fn lock(folder: &Folder, take_over: bool) -> Result<Option<RunLock>, RunLockError> {
    match RunLock::acquire(folder.root()) {
        Ok(lock) => Ok(Some(lock)),
        Err(RunLockError::Held { .. }) if take_over => Ok(None),
        Err(error) => Err(error),
    }
}

/// Where the input is and where the output goes; a job file may have named either.
fn paths(spec: &JobSpec) -> Result<(PathBuf, PathBuf), InputError> {
    let input = spec.input.clone().ok_or(InputError::NotNamed { what: "input", flag: "INPUT" })?;
    let output = spec.output.clone().ok_or(InputError::NotNamed { what: "output", flag: "--output DIR" })?;
    Ok((input, output))
}

/// What the view calls the job.
fn heading(input: &Path) -> String {
    input.file_name().unwrap_or(input.as_os_str()).to_string_lossy().into_owned()
}

/// Says what came out of a job that is over already; returns what to exit with.
fn over(receipt: &Receipt, folder: &Folder, reporter: &mut Reporter) -> ExitCode {
    reporter.finished(&Summary { receipt, folder, elapsed: None });
    ending_exit_code(receipt.ending)
}

/// Starts a provider in this process where the job wants the simulated one and names none that runs already.
async fn simulated(spec: &mut JobSpec) -> Result<Option<Server>, CommandError> {
    if spec.provider.kind != ProviderKind::Simulated || spec.provider.base_url.is_some() {
        return Ok(None);
    }
    let settings = ProviderSettings {
        latency: Latency {
            start_ms: Distribution::LogNormal { median: 40.0, sigma: 0.4 },
            ..Latency::default()
        },
        ..ProviderSettings::default()
    };
    let server = Server::start(settings, SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    spec.provider.base_url = Some(server.base_url());
    Ok(Some(server))
}
