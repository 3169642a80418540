//! What an intake reads and what accompanies the reading: the scratch folder, the progress, the wish to stop.

use std::{fmt, path::Path};

use penstock_storage::Input;
use tokio_util::sync::CancellationToken;

/// An input to be read, and what accompanies the reading.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    /// The input, pinned to a generation.
    pub input: &'a dyn Input,
    /// An existing folder on local disk for what does not fit into memory. Nothing is left there.
    pub scratch: &'a Path,
    /// Is told how far it is, about once per megabyte.
    pub progress: &'a (dyn Fn(Progress) + Send + Sync),
    /// Ends the reading with [`IntakeError::Stopped`](crate::IntakeError::Stopped).
    pub stop: &'a CancellationToken,
}

impl fmt::Debug for Reading<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Reading")
            .field("input", &self.input)
            .field("scratch", &self.scratch)
            .finish_non_exhaustive()
    }
}

/// How far an intake is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What the input is being read for.
    pub stage: Stage,
    /// Bytes read in this stage.
    pub done_bytes: u64,
    /// Bytes of the input.
    pub total_bytes: u64,
}

/// What the input is being read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Every line is checked.
    Checking,
    /// Ids that may repeat are compared; left out where none may.
    ComparingIds,
}

impl Progress {
    /// How much of the stage is done, in whole percent.
    pub fn percent(self) -> u8 {
        let done = u128::from(self.done_bytes.min(self.total_bytes));
        (done * 100)
            .checked_div(u128::from(self.total_bytes))
            .map_or(100, |percent| u8::try_from(percent).unwrap_or(100))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentage_is_whole_and_never_beyond_a_hundred() {
        let percent =
            |done_bytes, total_bytes| Progress { stage: Stage::Checking, done_bytes, total_bytes }.percent();
        assert_eq!([percent(0, 3), percent(2, 3), percent(3, 3), percent(9, 3)], [0, 66, 100, 100]);
        assert_eq!([percent(0, 0), percent(u64::MAX, u64::MAX)], [100, 100]);
    }
}
