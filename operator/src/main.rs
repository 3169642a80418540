//! The operator's binary: reads its arguments and hands over to the library.

use std::{fs, process::ExitCode};

use clap::Parser;
use penstock_job::{JobSpec, spec::text};
use penstock_operator::{
    arguments::{Arguments, Command, IntakeArguments},
    intake::intake,
    serve::serve,
};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// Gives memory back; how it is tuned stands in `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let filter = EnvFilter::try_from_env("PENSTOCK_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().json().with_env_filter(filter).with_writer(std::io::stderr).init();
    let arguments = Arguments::parse();
    let stop = CancellationToken::new();
    let listening = match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            let stop = stop.clone();
            tokio::spawn(async move {
                terminate.recv().await;
                tracing::info!("asked to stop");
                stop.cancel();
            })
        }
        Err(error) => {
            tracing::error!("failed to listen for signals: {error}");
            return ExitCode::FAILURE;
        }
    };
    let ended = match arguments.command {
        Command::Serve(arguments) => {
            Box::pin(serve((*arguments).into(), stop)).await.map_err(|error| error.to_string())
        }
        Command::Intake(arguments) => take_in(&arguments, stop).await,
    };
    listening.abort();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("failed to {error}");
            ExitCode::FAILURE
        }
    }
}

async fn take_in(arguments: &IntakeArguments, stop: CancellationToken) -> Result<(), String> {
    let path = arguments.job.display();
    let text =
        fs::read_to_string(&arguments.job).map_err(|error| format!("read the job file {path}: {error}"))?;
    let spec: JobSpec = text::parse(&text).map_err(|error| format!("read the job file {path}: {error}"))?;
    let word = intake(&spec, &arguments.scratch, None, &stop).await;
    tracing::info!(?word, "looked");
    fs::write(&arguments.termination_message, word.to_message())
        .map_err(|error| format!("write {}: {error}", arguments.termination_message.display()))
}
