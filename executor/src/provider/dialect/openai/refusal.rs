//! What a refusal in OpenAI's API means. Pure. Other dialects fall back to it for what they say alike.

use http::StatusCode;
use penstock_job::Reason;
use penstock_rate::Hints;

use crate::provider::{error_body::ErrorBody, refusal::Meaning, resumption::Resumption};

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

/// Words for a limit per day; the last two are of GitHub's models.
const PER_DAY: [&str; 6] = ["per day", "per-day", "perday", "daily", "per 86400s", "byday"];

/// Reads the table in `docs/providers.md`.
pub(in crate::provider) fn judge(status: StatusCode, body: &ErrorBody) -> Meaning {
    let message = body.lower_message();
    if is_billing(status, body, &message) {
        return Meaning::blocked(Reason::BillingOrZeroQuota);
    }
    match status.as_u16() {
        403 if body.is_any(&OF_THE_LINE) || message.contains("flagged") => Meaning::Permanent,
        401 | 403 => Meaning::blocked(Reason::CredentialsRefused),
        400 if body.is_any(&["invalid_api_key"]) || message.contains("api key not valid") => {
            Meaning::blocked(Reason::CredentialsRefused)
        }
        429 => of_rate(body, &message),
        503 if body.is_any(&["slow_down"]) || message.contains("slow down") => Meaning::SlowDown,
        // 503 with a time is one by RFC 9110, section 15.6.4, and 529 is used for nothing else.
        503 if body.wait.is_some() => Meaning::Overloaded,
        529 => Meaning::Overloaded,
        500..=599 if body.says_overloaded() => Meaning::Overloaded,
        408 | 409 | 425 | 500..=599 => Meaning::Transient,
        _ => Meaning::Permanent,
    }
}

/// What a 429 means that is not about money.
pub(in crate::provider) fn of_rate(body: &ErrorBody, message: &str) -> Meaning {
    let stated = body.stated_limit();
    let is_beyond_limit =
        stated.limit.zip(stated.requested).is_some_and(|(limit, requested)| requested > limit);
    if PER_DAY.iter().any(|words| message.contains(words)) {
        let resumes = body.renewed.map_or(Resumption::Unknown, Resumption::At);
        Meaning::Blocked { reason: Reason::DayQuotaExhausted, resumes }
    } else if is_beyond_limit || message.starts_with("request too large") {
        Meaning::Permanent
    } else if body.says_overloaded() {
        Meaning::Overloaded
    } else {
        rate(body)
    }
}

/// The text names the limit that was exceeded; headers may describe another one, of a day for instance.
fn rate(body: &ErrorBody) -> Meaning {
    let dimension = body.dimension();
    let hint = body.stated_limit().hint(body.period());
    let stated = dimension.map_or_else(Hints::default, |dimension| Hints::default().with(dimension, hint));
    Meaning::Rate { dimension, stated }
}

/// Gemini words even a refusal that passes in a minute as "check your plan and billing", so the words alone only count
/// where the answer names no wait.
fn is_billing(status: StatusCode, body: &ErrorBody, message: &str) -> bool {
    status == StatusCode::PAYMENT_REQUIRED
        || body.is_any(&BILLING)
        || status == StatusCode::TOO_MANY_REQUESTS
            && (body.stated_limit().limit == Some(0)
                || message.contains("plan and billing") && body.code.is_none() && body.wait.is_none())
}
