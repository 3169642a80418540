//! One job as the executor needs it: what to do, where, and with which limits of its own.

use std::{num::NonZeroU32, path::PathBuf, sync::Arc, time::Duration};

use penstock_job::{
    CanonicalSpec, Identity, Incarnation, JobSpec, Reason,
    spec::{Limits, RateMode},
    state::{Ending, EndingReason},
};
use penstock_storage::{Input, Store};

use crate::{
    memory, open_files, participate::Participation, provider::Provider, report::Reporting, steps::Steps,
};

/// One job, ready to be run.
#[derive(Debug)]
pub struct Job {
    /// What the user asks for; its limits may differ from those of an earlier run.
    pub spec: JobSpec,
    /// What determines the answers.
    pub canonical: CanonicalSpec,
    /// The hash of `canonical`.
    pub identity: Identity,
    /// The process that runs it.
    pub incarnation: Incarnation,
    /// Where the output is stored.
    pub store: Arc<dyn Store>,
    /// The input at its pinned generation; `None` when that generation is gone.
    pub input: Option<Arc<dyn Input>>,
    /// Who answers; `None` when nothing is to be sent, since the job only ends.
    pub provider: Option<Provider>,
    /// A folder on local disk for windows and for answers that are not durable yet. It survives the process, belongs to
    /// this job alone, and is best on the file system of a `file://` output.
    pub scratch: PathBuf,
    /// An ending that the caller asks for.
    pub ending: Option<EndingRequest>,
    /// Who looks on at each step.
    pub steps: Steps,
    /// End with an error where only a person can help: the provider refuses the key before anything succeeded, or the
    /// budget is used up. Otherwise stay, and wait for a better key, or for an ending.
    pub fail_fast: bool,
    /// How it shares what it learns of the rate with other jobs on its key; `None`: not at all.
    pub participation: Option<Participation>,
    /// Whom it tells how far it is, and who may direct it; `None`: nobody.
    pub reporting: Option<Reporting>,
    /// How often it claims where a run that is alive writes its state meanwhile. Each time it is another incarnation.
    pub claims: u32,
}

impl Job {
    /// As many claims as a newcomer should make: one of them falls between two writes of a run that writes its state as
    /// often as its storage takes it.
    pub const CLAIMS: u32 = 10;
}

/// The code of an ending whose input changed.
const INPUT_MODIFIED: &str = "input_modified";

/// An ending that the caller asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndingRequest {
    /// What becomes of the undone lines.
    pub reason: EndingReason,
    /// What happened, as a word.
    pub code: String,
    /// What happened, in a sentence.
    pub message: String,
}

impl EndingRequest {
    /// Somebody asked for the job to be cancelled.
    pub fn cancelled() -> Self {
        Self {
            reason: EndingReason::Cancelled,
            code: "cancel_requested".to_owned(),
            message: "the job was cancelled before this line was answered".to_owned(),
        }
    }

    /// The completion window is over.
    pub fn expired() -> Self {
        Self {
            reason: EndingReason::Expired,
            code: "completion_window_over".to_owned(),
            // OpenAI's own words.
            message: "This request could not be executed before the completion window expired.".to_owned(),
        }
    }

    /// Nobody can run the job to its end any more.
    pub fn abandoned() -> Self {
        Self {
            reason: EndingReason::Abandoned,
            code: "job_abandoned".to_owned(),
            message: "the job could not be run to its end before this line was answered".to_owned(),
        }
    }

    /// The pinned generation of the input is gone.
    pub fn input_modified() -> Self {
        Self {
            reason: EndingReason::Abandoned,
            code: INPUT_MODIFIED.to_owned(),
            message: "input_modified: the input changed after it was validated, before this line was sent"
                .to_owned(),
        }
    }
}

/// Why a job with this ending is not answered to its end, where there is a word for it.
pub(crate) fn reason_of(ending: &Ending) -> Option<Reason> {
    match ending.reason {
        EndingReason::Expired => Some(Reason::CompletionWindowOver),
        EndingReason::Abandoned if ending.code == INPUT_MODIFIED => Some(Reason::InputModified),
        EndingReason::Abandoned | EndingReason::Cancelled => None,
    }
}

/// The memory that the budget of the architecture allows for without a further limit.
const BASE_MEMORY: u64 = 128 << 20;
/// The memory that a job may take which finds its rate by itself, where no limit is set: the number in flight then follows
/// from the rate that it finds and the time that answers take.
const ADAPTIVE_MEMORY: u64 = 512 << 20;
/// What one more request in flight costs.
const MEMORY_PER_REQUEST: u64 = 32 << 10;
/// Requests in flight that fit [`BASE_MEMORY`] over HTTP/1 with TLS.
const BASE_IN_FLIGHT: u64 = 200;
/// Beyond this a single process gains nothing.
const MOST_IN_FLIGHT: u64 = 10_000;

/// How many requests a job may have in flight in this process.
pub fn requests_in_flight(spec: &JobSpec) -> u32 {
    max_in_flight(spec, memory::limit(), open_files::connections())
}

/// How many requests may be in flight: the user's limit, else what a memory limit of `memory_limit` bytes and so many
/// connections allow.
fn max_in_flight(spec: &JobSpec, memory_limit: Option<u64>, connections: Option<u64>) -> u32 {
    let allowed = || {
        let unlimited = match spec.rate() {
            RateMode::Adaptive => ADAPTIVE_MEMORY,
            RateMode::Fixed | RateMode::Aimd => BASE_MEMORY,
        };
        let spare = memory_limit.unwrap_or(unlimited).saturating_sub(BASE_MEMORY);
        let count = BASE_IN_FLIGHT + spare / MEMORY_PER_REQUEST;
        let most = connections.unwrap_or(MOST_IN_FLIGHT).clamp(BASE_IN_FLIGHT, MOST_IN_FLIGHT);
        u32::try_from(count.min(most)).expect("at most 10,000")
    };
    spec.limits.max_in_flight.map_or_else(allowed, NonZeroU32::get)
}

/// The times of a run that its limits set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    pub(crate) checkpoint: Duration,
    pub(crate) request_timeout: Duration,
    pub(crate) drain: Duration,
    pub(crate) window: Option<Duration>,
}

impl From<&Limits> for Timing {
    fn from(limits: &Limits) -> Self {
        Self {
            checkpoint: Duration::from_secs(limits.checkpoint_seconds.get()),
            request_timeout: Duration::from_secs(limits.request_timeout_seconds.get()),
            drain: Duration::from_secs(limits.drain_seconds),
            window: limits.deadline_seconds.map(|seconds| Duration::from_secs(seconds.get())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_in_flight_follow_the_memory_limit_unless_the_user_says_otherwise() {
        let mut spec = JobSpec::default();
        spec.limits.rate = Some(RateMode::Fixed);
        assert_eq!(max_in_flight(&spec, None, None), 200);
        assert_eq!(max_in_flight(&spec, Some(64 << 20), None), 200);
        assert_eq!(max_in_flight(&spec, Some(160 << 20), None), 200 + 1024);
        assert_eq!(max_in_flight(&spec, Some(u64::MAX), None), 10_000);
        spec.limits.max_in_flight = NonZeroU32::new(7);
        assert_eq!(max_in_flight(&spec, Some(u64::MAX), None), 7);
    }

    #[test]
    fn a_job_that_finds_its_rate_has_room_for_it_as_far_as_connections_go() {
        let spec = JobSpec::default();
        assert_eq!(spec.rate(), RateMode::Adaptive);
        assert_eq!(max_in_flight(&spec, None, None), 10_000);
        assert_eq!(max_in_flight(&spec, None, Some(768)), 768);
        assert_eq!(max_in_flight(&spec, None, Some(0)), 200);
        assert_eq!(max_in_flight(&spec, Some(128 << 20), Some(768)), 200, "memory is set");
    }
}
