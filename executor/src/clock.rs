//! The wall clock, read in one place. Everything that must not jump uses [`tokio::time::Instant`] instead.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since the epoch; 0 on a machine whose clock stands before it.
pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
    #[cfg(feature = "fault-injection")]
    let now = now.saturating_add_signed(crate::injection::clock_offset_ms());
    now
}
