//! What a refusal of Google's API means: a `google.rpc.Status` as JSON, at the OpenAI-compatible endpoints too, there in
//! an array. Pure.
//!
//! Statuses: <https://ai.google.dev/gemini-api/docs/generate-content/api-errors>; quotas:
//! `google.rpc.QuotaFailure` in `details`, as the service sends it.

use std::time::Duration;

use http::StatusCode;
use penstock_job::Reason;
use penstock_rate::{Dimension, Hint, Hints, Period};
use serde::Deserialize;

use crate::provider::{
    dialect::openai, duration, error_body::ErrorBody, refusal::Meaning, resumption::Resumption, retry_after,
};

/// Messages of a 429 that say that the account cannot pay.
const BILLING: [&str; 3] = ["prepayment credits", "prepay credit", "spending cap"];

/// Reads a body. Google's word for the status is its code, and `RetryInfo` the wait that it asks for; but not where the
/// quota of a day is used up, which it has renewed in seconds.
pub(in crate::provider) fn error_body(body: &[u8]) -> ErrorBody {
    let mut body = ErrorBody::parse(body);
    let details = Details::of(&body);
    body.wait = if details.violations.iter().any(Violation::is_of_a_day) {
        None
    } else {
        details.retry_delay.or(body.wait)
    };
    body.code = body.code.or_else(|| body.word.clone());
    body
}

/// Reads the table in `docs/providers.md`.
pub(in crate::provider) fn judge(status: StatusCode, body: &ErrorBody) -> Meaning {
    let message = body.lower_message();
    let details = Details::of(body);
    let has_reason = |reasons: &[&str]| details.reasons.iter().any(|reason| reasons.contains(&&**reason));
    let says = |words: &[&str]| words.iter().any(|words| message.contains(words));
    if has_reason(&["BILLING_DISABLED"]) {
        return Meaning::blocked(Reason::BillingOrZeroQuota);
    }
    match status.as_u16() {
        400 if has_reason(&["API_KEY_INVALID"]) || says(&["api key not valid", "api key expired"]) => {
            Meaning::blocked(Reason::CredentialsRefused)
        }
        400 if body.is_any(&["FAILED_PRECONDITION"]) && says(&["enable billing"]) => {
            Meaning::blocked(Reason::BillingOrZeroQuota)
        }
        400 if says(&["location is not supported"]) => Meaning::blocked(Reason::CredentialsRefused),
        429 if says(&BILLING) || details.has_zero_quota() || says_zero(&message) => {
            Meaning::blocked(Reason::BillingOrZeroQuota)
        }
        429 if details.violations.iter().any(Violation::is_of_a_day) => {
            Meaning::Blocked { reason: Reason::DayQuotaExhausted, resumes: Resumption::PacificMidnight }
        }
        429 => details.rate(),
        499 => Meaning::Transient,
        _ => openai::judge(status, body),
    }
}

/// Whether the text states a limit of zero, as in `limit: 0, model: gemini-2.5-pro`.
fn says_zero(message: &str) -> bool {
    message.split("limit: ").skip(1).any(|rest| {
        rest.strip_prefix('0').is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
    })
}

/// What stands in `details`.
#[derive(Debug, Default)]
struct Details {
    reasons: Vec<String>,
    violations: Vec<Violation>,
    retry_delay: Option<Duration>,
}

/// One quota that was exceeded.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_field_names, reason = "these are the names in the body")]
struct Violation {
    quota_metric: String,
    quota_id: String,
    quota_value: String,
}

impl Details {
    fn of(body: &ErrorBody) -> Self {
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Detail {
            reason: Option<String>,
            violations: Vec<Violation>,
            retry_delay: Option<String>,
        }
        let mut details = Self::default();
        // One that is not understood hides no other.
        for detail in body
            .details
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|detail| Detail::deserialize(detail).ok())
        {
            details.reasons.extend(detail.reason);
            details.violations.extend(detail.violations);
            let delay = detail.retry_delay.as_deref().and_then(duration::parse);
            details.retry_delay = details.retry_delay.or(delay.map(|delay| delay.min(retry_after::LONGEST)));
        }
        details
    }

    fn has_zero_quota(&self) -> bool {
        self.violations.iter().any(|violation| violation.quota_value == "0")
    }

    /// A quota that was exceeded, or a pool that is shared with others, which has no violations.
    fn rate(&self) -> Meaning {
        let mut stated = Hints::default();
        for violation in &self.violations {
            let limit = violation.quota_value.parse().ok();
            let hint = Hint { limit, period: violation.period(), ..Hint::default() };
            if let Some(dimension) = violation.dimension() {
                stated = stated.with(dimension, hint);
            }
        }
        Meaning::Rate { dimension: self.violations.iter().find_map(Violation::dimension), stated }
    }
}

impl Violation {
    fn is_of_a_day(&self) -> bool {
        self.period() == Some(Period::Day)
    }

    /// The period that stands in the quota's id.
    fn period(&self) -> Option<Period> {
        [
            ("PerSecond", Period::Second),
            ("PerMinute", Period::Minute),
            ("PerHour", Period::Hour),
            ("PerDay", Period::Day),
        ]
        .into_iter()
        .find_map(|(words, period)| self.quota_id.contains(words).then_some(period))
    }

    fn dimension(&self) -> Option<Dimension> {
        [
            ("input_token_count", Dimension::InputTokens),
            ("output_token_count", Dimension::OutputTokens),
            ("token_count", Dimension::Tokens),
            ("requests", Dimension::Requests),
        ]
        .into_iter()
        .find_map(|(words, dimension)| self.quota_metric.ends_with(words).then_some(dimension))
    }
}
