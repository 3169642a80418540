//! Refusals of Anthropic.

use super::*;

const MESSAGES: Dialect = Dialect::new(ProviderKind::Anthropic, Format::Prompts, Endpoint::ChatCompletions);

#[test]
fn refusals_of_a_line_and_of_an_account_have_their_consequences() {
    check(
        ProviderKind::Anthropic,
        &[
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: Field required"},"request_id":"req_1"}"#,
                "failed invalid_request_error",
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}"#,
                "failed invalid_request_error",
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"Output blocked by content filtering policy"}}"#,
                "failed content_filter",
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}}"#,
                "blocked BillingOrZeroQuota",
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}}"#,
                "blocked BillingOrZeroQuota until 2026-12-01T00:00:00Z",
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified workspace API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}}"#,
                "blocked BillingOrZeroQuota until 2026-12-01T00:00:00Z",
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"This organization has been disabled."}}"#,
                "blocked CredentialsRefused",
            ),
            (
                401,
                r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"},"request_id":"req_1"}"#,
                "blocked CredentialsRefused",
            ),
            (
                402,
                r#"{"type":"error","error":{"type":"billing_error","message":"There's an issue with your billing or payment information."}}"#,
                "blocked BillingOrZeroQuota",
            ),
            (
                403,
                r#"{"type":"error","error":{"type":"permission_error","message":"Your API key does not have permission to use the specified resource."}}"#,
                "blocked CredentialsRefused",
            ),
            (
                404,
                r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-none"},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}"#,
                "failed not_found_error",
            ),
            (
                413,
                r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
                "failed request_too_large",
            ),
        ],
    );
}

#[test]
fn refusals_for_the_rate_and_by_the_server_have_their_consequences() {
    check(
        ProviderKind::Anthropic,
        &[
            (
                429,
                r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 50 requests per minute (org: 9e05, model: claude-haiku-4-5-20251001)."}}"#,
                "throttled Some(Requests) None",
            ),
            (
                429,
                r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 30,000 input tokens per minute (org: 679a, model: claude-opus-4-6). For details, refer to: https://docs.claude.com/en/api/rate-limits."}}"#,
                "throttled Some(InputTokens) None",
            ),
            (
                429,
                r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 8,000 output tokens per minute."}}"#,
                "throttled Some(OutputTokens) None",
            ),
            (
                429,
                r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's (8d86) maximum usage increase rate for input tokens per minute. Please scale up your input tokens usage more gradually to stay within the acceleration limit."}}"#,
                "slow down",
            ),
            (
                429,
                r#"{"type":"error","error":{"type":"rate_limit_error","message":"Number of concurrent connections has exceeded your rate limit. Please try again later or contact sales."}}"#,
                "throttled None None",
            ),
            (
                429,
                r#"{"type":"error","error":{"type":"rate_limit_error","message":"Number of request tokens has exceeded your daily rate limit (https://docs.anthropic.com/en/api/rate-limits)."}}"#,
                "blocked DayQuotaExhausted",
            ),
            (
                429,
                r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 0 input tokens per minute."}}"#,
                "blocked BillingOrZeroQuota",
            ),
            (
                429,
                r#"{"type":"error","error":{"type":"rate_limit_error","message":"Spend limit reached.","details":{"error_code":"enforced_spend_limit_reached"}}}"#,
                "blocked BillingOrZeroQuota",
            ),
            (
                500,
                r#"{"type":"error","error":{"type":"api_error","message":"Internal server error"}}"#,
                "retry api_error",
            ),
            (
                504,
                r#"{"type":"error","error":{"type":"timeout_error","message":"Request timeout"}}"#,
                "retry timeout_error",
            ),
            (
                529,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}"#,
                "retry overloaded_error overloaded",
            ),
            (520, "<html>cloudflare</html>", "retry http_520"),
        ],
    );
}

#[test]
fn the_limit_in_the_text_is_a_hint_in_each_of_its_wordings() {
    for words in [
        "This request would exceed your organization's rate limit of 30,000 input tokens per minute.",
        "This request would exceed the rate limit for your organization (7f54) of 30,000 input tokens per minute. For details, refer to: https://docs.anthropic.com/en/api/rate-limits.",
    ] {
        let body = format!(r#"{{"type":"error","error":{{"type":"rate_limit_error","message":"{words}"}}}}"#);
        let mut refusal = answer(429, &body);
        refusal.retry_after = Some(Duration::from_secs(7));
        refusal.hints.requests.limit = Some(50);
        refusal.hints.input_tokens.limit = Some(40_000);
        assert_eq!(summary_in(MESSAGES, &Ok(refusal.clone())), "throttled Some(InputTokens) Some(7s)");
        let hints = hints_in(MESSAGES, refusal);
        let stated = Hint { limit: Some(30_000), period: Some(Period::Minute), ..Hint::default() };
        assert_eq!(hints.input_tokens, stated);
        assert_eq!(hints.requests.limit, Some(50), "what only a header says stays");
    }
}

#[test]
fn answers_to_prompts_are_judged_by_how_they_ended() {
    for (body, expected) in [
        (r#"{"content":[{"type":"text","text":"yes"}],"stop_reason":"max_tokens"}"#, "succeeded"),
        (r#"{"content":[],"stop_reason":"refusal"}"#, "failed content_filter"),
        (r#"{"content":[],"stop_reason":"end_turn"}"#, "failed no_text"),
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            "retry overloaded_error overloaded",
        ),
        ("<html>", "retry invalid_response"),
    ] {
        assert_eq!(summary_in(MESSAGES, &Ok(answer(200, body))), expected, "{body}");
    }
}
