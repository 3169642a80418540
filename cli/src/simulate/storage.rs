//! `penstock simulate storage`: buckets that cost nothing, until Ctrl-C.

use std::time::Duration;

use penstock_gcs_double::{
    BucketName, FaultRule, NotificationSettings, Requests, StorageServer, StorageSettings,
};
use penstock_job::ExitCode;
use serde::Deserialize;

use crate::{
    arguments::StorageArguments,
    error::CommandError,
    lines::Lines,
    signals::Signals,
    spec_file,
    view::{Screen, grouped},
};

/// The bucket that is there if none is named.
const BUCKET: &str = "bucket";

/// How many requests the log keeps in memory, where nobody reads it.
const LOG_ENTRIES: usize = 0;

/// A file of faults.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Faults {
    faults: Vec<FaultRule>,
}

/// Serves until a signal. The first line on stdout is the URL; the counts follow at the end, on stderr.
pub(crate) async fn storage(arguments: StorageArguments, screen: &Screen) -> Result<ExitCode, CommandError> {
    let mut signals = Signals::listen()?;
    let file = arguments.faults.as_deref().map(spec_file::read::<Faults>).transpose()?;
    let listen = arguments.listen;
    let faults = file.map(|file| file.faults).unwrap_or_default();
    let server = StorageServer::start(settings(arguments, faults), listen).await?;
    let mut stdout = Lines::stdout();
    stdout.text(&server.url());
    stdout.flush()?;
    signals.next().await;
    let requests = server.requests();
    server.shutdown().await;
    screen.say(&told(requests));
    Ok(ExitCode::Completed)
}

fn settings(arguments: StorageArguments, faults: Vec<FaultRule>) -> StorageSettings {
    let mut buckets = arguments.buckets;
    if buckets.is_empty() {
        buckets.extend(BucketName::parse(BUCKET));
    }
    StorageSettings {
        buckets,
        faults,
        latency: Duration::from_millis(arguments.latency_ms),
        seed: arguments.seed,
        folder: arguments.folder,
        log_entries: LOG_ENTRIES,
        log_file: arguments.log,
        notifications: arguments.notify.map(NotificationSettings::once_and_in_order),
        ..StorageSettings::default()
    }
}

fn told(requests: Requests) -> String {
    let Requests { received, succeeded, refused, failed, unanswered } = requests;
    format!(
        "{} requests: {} answered, {} refused, {} failed, {} without an answer",
        grouped(received),
        grouped(succeeded),
        grouped(refused),
        grouped(failed),
        grouped(unanswered)
    )
}
