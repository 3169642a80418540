//! The state that all requests share: buckets, fault plan, log, clock.
//!
//! Owns every lock; none is held across an await.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    bucket::{Buckets, Moment, Refusal, Rules},
    content::Spool,
    counters::Counters,
    event::Event,
    faults::{Fault, FaultPlan, FaultRule, InvalidFaultRule},
    history::{Change, History},
    log::Log,
    notify::Outbox,
    operation::Operation,
    settings::StorageSettings,
    upload::Uploads,
};

/// One service.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) settings: StorageSettings,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    pub(crate) log: Log,
    pub(crate) spool: Arc<Spool>,
    pub(crate) uploads: Uploads,
    pub(crate) counters: Counters,
    /// Empty unless the settings say that it is kept.
    pub(crate) history: History,
    /// Events that are to be told, where they are.
    pub(crate) outbox: Option<Arc<Outbox>>,
    buckets: Mutex<Buckets>,
    faults: Mutex<FaultPlan>,
    clock: Clock,
    /// Cancelled when the server is told to shut down.
    pub(crate) stop: CancellationToken,
    /// Cancelled when the server no longer waits for what it is answering.
    pub(crate) abandon: CancellationToken,
}

/// Time since the epoch that goes on as the runtime's clock does, so that a test can hold it still.
#[derive(Debug)]
struct Clock {
    started: Instant,
    micros_then: u64,
}

impl Service {
    pub(crate) fn new(
        settings: StorageSettings,
        address: SocketAddr,
        log: Log,
        stop: CancellationToken,
    ) -> Result<Self, InvalidFaultRule> {
        let faults = FaultPlan::new(settings.faults.clone(), settings.seed)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let micros_then = u64::try_from(since.as_micros()).unwrap_or(u64::MAX);
        let StorageSettings { mutation_interval, retention, .. } = settings;
        let rules = Rules { mutation_interval, retention };
        let service = Self {
            address,
            log,
            spool: Arc::new(Spool::in_folder(settings.folder.clone())),
            uploads: Uploads::default(),
            counters: Counters::default(),
            history: History::default(),
            outbox: settings.notifications.clone().map(|told| Arc::new(Outbox::new(told, settings.seed))),
            buckets: Mutex::new(Buckets::new(rules)),
            faults: Mutex::new(faults),
            clock: Clock { started: Instant::now(), micros_then },
            stop,
            abandon: CancellationToken::new(),
            settings,
        };
        for name in &service.settings.buckets {
            // One that is named twice is there once.
            let _ = service.act(|buckets, now| buckets.create(name.clone(), now).map(|_| ()));
        }
        Ok(service)
    }

    /// Does something with the buckets, and sees to it that what was changed is told.
    pub(crate) fn act<T>(
        &self,
        act: impl FnOnce(&mut Buckets, Moment) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let mut buckets = lock(&self.buckets);
        let done = act(&mut buckets, self.now());
        // Under the lock, so that events are put in the order of the changes.
        for (bucket, name, version) in buckets.take_changes() {
            if let (Some(outbox), Some(object)) = (&self.outbox, &version) {
                outbox.put(Event::finalized(&bucket, object));
            }
            if self.settings.keep_history {
                self.history.add(Change::new(bucket, name.to_string(), version));
            }
        }
        done
    }

    pub(crate) fn now(&self) -> Moment {
        let elapsed = u64::try_from(self.clock.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        Moment::from_micros(self.clock.micros_then.saturating_add(elapsed))
    }

    /// The fault that a request meets.
    pub(crate) fn next_fault(&self, operation: Operation, name: &str) -> Option<Fault> {
        lock(&self.faults).next(operation, name)
    }

    /// Puts other rules into force, which begin to count.
    pub(crate) fn set_faults(&self, rules: Vec<FaultRule>) -> Result<(), InvalidFaultRule> {
        *lock(&self.faults) = FaultPlan::new(rules, self.settings.seed)?;
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
