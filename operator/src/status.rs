//! What is said of a job in its status: a pure function of what was found and of what was said before.
//!
//! Nothing that was learned is forgotten: counts, times and what validation found stay when a later pass, or another
//! operator, knows less.

use std::time::Duration;

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::ResourceExt;
use penstock_crds::{
    BatchJob,
    batch_job::{BatchJobStatus, Counts, Progress, Requests, Tokens, ValidationSummary},
    conditions::{Standing, conditions},
    names::Child,
    progress,
    reason::explain,
};
use penstock_job::{Report, layout, money::Cost, state::Outcomes};

use crate::{
    decide::Finding,
    intake::{Over, Validated},
    observe::HeardSeen,
};

/// The shortest time between two writes that tell nothing but progress.
pub const PROGRESS_EVERY: Duration = Duration::from_secs(10);
/// A time to the end that is longer tells nobody anything.
const LONGEST: Duration = Duration::from_hours(24 * 999);

/// The status that says what was found.
pub fn status(batch_job: &BatchJob, finding: &Finding, now: Timestamp) -> BatchJobStatus {
    let before = batch_job.status.clone().unwrap_or_default();
    let explanation = explain(finding.state, &finding.evidence);
    let message = match (&finding.note, explanation.reason) {
        (Some(note), None) => note.clone(),
        _ => explanation.message(),
    };
    let mut status = BatchJobStatus {
        observed_generation: batch_job.metadata.generation,
        state: Some(finding.state),
        reason: Some(explanation.word(finding.state)),
        message: Some(message.clone()),
        job_name: Some(Child::Executor.name(&batch_job.name_any())),
        ..before
    };
    if let Some(validated) = &finding.validated {
        tell_validated(&mut status, batch_job, validated);
    }
    if let Some(heard) = &finding.heard {
        tell_heard(&mut status, batch_job, heard, now);
    }
    if let Some(lost) = finding.lost {
        status.lost_pods = Some(bounded(u64::from(lost)));
    }
    if let Some(over) = &finding.over {
        tell_receipt(&mut status, batch_job, over);
    }
    if finding.state.is_over() {
        status.completion_time.get_or_insert(Time(now));
        still(&mut status);
    }
    let standing = Standing {
        state: finding.state,
        reason: explanation.reason,
        message: &message,
        published: status.receipt_uri.is_some(),
        observed_generation: batch_job.metadata.generation.unwrap_or_default(),
    };
    status.conditions = conditions(&standing, &status.conditions, &Time(now));
    status
}

/// Whether two statuses differ in more than progress.
pub fn has_turned(before: &BatchJobStatus, after: &BatchJobStatus) -> bool {
    without_progress(before) != without_progress(after)
}

fn without_progress(status: &BatchJobStatus) -> BatchJobStatus {
    BatchJobStatus {
        message: None,
        progress: None,
        counts: None,
        requests: None,
        tokens: None,
        cost: None,
        conditions: status
            .conditions
            .iter()
            .cloned()
            .map(|mut condition| {
                condition.message = String::new();
                condition
            })
            .collect(),
        ..status.clone()
    }
}

fn tell_validated(status: &mut BatchJobStatus, batch_job: &BatchJob, validated: &Validated) {
    status.identity = Some(validated.identity.to_string());
    status.validation = Some(ValidationSummary {
        generation: validated.generation.clone(),
        lines: bounded(validated.lines),
        rejected: bounded(validated.rejected),
        report_uri: Some(below(batch_job, layout::VALIDATION)),
    });
    let counts = status.counts.get_or_insert_default();
    (counts.lines, counts.rejected) = (bounded(validated.lines), bounded(validated.rejected));
}

fn tell_heard(status: &mut BatchJobStatus, batch_job: &BatchJob, heard: &HeardSeen, now: Timestamp) {
    let report: &Report = &heard.report;
    let started =
        Timestamp::from_millisecond(i64::try_from(report.started_at_ms).unwrap_or(i64::MAX)).unwrap_or(now);
    if report.epoch.0 > 0 {
        let start = status.start_time.get_or_insert(Time(started)).0;
        if let Some(window) = batch_job.spec.completion_window_seconds {
            let over = start.saturating_add(Duration::from_secs(window.unsigned_abs()));
            status.deadline.get_or_insert(Time(over.unwrap_or(Timestamp::MAX)));
        }
        let epoch = i64::from(report.epoch.0);
        if status.epoch.is_some_and(|before| before < epoch)
            && let Some(requests) = &mut status.requests
        {
            // What was in flight when its executor was lost is asked again.
            requests.resent = requests.resent.saturating_add(requests.in_flight);
        }
        status.epoch = Some(epoch);
    }
    if report.lines == 0 {
        // It has not claimed the job yet, and knows nothing of it.
        return;
    }
    let outcomes = report.outcomes.with_rejected(report.rejected);
    status.counts = Some(counts(report.lines, &outcomes));
    let sent_before = status.requests.unwrap_or_default();
    status.requests = Some(Requests {
        sent: sent_before.sent.max(bounded(report.requests.sent)),
        throttled: sent_before.throttled.max(bounded(report.requests.throttled)),
        resent: sent_before.resent,
        in_flight: bounded(report.in_flight),
    });
    tell_spent(status, report.tokens, report.cost);
    let done = outcomes.done();
    let without_outcome = report.lines.saturating_sub(outcomes.total());
    let left = heard.per_minute.and_then(|rate| left(without_outcome, rate));
    status.progress = Some(Progress {
        percent: Some(progress::percent(done, report.lines)),
        done: Some(progress::done(done, report.lines)),
        rate: heard.per_minute.map(progress::rate),
        eta: left.map(|left| progress::eta(left.as_secs())),
        estimated_completion_time: left.and_then(|left| now.saturating_add(left).ok()).map(Time),
        last_updated_time: Some(Time(now)),
    });
}

fn tell_receipt(status: &mut BatchJobStatus, batch_job: &BatchJob, over: &Over) {
    let receipt = &over.receipt;
    status.counts = Some(counts(receipt.lines, &receipt.outcomes));
    let requests = status.requests.get_or_insert_default();
    requests.sent = bounded(receipt.requests.sent);
    requests.throttled = bounded(receipt.requests.throttled);
    tell_spent(status, receipt.tokens, receipt.cost);
    status.epoch = Some(i64::from(receipt.epochs.0));
    status.receipt_uri = Some(below(batch_job, layout::RECEIPT));
    if let Ok(frozen) = Timestamp::from_millisecond(i64::try_from(receipt.frozen_at_ms).unwrap_or_default()) {
        status.completion_time = Some(Time(frozen));
    }
    let done = receipt.outcomes.done();
    let told = status.progress.get_or_insert_default();
    told.percent = Some(progress::percent(done, receipt.lines));
    told.done = Some(progress::done(done, receipt.lines));
}

/// What was used up. Nothing is taken back: who reports may not have read yet what earlier runs stored.
fn tell_spent(status: &mut BatchJobStatus, tokens: penstock_job::usage::Tokens, cost: Option<Cost>) {
    let told = Tokens {
        input: bounded(tokens.input),
        cached_input: bounded(tokens.cached_input),
        output: bounded(tokens.output),
    };
    if tokens.total() > 0 {
        status.tokens = Some(told);
        status.cost = cost.map(|cost| cost.to_string());
    }
}

/// Nothing moves any more.
fn still(status: &mut BatchJobStatus) {
    if let Some(progress) = &mut status.progress {
        (progress.rate, progress.eta, progress.estimated_completion_time) = (None, None, None);
    }
    if let Some(requests) = &mut status.requests {
        requests.in_flight = 0;
    }
}

fn counts(lines: u64, outcomes: &Outcomes) -> Counts {
    let Outcomes { succeeded, failed, rejected, expired, cancelled, abandoned } = *outcomes;
    Counts {
        lines: bounded(lines),
        succeeded: bounded(succeeded),
        failed: bounded(failed),
        rejected: bounded(rejected),
        expired: bounded(expired),
        cancelled: bounded(cancelled),
        abandoned: bounded(abandoned),
    }
}

/// A count as the Kubernetes API holds it.
fn bounded<T: TryFrom<u64> + Bound>(count: u64) -> T {
    T::try_from(count).unwrap_or(T::MOST)
}

trait Bound {
    const MOST: Self;
}

impl Bound for i64 {
    const MOST: Self = i64::MAX;
}

impl Bound for i32 {
    const MOST: Self = i32::MAX;
}

fn below(batch_job: &BatchJob, name: &str) -> String {
    format!("{}/{name}", batch_job.spec.output.uri.trim_end_matches('/'))
}

/// How long so many lines take at so many a minute; `None` when nobody can say.
fn left(lines: u64, per_minute: u64) -> Option<Duration> {
    let seconds = lines.checked_mul(60)?.checked_div(per_minute)?;
    Some(Duration::from_secs(seconds)).filter(|left| *left < LONGEST)
}

#[cfg(test)]
mod tests {
    use penstock_job::usage;

    use super::*;

    #[test]
    fn what_a_job_has_used_up_is_told_and_not_forgotten_by_a_run_that_knows_nothing_yet() {
        let mut status = BatchJobStatus::default();
        let tokens = usage::Tokens { input: 9, cached_input: 4, output: 40 };
        let cost =
            Cost { amount: "12.501".parse().unwrap(), currency: penstock_job::money::Currency::default() };
        tell_spent(&mut status, tokens, Some(cost));
        let told = Some(Tokens { input: 9, cached_input: 4, output: 40 });
        assert_eq!((status.tokens, status.cost.as_deref()), (told, Some("12.51 USD")));
        tell_spent(&mut status, usage::Tokens::default(), None);
        assert_eq!((status.tokens, status.cost.as_deref()), (told, Some("12.51 USD")));
        tell_spent(&mut status, tokens, None);
        assert_eq!(status.cost, None, "a model without a price was used");
    }
}
