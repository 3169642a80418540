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
    path::Path,
    time::Duration,
};

use penstock_executor::{Job, Reporting, provider::Provider, requests_in_flight, watched};
use penstock_job::{ExitCode, Identity, Incarnation, JobSpec, Receipt, spec::ProviderKind};
use penstock_simulator::{Distribution, Latency, ProviderSettings, Server};
use penstock_storage::{Location, RunLock, RunLockError};

pub(crate) use self::{
    execute::{execute, lock_folder, scratch},
    input::{InputError, same_input},
    occupied::OccupiedError,
};
use crate::{
    arguments::RunArguments,
    error::CommandError,
    output::{Output, Standing},
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
    let (input, output) = locations(&spec)?;
    let mut reporter = Reporter::new(view, screen, input.last_name());
    let output = Output::at(output).await?;
    let standing = output.standing().await?;
    let (input, canonical) = match input::open(&input, &spec, &output, &standing).await? {
        input::Opened::Open(input, canonical) => (input, *canonical),
        input::Opened::Over(receipt) => return Ok(over(receipt, &output, &mut reporter)),
    };
    if let Some(theirs) = standing.begun() {
        occupied::check(&output, theirs, &canonical)?;
    }
    if let Standing::Over(receipt) = &standing {
        return Ok(over(receipt, &output, &mut reporter));
    }
    let participation =
        sharing::participation(shared_state.as_deref(), share_every, &spec, output.location()).await?;
    let identity = Identity::of(&canonical);
    let _lock = lock(&lock_folder(&output, &identity)?, take_over)?;
    reporter.event(&Event::Started {
        input: &canonical.input.uri,
        output: &output.location().to_string(),
        identity: identity.as_str(),
    });
    let reporting = Reporting::of(&spec)?;
    let server = simulated(&mut spec).await?;
    let timeout = Duration::from_secs(spec.limits.request_timeout_seconds.get());
    let in_flight = usize::try_from(requests_in_flight(&spec)).unwrap_or(usize::MAX);
    let provider = if standing.is_decided() {
        None
    } else {
        Some(Provider::connect(&canonical, &spec.provider, timeout, in_flight)?)
    };
    let (store, steps) = watched(output.store().await?);
    let scratch = scratch(&output, &identity)?;
    let valid =
        validation::validate(&*input, &*store, &canonical, &output, &scratch, &mut reporter, &mut signals)
            .await?;
    if !valid {
        return Ok(ExitCode::Stopped);
    }
    let job = Job {
        spec,
        canonical,
        identity,
        incarnation: Incarnation::draw(),
        store,
        input: Some(input),
        provider,
        scratch,
        ending: None,
        steps,
        fail_fast: true,
        participation,
        reporting,
        claims: Job::CLAIMS,
    };
    let code = execute(job, &output, &mut reporter, &mut signals).await?;
    if let Some(server) = server {
        server.shutdown().await;
    }
    Ok(code)
}

/// Takes the run lock; to take a job over, it need not be free.
fn lock(folder: &Path, take_over: bool) -> Result<Option<RunLock>, RunLockError> {
    match RunLock::acquire(folder) {
        Ok(lock) => Ok(Some(lock)),
        Err(RunLockError::Held { .. }) if take_over => Ok(None),
        Err(error) => Err(error),
    }
}

/// Where the input is and where the output goes; a job file may have named either.
fn locations(spec: &JobSpec) -> Result<(Location, Location), InputError> {
    let input = spec.input.as_deref().ok_or(InputError::NotNamed { what: "input", flag: "INPUT" })?;
    let output = spec.output.as_deref().ok_or(InputError::NotNamed { what: "output", flag: "--output" })?;
    Ok((Location::parse(input)?, Location::parse(output)?))
}

/// Says what came out of a job that is over already; returns what to exit with.
fn over(receipt: &Receipt, output: &Output, reporter: &mut Reporter) -> ExitCode {
    reporter.finished(&Summary { receipt, output, elapsed: None });
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
