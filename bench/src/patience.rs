//! Waiting for other processes.

use std::time::{Duration, Instant};

use crate::error::BenchError;

/// Between two looks. Short against everything that is awaited.
const LOOK: Duration = Duration::from_millis(5);

/// The longest wait for anything that makes progress.
const LIMIT: Duration = Duration::from_hours(1);

/// Waits until `condition` holds.
pub(crate) fn wait_for(
    what: &'static str,
    mut condition: impl FnMut() -> Result<bool, BenchError>,
) -> Result<(), BenchError> {
    let begun = Instant::now();
    while !condition()? {
        if begun.elapsed() > LIMIT {
            return Err(BenchError::Patience { what });
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "other processes are awaited, and no runtime runs here"
        )]
        std::thread::sleep(LOOK);
    }
    Ok(())
}
