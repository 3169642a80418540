//! The executor's binary: reads its job file, opens what it names, and hands over to the library.
//!
//! It runs a job that was validated before; `penstock run` validates and runs in one go. Its exit codes are those of
//! `docs/exit-codes.md`; the last line of its log says what helps.

use std::{fs, num::NonZeroU64, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use clap::{Parser, ValueEnum};
use penstock_executor::{
    Board, End, EndingRequest, Finished, LaunchError, Progress, SharingPlace, Speaker, Stop, last_word,
    launch, run,
};
use penstock_job::{ExitCode as Code, LastWord, document};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Runs one validated job to its receipt.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// The job file (YAML or JSON); it must name input and output.
    #[arg(long, value_name = "FILE")]
    job: PathBuf,
    /// Folder on local disk for windows and for answers that are not durable yet [default: below an output
    /// that is a folder, else below the user's state folder].
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// Where jobs on one key tell each other what they learn of its rate: a folder, a path in a bucket, or none
    /// [default: none]
    #[arg(long, value_name = "URI")]
    shared_state: Option<String>,
    /// How often this job tells the others there what it sends, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "10")]
    share_every: NonZeroU64,
    /// Send nothing: record every undone line as this, and publish.
    #[arg(long, value_name = "WHY")]
    ending: Option<Ending>,
    /// Where the last word of this process goes, however it ends [default: nowhere]
    #[arg(long, value_name = "FILE")]
    termination_message: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Ending {
    Cancelled,
    Expired,
    Abandoned,
}

/// Gives memory back; how it is tuned stands in `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let filter = EnvFilter::try_from_env("PENSTOCK_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().json().with_env_filter(filter).with_writer(std::io::stderr).init();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Nobody reads a message that cannot be printed.
            let _ = error.print();
            return if error.use_stderr() { Code::Configuration.into() } else { ExitCode::SUCCESS };
        }
    };
    penstock_executor::raise_open_files();
    let termination_message = arguments.termination_message.clone();
    let word = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let word = runtime.block_on(execute(arguments));
            // Whatever still hangs in a call of the operating system does not hold up the exit.
            runtime.shutdown_background();
            word
        }
        Err(error) => {
            let message = format!("failed to start: {error}; allow this process more threads");
            tracing::error!("{message}");
            last_word(None, &End::before_launch(message), &Progress::default())
        }
    };
    if let Some(path) = termination_message
        && let Err(error) = fs::write(&path, document::write(&word))
    {
        tracing::warn!("failed to write the last word to {}: {error}", path.display());
    }
    word.exit_code.into()
}

async fn execute(arguments: Arguments) -> LastWord {
    let board = Arc::new(Board::default());
    let mut speaker = None;
    let end = match finish(arguments, &board, &mut speaker).await {
        Ok(finished) => {
            match &finished {
                Finished::Published { receipt, .. } => {
                    tracing::info!(ending = ?receipt.ending, outcomes = ?receipt.outcomes, "published");
                }
                Finished::Stopped => tracing::info!("stopped; the same job file resumes"),
            }
            End::from(&finished)
        }
        Err(error) => {
            tracing::error!("failed to {error}");
            End::from(&error)
        }
    };
    last_word(speaker.as_ref(), &end, &board.progress())
}

/// Runs the job; leaves in `speaker` who runs it as soon as that is known.
async fn finish(
    arguments: Arguments,
    board: &Arc<Board>,
    speaker: &mut Option<Speaker>,
) -> Result<Finished, LaunchError> {
    let stop = Stop::new();
    let mut terminate = signal(SignalKind::terminate()).map_err(LaunchError::Signals)?;
    let asked = stop.clone();
    let listening = tokio::spawn(async move {
        terminate.recv().await;
        tracing::info!("asked to stop");
        asked.request();
    });
    let ending = arguments.ending.map(|ending| match ending {
        Ending::Cancelled => EndingRequest::cancelled(),
        Ending::Expired => EndingRequest::expired(),
        Ending::Abandoned => EndingRequest::abandoned(),
    });
    let every = Duration::from_secs(arguments.share_every.get());
    let sharing = arguments.shared_state.map(|uri| SharingPlace { uri, every });
    let job = tokio::select! {
        job = launch(&arguments.job, arguments.scratch, ending, sharing) => job?,
        () = stop.wait() => return Ok(Finished::Stopped),
    };
    *speaker = Some(Speaker::of(&job));
    let finished = run(job, Arc::clone(board), stop).await;
    listening.abort();
    Ok(finished?)
}
