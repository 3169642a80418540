//! From a moment of a run to its report. Pure.

use penstock_job::{
    Epoch, LastWord, Report,
    report::{Hindrance, ReportFormat, RunRequests},
};

use crate::{board::Progress, last_word::Speaker};

/// The report number `sequence` of this process.
pub(super) fn compose(
    speaker: &Speaker,
    sequence: u64,
    progress: &Progress,
    last_word: Option<LastWord>,
) -> Report {
    let hindrance = progress
        .reason
        .as_ref()
        .map(|(reason, evidence)| Hindrance { reason: *reason, evidence: evidence.as_str().into() });
    Report {
        format: ReportFormat,
        job: speaker.owner.clone(),
        identity: speaker.identity.clone(),
        epoch: Epoch(progress.epoch),
        incarnation: speaker.incarnation,
        sequence,
        started_at_ms: speaker.started_at_ms,
        stage: progress.stage,
        lines: progress.lines,
        rejected: progress.rejected,
        outcomes: progress.outcomes,
        adopted: progress.adopted,
        requests: RunRequests {
            sent: progress.sent,
            throttled: progress.throttled,
            retried: progress.retried,
        },
        tokens: progress.spent.tokens,
        cost: progress.spent.cost,
        in_flight: progress.in_flight,
        waiting_for_retry: progress.waiting_for_retry,
        exposed: progress.exposed,
        checkpoint_age_ms: progress
            .checkpoint_age
            .map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
        hindrance,
        rate: progress.rate.as_str().into(),
        gauges: progress.gauges,
        last_word,
    }
}
