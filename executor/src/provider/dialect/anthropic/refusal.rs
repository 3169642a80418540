//! What a refusal of Anthropic means, at Messages and at the OpenAI-compatible endpoint. Pure.
//!
//! Types and statuses: <https://platform.claude.com/docs/en/api/errors>.

use http::StatusCode;
use penstock_job::Reason;
use penstock_rate::{Dimension, Hint, Hints};

use crate::provider::{dialect::openai, error_body::ErrorBody, refusal::Meaning, resumption::Resumption};

/// Messages that say that the account cannot pay, or may not spend more.
const BILLING: [&str; 3] = [
    "credit balance is too low",
    "you have reached your specified api usage limits",
    "you have reached your specified workspace api usage limits",
];

/// Messages of a 429 for a rate that rises too steeply.
const ACCELERATION: [&str; 2] = ["usage increase rate", "acceleration limit"];

/// The message of a 400 by the filter.
const FILTERED: &str = "blocked by content filtering policy";

/// In `details` of a 429 that is a spend limit.
const SPEND_LIMIT: &str = "enforced_spend_limit_reached";

/// Reads a body. Its type is its code, but for what a filter refuses, which has no type of its own.
pub(in crate::provider) fn error_body(body: &[u8]) -> ErrorBody {
    let mut body = ErrorBody::parse(body);
    body.code = if body.lower_message().contains(FILTERED) {
        Some("content_filter".to_owned())
    } else {
        body.code.or_else(|| body.kind.clone())
    };
    body
}

/// Reads the table in `docs/providers.md`.
pub(in crate::provider) fn judge(status: StatusCode, body: &ErrorBody) -> Meaning {
    let message = body.lower_message();
    let limit = stated_limit(&message);
    if body.is_any(&["billing_error"])
        || BILLING.iter().any(|words| message.contains(words))
        || body.details.get("error_code").is_some_and(|code| code == SPEND_LIMIT)
        || limit == Some(0)
    {
        return Meaning::Blocked { reason: Reason::BillingOrZeroQuota, resumes: regained(&message) };
    }
    match status.as_u16() {
        400 if message.contains("organization has been disabled") => {
            Meaning::blocked(Reason::CredentialsRefused)
        }
        429 if ACCELERATION.iter().any(|words| message.contains(words)) => Meaning::SlowDown,
        429 => match (openai::of_rate(body, &message), limit) {
            (Meaning::Rate { dimension, .. }, Some(_)) => {
                Meaning::Rate { dimension, stated: stated(body, dimension, limit) }
            }
            (meaning, _) => meaning,
        },
        _ => openai::judge(status, body),
    }
}

/// The limit as refusals word it: `rate limit of 30,000 input tokens per minute`, or with the organisation named before
/// the `of`.
fn stated_limit(message: &str) -> Option<u64> {
    let (_, rest) = message.split_once("rate limit")?;
    let number = |rest: &str| rest.split_whitespace().next()?.replace(',', "").parse().ok();
    rest.split(" of ").skip(1).find_map(number)
}

fn stated(body: &ErrorBody, dimension: Option<Dimension>, limit: Option<u64>) -> Hints {
    let hint = Hint { limit, period: body.period(), ..Hint::default() };
    dimension.map_or_else(Hints::default, |dimension| Hints::default().with(dimension, hint))
}

/// When a spend limit is over: `You will regain access on 2026-12-01 at 00:00 UTC.`
fn regained(message: &str) -> Resumption {
    let moment = || {
        let (_, rest) = message.split_once("regain access on ")?;
        let (date, rest) = rest.split_once(" at ")?;
        let time = rest.get(..5)?;
        humantime::parse_rfc3339(&format!("{date}T{time}:00Z")).ok()
    };
    moment().map_or(Resumption::Unknown, Resumption::At)
}
