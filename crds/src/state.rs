//! The states of a job, and which one may follow which.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum State {
    /// Its input is not there yet.
    AwaitingUpload,
    /// Its input is being validated.
    Validating,
    /// It waits for its turn, or is suspended.
    Queued,
    /// Its lines are being answered.
    Running,
    /// Its outcome is decided and is being published.
    Finalizing,
    /// Over: every valid line was answered or failed.
    Completed,
    /// Asked to end, and not over yet.
    Cancelling,
    /// Over: cancelled before every line was answered.
    Cancelled,
    /// Over: the completion window ended before every line was answered.
    Expired,
    /// Over: the job could not be run to its end.
    Failed,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 10] = [
        Self::AwaitingUpload,
        Self::Validating,
        Self::Queued,
        Self::Running,
        Self::Finalizing,
        Self::Completed,
        Self::Cancelling,
        Self::Cancelled,
        Self::Expired,
        Self::Failed,
    ];

    /// Whether nothing follows.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled | Self::Expired | Self::Failed)
    }

    /// Whether this state may follow `previous`, the last one that was written; `None` before the first.
    ///
    /// A job that is applied again may be anywhere: its receipt is there, or its pod still runs. Later on, states may be
    /// skipped, since the operator may have been away, but only forwards. Two steps lead back: the look at an input may
    /// find that it is not there yet, and a job that others suspend waits for its turn again.
    pub fn may_follow(self, previous: Option<Self>) -> bool {
        let Some(previous) = previous else { return true };
        if previous == self {
            return true;
        }
        match previous {
            Self::AwaitingUpload => self != Self::Cancelling,
            // The look at the input may find that it is not there.
            Self::Validating => true,
            Self::Queued => !matches!(self, Self::AwaitingUpload | Self::Validating),
            Self::Running => !matches!(self, Self::AwaitingUpload | Self::Validating),
            // Decided: neither more lines nor a cancellation change it.
            Self::Finalizing => self.is_over(),
            // The outcome may have been decided before the cancellation was heard.
            Self::Cancelling => self.is_over() || self == Self::Finalizing,
            Self::Completed | Self::Cancelled | Self::Expired | Self::Failed => false,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_of_states_is_allowed_or_not() {
        // One row for the state before, one column for the state after, both in the order of `ALL`.
        let table = [
            ("-              ", "xxxxxxxxxx"),
            ("AwaitingUpload ", "xxxxxx-xxx"),
            ("Validating     ", "xxxxxxxxxx"),
            ("Queued         ", "--xxxxxxxx"),
            ("Running        ", "--xxxxxxxx"),
            ("Finalizing     ", "----xx-xxx"),
            ("Completed      ", "-----x----"),
            ("Cancelling     ", "----xxxxxx"),
            ("Cancelled      ", "-------x--"),
            ("Expired        ", "--------x-"),
            ("Failed         ", "---------x"),
        ];
        let previous = [None].into_iter().chain(State::ALL.map(Some));
        for (previous, (name, row)) in previous.zip(table) {
            assert_eq!(previous.map_or("-".to_owned(), |state| state.to_string()), name.trim());
            let found: String =
                State::ALL.iter().map(|next| if next.may_follow(previous) { 'x' } else { '-' }).collect();
            assert_eq!(found, row, "after {name}");
        }
    }

    #[test]
    fn from_every_state_that_is_not_over_each_end_can_be_reached() {
        for state in State::ALL.into_iter().filter(|state| !state.is_over()) {
            for end in State::ALL.into_iter().filter(|state| state.is_over()) {
                assert!(end.may_follow(Some(state)), "{state} -> {end}");
            }
        }
    }
}
