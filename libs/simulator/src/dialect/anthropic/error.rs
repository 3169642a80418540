//! Anthropic's errors: `{"type":"error","error":{"type","message"},"request_id"}`.
//!
//! Types and statuses: <https://docs.claude.com/en/api/errors>. The words are quoted in the issues that are named
//! beside them.

use serde_json::json;

use super::date::next_month;
use crate::{
    dialect::{Context, Told, openai},
    limit::{Dimension, Exceeded, RateLimitHeaders, RetryAfter},
    refusal::Refusal,
};

const LIMITS_PAGE: &str = "For details, refer to: https://docs.claude.com/en/api/rate-limits. You can see the response \
                           headers for current usage. Please reduce the prompt length or the maximum tokens requested, \
                           or try again later. You may also contact sales at https://claude.com/contact-sales to \
                           discuss your options for a rate limit increase.";

/// A refusal as Anthropic tells it.
pub(super) fn told(refusal: &Refusal, context: &Context<'_>) -> Told {
    let (status, kind, message) = match error(refusal, context) {
        Error::Json(status, kind, message) => (status, kind, message),
        Error::Text(status, content_type, text) => return Told::new(status, content_type, text),
    };
    let body = json!({
        "type": "error",
        "error": { "type": kind, "message": message },
        "request_id": context.id.to_string(),
    });
    let mut told = Told::json(status, &body);
    if let Refusal::RateLimited(Exceeded { wait: Some(wait), .. }) = refusal {
        // Anthropic has no milliseconds.
        let style = match context.limits.retry_after {
            RetryAfter::Milliseconds => RetryAfter::Seconds,
            style => style,
        };
        told.headers.extend(openai::retry(style, *wait, context.now));
    }
    told
}

/// One error: in the envelope, or from what stands in front of the API.
enum Error {
    Json(u16, &'static str, String),
    Text(u16, &'static str, &'static str),
}

fn error(refusal: &Refusal, context: &Context<'_>) -> Error {
    let json = |status, kind, message: &str| Error::Json(status, kind, message.to_owned());
    let invalid = |message: String| Error::Json(400, "invalid_request_error", message);
    match refusal {
        Refusal::UnknownPath { .. } => json(404, "not_found_error", "Not Found"),
        Refusal::WrongMethod { .. } => json(405, "invalid_request_error", "Method Not Allowed"),
        // Quoted in Pasta-Devs/Marinara-Engine#120.
        Refusal::MissingVersion => invalid("anthropic-version: header is required".to_owned()),
        Refusal::TooLarge(_) => {
            json(413, "request_too_large", "Request exceeds the maximum allowed number of bytes.")
        }
        Refusal::UnreadableBody(error) => invalid(format!("The request body is not valid JSON: {error}")),
        Refusal::Missing(field) => invalid(format!("{field}: Field required")),
        Refusal::Unsupported { param, message } => invalid(format!("{param}: {message}")),
        Refusal::InvalidRequest => invalid("messages: text content blocks must be non-empty".to_owned()),
        // Quoted in anthropics/claude-code#58367.
        Refusal::RejectedPrompt => invalid("Output blocked by content filtering policy".to_owned()),
        // Quoted in n8n-io/n8n#37930.
        Refusal::MissingKey => json(401, "authentication_error", "x-api-key header is required"),
        // Quoted in ITSpecialist111/ai_automation_suggester#153.
        Refusal::WrongKey => json(401, "authentication_error", "invalid x-api-key"),
        Refusal::Unauthenticated => {
            json(401, "authentication_error", "OAuth authentication is currently not supported.")
        }
        Refusal::Forbidden => json(
            403,
            "permission_error",
            "Your API key does not have permission to use the specified resource.",
        ),
        Refusal::ModelNotFound => {
            Error::Json(404, "not_found_error", format!("model: {}", context.model()))
        }
        Refusal::RateLimited(exceeded) => Error::Json(429, "rate_limit_error", rate_limited(exceeded, context)),
        // From the time when days had limits: nraiden/cofounder#40.
        Refusal::DayQuota => json(
            429,
            "rate_limit_error",
            "Number of request tokens has exceeded your daily rate limit \
             (https://docs.anthropic.com/en/api/rate-limits); see the response headers for current usage.",
        ),
        Refusal::ZeroQuota => {
            Error::Json(429, "rate_limit_error", would_exceed(0, "input tokens", context.model()))
        }
        Refusal::InsufficientQuota => invalid(
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or \
             purchase credits."
                .to_owned(),
        ),
        // Quoted in anthropics/claude-code#38035.
        Refusal::SpendLimit => invalid(format!(
            "You have reached your specified API usage limits. You will regain access on {} at 00:00 UTC.",
            next_month(context.now)
        )),
        // The acceleration limits of <https://docs.claude.com/en/api/errors>, in the words of the plain limit:
        // anthropics/claude-code#55789.
        Refusal::SlowDown => json(
            429,
            "rate_limit_error",
            "This request would exceed your account's rate limit. Please try again later.",
        ),
        Refusal::InternalError => json(500, "api_error", "Internal server error"),
        Refusal::BadGateway => Error::Text(
            502,
            "text/html",
            "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n\
             <hr><center>cloudflare</center>\r\n</body>\r\n</html>\r\n",
        ),
        // Quoted in anthropics/claude-code#7044.
        Refusal::Unavailable => Error::Text(
            503,
            "text/plain",
            "upstream connect error or disconnect/reset before headers. reset reason: overflow",
        ),
        Refusal::Overloaded | Refusal::AllSlotsTaken => json(529, "overloaded_error", "Overloaded"),
        Refusal::DeadlineExceeded => json(504, "timeout_error", "Request timed out"),
    }
}

fn rate_limited(exceeded: &Exceeded, context: &Context<'_>) -> String {
    if context.limits.headers == RateLimitHeaders::None {
        return "This request would exceed your account's rate limit. Please try again later.".to_owned();
    }
    let unit = match exceeded.dimension {
        Dimension::Requests => "requests",
        Dimension::Tokens => "input tokens",
    };
    would_exceed(exceeded.reading.per_minute, unit, context.model())
}

/// Quoted in logancyang/obsidian-copilot#2327.
fn would_exceed(limit: u64, unit: &str, model: &str) -> String {
    format!(
        "This request would exceed your organization's rate limit of {} {unit} per minute (org: \
         00000000-0000-0000-0000-000000000000, model: {model}). {LIMITS_PAGE}",
        grouped(limit)
    )
}

/// A number with its thousands set apart: `30,000`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([0, 50, 30_000, 1_000_000].map(grouped), ["0", "50", "30,000", "1,000,000"]);
    }
}
