//! A reading of the clock.

use std::time::{Duration, SystemTime};

/// Microseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

impl Moment {
    /// The moment so many microseconds after the epoch.
    pub(crate) fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the epoch.
    pub(crate) fn micros(self) -> u64 {
        self.0
    }

    /// How long after `earlier` it is; nothing if it is not.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// The moment so long after it.
    pub(crate) fn later_by(self, time: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX)))
    }

    /// As the system tells time.
    pub(crate) fn system_time(self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_micros(self.0)
    }
}
