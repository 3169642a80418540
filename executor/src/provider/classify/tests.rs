//! The table of answers, with the bodies that providers published or were seen to send.

mod anthropic;
mod azure_openai;
mod gemini;

use bytes::Bytes;
use penstock_batchfile::{Endpoint, Format};
use penstock_job::spec::ProviderKind;
use penstock_rate::{Dimension, Hint, Period};

use super::*;

/// Lines of OpenAI at a server that speaks its API.
const OPENAI: Dialect =
    Dialect::new(ProviderKind::OpenAiCompatible, Format::OpenAi, Endpoint::ChatCompletions);

fn answer(status: u16, body: &str) -> Answer {
    Answer {
        status: StatusCode::from_u16(status).unwrap(),
        request_id: None,
        retry_after: None,
        hints: Hints::default(),
        body: Bytes::copy_from_slice(body.as_bytes()),
        latency: Duration::ZERO,
    }
}

/// The same for prompts.
const PROMPTS: Dialect =
    Dialect::new(ProviderKind::OpenAiCompatible, Format::Prompts, Endpoint::ChatCompletions);

/// Checks rows of a provider's table for both formats, whose refusals are the same.
fn check(kind: ProviderKind, rows: &[(u16, &str, &str)]) {
    for (status, body, expected) in rows {
        for format in [Format::Prompts, Format::OpenAi] {
            let dialect = Dialect::new(kind, format, Endpoint::ChatCompletions);
            assert_eq!(summary_in(dialect, &Ok(answer(*status, body))), *expected, "{status} {body}");
        }
    }
}

/// One word and what matters beside it.
fn summary(outcome: &Result<Answer, Failure>) -> String {
    summary_in(OPENAI, outcome)
}

fn summary_in(dialect: Dialect, outcome: &Result<Answer, Failure>) -> String {
    match classify(outcome, dialect) {
        Disposition::Succeeded(_) => "succeeded".to_owned(),
        Disposition::Failed(cause) => format!("failed {}", cause.code),
        Disposition::Retry { cause, after, verdict } => {
            let load = if verdict == Verdict::Lost { "" } else { " overloaded" };
            format!("retry {}{load}{}", cause.code, told(after))
        }
        Disposition::Throttled { after, verdict, .. } => match verdict {
            Verdict::Refused { dimension, retry_after, .. } => {
                assert_eq!(retry_after, after, "the learner hears of the same wait");
                format!("throttled {dimension:?} {after:?}")
            }
            Verdict::SlowDown { .. } => format!("slow down{}", told(after)),
            Verdict::Overloaded { .. } => format!("overloaded{}", told(after)),
            other => panic!("{other:?} is no reason to come back for nothing"),
        },
        Disposition::Blocked { perhaps_alone: true, reason, .. } => {
            format!("blocked {reason}, or failed alone")
        }
        Disposition::Blocked { reason, resumes, .. } => match resumes {
            Resumption::Unknown => format!("blocked {reason}"),
            Resumption::After(wait) => format!("blocked {reason} after {wait:?}"),
            Resumption::At(at) => format!("blocked {reason} until {}", humantime::format_rfc3339(at)),
            Resumption::PacificMidnight => format!("blocked {reason} until midnight"),
        },
    }
}

fn told(after: Option<Duration>) -> String {
    after.map(|after| format!(" after {after:?}")).unwrap_or_default()
}

/// What a refusal for the rate says about the limits.
fn hints_in(dialect: Dialect, refusal: Answer) -> Hints {
    match classify(&Ok(refusal), dialect) {
        Disposition::Throttled { verdict: Verdict::Refused { hints, .. }, .. } => hints,
        other => panic!("{other:?}"),
    }
}

#[test]
fn refusals_of_openai() {
    for (status, body, expected) in [
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            "failed context_length_exceeded",
        ),
        (
            400,
            r#"{"error":{"message":"Billing hard limit has been reached","type":"invalid_request_error","param":null,"code":"billing_hard_limit_reached"}}"#,
            "blocked BillingOrZeroQuota",
        ),
        (
            401,
            r#"{"error":{"message":"Incorrect API key provided: sk-abc***xyz.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
            "blocked CredentialsRefused",
        ),
        (
            403,
            r#"{"error":{"message":"Country, region, or territory not supported","type":"request_forbidden","param":null,"code":"unsupported_country_region_territory"}}"#,
            "blocked CredentialsRefused",
        ),
        (
            403,
            r#"{"error":{"message":"Project `p` does not have access to model `m`","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#,
            "failed model_not_found",
        ),
        (
            404,
            r#"{"error":{"message":"The model `x` does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#,
            "failed model_not_found",
        ),
        (
            429,
            r#"{"error":{"message":"Rate limit reached for gpt-4 in organization org-x on tokens per min (TPM): Limit 10000, Used 8554, Requested 3082. Please try again in 9.816s. Visit https://platform.openai.com/account/rate-limits to learn more.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
            "throttled Some(Tokens) Some(9.816s)",
        ),
        (
            429,
            r#"{"error":{"message":"Rate limit reached for gpt-4 in organization org-x on requests per min (RPM): Limit 500, Used 500, Requested 1. Please try again in 120ms.","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#,
            "throttled Some(Requests) Some(120ms)",
        ),
        (
            429,
            r#"{"error":{"message":"Rate limit reached for gpt-4 in organization org-x on requests per day (RPD): Limit 200, Used 200, Requested 1. Please try again in 7m12s.","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#,
            "blocked DayQuotaExhausted after 432s",
        ),
        (
            429,
            r#"{"error":{"message":"Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 30601. The input or output tokens must be reduced in order to run successfully.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
            "failed rate_limit_exceeded",
        ),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
            "blocked BillingOrZeroQuota",
        ),
        (
            429,
            r#"{"error":{"message":"Rate limit reached for m on tokens per min (TPM): Limit 0, Used 0, Requested 10.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
            "blocked BillingOrZeroQuota",
        ),
        (
            500,
            r#"{"error":{"message":"The server had an error while processing your request","type":"server_error","param":null,"code":null}}"#,
            "retry http_500",
        ),
        (
            503,
            r#"{"error":{"message":"Slow Down","type":"server_error","param":null,"code":null}}"#,
            "slow down",
        ),
        (
            503,
            r#"{"error":{"message":"The engine is currently overloaded, please try again later","type":"server_error","param":null,"code":null}}"#,
            "overloaded",
        ),
        (
            429,
            r#"{"error":{"message":"That model is currently overloaded with other requests. You can retry your request, or contact us through our help center at help.openai.com if the error persists.","type":"server_error","param":null,"code":null}}"#,
            "overloaded",
        ),
    ] {
        assert_eq!(summary(&Ok(answer(status, body))), expected, "{status} {body}");
    }
}

#[test]
fn refusals_of_gateways_and_self_hosted_servers() {
    for (status, body, expected) in [
        // vLLM, old and new
        (
            400,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","param":null,"code":400}"#,
            "failed http_400",
        ),
        (
            404,
            r#"{"error":{"message":"The model `x` does not exist.","type":"NotFoundError","param":"model","code":404}}"#,
            "failed http_404",
        ),
        (404, r#"{"detail":"Not Found"}"#, "failed http_404"),
        (
            500,
            r#"{"object":"error","message":"EngineCore encountered an issue","type":"InternalServerError","param":null,"code":500}"#,
            "retry http_500",
        ),
        // vLLM with an end to its queue, as quoted with vllm-project/vllm#18826
        (
            503,
            r#"{"error":{"message":"Request queue full.","type":"ServiceUnavailableError","param":null,"code":503}}"#,
            "overloaded",
        ),
        (
            503,
            r#"{"error":{"message":"Request queue reached max pending tokens limit.","type":"ServiceUnavailableError","param":null,"code":503}}"#,
            "overloaded",
        ),
        (
            503,
            r#"{"error":{"message":"The service is not ready.","type":"ServiceUnavailableError","param":null,"code":503}}"#,
            "retry http_503",
        ),
        // Text Generation Inference, Moonshot
        (429, r#"{"error":"Model is overloaded","error_type":"overloaded"}"#, "overloaded"),
        (
            429,
            r#"{"error":{"message":"The engine is currently overloaded, please try again later","type":"engine_overloaded_error"}}"#,
            "overloaded",
        ),
        // Groq
        (
            429,
            r#"{"error":{"message":"Rate limit reached for model `llama-3.3-70b-versatile` in organization `org_x` service tier `on_demand` on tokens per day (TPD): Limit 100000, Used 99336, Requested 1613. Please try again in 13m39.936s.","type":"tokens","code":"rate_limit_exceeded"}}"#,
            "blocked DayQuotaExhausted after 819.936s",
        ),
        // Gemini through its OpenAI-compatible endpoint
        (
            429,
            r#"[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details. Please retry in 26.5s.","status":"RESOURCE_EXHAUSTED"}}]"#,
            "throttled None Some(26.5s)",
        ),
        (
            400,
            r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#,
            "blocked CredentialsRefused",
        ),
        // OpenRouter, DeepSeek
        (402, r#"{"error":{"code":402,"message":"Insufficient credits"}}"#, "blocked BillingOrZeroQuota"),
        (
            403,
            r#"{"error":{"code":403,"message":"Your chosen model requires moderation and your input was flagged"}}"#,
            "failed http_403",
        ),
        (
            429,
            r#"{"error":{"code":429,"message":"Rate limit exceeded: free-models-per-day"}}"#,
            "blocked DayQuotaExhausted",
        ),
        (
            429,
            r#"{"error":{"code":429,"message":"Rate limit exceeded: free-models-per-day","metadata":{"headers":{"X-RateLimit-Limit":"50","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1795305600000"}}}}"#,
            "blocked DayQuotaExhausted until 2026-11-22T00:00:00Z",
        ),
        // GitHub's models
        (
            429,
            r#"{"error":{"code":"RateLimitReached","message":"Rate limit of 150 per 86400s exceeded for UserByModelByDay. Please wait 55646 seconds before retrying."}}"#,
            "blocked DayQuotaExhausted after 55646s",
        ),
        (
            429,
            r#"{"error":{"code":"RateLimitReached","message":"Rate limit of 15 per 60s exceeded for UserByModelByMinute. Please wait 32 seconds before retrying."}}"#,
            "throttled None Some(32s)",
        ),
        // nginx, Cloudflare
        (413, "<html><h1>413 Request Entity Too Large</h1></html>", "failed http_413"),
        (502, "<html><h1>502 Bad Gateway</h1></html>", "retry http_502"),
        (520, "", "retry http_520"),
        (301, "", "failed http_301"),
    ] {
        assert_eq!(summary(&Ok(answer(status, body))), expected, "{status} {body}");
    }
}

#[test]
fn a_filter_that_withholds_an_answer_to_a_prompt_fails_its_line_with_a_word_of_its_own() {
    let body = r#"{"choices":[{"message":{"content":"half"},"finish_reason":"content_filter"}]}"#;
    assert_eq!(summary_in(PROMPTS, &Ok(answer(200, body))), "failed content_filter");
    assert_eq!(summary(&Ok(answer(200, body))), "succeeded", "the body tells");
}

#[test]
fn each_status_without_a_body_has_its_class() {
    for status in 100..=999_u16 {
        let expected = match status {
            200..=299 => "retry invalid_response".to_owned(),
            401 | 403 => "blocked CredentialsRefused".to_owned(),
            402 => "blocked BillingOrZeroQuota".to_owned(),
            429 => "throttled None None".to_owned(),
            529 => "retry http_529 overloaded".to_owned(),
            408 | 409 | 425 | 500..=599 => format!("retry http_{status}"),
            _ => format!("failed http_{status}"),
        };
        assert_eq!(summary(&Ok(answer(status, ""))), expected);
    }
}

#[test]
fn a_success_is_judged_by_its_body() {
    for (body, expected) in [
        (r#"{"choices":[]}"#, "succeeded"),
        (r#"{"choices":["#, "retry invalid_response"),
        ("<html>", "retry invalid_response"),
        (r#"{"error":{"code":429,"message":"Rate limit exceeded"}}"#, "throttled None None"),
        (r#"{"error":{"code":400,"message":"bad"}}"#, "failed http_400"),
        (r#"{"error":{"code":"invalid_prompt","message":"bad"}}"#, "failed invalid_prompt"),
        (r#"{"error":{"code":"server_error","message":"sorry"}}"#, "retry server_error"),
        (r#"{"error":"upstream went away"}"#, "retry http_500"),
    ] {
        assert_eq!(summary(&Ok(answer(200, body))), expected, "{body}");
    }
}

#[test]
fn an_answer_to_a_prompt_without_text_fails_and_says_what_helps() {
    let cut = Ok(answer(200, r#"{"choices":[{"message":{"content":null},"finish_reason":"length"}]}"#));
    match classify(&cut, PROMPTS) {
        Disposition::Failed(cause) => {
            assert_eq!(cause.code, "no_text");
            assert!(cause.message.contains("--max-output-tokens"), "{}", cause.message);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_missing_answer_is_retried_and_one_that_is_too_large_is_not() {
    for (kind, expected) in [
        (FailureKind::Connect, "retry connection_failed"),
        (FailureKind::Timeout, "retry timeout"),
        (FailureKind::Lost, "retry connection_lost"),
        (FailureKind::Truncated, "retry response_truncated"),
        (FailureKind::TooLarge, "failed response_too_large"),
    ] {
        let failure = Failure { kind, detail: "detail".to_owned(), latency: Duration::ZERO };
        assert_eq!(summary(&Err(failure)), expected);
    }
}

#[test]
fn headers_go_before_the_text_and_the_text_before_headers_of_another_limit() {
    let body = r#"{"error":{"message":"on tokens per min (TPM): Limit 10000, Used 8554, Requested 3082. Please try again in 9.816s.","type":"tokens"}}"#;
    let mut refusal = answer(429, body);
    refusal.retry_after = Some(Duration::from_secs(11));
    refusal.hints.tokens.limit = Some(1_500_000);
    refusal.hints.requests.limit = Some(500);
    assert_eq!(summary(&Ok(refusal.clone())), "throttled Some(Tokens) Some(11s)");
    let hints = hints_in(OPENAI, refusal);
    let period = Some(Period::Minute);
    assert_eq!(hints.tokens, Hint { limit: Some(10_000), remaining: Some(1_446), reset: None, period });
    assert_eq!(hints.requests.limit, Some(500));
}

#[test]
fn the_text_names_the_limit_that_was_exceeded_and_its_period() {
    for (words, dimension, period) in [
        ("requests per min (RPM)", Dimension::Requests, Some(Period::Minute)),
        ("requests per hour", Dimension::Requests, Some(Period::Hour)),
        ("input tokens per minute", Dimension::InputTokens, Some(Period::Minute)),
        ("output tokens per minute", Dimension::OutputTokens, Some(Period::Minute)),
        ("tokens per second", Dimension::Tokens, Some(Period::Second)),
        ("request rate limits", Dimension::Requests, None),
    ] {
        let body = format!(r#"{{"error":{{"message":"Rate limit reached on {words}: Limit 7, Used 7."}}}}"#);
        let expected = Hint { limit: Some(7), remaining: Some(0), reset: None, period };
        assert_eq!(hints_in(OPENAI, answer(429, &body)).of(dimension), expected, "{words}");
    }
}

#[test]
fn a_server_that_asks_for_patience_gets_it_within_reason_and_costs_no_attempt() {
    let mut unavailable = answer(503, "");
    unavailable.retry_after = Some(Duration::from_secs(20));
    assert_eq!(summary(&Ok(unavailable.clone())), "overloaded after 20s");
    unavailable.retry_after = Some(Duration::from_hours(5));
    assert_eq!(summary(&Ok(unavailable)), "overloaded after 600s");
    let mut defective = answer(502, "");
    defective.retry_after = Some(Duration::from_secs(20));
    assert_eq!(summary(&Ok(defective)), "retry http_502 after 20s");
}
