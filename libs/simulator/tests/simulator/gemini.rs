//! Gemini's dialect and its OpenAI-compatible endpoint.

use penstock_simulator::{Fault, OutputLength, ProviderSettings, RetryAfter, Server};
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::client::{always, answered, client, limited, start};

fn generate(server: &Server, most_tokens: u32) -> RequestBuilder {
    let body = json!({
        "systemInstruction": { "parts": [{ "text": "Be brief." }] },
        "contents": [{ "role": "user", "parts": [{ "text": "Where is my parcel?" }] }],
        "generationConfig": { "maxOutputTokens": most_tokens },
    });
    client()
        .post(format!("{}/v1beta/models/gemini-2.5-flash:generateContent", server.origin()))
        .body(body.to_string())
}

fn compatible(server: &Server) -> RequestBuilder {
    let body = json!({ "model": "gemini-2.5-flash", "messages": [{ "role": "user", "content": "Where is my parcel?" }] });
    client().post(format!("{}/v1beta/openai/chat/completions", server.origin())).body(body.to_string())
}

/// The details of an error that have this type.
fn detail<'a>(error: &'a Value, name: &str) -> &'a Value {
    let details = error["details"].as_array().expect("an error with details");
    let is_wanted = |detail: &&Value| detail["@type"] == format!("type.googleapis.com/google.rpc.{name}");
    details.iter().find(is_wanted).expect("a detail of this type")
}

#[tokio::test]
async fn a_prompt_is_answered_with_a_candidate_and_its_usage() {
    let server = start(ProviderSettings::default()).await;
    let (status, _, body) = answered(generate(&server, 1_000)).await;
    assert_eq!(status, 200);
    let candidate = &body["candidates"][0];
    assert!(candidate["content"]["parts"][0]["text"].as_str().is_some_and(|text| !text.is_empty()));
    assert_eq!(
        (&candidate["content"]["role"], &candidate["finishReason"]),
        (&json!("model"), &json!("STOP"))
    );
    let usage = &body["usageMetadata"];
    let count = |name: &str| usage[name].as_u64().unwrap();
    assert_eq!(count("promptTokenCount"), 7);
    assert_eq!(count("totalTokenCount"), 7 + count("candidatesTokenCount"));
    assert_eq!(usage["promptTokensDetails"], json!([{ "modality": "TEXT", "tokenCount": 7 }]));
    assert_eq!(body["modelVersion"], "gemini-2.5-flash");
    assert!(body["responseId"].is_string());
    server.shutdown().await;
}

#[tokio::test]
async fn thinking_counts_and_may_leave_no_text() {
    let output_length = OutputLength { thought_tokens: 20, ..OutputLength::default() };
    let server = start(ProviderSettings { output_length, ..Default::default() }).await;
    let (_, _, body) = answered(generate(&server, 25)).await;
    assert_eq!(body["candidates"][0]["finishReason"], "MAX_TOKENS");
    assert_eq!(body["usageMetadata"]["thoughtsTokenCount"], 20);
    assert_eq!(body["usageMetadata"]["candidatesTokenCount"], 5);
    assert_eq!(body["usageMetadata"]["totalTokenCount"], 32);
    let (_, _, body) = answered(generate(&server, 10)).await;
    assert_eq!(body["candidates"][0]["content"], json!({ "role": "model" }));
    assert_eq!(body["usageMetadata"].get("candidatesTokenCount"), None);
    server.shutdown().await;
}

#[tokio::test]
async fn what_is_held_back_has_a_reason_and_no_content() {
    let server = start(always(Fault::RejectedPrompt)).await;
    let (status, _, body) = answered(generate(&server, 9)).await;
    assert_eq!((status, &body["promptFeedback"]["blockReason"]), (200, &json!("PROHIBITED_CONTENT")));
    assert_eq!((body.get("candidates"), &body["usageMetadata"]["totalTokenCount"]), (None, &json!(7)));
    let (status, _, body) = answered(compatible(&server)).await;
    assert_eq!((status, &body["choices"][0]["finish_reason"]), (200, &json!("content_filter")));
    for (fault, reason) in [(Fault::FilteredAnswer, "SAFETY"), (Fault::RecitedAnswer, "RECITATION")] {
        server.update(always(fault)).unwrap();
        let (status, _, body) = answered(generate(&server, 9)).await;
        let candidate = &body["candidates"][0];
        assert_eq!((status, &candidate["finishReason"]), (200, &json!(reason)));
        assert_eq!(candidate.get("content"), None);
    }
    server.shutdown().await;
}

#[tokio::test]
async fn the_key_is_taken_from_the_header_or_the_url() {
    let settings = ProviderSettings { api_keys: vec!["right".to_owned()], ..Default::default() };
    let server = start(settings).await;
    let url = |key: &str| format!("{}/v1beta/models/g:generateContent?key={key}", server.origin());
    let body = json!({ "contents": [{ "parts": [{ "text": "Hi" }] }] }).to_string();
    for (request, expected, code) in [
        (generate(&server, 9).header("x-goog-api-key", "right"), 200, Value::Null),
        (client().post(url("right")).body(body.clone()), 200, Value::Null),
        (client().post(url("wrong")).body(body), 400, "INVALID_ARGUMENT".into()),
        (generate(&server, 9), 403, "PERMISSION_DENIED".into()),
    ] {
        let (status, _, body) = answered(request).await;
        assert_eq!((status, &body["error"]["status"]), (expected, &code), "{body}");
    }
    let (_, _, body) = answered(generate(&server, 9).header("x-goog-api-key", "wrong")).await;
    assert_eq!(detail(&body["error"], "ErrorInfo")["reason"], "API_KEY_INVALID");
    let (status, _, body) = answered(compatible(&server)).await;
    assert_eq!((status, &body[0]["error"]["status"]), (400, &json!("INVALID_ARGUMENT")));
    assert_eq!(answered(compatible(&server).bearer_auth("right")).await.0, 200);
    server.shutdown().await;
}

#[tokio::test]
async fn each_error_comes_as_a_status_and_from_the_compatible_endpoint_in_an_array() {
    let server = start(ProviderSettings::default()).await;
    for (fault, code, status) in [
        (Fault::InvalidRequest, 400, "INVALID_ARGUMENT"),
        (Fault::RequestTooLarge, 400, "INVALID_ARGUMENT"),
        (Fault::Unauthorized, 400, "INVALID_ARGUMENT"),
        (Fault::Unauthenticated, 401, "UNAUTHENTICATED"),
        (Fault::Forbidden, 403, "PERMISSION_DENIED"),
        (Fault::ModelNotFound, 404, "NOT_FOUND"),
        (Fault::DayQuota, 429, "RESOURCE_EXHAUSTED"),
        (Fault::ZeroQuota, 429, "RESOURCE_EXHAUSTED"),
        (Fault::InsufficientQuota, 429, "RESOURCE_EXHAUSTED"),
        (Fault::SpendLimit, 429, "RESOURCE_EXHAUSTED"),
        (Fault::SlowDown, 429, "RESOURCE_EXHAUSTED"),
        (Fault::InternalError, 500, "INTERNAL"),
        (Fault::Unavailable, 503, "UNAVAILABLE"),
        (Fault::Overloaded, 503, "UNAVAILABLE"),
        (Fault::DeadlineExceeded, 504, "DEADLINE_EXCEEDED"),
    ] {
        server.update(always(fault)).unwrap();
        let (native, _, body) = answered(generate(&server, 9)).await;
        let (compatible, _, bodies) = answered(compatible(&server)).await;
        assert_eq!((native, compatible), (code, code), "{fault:?}");
        assert_eq!(
            (&body["error"]["code"], &body["error"]["status"]),
            (&code.into(), &status.into()),
            "{fault:?}"
        );
        assert_eq!(bodies, json!([body]), "{fault:?}");
    }
    server.update(always(Fault::BadGateway)).unwrap();
    let response = generate(&server, 9).send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), response.headers()["content-type"].to_str().unwrap()),
        (502, "text/html; charset=UTF-8")
    );
    server.shutdown().await;
}

#[tokio::test]
async fn a_quota_is_named_in_the_details() {
    let server = start(limited(Some(1), None)).await;
    assert_eq!(answered(generate(&server, 9)).await.0, 200);
    let (status, headers, body) = answered(generate(&server, 9)).await;
    assert_eq!((status, headers.get("retry-after")), (429, None));
    let error = &body["error"];
    let violation = &detail(error, "QuotaFailure")["violations"][0];
    assert_eq!(violation["quotaId"], "GenerateRequestsPerMinutePerProjectPerModel-FreeTier");
    assert_eq!(
        (&violation["quotaValue"], &violation["quotaDimensions"]["model"]),
        (&json!("1"), &json!("gemini-2.5-flash"))
    );
    assert!(matches!(detail(error, "RetryInfo")["retryDelay"].as_str(), Some("59s" | "60s")), "{error}");
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|message| message.contains("limit: 1, model: gemini-2.5-flash\nPlease retry in "))
    );

    server.update(limited(None, Some(10))).unwrap();
    let (status, _, body) = answered(generate(&server, 900)).await;
    let violation = &detail(&body["error"], "QuotaFailure")["violations"][0];
    assert_eq!(
        (status, &violation["quotaId"]),
        (429, &json!("GenerateContentInputTokensPerModelPerMinute-FreeTier"))
    );

    let mut hidden = always(Fault::RateLimited { wait_ms: 1_500 });
    server.update(hidden.clone()).unwrap();
    let (_, _, body) = answered(generate(&server, 9)).await;
    let error = &body["error"];
    assert_eq!(detail(error, "QuotaFailure")["violations"][0].get("quotaValue"), None);
    assert!(!error.to_string().contains("RetryInfo") && !error.to_string().contains("retry in"), "{error}");
    hidden.limits.retry_after = RetryAfter::Milliseconds;
    server.update(hidden).unwrap();
    let (_, _, body) = answered(generate(&server, 9)).await;
    assert_eq!(detail(&body["error"], "RetryInfo")["retryDelay"], "1.5s");

    for (fault, quota, value) in [
        (Fault::DayQuota, "GenerateRequestsPerDayPerProjectPerModel-FreeTier", Some(&json!("20"))),
        (Fault::ZeroQuota, "GenerateContentInputTokensPerModelPerMinute-FreeTier", None),
    ] {
        server.update(always(fault)).unwrap();
        let (_, _, body) = answered(generate(&server, 9)).await;
        let violation = &detail(&body["error"], "QuotaFailure")["violations"][0];
        assert_eq!((&violation["quotaId"], violation.get("quotaValue")), (&json!(quota), value));
        assert!(detail(&body["error"], "RetryInfo")["retryDelay"].is_string());
    }
    server.shutdown().await;
}
