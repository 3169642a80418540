//! What a healthy provider answers.

use penstock_simulator::{Distribution, Latency, ProviderSettings, Slots, WhenFull};
use reqwest::{Client, StatusCode};

use crate::client::{ask, chat, client, json, start, text};

#[tokio::test]
async fn a_chat_is_answered_with_a_text_usage_and_a_request_id() {
    let server = start(ProviderSettings::default()).await;
    let response = ask(&server, "Where is my parcel?").await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(response.headers().contains_key("x-request-id"));
    let body = json(response).await;
    assert!(body["choices"][0]["message"]["content"].as_str().is_some_and(|text| !text.is_empty()));
    assert!(body["usage"]["total_tokens"].as_u64().is_some_and(|tokens| tokens > 0));
    assert_eq!((server.requests().received, server.requests().succeeded), (1, 1));
    server.shutdown().await;
}

#[tokio::test]
async fn two_servers_of_one_seed_answer_alike() {
    let settings = ProviderSettings { seed: 7, ..Default::default() };
    let (first, second) = (start(settings.clone()).await, start(settings).await);
    let other = start(ProviderSettings { seed: 8, ..Default::default() }).await;
    let prompt = "Summarise this ticket.";
    let answer = text(ask(&first, prompt).await).await;
    assert_eq!(answer, text(ask(&second, prompt).await).await);
    assert_ne!(answer, text(ask(&other, prompt).await).await);
    for server in [first, second, other] {
        server.shutdown().await;
    }
}

#[tokio::test]
async fn http2_without_tls_is_served_too() {
    let server = start(ProviderSettings::default()).await;
    let client = Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    let response = chat(&client, &server, "Hello").send().await.unwrap();
    assert_eq!((response.version(), response.status()), (reqwest::Version::HTTP_2, StatusCode::OK));
    assert!(!text(response).await.is_empty());
    drop(client);
    server.shutdown().await;
}

#[tokio::test]
async fn every_endpoint_answers() {
    let server = start(ProviderSettings::default()).await;
    let client = client();
    for (path, body) in [
        ("responses", r#"{"model":"m","input":"Hello"}"#),
        ("completions", r#"{"model":"m","prompt":"Hello"}"#),
        ("embeddings", r#"{"model":"m","input":"Hello"}"#),
        ("moderations", r#"{"input":"Hello"}"#),
    ] {
        let response = client.post(format!("{}/{path}", server.base_url())).body(body).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        assert!(json(response).await.is_object(), "{path}");
    }
    let models = client.get(format!("{}/models", server.base_url())).send().await.unwrap();
    assert_eq!(json(models).await["data"][0]["object"], "model");
    server.shutdown().await;
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_said_in_the_envelope() {
    let settings = ProviderSettings {
        api_keys: vec!["right".to_owned()],
        models: Some(vec!["other".to_owned()]),
        largest_request_bytes: 200,
        ..Default::default()
    };
    let server = start(settings).await;
    let client = client();
    let with_key = |prompt: &str| chat(&client, &server, prompt).bearer_auth("right");
    let twice = format!("{}/v1/chat/completions", server.base_url());
    for (request, status, code) in [
        (chat(&client, &server, "Hi"), 401, serde_json::Value::Null),
        (chat(&client, &server, "Hi").bearer_auth("wrong"), 401, "invalid_api_key".into()),
        (with_key("Hi"), 404, "model_not_found".into()),
        (with_key(&"long ".repeat(50)), 413, "request_too_large".into()),
        (with_key("Hi").body("{"), 400, serde_json::Value::Null),
        (client.post(twice), 404, serde_json::Value::Null),
        (client.get(format!("{}/chat/completions", server.base_url())), 405, "method_not_supported".into()),
    ] {
        let response = request.send().await.unwrap();
        let found = response.status().as_u16();
        let body = json(response).await;
        assert_eq!((found, &body["error"]["code"]), (status, &code), "{body}");
        assert!(body["error"]["message"].as_str().is_some_and(|message| !message.is_empty()));
    }
    server.shutdown().await;
}

#[tokio::test]
async fn a_server_with_slots_tells_its_load_and_another_one_does_not() {
    let slots = Slots { at_once: 2, when_full: WhenFull::Queue };
    let latency = Latency { start_ms: Distribution::Constant(60_000.0), ..Default::default() };
    let server = start(ProviderSettings { slots: Some(slots), latency, ..Default::default() }).await;
    let url = format!("{}/metrics", server.origin());
    let asking: Vec<_> = (0..5).map(|_| tokio::spawn(chat(&client(), &server, "Hello").send())).collect();
    loop {
        let told = client().get(&url).send().await.unwrap().text().await.unwrap();
        assert!(told.contains("vllm:num_requests_running"), "{told}");
        if told.contains("waiting{engine=\"0\",model_name=\"simulated\"} 3.0\n") {
            assert!(told.contains("running{engine=\"0\",model_name=\"simulated\"} 2.0\n"), "{told}");
            break;
        }
    }
    asking.iter().for_each(tokio::task::JoinHandle::abort);
    assert_eq!(server.requests().received, 5, "who asks for the load asks no question");
    server.shutdown().await;
    let hosted = start(ProviderSettings::default()).await;
    let told = client().get(format!("{}/metrics", hosted.origin())).send().await.unwrap();
    assert_eq!((told.status(), hosted.requests().received), (StatusCode::NOT_FOUND, 0));
    hosted.shutdown().await;
}
