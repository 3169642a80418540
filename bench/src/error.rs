//! How a measurement fails.

use std::{io, path::PathBuf};

use penstock_simulator::ReadLogError;
use thiserror::Error;

/// A row that could not be measured.
#[derive(Debug, Error)]
pub(crate) enum BenchError {
    /// A file or folder.
    #[error("use {path}: {source}; choose another place with --folder, on a disk with room")]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Another measurement works there.
    #[error(
        "measure in {folder}: another measurement does; let it end, or choose another place with --folder"
    )]
    Taken {
        /// Which one.
        folder: PathBuf,
    },
    /// A program cannot be started.
    #[error(
        "start `{command}`: {source}; `make bench` builds and installs what is needed, `make cluster-up` the programs of Kubernetes"
    )]
    Start {
        /// As one would type it.
        command: String,
        /// What the system says.
        source: io::Error,
    },
    /// A program ended otherwise than it should.
    #[error("see `{command}` succeed: it ended with {status}; its last words: {words}")]
    Ended {
        /// As one would type it.
        command: String,
        /// Exit code or signal.
        status: String,
        /// The end of what it said on stderr.
        words: String,
    },
    /// A program said something else than expected.
    #[error("understand `{command}`: {said:?}; build all binaries from the same sources")]
    Answer {
        /// As one would type it.
        command: String,
        /// What it said.
        said: String,
    },
    /// Some subjects could not be measured; the others were.
    #[error("measure everything: mend what is said above, and measure the rest with --only {0}")]
    Subjects(String),
    /// Something did not happen in time.
    #[error("see {what} in time; look for what holds this machine up")]
    Patience {
        /// What was awaited.
        what: &'static str,
    },
    /// More or fewer requests arrived than there are lines.
    #[error("trust the round: {found} requests arrived for {expected} lines; look at the server's log")]
    Requests {
        /// Lines of the input.
        expected: u64,
        /// Requests that arrived.
        found: u64,
    },
    /// The double's log.
    #[error(transparent)]
    Log(#[from] ReadLogError),
    /// The HTTP client of the loop.
    #[error("send a request: {0}; see that the server still runs")]
    Http(#[from] reqwest::Error),
    /// The bucket.
    #[error(transparent)]
    Storage(#[from] penstock_storage::StorageError),
    /// The API server.
    #[error("ask the API server: {0}; it may be too busy, try again")]
    Kube(#[from] Box<kube::Error>),
    /// This process.
    #[error("run the server or the loop: {0}; allow this process more memory and files")]
    Own(#[from] io::Error),
}
