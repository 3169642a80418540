//! What an answer, or its absence, means for its line and for the job. Pure. What the words of a provider mean is
//! decided by its dialect, in the terms of this table:
//!
//! | what came | what it means | what the learner hears |
//! |---|---|---|
//! | 2xx with a usable body | succeeded | admitted, succeeded |
//! | 2xx without JSON, or cut off | retried | lost |
//! | 2xx without text, or withheld by a filter | failed | lost |
//! | 2xx or any status around an error of another status | as that status | the same |
//! | a lost connection, no answer in time, 408, 409, 425, 5xx | retried | lost |
//! | 429 for the rate | throttled: sent again, and no attempt is used up | refused |
//! | 503 "slow down", 429 for the acceleration | throttled | slow down |
//! | 429 for overload; 503, 529, 5xx "overloaded" that ask to come back | throttled | overloaded |
//! | 529, 5xx "overloaded" that do not | retried | overloaded |
//! | 429 that no waiting helps: one request is larger than the whole limit | failed | lost |
//! | 429 of Azure that never passes | failed if others of the model are answered, else the job pauses | lost |
//! | 429 for a limit per day | the job pauses, until the time that is known | lost |
//! | `insufficient_quota` and its kin, a limit of zero, 402 | the job pauses | lost |
//! | 401, 403 | the job pauses, unless only this line's model or content is refused | lost |
//! | any other status | failed | lost |

use std::{borrow::Cow, time::Duration};

use http::StatusCode;
use penstock_job::Reason;
use penstock_rate::{Hint, Hints, Verdict};

use super::{
    dialect::Dialect,
    error_body::ErrorBody,
    exchange::{Answer, Failure, FailureKind},
    refusal::Meaning,
    reply::{NoReply, Reply},
    resumption::Resumption,
};

/// The longest wait before a line is sent again. A rate limit's window is a minute or less, so whoever asks for more
/// than ten is asked again after ten.
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

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
        /// What it says about the rate: nothing, or that the provider has too much to do.
        verdict: Verdict,
    },
    /// It was turned away for the load and is to come back: it is sent again, and the attempt does not count.
    Throttled {
        /// What was said.
        cause: Cause,
        /// How long the provider asks to wait.
        after: Option<Duration>,
        /// What it says about the rate: refused, slow down or overloaded.
        verdict: Verdict,
    },
    /// No line would be answered now: dispatch pauses, and the attempt does not count.
    Blocked {
        /// Why the job is held up.
        reason: Reason,
        /// When that is expected to be over.
        resumes: Resumption,
        /// Whether it may be this line alone, so that it fails where others of its model are answered.
        perhaps_alone: bool,
        /// What was said.
        cause: Cause,
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

/// Decides what an answer in `dialect`, or its absence, means.
pub fn classify(outcome: &Result<Answer, Failure>, dialect: Dialect) -> Disposition<'_> {
    let answer = match outcome {
        Ok(answer) => answer,
        Err(failure) => return of_failure(failure),
    };
    if !answer.status.is_success() {
        return of_refusal(answer, answer.status, dialect);
    }
    match dialect.read(&answer.body) {
        Ok(reply) => Disposition::Succeeded(reply),
        Err(NoReply::Refusal) => of_refusal(answer, status_inside(&answer.body), dialect),
        Err(NoReply::Invalid) => Disposition::Retry {
            cause: Cause::new(
                "invalid_response",
                "the provider's answer is not a JSON object; see that the base URL leads to the provider's API",
            ),
            after: answer.retry_after.map(|wait| wait.min(LONGEST_PAUSE)),
            verdict: Verdict::Lost,
        },
        Err(NoReply::Filtered(reason)) => Disposition::Failed(filtered(&reason)),
        Err(NoReply::NoText { finish }) => Disposition::Failed(no_text(finish.as_deref())),
    }
}

fn of_failure(failure: &Failure) -> Disposition<'_> {
    let cause = Cause::new(failure.kind.code(), failure.to_string());
    match failure.kind {
        FailureKind::TooLarge => Disposition::Failed(cause),
        FailureKind::Connect | FailureKind::Timeout | FailureKind::Lost | FailureKind::Truncated => {
            Disposition::Retry { cause, after: None, verdict: Verdict::Lost }
        }
    }
}

fn of_refusal<'a>(answer: &Answer, status: StatusCode, dialect: Dialect) -> Disposition<'a> {
    let mut body = dialect.error_body(&answer.body);
    body.wait = answer.retry_after.or(body.wait);
    let after = body.wait.map(|wait| wait.min(LONGEST_PAUSE));
    match dialect.judge(status, &body) {
        Meaning::Permanent => Disposition::Failed(cause(status, &body)),
        Meaning::Transient => {
            Disposition::Retry { cause: cause(status, &body), after, verdict: Verdict::Lost }
        }
        Meaning::Rate { dimension, stated } => {
            let hints = merged(stated, answer.hints);
            let verdict = Verdict::Refused { dimension, retry_after: after, hints };
            Disposition::Throttled { cause: cause(status, &body).coded("rate_limited"), after, verdict }
        }
        Meaning::SlowDown => Disposition::Throttled {
            cause: cause(status, &body).coded("slow_down"),
            after,
            verdict: Verdict::SlowDown { retry_after: after },
        },
        Meaning::Overloaded => {
            let cause = cause(status, &body);
            let verdict = Verdict::Overloaded { retry_after: after };
            if status == StatusCode::TOO_MANY_REQUESTS || body.asks_to_come_back() {
                Disposition::Throttled { cause, after, verdict }
            } else {
                Disposition::Retry { cause, after, verdict }
            }
        }
        Meaning::Unfit => Disposition::Blocked {
            reason: Reason::BillingOrZeroQuota,
            resumes: Resumption::Unknown,
            perhaps_alone: true,
            cause: cause(status, &body).coded("request_too_large"),
        },
        Meaning::Blocked { reason, resumes } => {
            let resumes = match (resumes, body.wait) {
                // A wait in words about money or a quota of zero is that of a minute, which nothing renews.
                (Resumption::Unknown, Some(wait)) if reason != Reason::BillingOrZeroQuota => {
                    Resumption::After(wait)
                }
                _ => resumes,
            };
            Disposition::Blocked { reason, resumes, perhaps_alone: false, cause: cause(status, &body) }
        }
    }
}

/// What a body states goes before what headers say.
fn merged(stated: Hints, headers: Hints) -> Hints {
    let preferred = |stated: Hint, header: Hint| if stated.limit.is_some() { stated } else { header };
    Hints {
        requests: preferred(stated.requests, headers.requests),
        tokens: preferred(stated.tokens, headers.tokens),
        input_tokens: preferred(stated.input_tokens, headers.input_tokens),
        output_tokens: preferred(stated.output_tokens, headers.output_tokens),
    }
}

/// The status of an error that came as a success.
fn status_inside(body: &[u8]) -> StatusCode {
    let body = ErrorBody::parse(body);
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

fn filtered(reason: &str) -> Cause {
    let reason = shortened(reason);
    Cause::new(
        "content_filter",
        format!(
            "the provider's filter withheld the answer (`{reason}`); change the prompt, or the filter where the \
             provider allows that"
        ),
    )
}

fn no_text(finish: Option<&str>) -> Cause {
    let message = match finish {
        Some("length" | "incomplete" | "max_output_tokens" | "max_tokens" | "MAX_TOKENS") => {
            "the answer ended at its token limit before any text; raise --max-output-tokens".to_owned()
        }
        Some(finish) => {
            let finish = shortened(finish);
            format!("the answer has no text; it ended with `{finish}`, so change the prompt or the model")
        }
        None => "the answer has no text; see that the endpoint suits the model".to_owned(),
    };
    Cause::new("no_text", message)
}

/// A provider's word as it may stand in a message.
fn shortened(word: &str) -> String {
    const LONGEST_WORD: usize = 100;
    word.chars().take(LONGEST_WORD).collect()
}

impl Cause {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code: Cow::Borrowed(code), message: message.into() }
    }

    /// The same under our own code.
    fn coded(self, code: &'static str) -> Self {
        Self { code: Cow::Borrowed(code), ..self }
    }
}

#[cfg(test)]
mod tests;
