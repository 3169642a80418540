//! Anthropic's dialect.

use penstock_simulator::{Fault, OutputLength, ProviderSettings, RetryAfter, Server};
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::client::{always, answered, client, header, limited, start};

fn request(server: &Server, body: &Value) -> RequestBuilder {
    client()
        .post(format!("{}/v1/messages", server.origin()))
        .header("anthropic-version", "2023-06-01")
        .body(body.to_string())
}

fn message(server: &Server, most_tokens: u32) -> RequestBuilder {
    let body = json!({
        "model": "claude-sonnet-4-5",
        "max_tokens": most_tokens,
        "system": "Be brief.",
        "messages": [{ "role": "user", "content": "Where is my parcel?" }],
    });
    request(server, &body)
}

#[tokio::test]
async fn a_message_is_answered_with_a_block_of_text_and_its_usage() {
    let server = start(ProviderSettings::default()).await;
    let (status, headers, body) = answered(message(&server, 1_000)).await;
    assert_eq!(status, 200);
    assert!(header(&headers, "request-id").starts_with("req_"));
    assert!(body["id"].as_str().is_some_and(|id| id.starts_with("msg_")));
    assert_eq!((&body["type"], &body["role"]), (&json!("message"), &json!("assistant")));
    assert_eq!(body["content"][0]["type"], "text");
    assert!(body["content"][0]["text"].as_str().is_some_and(|text| !text.is_empty()));
    assert_eq!((&body["stop_reason"], &body["stop_sequence"]), (&json!("end_turn"), &Value::Null));
    assert_eq!(body["usage"]["input_tokens"], 7);
    assert!(body["usage"]["output_tokens"].as_u64().is_some_and(|tokens| tokens > 0));
    let (_, _, body) = answered(message(&server, 3)).await;
    assert_eq!((&body["stop_reason"], &body["usage"]["output_tokens"]), (&json!("max_tokens"), &json!(3)));
    server.shutdown().await;
}

#[tokio::test]
async fn a_refusal_of_the_model_has_no_content_and_thinking_is_output() {
    let server = start(always(Fault::FilteredAnswer)).await;
    let (status, _, body) = answered(message(&server, 9)).await;
    assert_eq!((status, &body["stop_reason"], &body["content"]), (200, &json!("refusal"), &json!([])));
    let output_length = OutputLength { thought_tokens: 50, ..OutputLength::default() };
    server.update(ProviderSettings { output_length, ..Default::default() }).unwrap();
    let (_, _, body) = answered(message(&server, 53)).await;
    assert_eq!((&body["usage"]["output_tokens"], &body["stop_reason"]), (&json!(53), &json!("max_tokens")));
    server.shutdown().await;
}

#[tokio::test]
async fn what_a_request_needs_is_asked_for() {
    let server = start(ProviderSettings { api_keys: vec!["right".to_owned()], ..Default::default() }).await;
    let bare = client().post(format!("{}/v1/messages", server.origin())).body("{}");
    let messages = json!([{ "role": "user", "content": "Hi" }]);
    let without =
        request(&server, &json!({ "model": "c", "messages": messages })).header("x-api-key", "right");
    for (request, expected, kind, words) in [
        (bare, 400, "invalid_request_error", "anthropic-version: header is required"),
        (without, 400, "invalid_request_error", "max_tokens: Field required"),
        (message(&server, 9), 401, "authentication_error", "x-api-key header is required"),
        (message(&server, 9).header("x-api-key", "wrong"), 401, "authentication_error", "invalid x-api-key"),
        (
            message(&server, 9).bearer_auth("right"),
            401,
            "authentication_error",
            "x-api-key header is required",
        ),
    ] {
        let (status, headers, body) = answered(request).await;
        let error = json!({ "type": kind, "message": words });
        assert_eq!((status, &body["type"], &body["error"]), (expected, &json!("error"), &error));
        assert_eq!(body["request_id"], header(&headers, "request-id"));
    }
    assert_eq!(answered(message(&server, 9).header("x-api-key", "right")).await.0, 200);
    server.shutdown().await;
}

#[tokio::test]
async fn each_error_has_its_type() {
    let server = start(ProviderSettings::default()).await;
    for (fault, expected, kind, words) in [
        (Fault::InvalidRequest, 400, "invalid_request_error", "must be non-empty"),
        (Fault::RejectedPrompt, 400, "invalid_request_error", "content filtering policy"),
        (Fault::InsufficientQuota, 400, "invalid_request_error", "credit balance is too low"),
        (Fault::SpendLimit, 400, "invalid_request_error", "You will regain access on 20"),
        (Fault::Unauthorized, 401, "authentication_error", "invalid x-api-key"),
        (Fault::Forbidden, 403, "permission_error", "permission"),
        (Fault::ModelNotFound, 404, "not_found_error", "model: claude-sonnet-4-5"),
        (Fault::RequestTooLarge, 413, "request_too_large", "bytes"),
        (Fault::RateLimited { wait_ms: 10 }, 429, "rate_limit_error", "your account's rate limit"),
        (Fault::SlowDown, 429, "rate_limit_error", "rate limit"),
        (Fault::DayQuota, 429, "rate_limit_error", "daily rate limit"),
        (Fault::ZeroQuota, 429, "rate_limit_error", "rate limit of 0 input tokens per minute"),
        (Fault::InternalError, 500, "api_error", "Internal server error"),
        (Fault::DeadlineExceeded, 504, "timeout_error", "timed out"),
        (Fault::Overloaded, 529, "overloaded_error", "Overloaded"),
    ] {
        server.update(always(fault)).unwrap();
        let (status, headers, body) = answered(message(&server, 9)).await;
        assert_eq!((status, &body["error"]["type"]), (expected, &json!(kind)), "{fault:?}");
        assert!(body["error"]["message"].as_str().unwrap().contains(words), "{body}");
        assert_eq!(headers.get("retry-after"), None);
    }
    for (fault, status) in [(Fault::BadGateway, 502), (Fault::Unavailable, 503)] {
        server.update(always(fault)).unwrap();
        let response = message(&server, 9).send().await.unwrap();
        assert_eq!(response.status().as_u16(), status);
        let body = response.bytes().await.unwrap();
        assert!(serde_json::from_slice::<Value>(&body).is_err(), "the front end sends no JSON");
    }
    server.shutdown().await;
}

#[tokio::test]
async fn limits_are_told_in_its_own_headers() {
    let server = start(limited(Some(1), Some(30_000))).await;
    let (status, headers, _) = answered(message(&server, 100)).await;
    assert_eq!((status, header(&headers, "anthropic-ratelimit-requests-limit")), (200, "1"));
    assert_eq!(header(&headers, "anthropic-ratelimit-requests-remaining"), "0");
    let reset = header(&headers, "anthropic-ratelimit-requests-reset");
    assert!(reset.len() == "2025-08-21T12:41:00Z".len() && reset.ends_with('Z'), "{reset}");
    for family in ["tokens", "input-tokens", "output-tokens"] {
        assert_eq!(header(&headers, &format!("anthropic-ratelimit-{family}-limit")), "30000");
        assert_eq!(header(&headers, &format!("anthropic-ratelimit-{family}-remaining")), "29893");
    }
    let mut settings = limited(Some(1), Some(30_000));
    settings.limits.retry_after = RetryAfter::Milliseconds;
    server.update(settings).unwrap();
    let (status, headers, body) = answered(message(&server, 100)).await;
    assert_eq!(status, 429);
    assert!(matches!(header(&headers, "retry-after"), "59" | "60"), "{headers:?}");
    let words = body["error"]["message"].as_str().unwrap();
    assert!(words.contains("rate limit of 1 requests per minute"), "{words}");
    server.shutdown().await;
}
