//! A bucket of the double, and ways into it.

use std::time::Duration;

use bytes::Bytes;
use penstock_gcs_double::{
    BucketName, Calls, Fault, FaultRule, LogEntry, Operation, StorageServer, StorageSettings,
};
use penstock_storage::{GsBucket, GsInput, GsSettings, GsStore, ObjectName};

/// How long an attempt may take here: what stalls is noticed soon, what works under load is not taken for stalled.
const PATIENCE: Duration = Duration::from_secs(3);

/// A double with one bucket named `bucket`.
pub(crate) struct Bucket {
    pub(crate) server: StorageServer,
}

impl Bucket {
    pub(crate) async fn start(settings: StorageSettings) -> Self {
        let buckets = vec![BucketName::parse("bucket").unwrap()];
        let settings = StorageSettings { buckets, ..settings };
        Self { server: StorageServer::start(settings, ([127, 0, 0, 1], 0).into()).await.unwrap() }
    }

    /// A double whose objects may be written as often as a test likes.
    pub(crate) async fn without_pace() -> Self {
        Self::start(StorageSettings { mutation_interval: Duration::ZERO, ..StorageSettings::default() }).await
    }

    pub(crate) fn settings(&self) -> GsSettings {
        GsSettings {
            endpoint: Some(self.server.url()),
            anonymous: true,
            patience: PATIENCE,
            ..GsSettings::default()
        }
    }

    pub(crate) async fn connect(&self, name: &str) -> GsBucket {
        GsBucket::connect(&self.settings(), name).await.unwrap()
    }

    pub(crate) async fn store(&self, prefix: &str) -> GsStore {
        GsStore::open(self.connect("bucket").await, prefix).await.unwrap()
    }

    pub(crate) async fn input(&self, path: &str) -> penstock_storage::Result<GsInput> {
        GsInput::open(self.connect("bucket").await, path).await
    }

    /// From now on `fault` happens to those `calls` that are `operation`.
    pub(crate) fn fail(&self, operation: Operation, fault: Fault, calls: Calls) {
        let rule = FaultRule { operations: vec![operation], calls, ..FaultRule::always(fault) };
        self.server.set_faults(vec![rule]).unwrap();
    }

    pub(crate) fn asked(&self, operation: Operation) -> Vec<LogEntry> {
        self.server.log().into_iter().filter(|entry| entry.operation == operation).collect()
    }
}

pub(crate) fn name(name: &str) -> ObjectName {
    ObjectName::parse(name).unwrap()
}

/// Bytes of which no eight in their place are like any others.
pub(crate) fn pattern(size: usize) -> Bytes {
    (0_u64..).flat_map(u64::to_le_bytes).take(size).collect()
}
