//! A bucket in a process of its own: the storage double with a log, and what the log says of a job.

use std::{
    io::{self, BufRead},
    net::Ipv4Addr,
    path::Path,
    time::Duration,
};

use penstock_gcs_double::{BucketName, LogEntry, Operation, StorageServer, StorageSettings};
use penstock_storage::{Checksum, GsBucket, GsSettings, GsStore, ObjectName, Store};
use serde::{Deserialize, Serialize};

use crate::{
    arguments::BucketArguments,
    error::BenchError,
    process::{Cores, Invocation},
    served::Served,
    server::say,
};

/// The bucket's name.
pub(crate) const NAME: &str = "bench";

/// More requests than a job of ten million lines makes.
const LOG_ENTRIES: usize = 1_000_000;

/// What was asked of the bucket so far.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// Compose calls.
    pub(crate) composes: u64,
    /// Parts written.
    pub(crate) parts: u64,
    /// Objects written, uploaded or composed.
    pub(crate) objects: u64,
    /// Bytes of parts and intermediate objects that were downloaded after the first compose.
    pub(crate) downloaded_bytes: u64,
    /// When the receipt was sent, since the epoch; zero until then.
    pub(crate) receipt_at: Duration,
}

impl Asked {
    fn of(entries: &[LogEntry]) -> Self {
        let composing = |entry: &LogEntry| entry.operation == Operation::Compose;
        let receipt = entries.iter().find(|entry| entry.object.ends_with("/receipt.json") && entry.applied);
        let receipt_at = Duration::from_millis(receipt.map_or(0, |entry| entry.at_ms));
        let mut asked = Self { receipt_at, ..Self::default() };
        for entry in entries {
            let makes_object =
                matches!(entry.operation, Operation::Write | Operation::UploadChunk | Operation::Compose);
            let made = u64::from(makes_object && entry.applied);
            asked.objects += made;
            asked.parts += if entry.object.contains("/parts/") { made } else { 0 };
            asked.composes += u64::from(composing(entry));
        }
        // The documents are read back by the protocol; they are no results.
        let of_results = |entry: &&LogEntry| {
            entry.operation == Operation::Read
                && (entry.object.contains("/parts/") || entry.object.contains("/compose/"))
        };
        let after_first_compose = entries.iter().skip_while(|entry| !composing(entry));
        asked.downloaded_bytes = after_first_compose.filter(of_results).map(|entry| entry.sent_bytes).sum();
        asked
    }
}

/// Serves until stdin ends. The first line on stdout is the URL; every order is answered with what was [`Asked`] so far.
pub(crate) fn serve(arguments: &BucketArguments) -> Result<(), BenchError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let settings = StorageSettings {
        buckets: BucketName::parse(NAME).into_iter().collect(),
        latency: Duration::from_millis(arguments.latency_ms),
        folder: Some(arguments.folder.clone()),
        log_entries: LOG_ENTRIES,
        ..StorageSettings::default()
    };
    let server = runtime
        .block_on(StorageServer::start(settings, (Ipv4Addr::LOCALHOST, 0).into()))
        .map_err(|error| io::Error::other(error.to_string()))?;
    say(&server.url())?;
    for order in io::stdin().lock().lines() {
        order?;
        say(&serde_json::to_string(&Asked::of(&server.log())).map_err(io::Error::from)?)?;
    }
    runtime.block_on(server.shutdown());
    Ok(())
}

/// The handle on such a process; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Bucket {
    served: Served,
}

impl Bucket {
    /// Starts one that answers after `latency_ms` milliseconds. `own` is this program; large objects are kept below
    /// `folder`.
    pub(crate) fn start(
        own: &Path,
        cores: Cores,
        latency_ms: u32,
        folder: &Path,
    ) -> Result<Self, BenchError> {
        let (latency, folder) = (latency_ms.to_string(), folder.display().to_string());
        let words = ["bucket", "--latency-ms", &latency, "--folder", &folder];
        Ok(Self { served: Served::start(&Invocation::new(cores, own, words))? })
    }

    /// As one would type it.
    pub(crate) fn command(&self) -> &str {
        &self.served.command
    }

    /// Where it is.
    pub(crate) fn url(&self) -> &str {
        &self.served.url
    }

    /// What was asked of it so far.
    pub(crate) fn asked(&mut self) -> Result<Asked, BenchError> {
        self.served.order("asked")
    }

    /// Puts a file there as `name`.
    pub(crate) fn upload(&self, source: &Path, name: &'static str) -> Result<(), BenchError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let settings =
            GsSettings { endpoint: Some(self.served.url.clone()), anonymous: true, ..GsSettings::default() };
        runtime.block_on(async {
            let store = GsStore::open(GsBucket::connect(&settings, NAME).await?, "").await?;
            let checksum = checksum_of(source)
                .map_err(|error| BenchError::File { path: source.to_owned(), source: error })?;
            store.upload(&ObjectName::from_static(name), source, checksum).await?;
            Ok(())
        })
    }
}

fn checksum_of(path: &Path) -> io::Result<Checksum> {
    let mut file = io::BufReader::with_capacity(1 << 20, std::fs::File::open(path)?);
    let mut checksum = Checksum::default();
    loop {
        let block = file.fill_buf()?;
        if block.is_empty() {
            return Ok(checksum);
        }
        checksum = checksum.extended(block);
        let read = block.len();
        file.consume(read);
    }
}
