//! `penstock.report/1`: what an executor tells the operator of its run, again and again. Nothing is decided by it: the
//! truth is in the bucket, and a report that is lost is followed by a newer one.

mod rate;
mod stage;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::{rate::RateGauges, stage::Stage};
use crate::{
    clipped::Clipped,
    document::{Document, Medium, format_tag},
    identity::Identity,
    incarnation::{Epoch, Incarnation},
    last_word::LastWord,
    money::Cost,
    reason::Reason,
    spec::Metadata,
    state::PartOutcomes,
    usage::Tokens,
};

format_tag! {
    /// The format of a report.
    ReportFormat = "penstock.report/1"
}

/// No report is longer, in bytes.
pub const LONGEST_REPORT: usize = 16 << 10;

/// How far one run of a job is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Names this schema.
    pub format: ReportFormat,
    /// Whose job it is.
    pub job: Owner,
    /// The job's identity.
    pub identity: Identity,
    /// The epoch of this run's claim; 0 before it.
    pub epoch: Epoch,
    /// Who reports: one process.
    pub incarnation: Incarnation,
    /// Rises within an incarnation: whoever has heard a report drops those with a lower number.
    pub sequence: u64,
    /// When the process began, in milliseconds since the epoch.
    pub started_at_ms: u64,
    /// What the run is doing.
    pub stage: Stage,
    /// Non-blank lines of the input; 0 before the claim.
    pub lines: u64,
    /// Lines that validation rejected.
    pub rejected: u64,
    /// Outcomes of all other lines, those of earlier runs included.
    pub outcomes: PartOutcomes,
    /// Lines that were already done when this run began.
    pub adopted: u64,
    /// Requests of this run.
    pub requests: RunRequests,
    /// Tokens of the job so far, those of earlier runs included.
    pub tokens: Tokens,
    /// What they cost; `null` where a price is not known.
    #[serde(default)]
    pub cost: Option<Cost>,
    /// Requests in flight.
    pub in_flight: u64,
    /// Lines that wait for another attempt.
    pub waiting_for_retry: u64,
    /// Lines that a lost machine would send again: in flight, or answered and not listed in a checkpoint.
    pub exposed: u64,
    /// Time since the last checkpoint, in milliseconds; `null` before the first.
    pub checkpoint_age_ms: Option<u64>,
    /// Why the run is not further; `null` when nothing holds it back.
    pub hindrance: Option<Hindrance>,
    /// What the learner believes of the rate and why, in a sentence.
    pub rate: Clipped<4096>,
    /// The rate in numbers.
    pub gauges: RateGauges,
    /// How the process ended: only in its last report.
    pub last_word: Option<LastWord>,
}

impl Document for Report {
    const NAME: &'static str = "the report";
    const FORMAT: &'static str = ReportFormat::TEXT;
    const MEDIUM: Medium = Medium::Message;
}

/// The object in the cluster that a job belongs to; empty elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// Its UID.
    pub uid: Clipped<64>,
    /// Its namespace.
    pub namespace: Clipped<64>,
    /// Its name.
    pub name: Clipped<256>,
}

impl From<&Metadata> for Owner {
    fn from(Metadata { uid, namespace, name }: &Metadata) -> Self {
        Self { uid: uid.as_str().into(), namespace: namespace.as_str().into(), name: name.as_str().into() }
    }
}

/// Requests of one run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRequests {
    /// Requests sent.
    pub sent: u64,
    /// Of these, refused for the rate.
    pub throttled: u64,
    /// Attempts that failed and were, or will be, repeated.
    pub retried: u64,
}

/// Why a job is not further.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hindrance {
    /// The word.
    pub reason: Reason,
    /// What it rests on, in a sentence.
    pub evidence: Clipped<1024>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        document,
        last_word::tests::{longest_last_word, noisy},
    };

    fn longest_report() -> Report {
        let text = noisy();
        let last_word = longest_last_word();
        Report {
            format: ReportFormat,
            job: last_word.job.clone(),
            identity: last_word.identity.clone().unwrap(),
            epoch: last_word.epoch,
            incarnation: last_word.incarnation,
            sequence: u64::MAX,
            started_at_ms: u64::MAX,
            stage: Stage::Reconciling,
            lines: u64::MAX,
            rejected: u64::MAX,
            outcomes: last_word.outcomes,
            adopted: u64::MAX,
            requests: last_word.requests,
            tokens: last_word.tokens,
            cost: last_word.cost,
            in_flight: u64::MAX,
            waiting_for_retry: u64::MAX,
            exposed: u64::MAX,
            checkpoint_age_ms: Some(u64::MAX),
            hindrance: Some(Hindrance {
                reason: Reason::CompletionWindowOver,
                evidence: text.as_str().into(),
            }),
            rate: text.as_str().into(),
            gauges: RateGauges {
                rpm_target: Some(u64::MAX),
                effective_rpm: Some(f64::MIN_POSITIVE),
                p95_tokens: Some(u32::MAX),
                refusals: u64::MAX,
                learned_utilisation: Some(f64::MIN),
                stated_utilisation: Some(f64::MIN),
            },
            last_word: Some(last_word),
        }
    }

    #[test]
    fn no_report_outgrows_its_bound_and_the_longest_reads_back() {
        let report = longest_report();
        let bytes = document::write(&report);
        assert!(bytes.len() <= LONGEST_REPORT, "{}", bytes.len());
        assert_eq!(document::read::<Report>(&bytes).unwrap(), report);
    }

    #[test]
    fn a_report_with_a_field_that_nobody_knows_or_of_another_version_is_refused_by_name() {
        let mut value = serde_json::to_value(longest_report()).unwrap();
        value["outcomes"]["lost"] = 1.into();
        let message = document::read::<Report>(value.to_string().as_bytes()).unwrap_err().to_string();
        assert!(message.contains("`outcomes.lost`"), "{message}");
        value["format"] = "penstock.report/2".into();
        let message = document::read::<Report>(value.to_string().as_bytes()).unwrap_err().to_string();
        assert!(message.contains("`penstock.report/2`") && message.contains("operator"), "{message}");
    }

    proptest! {
        #[test]
        fn whatever_is_taken_for_a_report_is_written_as_it_was_read(
            at in any::<prop::sample::Index>(),
            replaced in any::<u8>(),
        ) {
            let mut bytes = document::write(&longest_report());
            let at = at.index(bytes.len());
            bytes[at] = replaced;
            if let Ok(report) = document::read::<Report>(&bytes) {
                let written = document::write(&report);
                prop_assert!(written.len() <= LONGEST_REPORT);
                prop_assert_eq!(document::read::<Report>(&written).unwrap(), report);
            }
        }
    }
}
