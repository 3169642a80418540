//! OpenAI's errors: their statuses, codes and words, and the envelope
//! `{"error":{"message","type","param","code"}}` in which all four keys are always present.

use std::{
    borrow::Cow,
    time::{Duration, SystemTime},
};

use http::{HeaderName, HeaderValue};
use serde::Serialize;

use super::{Context, Told, go_duration};
use crate::{
    dialect::value,
    limit::{Dimension, Exceeded, RateLimitHeaders, RetryAfter, rounded_up, whole},
    refusal::Refusal,
};

/// One error, before it is put into its envelope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::dialect) struct Envelope {
    #[serde(skip)]
    status: u16,
    message: Cow<'static, str>,
    r#type: &'static str,
    param: Option<Cow<'static, str>>,
    code: Option<&'static str>,
}

impl Envelope {
    pub(in crate::dialect) fn new(
        status: u16,
        r#type: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { status, message: message.into(), r#type, param: None, code: None }
    }

    pub(in crate::dialect) fn code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    fn param(self, param: impl Into<Cow<'static, str>>) -> Self {
        Self { param: Some(param.into()), ..self }
    }

    pub(in crate::dialect) fn told(&self) -> Told {
        Told::json(self.status, &serde_json::json!({ "error": self }))
    }
}

fn invalid(status: u16, message: impl Into<Cow<'static, str>>) -> Envelope {
    Envelope::new(status, "invalid_request_error", message)
}

fn server_error(status: u16, message: &'static str) -> Envelope {
    Envelope::new(status, "server_error", message)
}

/// A refusal as OpenAI tells it.
pub(super) fn told(refusal: &Refusal, context: &Context<'_>) -> Told {
    let mut told = envelope(refusal, context).told();
    if let Refusal::RateLimited(Exceeded { wait: Some(wait), .. }) = refusal {
        told.headers.extend(retry(context.limits.retry_after, *wait, context.now));
    }
    told
}

fn envelope(refusal: &Refusal, context: &Context<'_>) -> Envelope {
    match refusal {
        Refusal::UnknownPath { method, path } => invalid(404, format!("Invalid URL ({method} {path})")),
        Refusal::WrongMethod { method, path } => {
            invalid(405, format!("Not allowed to {method} on {path}")).code("method_not_supported")
        }
        Refusal::MissingVersion => invalid(400, "The version of the API is missing."),
        Refusal::TooLarge(most) => {
            invalid(413, format!("The request body is larger than {most} bytes.")).code("request_too_large")
        }
        Refusal::UnreadableBody(error) => {
            invalid(400, format!("We could not parse the JSON body of your request: {error}"))
        }
        Refusal::Missing(param) => invalid(400, format!("Missing required parameter: '{param}'."))
            .param(*param)
            .code("missing_required_parameter"),
        Refusal::Unsupported { param, message } => {
            invalid(400, *message).param(param.clone()).code("unsupported_value")
        }
        Refusal::InvalidRequest => {
            invalid(400, "Invalid value for 'temperature': expected a number between 0 and 2.")
                .param("temperature")
                .code("invalid_value")
        }
        Refusal::RejectedPrompt => {
            invalid(400, "Invalid prompt: this prompt was refused by the input checks.")
                .code("invalid_prompt")
        }
        Refusal::MissingKey | Refusal::Unauthenticated => {
            invalid(401, "You didn't provide an API key: send it as `Authorization: Bearer KEY`.")
        }
        Refusal::WrongKey => invalid(401, "Incorrect API key provided.").code("invalid_api_key"),
        Refusal::Forbidden => {
            invalid(403, "The project of this key may not use this model.").code("permission_denied")
        }
        Refusal::ModelNotFound => invalid(
            404,
            format!("The model `{}` does not exist or you do not have access to it.", context.model()),
        )
        .code("model_not_found"),
        Refusal::RateLimited(exceeded) => {
            let message = message(context.limits.headers, exceeded, context.model());
            Envelope::new(429, kind(exceeded.dimension), message).code("rate_limit_exceeded")
        }
        // Quoted in community.openai.com/t/541210: the daily limits use the words of the minute's.
        Refusal::DayQuota => daily(200, context.model()),
        Refusal::ZeroQuota => daily(0, context.model()),
        Refusal::InsufficientQuota => Envelope::new(
            429,
            "insufficient_quota",
            "You exceeded your current quota, please check your plan and billing details.",
        )
        .code("insufficient_quota"),
        Refusal::SpendLimit => {
            Envelope::new(429, "insufficient_quota", "Billing hard limit has been reached")
                .code("billing_hard_limit_reached")
        }
        Refusal::AllSlotsTaken => {
            server_error(503, "All slots are taken and the queue is full.").code("server_busy")
        }
        Refusal::InternalError => server_error(500, "The server had an error while processing your request."),
        Refusal::BadGateway => server_error(502, "The gateway got no usable answer from the model server."),
        Refusal::Unavailable => {
            server_error(503, "The engine is currently unavailable, please try again later.")
        }
        Refusal::SlowDown => server_error(503, "Slow Down").code("slow_down"),
        Refusal::Overloaded => Envelope::new(529, "overloaded_error", "Overloaded"),
        Refusal::DeadlineExceeded => server_error(504, "The request timed out before the model answered."),
    }
}

fn daily(limit: u64, model: &str) -> Envelope {
    let message = format!(
        "Rate limit reached for {model} on requests per day (RPD): Limit {limit}, Used {limit}, Requested 1. \
         Please try again in 7m12s."
    );
    Envelope::new(429, "requests", message).code("rate_limit_exceeded")
}

fn kind(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Requests => "requests",
        Dimension::Tokens => "tokens",
    }
}

fn message(style: RateLimitHeaders, exceeded: &Exceeded, model: &str) -> String {
    let per_minute = match exceeded.dimension {
        Dimension::Requests => "requests per min (RPM)",
        Dimension::Tokens => "tokens per min (TPM)",
    };
    let Exceeded { reading, requested, wait, .. } = exceeded;
    match wait {
        None => format!(
            "Request too large for {model} on {per_minute}: Limit {}, Requested {requested}.",
            reading.per_minute
        ),
        Some(wait) if style == RateLimitHeaders::Honest => format!(
            "Rate limit reached for {model} on {per_minute}: Limit {}, Used {}, Requested {requested}. \
             Please try again in {}.",
            reading.per_minute,
            whole(reading.used),
            go_duration(*wait)
        ),
        Some(_) => format!("Rate limit reached for {model}. Please try again later."),
    }
}

/// The header that says when to come back.
pub(in crate::dialect) fn retry(
    style: RetryAfter,
    wait: Duration,
    now: SystemTime,
) -> Option<(HeaderName, HeaderValue)> {
    let after = HeaderName::from_static("retry-after");
    let seconds = rounded_up(wait, 1_000);
    match style {
        RetryAfter::None => None,
        RetryAfter::Seconds => Some((after, seconds.into())),
        RetryAfter::Milliseconds => {
            Some((HeaderName::from_static("retry-after-ms"), rounded_up(wait, 1).into()))
        }
        // An HTTP date has whole seconds: one more makes up for what is cut off.
        RetryAfter::HttpDate => {
            Some((after, value(&httpdate::fmt_http_date(now + Duration::from_secs(seconds + 1)))))
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;
    use crate::{dialect::RequestId, limit::LimitSettings};

    fn tell(refusal: &Refusal, limits: &LimitSettings) -> (HeaderMap, serde_json::Value) {
        let uri = http::Uri::from_static("/v1/chat/completions");
        let id = RequestId { seed: 0, sequence: 0 };
        let context = Context { uri: &uri, question: None, limits, id, now: SystemTime::UNIX_EPOCH };
        let told = told(refusal, &context);
        (told.headers, serde_json::from_slice(&told.body).unwrap())
    }

    #[test]
    fn the_envelope_always_has_its_four_keys() {
        for refusal in [Refusal::Missing("messages"), Refusal::Overloaded, Refusal::MissingKey] {
            let (_, body) = tell(&refusal, &LimitSettings::default());
            let error = body["error"].as_object().unwrap();
            let mut keys: Vec<&str> = error.keys().map(String::as_str).collect();
            keys.sort_unstable();
            assert_eq!(keys, ["code", "message", "param", "type"]);
        }
    }

    #[test]
    fn each_style_says_when_to_come_back_and_never_too_early() {
        let come_back = |retry_after, name: &str| {
            let limits = LimitSettings { retry_after, ..Default::default() };
            let exceeded = Exceeded::requests(500, Duration::from_micros(1_200_300));
            let (headers, _) = tell(&Refusal::RateLimited(exceeded), &limits);
            headers.get(name).map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(come_back(RetryAfter::None, "retry-after"), None);
        assert_eq!(come_back(RetryAfter::Seconds, "retry-after").as_deref(), Some("2"));
        assert_eq!(come_back(RetryAfter::Milliseconds, "retry-after-ms").as_deref(), Some("1201"));
        let date = come_back(RetryAfter::HttpDate, "retry-after");
        assert_eq!(date.as_deref(), Some("Thu, 01 Jan 1970 00:00:03 GMT"));
    }

    #[test]
    fn a_hidden_limit_is_not_given_away_by_the_message() {
        let says = |headers| {
            let limits = LimitSettings { headers, ..Default::default() };
            let exceeded = Exceeded::requests(500, Duration::from_millis(120));
            tell(&Refusal::RateLimited(exceeded), &limits).1.to_string()
        };
        assert!(!says(RateLimitHeaders::None).contains("500"));
        let honest = says(RateLimitHeaders::Honest);
        assert!(honest.contains("Limit 500, Used 500, Requested 1. Please try again in 120ms."), "{honest}");
    }
}
