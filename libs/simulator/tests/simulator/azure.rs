//! Azure OpenAI's dialect.

use penstock_simulator::{Fault, ProviderSettings, RetryAfter, Server};
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::client::{always, answered, client, header, limited, start};

const CHAT: &str = "deployments/mine/chat/completions?api-version=2024-10-21";

fn ask(server: &Server, path: &str, body: &Value) -> RequestBuilder {
    client().post(format!("{}/openai/{path}", server.origin())).body(body.to_string())
}

fn chat(server: &Server) -> RequestBuilder {
    ask(server, CHAT, &json!({ "messages": [{ "role": "user", "content": "Where is my parcel?" }] }))
}

#[tokio::test]
async fn a_deployment_answers_in_the_shape_of_openai_with_the_results_of_its_filter() {
    let server = start(ProviderSettings::default()).await;
    let (status, headers, body) = answered(chat(&server)).await;
    assert_eq!((status, &body["object"], &body["model"]), (200, &json!("chat.completion"), &json!("mine")));
    assert!(body["choices"][0]["message"]["content"].as_str().is_some_and(|text| !text.is_empty()));
    let prompt = &body["prompt_filter_results"][0]["content_filter_results"];
    assert_eq!(prompt["jailbreak"], json!({ "filtered": false, "detected": false }));
    let answer = &body["choices"][0]["content_filter_results"];
    assert_eq!(answer["violence"], json!({ "filtered": false, "severity": "safe" }));
    assert_eq!(header(&headers, "apim-request-id").len(), 36);
    assert_eq!(header(&headers, "x-ms-region"), "East US");
    server.shutdown().await;
}

#[tokio::test]
async fn every_surface_answers() {
    let server = start(ProviderSettings::default()).await;
    for (path, body) in [
        ("deployments/mine/completions?api-version=2024-10-21", json!({ "prompt": "Hi" })),
        ("deployments/mine/embeddings?api-version=2024-10-21", json!({ "input": "Hi" })),
        ("responses?api-version=preview", json!({ "model": "mine", "input": "Hi" })),
        ("v1/responses", json!({ "model": "mine", "input": "Hi" })),
        (
            "v1/chat/completions",
            json!({ "model": "mine", "messages": [{ "role": "user", "content": "Hi" }] }),
        ),
    ] {
        let (status, _, answer) = answered(ask(&server, path, &body)).await;
        assert_eq!((status, &answer["model"]), (200, &json!("mine")), "{path}: {answer}");
    }
    server.shutdown().await;
}

#[tokio::test]
async fn a_filtered_answer_names_its_category() {
    let server = start(always(Fault::FilteredAnswer)).await;
    for (fault, category) in
        [(Fault::FilteredAnswer, "violence"), (Fault::RecitedAnswer, "protected_material_text")]
    {
        server.update(always(fault)).unwrap();
        let (status, _, body) = answered(chat(&server)).await;
        let choice = &body["choices"][0];
        assert_eq!((status, &choice["finish_reason"]), (200, &json!("content_filter")));
        assert_eq!(choice["content_filter_results"][category]["filtered"], true);
    }
    server.shutdown().await;
}

#[tokio::test]
async fn the_gateway_refuses_in_its_own_words() {
    let settings = ProviderSettings {
        api_keys: vec!["right".to_owned()],
        models: Some(vec!["other".to_owned()]),
        ..Default::default()
    };
    let server = start(settings).await;
    let unversioned =
        ask(&server, "deployments/mine/chat/completions", &json!({})).header("api-key", "right");
    for (request, expected, code) in [
        (unversioned, 404, json!("404")),
        (chat(&server).header("api-key", "wrong"), 401, json!("401")),
        (chat(&server).header("api-key", "right"), 404, json!("DeploymentNotFound")),
        (chat(&server).bearer_auth("right"), 404, json!("DeploymentNotFound")),
    ] {
        let (status, _, body) = answered(request).await;
        assert_eq!((status, &body["error"]["code"]), (expected, &code), "{body}");
    }
    let (status, _, body) = answered(chat(&server)).await;
    assert_eq!((status, &body["statusCode"]), (401, &json!(401)));
    server.shutdown().await;
}

#[tokio::test]
async fn each_error_has_its_code() {
    let server = start(ProviderSettings::default()).await;
    for (fault, expected, code) in [
        (Fault::RejectedPrompt, 400, json!("content_filter")),
        (Fault::InvalidRequest, 400, json!("invalid_value")),
        (Fault::Unauthorized, 401, json!("401")),
        (Fault::Forbidden, 403, json!("403")),
        (Fault::ModelNotFound, 404, json!("DeploymentNotFound")),
        (Fault::DeadlineExceeded, 408, json!("Timeout")),
        (Fault::RateLimited { wait_ms: 10 }, 429, json!("429")),
        (Fault::Overloaded, 429, json!("too_many_requests")),
        (Fault::InsufficientQuota, 429, json!("insufficient_quota")),
        (Fault::InternalError, 500, Value::Null),
    ] {
        server.update(always(fault)).unwrap();
        let (status, _, body) = answered(chat(&server)).await;
        assert_eq!((status, &body["error"]["code"]), (expected, &code), "{fault:?}");
    }
    server.update(always(Fault::RejectedPrompt)).unwrap();
    let (_, _, body) = answered(chat(&server)).await;
    let inner = &body["error"]["innererror"];
    assert_eq!(inner["code"], "ResponsibleAIPolicyViolation");
    assert_eq!(inner["content_filter_result"]["violence"], json!({ "filtered": true, "severity": "medium" }));
    server.shutdown().await;
}

#[tokio::test]
async fn a_rate_refusal_says_when_to_come_back_in_words_and_in_headers() {
    let mut settings = limited(Some(1), None);
    settings.limits.retry_after = RetryAfter::Milliseconds;
    let server = start(settings).await;
    let (_, headers, _) = answered(chat(&server)).await;
    assert_eq!(header(&headers, "x-ratelimit-limit-requests"), "1");
    assert_eq!(header(&headers, "x-ratelimit-remaining-requests"), "0");
    assert_eq!(header(&headers, "x-ratelimit-reset-requests"), "60");
    let (status, headers, body) = answered(chat(&server)).await;
    assert_eq!(status, 429);
    let milliseconds: u64 = header(&headers, "retry-after-ms").parse().unwrap();
    let seconds: u64 = header(&headers, "retry-after").parse().unwrap();
    assert!(
        (50_000..=60_000).contains(&milliseconds) && seconds == milliseconds.div_ceil(1_000),
        "{headers:?}"
    );
    let words = body["error"]["message"].as_str().unwrap();
    assert!(words.starts_with(
        "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-10-21 have exceeded call \
         rate limit"
    ));
    assert!(words.contains(&format!("Please retry after {seconds} seconds.")), "{words}");

    let mut settings = limited(None, Some(2));
    settings.limits.retry_after = RetryAfter::Seconds;
    server.update(settings).unwrap();
    let (_, headers, body) = answered(chat(&server)).await;
    assert_eq!(header(&headers, "retry-after"), "86400", "{body}");
    server.shutdown().await;
}
