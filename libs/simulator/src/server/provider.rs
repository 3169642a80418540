//! The state that the requests of one server share: settings in force, limits, arrivals, counters, log.
//!
//! Owns every lock; none is held across an await.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, SystemTime},
};

use rand::RngExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::places::Places;
use crate::{
    draw::{PromptHash, Purpose, draw},
    fault::Moment,
    limit::Limiter,
    log::{Log, LogEntry},
    settings::{InvalidSettings, ProviderSettings},
};

/// The settings in force and what began with them.
#[derive(Debug)]
pub(super) struct InForce {
    pub(super) settings: ProviderSettings,
    pub(super) places: Option<Places>,
    since: Instant,
    /// Arrivals before these settings.
    arrivals_before: u64,
}

/// What one server knows.
#[derive(Debug)]
pub(super) struct Provider {
    in_force: RwLock<Arc<InForce>>,
    limiter: Mutex<Limiter>,
    arrivals: Mutex<Arrivals>,
    pub(super) counters: Counters,
    pub(super) log: Log,
    started: Instant,
    /// Cancelled when the server is told to shut down.
    pub(super) stop: CancellationToken,
    /// Cancelled when the server no longer waits for what it is answering.
    pub(super) abandon: CancellationToken,
}

/// What arrived so far.
#[derive(Debug, Default)]
struct Arrivals {
    total: u64,
    /// How often each prompt arrived; kept only while a fault or the log asks for it.
    seen: HashMap<PromptHash, u32>,
}

/// One arrival.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) sequence: u64,
    pub(super) times_seen: u32,
    /// Where in the life of the settings it came.
    pub(super) now: Moment,
}

/// Counts over the life of the server.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) received: AtomicU64,
    pub(super) succeeded: AtomicU64,
    pub(super) throttled: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) unanswered: AtomicU64,
}

impl InForce {
    fn new(settings: ProviderSettings, since: Instant, arrivals_before: u64) -> Self {
        let places = settings.slots.map(Places::new);
        Self { settings, places, since, arrivals_before }
    }
}

impl Provider {
    pub(super) fn new(settings: ProviderSettings, log: Log, stop: CancellationToken) -> Self {
        let started = Instant::now();
        let mut limiter = Limiter::default();
        limiter.change(&settings.limits, phase(settings.seed), Duration::ZERO);
        Self {
            in_force: RwLock::new(Arc::new(InForce::new(settings, started, 0))),
            limiter: Mutex::new(limiter),
            arrivals: Mutex::default(),
            counters: Counters::default(),
            log,
            started,
            stop,
            abandon: CancellationToken::new(),
        }
    }

    pub(super) fn in_force(&self) -> Arc<InForce> {
        Arc::clone(&self.in_force.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts other settings into force for the requests that arrive from now on.
    pub(super) fn update(&self, settings: ProviderSettings) -> Result<(), InvalidSettings> {
        settings.check()?;
        self.limiter().change(&settings.limits, phase(settings.seed), self.elapsed());
        let in_force = InForce::new(settings, Instant::now(), lock(&self.arrivals).total);
        *self.in_force.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(in_force);
        Ok(())
    }

    /// Time since the server started: the clock of the limits.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub(super) fn limiter(&self) -> MutexGuard<'_, Limiter> {
        lock(&self.limiter)
    }

    /// Counts an arrival and logs what `entry` makes of it. Under one lock, so that the log is in sequence.
    pub(super) fn arrive(
        &self,
        in_force: &InForce,
        prompt: Option<PromptHash>,
        entry: impl FnOnce(Arrival) -> LogEntry,
    ) -> io::Result<Arrival> {
        let mut arrivals = lock(&self.arrivals);
        let sequence = arrivals.total;
        arrivals.total += 1;
        self.counters.received.fetch_add(1, Relaxed);
        let times_seen = match prompt {
            Some(prompt) if self.log.is_on() || !in_force.settings.faults.is_empty() => {
                let seen = arrivals.seen.entry(prompt).or_default();
                let before = *seen;
                *seen = seen.saturating_add(1);
                before
            }
            _ => 0,
        };
        let now = Moment {
            requests: sequence.saturating_sub(in_force.arrivals_before),
            elapsed_ms: u64::try_from(in_force.since.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        let arrival = Arrival { sequence, times_seen, now };
        if self.log.is_on() {
            self.log.received(entry(arrival))?;
        }
        Ok(arrival)
    }
}

/// Where in a fixed window a server of this seed starts, in 0..1.
fn phase(seed: u64) -> f64 {
    draw(seed, PromptHash(0), 0, Purpose::WindowPhase).random()
}

/// Milliseconds since the epoch.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
