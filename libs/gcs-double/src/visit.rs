//! A request between its arrival and its end: the fault that it meets, and what is logged of it.

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::Ordering::Relaxed},
    time::Duration,
};

use tokio::time::sleep;

use crate::{
    bucket::{Buckets, Moment, Refusal},
    faults::Fault,
    log::LogEntry,
    operation::{Operation, Transport},
    service::Service,
};

/// What a request asks for.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) transport: Transport,
    pub(crate) operation: Operation,
    pub(crate) bucket: String,
    pub(crate) object: String,
}

/// Why a request is not carried out.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The client is told why.
    Refused(Refusal),
    /// The connection is closed.
    Dropped,
}

/// A connection that this server closes without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed, as a fault rule says or because the server stops")]
pub(crate) struct Dropped;

/// One request. It is over when it is dropped.
#[derive(Debug)]
pub(crate) struct Visit {
    pub(crate) service: Arc<Service>,
    pub(crate) fault: Option<Fault>,
    operation: Operation,
    entry: Mutex<LogEntry>,
}

impl Visit {
    /// Logs the arrival and waits as long as the service takes.
    pub(crate) async fn arrive(service: &Arc<Service>, call: Call) -> Result<Arc<Self>, Stop> {
        let fault = service.next_fault(call.operation, &call.object);
        let operation = call.operation;
        let mut entry = LogEntry {
            sequence: 0,
            at_ms: service.now().micros() / 1_000,
            transport: call.transport,
            operation,
            bucket: call.bucket,
            object: call.object,
            fault,
            applied: false,
            status: None,
            received_bytes: 0,
            sent_bytes: 0,
            ended: false,
        };
        service.log.arrived(&mut entry);
        service.counters.received.fetch_add(1, Relaxed);
        let visit =
            Arc::new(Self { service: Arc::clone(service), fault, operation, entry: Mutex::new(entry) });
        let delay = match fault {
            Some(Fault::Delay { milliseconds }) => Duration::from_millis(milliseconds),
            _ => Duration::ZERO,
        };
        let wait = service.settings.latency + delay;
        if !wait.is_zero() {
            sleep(wait).await;
        }
        match fault {
            Some(Fault::StallBefore) => Err(visit.stall().await),
            _ => Ok(visit),
        }
    }

    /// Looks something up.
    pub(crate) async fn read<T>(&self, look: impl FnOnce(&Buckets) -> Result<T, Refusal>) -> Result<T, Stop> {
        self.act(|buckets, _| look(buckets), false).await
    }

    /// Changes something.
    pub(crate) async fn change<T>(
        &self,
        change: impl FnOnce(&mut Buckets, Moment) -> Result<T, Refusal>,
    ) -> Result<T, Stop> {
        self.act(change, true).await
    }

    async fn act<T>(
        &self,
        act: impl FnOnce(&mut Buckets, Moment) -> Result<T, Refusal>,
        changes: bool,
    ) -> Result<T, Stop> {
        let done = self.apply(act, changes)?;
        self.after().await?;
        Ok(done)
    }

    /// Does what is asked, unless a fault comes before. [`Visit::after`] follows.
    pub(crate) fn apply<T>(
        &self,
        act: impl FnOnce(&mut Buckets, Moment) -> Result<T, Refusal>,
        changes: bool,
    ) -> Result<T, Stop> {
        self.before()?;
        let done = self.service.act(act)?;
        if changes {
            self.amend(|entry| entry.applied = true);
        }
        Ok(done)
    }

    /// The fault that comes before anything is done.
    pub(crate) fn before(&self) -> Result<(), Stop> {
        match self.fault {
            Some(Fault::ErrorBefore { status }) => Err(Stop::Refused(Refusal::failed(status))),
            Some(Fault::BreakRequest { .. }) => Err(Stop::Dropped),
            _ => Ok(()),
        }
    }

    /// The fault that comes when all is done.
    pub(crate) async fn after(&self) -> Result<(), Stop> {
        match self.fault {
            Some(Fault::ErrorAfter { status }) => Err(Stop::Refused(Refusal::failed(status))),
            Some(Fault::StallAfter) => Err(self.stall().await),
            Some(Fault::BreakResponse { .. }) if self.operation != Operation::Read => Err(Stop::Dropped),
            _ => Ok(()),
        }
    }

    /// Answers nothing until the client goes or the server ends.
    async fn stall(&self) -> Stop {
        self.service.abandon.cancelled().await;
        Stop::Dropped
    }

    /// The status that is sent.
    pub(crate) fn answered(&self, status: u16) {
        self.amend(|entry| entry.status = Some(status));
    }

    /// Bytes of content that arrived.
    pub(crate) fn received(&self, bytes: u64) {
        self.amend(|entry| entry.received_bytes += bytes);
    }

    /// Bytes of content that are sent.
    pub(crate) fn sent(&self, bytes: u64) {
        self.amend(|entry| entry.sent_bytes += bytes);
    }

    fn amend(&self, change: impl FnOnce(&mut LogEntry)) {
        let mut own = self.entry.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut own);
        self.service.log.amend(own.sequence, |entry| entry.clone_from(&own));
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.amend(|entry| entry.ended = true);
        let entry = self.entry.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.service.counters.ended(entry.status);
        if let Err(error) = self.service.log.ended(entry) {
            tracing::error!(%error, "the log of the storage double cannot be written; a request is missing in it");
        }
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Dropped> for Stop {
    fn from(_: Dropped) -> Self {
        Self::Dropped
    }
}
