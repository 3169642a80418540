//! Work beside its view: redraws while it goes on, and passes on the signals that ask it to stop.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use penstock_executor::{Board, Stop};
use penstock_intake::Progress as Reading;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::{
    error::CommandError,
    signals::{Heard, Signals},
    view::Reporter,
};

/// Time between two pictures.
const TICK: Duration = Duration::from_millis(200);

/// Work that can be looked at and asked to stop.
pub(crate) trait Attended {
    /// Shows how far it is.
    fn show(&self, reporter: &mut Reporter);

    /// Asks it to end soon. Returns how long that may take.
    fn stop(&self, heard: Heard) -> Duration;
}

/// Waits for `work`. The first signal asks it to stop; a Ctrl-C after another one gives it up.
pub(crate) async fn attend<T>(
    work: impl Future<Output = T>,
    attended: &impl Attended,
    reporter: &mut Reporter,
    signals: &mut Signals,
) -> Result<T, CommandError> {
    tokio::pin!(work);
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut interrupted = false;
    loop {
        tokio::select! {
            // A signal is heard even when the work is done at once: what comes after it may cost money.
            biased;
            heard = signals.next() => {
                if heard == Heard::Interrupt && interrupted {
                    return Err(CommandError::Interrupted);
                }
                interrupted |= heard == Heard::Interrupt;
                let wait = attended.stop(heard);
                reporter.stopping(wait);
                attended.show(reporter);
            }
            done = &mut work => {
                attended.show(reporter);
                return Ok(done);
            }
            _ = ticks.tick() => attended.show(reporter),
        }
    }
}

/// A validation that goes on.
#[derive(Debug, Default)]
pub(crate) struct Validating {
    /// How far it is, once it reads; one that is known already reads nothing.
    pub(crate) reading: Mutex<Option<Reading>>,
    /// Ends it.
    pub(crate) stop: CancellationToken,
}

impl Attended for Validating {
    fn show(&self, reporter: &mut Reporter) {
        // A plain value cannot be left half written.
        if let Some(reading) = *self.reading.lock().unwrap_or_else(PoisonError::into_inner) {
            reporter.validating(reading);
        }
    }

    fn stop(&self, _: Heard) -> Duration {
        self.stop.cancel();
        Duration::ZERO
    }
}

/// A job that is being run.
#[derive(Debug)]
pub(crate) struct Executing {
    /// Where it shows itself.
    pub(crate) board: Arc<Board>,
    /// Ends it.
    pub(crate) stop: Stop,
    /// How long one request may take: whoever sits at the terminal has time to wait for it.
    pub(crate) request_timeout: Duration,
    /// How long answers are awaited where a machine or a scheduler is about to kill.
    pub(crate) drain: Duration,
}

impl Attended for Executing {
    fn show(&self, reporter: &mut Reporter) {
        reporter.running(&self.board.progress());
    }

    fn stop(&self, heard: Heard) -> Duration {
        match heard {
            Heard::Interrupt => {
                self.stop.request_with(self.request_timeout);
                self.request_timeout
            }
            Heard::Terminate => {
                self.stop.request();
                self.drain
            }
        }
    }
}
