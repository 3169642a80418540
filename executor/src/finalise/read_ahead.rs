//! Reading ahead (F2 of the job protocol): while lines are still answered, parts that are listed are read back from the
//! store into the tally of reconciliation, and announced to the store for the compose to come.
//!
//! It has a thread of its own, to which the system gives what nobody else wants: work that is due at the end anyway must not
//! take the core from requests. So it keeps up in a job that waits for its provider, as jobs do, and stays behind in one that
//! keeps every core busy.

use std::{io, thread};

use futures_util::TryStreamExt;
use sha2::Digest;
use tokio::runtime;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::tally::{Source, Tally};
use crate::{
    ledger::Ledger,
    output::Output,
    records::{Problem, RecordForm, chunks},
};

/// Reads under way at once; each is of at most 1 MiB.
const READS: usize = 1;

/// A reader at work. It ends by itself soon after this is dropped.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    stop: DropGuard,
    thread: thread::JoinHandle<Option<Tally>>,
}

impl ReadAhead {
    /// Begins with the parts that are listed. `None` where the system gives no thread: all is left to the end then.
    pub(crate) fn start(output: Output, ledger: Ledger) -> Option<Self> {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        // Connections that this thread needs must outlive it, and are as quick as others; what reads files is not.
        let runtime = output.is_remote().then(runtime::Handle::current);
        let work = move || match run(&output, &ledger, &stopped, runtime) {
            Ok(tally) => Some(tally),
            Err(problem) => {
                tracing::debug!(problem, "reading ahead has ended; reconciliation reads every part");
                None
            }
        };
        let thread = thread::Builder::new().name("read-ahead".to_owned()).spawn(work);
        thread.ok().map(|thread| Self { stop: stop.drop_guard(), thread })
    }

    /// Stops it. What it has read is `None` where something was not as it should be, which is then for reconciliation to
    /// find.
    pub(crate) async fn finish(self) -> Option<Tally> {
        let Self { stop, thread } = self;
        drop(stop);
        // A reader that has panicked has read nothing.
        let joined = tokio::task::spawn_blocking(|| thread.join().ok().flatten()).await;
        joined.ok().flatten()
    }
}

fn run(
    output: &Output,
    ledger: &Ledger,
    stop: &CancellationToken,
    runtime: Option<runtime::Handle>,
) -> Result<Tally, Problem> {
    step_back().map_err(|error| error.to_string())?;
    if let Some(runtime) = runtime {
        return runtime.block_on(read_ahead(output, ledger, stop));
    }
    // The threads that it starts are as modest as the one that it was started by.
    let runtime = runtime::Builder::new_current_thread().enable_time().max_blocking_threads(1).build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let read = runtime.block_on(read_ahead(output, ledger, stop));
    // A store that does not answer keeps nobody.
    runtime.shutdown_background();
    read
}

/// The lowest priority for this thread. On other systems the call would be for the whole process.
fn step_back() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::setpriority_process(None, 19)?;
    Ok(())
}

async fn read_ahead(output: &Output, ledger: &Ledger, stop: &CancellationToken) -> Result<Tally, Problem> {
    let (mut tally, rejected) = ledger
        .look(|state, validation| {
            (
                Tally::new(RecordForm::of(&state.job.spec), state.input.lines),
                validation.rejected_files.clone(),
            )
        })
        .await;
    loop {
        let sources = ledger.look(|state, _| tally.unread(&rejected, &state.parts)).await;
        for source in sources {
            if stop.is_cancelled() {
                return Ok(tally);
            }
            read(output, &mut tally, source).await?;
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(tally),
            () = ledger.listed() => {}
        }
    }
}

async fn read(output: &Output, tally: &mut Tally, source: Source) -> Result<(), Problem> {
    let mut open = tally.open(&source);
    {
        let chunks = chunks(output, std::slice::from_ref(&source), READS).map_err(|(_, error)| error);
        let mut chunks = std::pin::pin!(chunks);
        while let Some(chunk) = chunks.try_next().await.map_err(|error| error.to_string())? {
            open.digest.update(&chunk.bytes);
            open.records.read(&chunk.bytes)?;
        }
    }
    let first = tally.close(&source, open)?;
    let announced = [(source.stored.name, source.stored.generation)];
    if let Err(error) = output.announce(first, &announced).await {
        tracing::debug!(%error, "composing will copy everything");
    }
    Ok(())
}
