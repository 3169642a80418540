//! The states of a job as OpenAI's batch API words them.

use crate::state::State;

impl State {
    /// The value of `status` in OpenAI's batch object.
    pub const fn openai_status(self) -> &'static str {
        match self {
            Self::AwaitingUpload | Self::Validating => "validating",
            Self::Queued | Self::Running => "in_progress",
            Self::Finalizing => "finalizing",
            Self::Completed => "completed",
            Self::Cancelling => "cancelling",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Failed => "failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_of_openai_is_that_of_some_state() {
        let mut found = State::ALL.map(State::openai_status).to_vec();
        found.sort_unstable();
        found.dedup();
        let expected = [
            "cancelled",
            "cancelling",
            "completed",
            "expired",
            "failed",
            "finalizing",
            "in_progress",
            "validating",
        ];
        assert_eq!(found, expected);
    }
}
