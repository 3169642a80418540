//! The one word that says why a job is not further, chosen by fixed precedence.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a job is not further, or ended as it did. The order of the variants is the precedence: where several hold, the
/// first is shown, the same in the live view, in `status`, in logs and in the executor's last message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Reason {
    /// What the job refers to is missing or wrong.
    Misconfigured,
    /// Held on request.
    Suspended,
    /// The provider answers 401 or 403.
    CredentialsRefused,
    /// The provider says that the account has no credit or a quota of zero.
    BillingOrZeroQuota,
    /// The provider's quota for the day is used up.
    DayQuotaExhausted,
    /// The job's budget of tokens or money is used up.
    CostCapReached,
    /// Its tenant may not run more now.
    TenantQuota,
    /// Other jobs go first.
    WaitingForTurn,
    /// Its pod has not started.
    WaitingForPod,
    /// The provider answers with server errors or not at all.
    ProviderUnavailable,
    /// The output cannot be written: no space, no permission, read-only.
    StorageRefused,
    /// Results arrive faster than the output takes them.
    StorageSlow,
    /// The rate is still being learned.
    Learning,
    /// The user's own limit binds: requests or tokens per minute, or requests in flight.
    AtOwnLimit,
    /// The provider's limit, as learned, binds.
    RunningAtLimit,
    /// Ended: the input has no lines.
    EmptyInput,
    /// Ended: no line of the input is valid, or one is not and the job asked to fail then.
    InvalidInput,
    /// Ended: the input changed after it was validated.
    InputModified,
    /// Ended: the output belongs to another job.
    OutputOccupied,
    /// Ended: the completion window was over before the job was done.
    CompletionWindowOver,
    /// Ended: the results could not be published.
    FinalizationFailed,
}

impl Reason {
    /// Every reason, in order of precedence.
    pub const ALL: [Self; 21] = [
        Self::Misconfigured,
        Self::Suspended,
        Self::CredentialsRefused,
        Self::BillingOrZeroQuota,
        Self::DayQuotaExhausted,
        Self::CostCapReached,
        Self::TenantQuota,
        Self::WaitingForTurn,
        Self::WaitingForPod,
        Self::ProviderUnavailable,
        Self::StorageRefused,
        Self::StorageSlow,
        Self::Learning,
        Self::AtOwnLimit,
        Self::RunningAtLimit,
        Self::EmptyInput,
        Self::InvalidInput,
        Self::InputModified,
        Self::OutputOccupied,
        Self::CompletionWindowOver,
        Self::FinalizationFailed,
    ];

    /// The reason to show when all of `holding` hold; `None` when nothing holds the job back.
    pub fn first(holding: impl IntoIterator<Item = Self>) -> Option<Self> {
        holding.into_iter().min()
    }

    /// One sentence that says what helps.
    pub fn help(self) -> &'static str {
        match self {
            Self::Misconfigured => "Correct what the evidence names; the job goes on by itself.",
            Self::Suspended => {
                "Set spec.suspend to false, or let the queue admit the job again; it goes on where it was."
            }
            Self::CredentialsRefused => {
                "Put a valid key where the job reads it; dispatch resumes by itself when a key file changes."
            }
            Self::BillingOrZeroQuota => {
                "Add credit or raise the quota with the provider; the job goes on by itself."
            }
            Self::DayQuotaExhausted => {
                "The job waits for the provider's next day; raise the quota to go on sooner."
            }
            Self::CostCapReached => {
                "Run the same command with a larger budget to go on, or cancel the job to publish what was answered."
            }
            Self::TenantQuota => "Nothing to do: the job starts when another one of the tenant ends.",
            Self::WaitingForTurn => {
                "Nothing to do: the job starts in its turn; a higher priority goes first."
            }
            Self::WaitingForPod => "Look at the events of the pod: the cluster may lack room or an image.",
            Self::ProviderUnavailable => "The job retries by itself; look at the provider's status page.",
            Self::StorageRefused => {
                "Free space or restore write permission; answers are kept and written as soon as it works."
            }
            Self::StorageSlow => {
                "Dispatch waits for the output; a faster disk or fewer requests in flight helps."
            }
            Self::Learning => "Nothing to do: the rate rises until the provider refuses.",
            Self::AtOwnLimit => "Raise --rpm, --tpm or --max-in-flight to go faster.",
            Self::RunningAtLimit => "Ask the provider for a higher limit to go faster.",
            Self::EmptyInput => "Give a file with at least one line.",
            Self::InvalidInput => "Correct the lines that validation names, or run with --on-invalid skip.",
            Self::InputModified => {
                "Run the changed file with a new --output; what was answered is published here."
            }
            Self::OutputOccupied => {
                "Choose another --output, or pass --run NAME with another output to do the work again."
            }
            Self::CompletionWindowOver => "Run the lines recorded as expired again with a longer --deadline.",
            Self::FinalizationFailed => "Run the same command again to publish.",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn for_each_pair_the_earlier_in_the_list_is_shown() {
        for (index, first) in Reason::ALL.into_iter().enumerate() {
            for second in &Reason::ALL[index..] {
                assert_eq!(Reason::first([*second, first]), Some(first));
                assert_eq!(Reason::first([first, *second]), Some(first));
            }
        }
        assert_eq!(Reason::first([]), None);
    }
}
