//! The job's output as the steps use it: every call has a deadline, and a failed read is repeated.
//!
//! Owns no decision of the job protocol; what an ambiguous write means is decided by the step that made it.

use std::{future::Future, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use penstock_job::{
    Step,
    document::{self, Document},
};
use penstock_storage::{
    Action, Checksum, ErrorKind, Generation, ObjectMeta, ObjectName, StorageError, Store,
};

use crate::{error::RunError, steps::Steps};

/// Longest time for one small call.
const CALL: Duration = Duration::from_mins(1);
/// Longest time for one call that moves a whole file: 4 GiB at 20 MB/s take 215 s.
const TRANSFER: Duration = Duration::from_mins(10);
/// How often a read is repeated before the run gives up: waits of up to 0.2, 0.4, … 12.8 s.
const READS: u32 = 8;
/// Largest document: 10,000,000 lines take about 5 MiB.
const DOCUMENT_LIMIT: u64 = 256 << 20;

/// The storage below a job's output.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    store: Arc<dyn Store>,
    steps: Steps,
}

impl Output {
    pub(crate) fn new(store: Arc<dyn Store>, steps: Steps) -> Self {
        Self { store, steps }
    }

    /// Where steps that change no object are announced.
    pub(crate) fn steps(&self) -> &Steps {
        &self.steps
    }

    pub(crate) fn mutation_interval(&self) -> Duration {
        self.store.mutation_interval()
    }

    pub(crate) fn is_remote(&self) -> bool {
        self.store.is_remote()
    }

    pub(crate) fn deletes_at_once(&self) -> usize {
        self.store.deletes_at_once().get()
    }

    pub(crate) fn compose_limit(&self) -> Option<usize> {
        self.store.compose_limit()
    }

    /// What is known of an object.
    pub(crate) async fn head(&self, name: &ObjectName) -> Result<Option<ObjectMeta>, StorageError> {
        repeat(|| within(TRANSFER, Action::Read, name, self.store.head(name))).await
    }

    /// A document with its generation.
    pub(crate) async fn document<D: Document>(&self) -> Result<Option<(D, Generation)>, RunError> {
        let name = ObjectName::from_static(D::NAME);
        let read =
            repeat(|| within(CALL, Action::Read, &name, self.store.get(&name, DOCUMENT_LIMIT))).await?;
        read.map(|(meta, bytes)| Ok((document::read(&bytes)?, meta.generation))).transpose()
    }

    /// Bytes of one generation.
    pub(crate) async fn read_range(
        &self,
        name: &ObjectName,
        generation: &Generation,
        range: std::ops::Range<u64>,
    ) -> Result<Bytes, StorageError> {
        repeat(|| within(CALL, Action::Read, name, self.store.read_range(name, generation, range.clone())))
            .await
    }

    /// Every object below `prefix` whose name comes after `start_after`.
    pub(crate) async fn list(
        &self,
        prefix: &str,
        start_after: Option<String>,
    ) -> Result<Vec<ObjectMeta>, StorageError> {
        let mut objects = Vec::new();
        let mut after = start_after;
        loop {
            let page =
                repeat(|| within(CALL, Action::List, prefix, self.store.list(prefix, after.as_deref())))
                    .await?;
            objects.extend(page.objects);
            after = page.next;
            if after.is_none() {
                return Ok(objects);
            }
        }
    }

    /// One attempt to write an object that must not exist.
    pub(crate) async fn create(
        &self,
        step: Step,
        name: &ObjectName,
        content: Bytes,
    ) -> Result<ObjectMeta, StorageError> {
        let call = within(CALL, Action::Create, name, self.store.create(name, content));
        self.steps.around(step, name, call).await
    }

    /// One attempt to replace a generation.
    pub(crate) async fn replace(
        &self,
        step: Step,
        name: &ObjectName,
        content: Bytes,
        generation: &Generation,
    ) -> Result<ObjectMeta, StorageError> {
        let call = within(CALL, Action::Replace, name, self.store.replace(name, content, generation));
        self.steps.around(step, name, call).await
    }

    /// One attempt to upload a local file.
    pub(crate) async fn upload(
        &self,
        step: Step,
        name: &ObjectName,
        source: &Path,
        checksum: Checksum,
    ) -> Result<ObjectMeta, StorageError> {
        let call = within(TRANSFER, Action::Create, name, self.store.upload(name, source, checksum));
        self.steps.around(step, name, call).await
    }

    /// One attempt to compose.
    pub(crate) async fn compose(
        &self,
        step: Step,
        target: &ObjectName,
        sources: &[(ObjectName, Generation)],
    ) -> Result<ObjectMeta, StorageError> {
        let call = within(TRANSFER, Action::Compose, target, self.store.compose(target, sources));
        self.steps.around(step, target, call).await
    }

    /// Says that `sources` will follow in the compose that begins with `first`, where one compose takes any number of them.
    pub(crate) async fn announce(
        &self,
        first: &ObjectName,
        sources: &[(ObjectName, Generation)],
    ) -> Result<(), StorageError> {
        match self.compose_limit() {
            None => within(CALL, Action::Compose, first, self.store.announce(first, sources)).await,
            // Published files are made of intermediates.
            Some(_) => Ok(()),
        }
    }

    /// One attempt to delete some generations; the error is that of the first that is left.
    pub(crate) async fn delete_all(
        &self,
        step: Step,
        below: &str,
        objects: &[(ObjectName, Generation)],
    ) -> Result<(), StorageError> {
        let names: Vec<_> = objects.iter().map(|(name, _)| name).collect();
        let call = within(CALL, Action::Delete, below, self.store.delete_all(objects));
        self.steps.around_all(step, &names, call).await
    }
}

/// A name that this crate has put together.
pub(crate) fn object_name(name: &(impl std::fmt::Display + ?Sized)) -> ObjectName {
    ObjectName::parse(name.to_string()).expect("names of the layout are valid object names")
}

/// Whether the same call may work later: such trouble decides nothing about a job (R9).
pub(crate) fn may_pass(error: &StorageError) -> bool {
    matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Refused)
}

/// Repeats a read that may work the next time; a file where none may be, or a missing right, is told at once.
async fn repeat<T, F>(mut read: impl FnMut() -> F) -> Result<T, StorageError>
where
    F: Future<Output = Result<T, StorageError>>,
{
    for attempt in 0..READS - 1 {
        match read().await {
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                tracing::warn!(%error, "a read will be repeated");
                tokio::time::sleep(jitter(Duration::from_millis(200), Duration::from_secs(13), attempt))
                    .await;
            }
            result => return result,
        }
    }
    read().await
}

/// A call that has not come back after `limit` counts as one that may work the next time.
pub(crate) async fn within<T>(
    limit: Duration,
    action: Action,
    object: impl std::fmt::Display,
    call: impl Future<Output = Result<T, StorageError>>,
) -> Result<T, StorageError> {
    tokio::time::timeout(limit, call).await.unwrap_or_else(|_| {
        Err(StorageError::new(
            ErrorKind::Unavailable,
            action,
            object,
            format!("no answer within {} s", limit.as_secs()),
            "look at the storage if it does not pass",
        ))
    })
}

/// Full jitter: evenly drawn from zero to `base * 2^attempt`, at most `cap`.
pub(crate) fn jitter(base: Duration, cap: Duration, attempt: u32) -> Duration {
    let bound = base.saturating_mul(2u32.saturating_pow(attempt.min(31))).min(cap);
    bound.mul_f64(fastrand::f64())
}
