//! Refusals of Gemini, as `google.rpc.Status`, alone and in the array of the OpenAI-compatible endpoint.

use super::*;

const GENERATE_CONTENT: Dialect =
    Dialect::new(ProviderKind::Gemini, Format::Prompts, Endpoint::ChatCompletions);

/// A 429 with these quotas, each with its id, metric and value, as the service words it (RooCodeInc/Roo-Code#3883).
fn quota_failure(violations: &[(&str, &str, &str)], delay: &str) -> String {
    let violations: Vec<_> = violations
        .iter()
        .map(|(id, metric, value)| {
            serde_json::json!({
                "quotaMetric": format!("generativelanguage.googleapis.com/{metric}"),
                "quotaId": id,
                "quotaDimensions": {"location": "global", "model": "gemini-2.5-flash"},
                "quotaValue": value,
            })
        })
        .collect();
    serde_json::json!({"error": {
        "code": 429,
        "message": "You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.",
        "status": "RESOURCE_EXHAUSTED",
        "details": [
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": violations},
            {"@type": "type.googleapis.com/google.rpc.Help", "links": [{"description": "Learn more about Gemini API quotas", "url": "https://ai.google.dev/gemini-api/docs/rate-limits"}]},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
        ],
    }})
    .to_string()
}

const REQUESTS_A_MINUTE: (&str, &str, &str) =
    ("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "generate_content_free_tier_requests", "10");
const TOKENS_A_MINUTE: (&str, &str, &str) = (
    "GenerateContentInputTokensPerModelPerMinute-FreeTier",
    "generate_content_free_tier_input_token_count",
    "250000",
);
const REQUESTS_A_DAY: (&str, &str, &str) =
    ("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "generate_content_free_tier_requests", "250");

fn check_alone_and_in_an_array(rows: &[(u16, &str, &str)]) {
    check(ProviderKind::Gemini, rows);
    for (status, body, expected) in rows {
        check(ProviderKind::Gemini, &[(*status, &format!("[{body}]"), *expected)]);
    }
}

#[test]
fn refusals_of_a_line_and_of_an_account_have_their_consequences() {
    check_alone_and_in_an_array(&[
        (
            400,
            r#"{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"x\": Cannot find field.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"description":"Cannot find field."}]}]}}"#,
            "failed INVALID_ARGUMENT",
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
            "failed INVALID_ARGUMENT",
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com","metadata":{"service":"generativelanguage.googleapis.com"}}]}}"#,
            "blocked CredentialsRefused",
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"API key expired. Please renew the API key.","status":"INVALID_ARGUMENT"}}"#,
            "blocked CredentialsRefused",
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}"#,
            "blocked CredentialsRefused",
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"Gemini API free tier is not available in your country. Please enable billing on your project in Google AI Studio.","status":"FAILED_PRECONDITION"}}"#,
            "blocked BillingOrZeroQuota",
        ),
        (
            401,
            r#"{"error":{"code":401,"message":"Request had invalid authentication credentials.","status":"UNAUTHENTICATED"}}"#,
            "blocked CredentialsRefused",
        ),
        (
            402,
            r#"{"error":{"code":402,"message":"Your Prepay credit balance is depleted.","status":"RESOURCE_EXHAUSTED"}}"#,
            "blocked BillingOrZeroQuota",
        ),
        (
            403,
            r#"{"error":{"code":403,"message":"Your API key was reported as leaked. Please use another API key.","status":"PERMISSION_DENIED"}}"#,
            "blocked CredentialsRefused",
        ),
        (
            403,
            r#"{"error":{"code":403,"message":"This API method requires billing to be enabled.","status":"PERMISSION_DENIED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"BILLING_DISABLED","domain":"googleapis.com"}]}}"#,
            "blocked BillingOrZeroQuota",
        ),
        (
            404,
            r#"{"error":{"code":404,"message":"models/gemini-none is not found for API version v1beta, or is not supported for generateContent.","status":"NOT_FOUND"}}"#,
            "failed NOT_FOUND",
        ),
    ]);
}

#[test]
fn refusals_for_the_rate_and_by_the_server_have_their_consequences() {
    check_alone_and_in_an_array(&[
        (
            429,
            r#"{"error":{"code":429,"message":"Resource has been exhausted (e.g. check quota).","status":"RESOURCE_EXHAUSTED"}}"#,
            "throttled None None",
        ),
        (
            429,
            r#"{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.\n* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 0, model: gemini-2.5-pro\nPlease retry in 26.5s.","status":"RESOURCE_EXHAUSTED"}}"#,
            "blocked BillingOrZeroQuota",
        ),
        (
            429,
            r#"{"error":{"code":429,"message":"Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to manage your project and billing.","status":"RESOURCE_EXHAUSTED"}}"#,
            "blocked BillingOrZeroQuota",
        ),
        (
            429,
            r#"{"error":{"code":429,"message":"Your project has exceeded its monthly spending cap. Please go to AI Studio at https://ai.studio/spend","status":"RESOURCE_EXHAUSTED"}}"#,
            "blocked BillingOrZeroQuota",
        ),
        (
            499,
            r#"{"error":{"code":499,"message":"The operation was cancelled.","status":"CANCELLED"}}"#,
            "retry CANCELLED",
        ),
        (
            500,
            r#"{"error":{"code":500,"message":"An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting","status":"INTERNAL"}}"#,
            "retry INTERNAL",
        ),
        (
            503,
            r#"{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}"#,
            "overloaded",
        ),
        (
            504,
            r#"{"error":{"code":504,"message":"Deadline expired before operation could complete.","status":"DEADLINE_EXCEEDED"}}"#,
            "retry DEADLINE_EXCEEDED",
        ),
    ]);
    check(ProviderKind::Gemini, &[(502, "<html>502</html>", "retry http_502")]);
}

#[test]
fn a_quota_is_told_by_its_id_and_its_value() {
    for (violations, expected) in [
        (vec![REQUESTS_A_MINUTE], "throttled Some(Requests) Some(26s)"),
        (vec![TOKENS_A_MINUTE], "throttled Some(InputTokens) Some(26s)"),
        // The delay of a quota per day is that of a minute: it says nothing about the day.
        (vec![REQUESTS_A_DAY], "blocked DayQuotaExhausted until midnight"),
        (
            vec![REQUESTS_A_DAY, REQUESTS_A_MINUTE, TOKENS_A_MINUTE],
            "blocked DayQuotaExhausted until midnight",
        ),
        (vec![(REQUESTS_A_MINUTE.0, REQUESTS_A_MINUTE.1, "0")], "blocked BillingOrZeroQuota"),
        (vec![(REQUESTS_A_DAY.0, REQUESTS_A_DAY.1, "0")], "blocked BillingOrZeroQuota"),
    ] {
        check(ProviderKind::Gemini, &[(429, &quota_failure(&violations, "26s"), expected)]);
    }
}

#[test]
fn the_quotas_of_a_minute_are_hints() {
    let hints =
        hints_in(GENERATE_CONTENT, answer(429, &quota_failure(&[TOKENS_A_MINUTE, REQUESTS_A_MINUTE], "26s")));
    let a_minute = |limit| Hint { limit: Some(limit), period: Some(Period::Minute), ..Hint::default() };
    assert_eq!((hints.requests, hints.input_tokens), (a_minute(10), a_minute(250_000)));
    assert_eq!((hints.tokens, hints.output_tokens), (Hint::default(), Hint::default()));
}

#[test]
fn details_that_are_not_understood_hide_no_others() {
    let body = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[7,{"violations":"none"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.5s"}]}}"#;
    check(ProviderKind::Gemini, &[(429, body, "throttled None Some(1.5s)")]);
}

#[test]
fn answers_to_prompts_are_judged_by_how_they_ended() {
    for (body, expected) in [
        (
            r#"{"candidates":[{"content":{"parts":[{"text":"yes"}]},"finishReason":"MAX_TOKENS"}]}"#,
            "succeeded",
        ),
        (r#"{"candidates":[{"content":{},"finishReason":"MAX_TOKENS"}]}"#, "failed no_text"),
        (r#"{"candidates":[{"finishReason":"SAFETY"}]}"#, "failed content_filter"),
        (r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#, "failed content_filter"),
        (
            r#"{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}"#,
            "retry UNAVAILABLE overloaded",
        ),
        ("[]", "retry invalid_response"),
    ] {
        assert_eq!(summary_in(GENERATE_CONTENT, &Ok(answer(200, body))), expected, "{body}");
    }
}
