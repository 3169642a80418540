//! Google's errors: `{"error":{"code","message","status","details"}}`, a `google.rpc.Status`. The compatible endpoint
//! sends an array of one.
//!
//! Where nothing else is said, the codes are those of <https://ai.google.dev/gemini-api/docs/troubleshooting> and the
//! words those that many clients quote.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    dialect::{Context, Told},
    limit::{Dimension, Exceeded, Reading, RetryAfter, claim},
    refusal::Refusal,
};

/// How long a day's quota says to wait, though it lasts until midnight in California: google-gemini/gemini-cli#10925
/// and diegosouzapw/OmniRoute#9504.
const DAY_QUOTA_WAIT: Duration = Duration::from_nanos(36_429_760_048);

const REQUESTS: &str = "generativelanguage.googleapis.com/generate_content_free_tier_requests";
const INPUT_TOKENS: &str = "generativelanguage.googleapis.com/generate_content_free_tier_input_token_count";

const KEY_INVALID: &str = "API key not valid. Please pass a valid API key.";

/// A refusal as Gemini tells it.
pub(super) fn told(refusal: &Refusal, context: &Context<'_>) -> Told {
    if *refusal == Refusal::BadGateway {
        return web_page();
    }
    let error = status(refusal, context);
    answer(error.code, &envelope(error))
}

/// A refusal as the compatible endpoint tells it. The array is quoted in continuedev/continue#8516.
pub(super) fn told_in_array(refusal: &Refusal, context: &Context<'_>) -> Told {
    let error = match refusal {
        Refusal::BadGateway => return web_page(),
        // Quoted in sipeed/picoclaw#2374.
        Refusal::MissingKey => Status::invalid("Missing or invalid Authorization header."),
        _ => status(refusal, context),
    };
    answer(error.code, &json!([envelope(error)]))
}

/// One error.
struct Status {
    code: u16,
    name: &'static str,
    message: String,
    details: Vec<Value>,
}

impl Status {
    fn new(code: u16, name: &'static str, message: impl Into<String>) -> Self {
        Self { code, name, message: message.into(), details: Vec::new() }
    }

    fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, "INVALID_ARGUMENT", message)
    }

    fn details(self, details: Vec<Value>) -> Self {
        Self { details, ..self }
    }
}

fn envelope(error: Status) -> Value {
    let mut body = json!({ "error": { "code": error.code, "message": error.message, "status": error.name } });
    if !error.details.is_empty() {
        body["error"]["details"] = error.details.into();
    }
    body
}

/// The body, indented as Google indents it.
fn answer(code: u16, body: &Value) -> Told {
    let text = serde_json::to_string_pretty(body).expect("invariant: a value has string keys");
    Told::new(code, "application/json; charset=UTF-8", text + "\n")
}

/// The front end's own answer where nothing behind it answers.
fn web_page() -> Told {
    let page = "<!DOCTYPE html>\n<html lang=en>\n  <title>Error 502 (Server Error)!!1</title>\n  <p><b>502.</b> \
                <ins>That's an error.</ins>\n  <p>The server encountered a temporary error and could not complete \
                your request.<p>Please try again in 30 seconds.\n";
    Told::new(502, "text/html; charset=UTF-8", page)
}

fn status(refusal: &Refusal, context: &Context<'_>) -> Status {
    match refusal {
        Refusal::UnknownPath { .. } | Refusal::WrongMethod { .. } => {
            Status::new(404, "NOT_FOUND", "Requested entity was not found.")
        }
        Refusal::TooLarge(most) => {
            Status::invalid(format!("Request payload size exceeds the limit: {most} bytes."))
        }
        Refusal::UnreadableBody(error) => Status::invalid(format!("Invalid JSON payload received. {error}")),
        Refusal::Missing(field) => {
            Status::invalid(format!("* GenerateContentRequest.{field}: {field} is not specified\n"))
        }
        Refusal::Unsupported { message, .. } => Status::invalid(*message),
        Refusal::MissingVersion | Refusal::InvalidRequest | Refusal::RejectedPrompt => {
            Status::invalid("Request contains an invalid argument.")
        }
        Refusal::MissingKey => Status::new(
            403,
            "PERMISSION_DENIED",
            "Method doesn't allow unregistered callers (callers without established identity). Please use API Key \
             or other form of API consumer identity to call this API.",
        ),
        // Quoted in cequence-io/openai-scala-client#109.
        Refusal::WrongKey => Status::invalid(KEY_INVALID).details(vec![
            error_info("API_KEY_INVALID"),
            json!({
                "@type": "type.googleapis.com/google.rpc.LocalizedMessage",
                "locale": "en-US",
                "message": KEY_INVALID,
            }),
        ]),
        Refusal::Unauthenticated => Status::new(
            401,
            "UNAUTHENTICATED",
            "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other \
             valid authentication credential. See \
             https://developers.google.com/identity/sign-in/web/devconsole-project.",
        )
        .details(vec![error_info("ACCESS_TOKEN_TYPE_UNSUPPORTED")]),
        Refusal::Forbidden => Status::new(
            403,
            "PERMISSION_DENIED",
            "Your project has been denied access. Please contact support.",
        ),
        // Quoted in continuedev/continue#9939.
        Refusal::ModelNotFound => Status::new(
            404,
            "NOT_FOUND",
            format!(
                "models/{} is not found for API version v1beta, or is not supported for generateContent. Call \
                 ListModels to see the list of available models and their supported methods.",
                context.model().trim_start_matches("models/")
            ),
        ),
        Refusal::RateLimited(exceeded) => rate_limited(exceeded, context),
        Refusal::DayQuota => {
            let violated =
                [(REQUESTS, "GenerateRequestsPerDayPerProjectPerModel-FreeTier", Some(20))];
            quota_exceeded(&violated, context.model(), Some((DAY_QUOTA_WAIT, whole_seconds(DAY_QUOTA_WAIT))))
        }
        Refusal::ZeroQuota => zero_quota(context),
        // Quoted in dyad-sh/dyad#3626.
        Refusal::InsufficientQuota => exhausted(
            "Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to manage \
             your project and billing.",
        ),
        Refusal::SpendLimit => exhausted(
            "Your project has exceeded its monthly spending cap. Please go to AI Studio at \
             https://ai.studio/spend to manage your project spend cap.",
        ),
        // Seen where traffic rises too fast, without a word about quotas: googleapis/python-genai#2065.
        Refusal::SlowDown => exhausted("Resource has been exhausted (e.g. check quota)."),
        Refusal::InternalError => Status::new(
            500,
            "INTERNAL",
            "An internal error has occurred. Please retry or report in \
             https://developers.generativeai.google/guide/troubleshooting",
        ),
        Refusal::BadGateway | Refusal::Unavailable | Refusal::AllSlotsTaken => {
            Status::new(503, "UNAVAILABLE", "The model is overloaded. Please try again later.")
        }
        Refusal::Overloaded => Status::new(
            503,
            "UNAVAILABLE",
            "This model is currently experiencing high demand. Spikes in demand are usually temporary. Please try \
             again later.",
        ),
        Refusal::DeadlineExceeded => {
            Status::new(504, "DEADLINE_EXCEEDED", "Deadline expired before operation could complete.")
        }
    }
}

fn exhausted(message: &str) -> Status {
    Status::new(429, "RESOURCE_EXHAUSTED", message)
}

fn error_info(reason: &str) -> Value {
    json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": "googleapis.com",
        "metadata": { "service": "generativelanguage.googleapis.com" },
    })
}

/// A minute's limit, named as google-gemini/gemini-cli-action#36 quotes it. One request that is larger than the limit
/// is told the same, and to wait for nothing.
fn rate_limited(exceeded: &Exceeded, context: &Context<'_>) -> Status {
    let (metric, id) = match exceeded.dimension {
        Dimension::Requests => (REQUESTS, "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"),
        Dimension::Tokens => (INPUT_TOKENS, "GenerateContentInputTokensPerModelPerMinute-FreeTier"),
    };
    let Exceeded { reading: Reading { reset, .. }, wait, .. } = *exceeded;
    let wait = wait.unwrap_or(reset);
    let limit = claim(context.limits.headers, exceeded.reading).map(|claim| claim.limit);
    let retry = match context.limits.retry_after {
        RetryAfter::None => None,
        RetryAfter::Seconds | RetryAfter::HttpDate => Some((wait, whole_seconds(wait))),
        RetryAfter::Milliseconds => Some((wait, seconds(wait))),
    };
    quota_exceeded(&[(metric, id, limit)], context.model(), retry)
}

/// A project that may not use the model: continuedev/continue#12749. A 0 is left out of Google's JSON, so only the
/// message names it.
fn zero_quota(context: &Context<'_>) -> Status {
    let violated = [
        (INPUT_TOKENS, "GenerateContentInputTokensPerModelPerMinute-FreeTier", Some(0)),
        (REQUESTS, "GenerateRequestsPerMinutePerProjectPerModel-FreeTier", Some(0)),
        (REQUESTS, "GenerateRequestsPerDayPerProjectPerModel-FreeTier", Some(0)),
    ];
    let wait = Duration::from_nanos(59_953_424_872);
    quota_exceeded(&violated, context.model(), Some((wait, whole_seconds(wait))))
}

/// The body that quotas of all kinds share: diegosouzapw/OmniRoute#9504 and google-gemini/gemini-cli#4656 quote it.
/// A violation is a metric, the id of its quota, and its limit where the server tells it; `retry` is when to come back
/// and how the details write that.
fn quota_exceeded(
    violated: &[(&str, &str, Option<u64>)],
    model: &str,
    retry: Option<(Duration, String)>,
) -> Status {
    let mut lines = vec![
        "You exceeded your current quota, please check your plan and billing details. For more information on this \
         error, head to: https://ai.google.dev/gemini-api/docs/rate-limits. To monitor your current usage, head to: \
         https://ai.dev/rate-limit. "
            .to_owned(),
    ];
    let mut violations = Vec::new();
    for &(metric, id, limit) in violated {
        let mut violation = json!({
            "quotaMetric": metric,
            "quotaId": id,
            "quotaDimensions": { "location": "global", "model": model },
        });
        if let Some(limit) = limit.filter(|&limit| limit > 0) {
            violation["quotaValue"] = limit.to_string().into();
        }
        violations.push(violation);
        let stated = limit.map(|limit| format!(", limit: {limit}")).unwrap_or_default();
        lines.push(format!("* Quota exceeded for metric: {metric}{stated}, model: {model}"));
    }
    let mut details = vec![
        json!({
            "@type": "type.googleapis.com/google.rpc.Help",
            "links": [{
                "description": "Learn more about Gemini API quotas",
                "url": "https://ai.google.dev/gemini-api/docs/rate-limits",
            }],
        }),
        json!({ "@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": violations }),
    ];
    if let Some((wait, written)) = retry {
        lines.push(format!("Please retry in {}.", seconds(wait)));
        details.push(json!({ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": written }));
    }
    exhausted(&lines.join("\n")).details(details)
}

/// `36.429760048s`
fn seconds(wait: Duration) -> String {
    format!("{}s", wait.as_secs_f64())
}

/// `36s`: cut off, as Google cuts it, though the message says more.
fn whole_seconds(wait: Duration) -> String {
    format!("{}s", wait.as_secs())
}
