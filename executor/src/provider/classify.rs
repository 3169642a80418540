//! What an answer, or its absence, means for its line and for the job. Pure.
//!
//! | what came | what it means |
//! |---|---|
//! | 2xx with a usable body | succeeded |
//! | 2xx without JSON, or cut off | retried |
//! | 2xx or any status around an error of another status | as that status |
//! | a lost connection, no answer in time, 408, 409, 425, 5xx | retried |
//! | 429 for the rate, 503 "slow down" | throttled: sent again, and no attempt is used up |
//! | 429 that no waiting helps: one request is larger than the whole limit | failed |
//! | 429 for a limit per day | the job pauses |
//! | `insufficient_quota` and its kin, a limit of zero, 402 | the job pauses |
//! | 401, 403 | the job pauses, unless only this line's model or content is refused |
//! | any other status | failed |

use std::{borrow::Cow, time::Duration};

use http::StatusCode;
use penstock_batchfile::{Endpoint, Format};
use penstock_job::Reason;
use penstock_rate::{Dimension, Hints};

use super::{
    error_body::ErrorBody,
    exchange::{Answer, Failure, FailureKind},
    reply::{self, NoReply, Reply},
    retry_after::LONGEST,
};

/// The longest wait before a line is sent again. A rate limit's window is a minute or less, so whoever asks for more
/// than ten is asked again after ten.
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

/// Codes and types that say that the account cannot pay.
const BILLING: [&str; 6] = [
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "insufficient_balance",
    "insufficient_credits",
    "account_deactivated",
];

/// Codes of a 403 that refuse this line alone.
const OF_THE_LINE: [&str; 4] =
    ["model_not_found", "content_filter", "content_policy_violation", "moderation_blocked"];

/// What is to be done about a line that was sent.
#[derive(Debug, Clone)]
pub enum Disposition<'a> {
    /// It is answered.
    Succeeded(Reply<'a>),
    /// It is refused for good.
    Failed(Cause),
    /// It may be sent again; this attempt counts.
    Retry {
        /// What went wrong.
        cause: Cause,
        /// How long the provider asks to wait.
        after: Option<Duration>,
    },
    /// It was refused for its rate: it is sent again, and the attempt does not count.
    Throttled {
        /// The limit that was exceeded, where the answer names it.
        dimension: Option<Dimension>,
        /// How long the provider asks to wait.
        after: Option<Duration>,
        /// What headers and text say about the limits.
        hints: Hints,
    },
    /// No line would be answered now: dispatch pauses, and the attempt does not count.
    Blocked {
        /// Why the job is held up.
        reason: Reason,
        /// How long the provider asks to wait.
        after: Option<Duration>,
        /// The provider's own words.
        message: String,
    },
}

/// Why an attempt failed, as it stands in records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The provider's own error code where it has one, else ours: `http_500`, `timeout`, `connection_lost`.
    pub code: Cow<'static, str>,
    /// For people.
    pub message: String,
}

/// Decides what an answer of `endpoint` to a line of `format`, or its absence, means.
pub fn classify(outcome: &Result<Answer, Failure>, endpoint: Endpoint, format: Format) -> Disposition<'_> {
    let answer = match outcome {
        Ok(answer) => answer,
        Err(failure) => return of_failure(failure),
    };
    if !answer.status.is_success() {
        return of_refusal(answer, answer.status, &ErrorBody::parse(&answer.body));
    }
    match reply::read(&answer.body, endpoint, format) {
        Ok(reply) => Disposition::Succeeded(reply),
        Err(NoReply::Refusal) => {
            let body = ErrorBody::parse(&answer.body);
            of_refusal(answer, status_inside(&body), &body)
        }
        Err(NoReply::Invalid) => Disposition::Retry {
            cause: Cause::new(
                "invalid_response",
                "the provider's answer is not a JSON object; see that the base URL leads to an OpenAI-compatible API",
            ),
            after: pause(answer, &ErrorBody::default()),
        },
        Err(NoReply::NoText { finish }) => Disposition::Failed(no_text(finish.as_deref())),
    }
}

fn of_failure(failure: &Failure) -> Disposition<'_> {
    let cause = Cause::new(failure.kind.code(), failure.to_string());
    match failure.kind {
        FailureKind::TooLarge => Disposition::Failed(cause),
        FailureKind::Connect | FailureKind::Timeout | FailureKind::Lost | FailureKind::Truncated => {
            Disposition::Retry { cause, after: None }
        }
    }
}

fn of_refusal<'a>(answer: &Answer, status: StatusCode, body: &ErrorBody) -> Disposition<'a> {
    let message = body.lower_message();
    if is_billing(status, body, &message) {
        return blocked(Reason::BillingOrZeroQuota, answer, status, body);
    }
    match status.as_u16() {
        403 if body.is_any(&OF_THE_LINE) || message.contains("flagged") => {
            Disposition::Failed(cause(status, body))
        }
        401 | 403 => blocked(Reason::CredentialsRefused, answer, status, body),
        400 if body.is_any(&["invalid_api_key"]) || message.contains("api key not valid") => {
            blocked(Reason::CredentialsRefused, answer, status, body)
        }
        429 => of_rate_refusal(answer, status, body, &message),
        503 if body.is_any(&["slow_down"]) || message.contains("slow down") => throttled(answer, body),
        408 | 409 | 425 | 500..=599 => {
            Disposition::Retry { cause: cause(status, body), after: pause(answer, body) }
        }
        _ => Disposition::Failed(cause(status, body)),
    }
}

fn of_rate_refusal<'a>(
    answer: &Answer,
    status: StatusCode,
    body: &ErrorBody,
    message: &str,
) -> Disposition<'a> {
    const PER_DAY: [&str; 4] = ["per day", "per-day", "perday", "daily"];
    let stated = body.stated_limit();
    let is_beyond_limit =
        stated.limit.zip(stated.requested).is_some_and(|(limit, requested)| requested > limit);
    if PER_DAY.iter().any(|words| message.contains(words)) {
        blocked(Reason::DayQuotaExhausted, answer, status, body)
    } else if is_beyond_limit || message.starts_with("request too large") {
        Disposition::Failed(cause(status, body))
    } else {
        throttled(answer, body)
    }
}

/// Gemini words even a refusal that passes in a minute as "check your plan and billing", so the words alone only count
/// where the answer names no wait.
fn is_billing(status: StatusCode, body: &ErrorBody, message: &str) -> bool {
    status == StatusCode::PAYMENT_REQUIRED
        || body.is_any(&BILLING)
        || status == StatusCode::TOO_MANY_REQUESTS
            && (body.stated_limit().limit == Some(0)
                || message.contains("plan and billing") && body.code.is_none() && body.wait().is_none())
}

fn throttled<'a>(answer: &Answer, body: &ErrorBody) -> Disposition<'a> {
    let dimension = body.dimension();
    let mut hints = answer.hints;
    let stated = match dimension {
        Some(Dimension::Requests) => Some(&mut hints.requests),
        Some(Dimension::Tokens) => Some(&mut hints.tokens),
        None => None,
    };
    // The text names the limit that was exceeded; headers may describe another one, of a day for instance.
    if let Some(hint) = stated
        && body.stated_limit().limit.is_some()
    {
        *hint = body.stated_limit().hint();
    }
    Disposition::Throttled { dimension, after: pause(answer, body), hints }
}

fn blocked<'a>(reason: Reason, answer: &Answer, status: StatusCode, body: &ErrorBody) -> Disposition<'a> {
    let after = answer.retry_after.or_else(|| body.wait()).map(|wait| wait.min(LONGEST));
    Disposition::Blocked { reason, after, message: cause(status, body).message }
}

fn pause(answer: &Answer, body: &ErrorBody) -> Option<Duration> {
    answer.retry_after.or_else(|| body.wait()).map(|wait| wait.min(LONGEST_PAUSE))
}

/// The status of an error that came as a success.
fn status_inside(body: &ErrorBody) -> StatusCode {
    let stated = body.status.and_then(|status| StatusCode::from_u16(status).ok());
    let refusal = stated.filter(|status| status.is_client_error() || status.is_server_error());
    refusal.unwrap_or(match body.code.as_deref() {
        Some("rate_limit_exceeded") => StatusCode::TOO_MANY_REQUESTS,
        Some(code) if code.starts_with("invalid_") => StatusCode::BAD_REQUEST,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    })
}

fn cause(status: StatusCode, body: &ErrorBody) -> Cause {
    let code = match &body.code {
        Some(code) => Cow::Owned(code.clone()),
        None => Cow::Owned(format!("http_{}", status.as_u16())),
    };
    let message = match &body.message {
        Some(message) => message.clone(),
        None if status.is_redirection() => {
            format!("the provider redirects ({status}); use the base URL that it redirects to")
        }
        None => {
            format!("the provider answered {status} without saying why; its logs or status page may tell")
        }
    };
    Cause { code, message }
}

fn no_text(finish: Option<&str>) -> Cause {
    let message = match finish {
        Some("length" | "incomplete") => {
            "the answer ended at its token limit before any text; raise --max-output-tokens".to_owned()
        }
        Some(finish) => {
            format!("the answer has no text; it ended with `{finish}`, so change the prompt or the model")
        }
        None => "the answer has no text; see that the endpoint suits the model".to_owned(),
    };
    Cause::new("no_text", message)
}

impl Cause {
    fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code: Cow::Borrowed(code), message: message.into() }
    }
}

#[cfg(test)]
mod tests;
