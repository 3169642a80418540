//! The handle on a process of the fixed-answer server.

use std::{fs, path::Path, time::Duration};

use crate::{
    arguments::ONE_WORD,
    error::BenchError,
    process::{Cores, Invocation},
    served::Served,
    server::Tally,
    spread::number,
};

/// A server in a process of its own; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Answering {
    served: Served,
    /// Its base URL.
    pub(crate) url: String,
}

impl Answering {
    /// Starts it on these cores. `own` is this program.
    pub(crate) fn start(own: &Path, cores: Cores) -> Result<Self, BenchError> {
        Self::with_text(own, cores, ONE_WORD)
    }

    /// Starts one whose answers have a text of so many bytes.
    pub(crate) fn with_text(own: &Path, cores: Cores, bytes: usize) -> Result<Self, BenchError> {
        let served =
            Served::start(&Invocation::new(cores, own, ["serve", "--text-bytes", &bytes.to_string()]))?;
        let url = served.url.clone();
        Ok(Self { served, url })
    }

    /// As one would type it.
    pub(crate) fn command(&self) -> &str {
        &self.served.command
    }

    /// What it has seen since it was last reset.
    pub(crate) fn tally(&mut self) -> Result<Tally, BenchError> {
        self.served.order("tally")
    }

    /// Forgets what was seen.
    pub(crate) fn reset(&mut self) -> Result<(), BenchError> {
        self.served.order::<Tally>("reset").map(drop)
    }

    /// How long it has been on a core so far.
    pub(crate) fn busy(&self) -> Result<Duration, BenchError> {
        // The main thread does all the work; the first number is its time on a core in nanoseconds.
        let path = format!("/proc/{}/schedstat", self.served.id());
        let text =
            fs::read_to_string(&path).map_err(|source| BenchError::File { path: path.into(), source })?;
        let nanoseconds = text.split_whitespace().next().and_then(|first| first.parse().ok());
        nanoseconds.map(Duration::from_nanos).ok_or_else(|| self.served.misunderstood(text))
    }
}

impl Tally {
    /// Requests a second, from the first to the last.
    pub(crate) fn rate(&self) -> f64 {
        number(self.requests) / self.last.saturating_sub(self.first).as_secs_f64()
    }
}
