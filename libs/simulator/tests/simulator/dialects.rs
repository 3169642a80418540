//! What the dialects share: limits, faults, counters and the log.

use penstock_simulator::{Fault, FaultRule, LogSettings, ProviderSettings, Server, ShareOf};
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::client::{client, limited, start};

const PATHS: [&str; 5] = [
    "/v1/chat/completions",
    "/v1beta/models/m:generateContent",
    "/v1beta/openai/chat/completions",
    "/v1/messages",
    "/openai/deployments/m/chat/completions",
];

/// The same prompt in each dialect, with the key where that dialect carries it.
fn requests(server: &Server, prompt: &str) -> Vec<RequestBuilder> {
    let client = client();
    let post = |path: &str, query: &str, body: &Value| {
        client.post(format!("{}{path}{query}", server.origin())).body(body.to_string())
    };
    let chat = json!({ "model": "m", "messages": [{ "role": "user", "content": prompt }] });
    let message =
        json!({ "model": "m", "max_tokens": 9, "messages": [{ "role": "user", "content": prompt }] });
    let generate = json!({ "contents": [{ "role": "user", "parts": [{ "text": prompt }] }] });
    vec![
        post(PATHS[0], "", &chat).bearer_auth("abc"),
        post(PATHS[1], "", &generate).header("x-goog-api-key", "abc"),
        post(PATHS[2], "", &chat).bearer_auth("abc"),
        post(PATHS[3], "", &message).header("anthropic-version", "2023-06-01").header("x-api-key", "abc"),
        post(PATHS[4], "?api-version=2024-10-21", &chat).header("api-key", "abc"),
    ]
}

async fn statuses(server: &Server, prompt: &str) -> Vec<u16> {
    let mut statuses = Vec::new();
    for request in requests(server, prompt) {
        statuses.push(request.send().await.expect("an answer").status().as_u16());
    }
    statuses
}

#[tokio::test]
async fn the_log_tells_of_all_of_them_alike() {
    let log = LogSettings { entries_in_memory: 10, file: None };
    let server = start(ProviderSettings { log, ..Default::default() }).await;
    assert_eq!(statuses(&server, "Hello").await, [200; 5]);
    let entries = server.log();
    let paths: Vec<&str> = entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(paths, PATHS);
    for (entry, times_seen) in entries.iter().zip(0..) {
        assert_eq!((entry.model.as_deref(), entry.prompt.as_str()), (Some("m"), "Hello"));
        assert_eq!((entry.times_seen, entry.status()), (times_seen, Some(200)));
        // The start of the SHA-256 of "abc", by the examples of FIPS 180-2.
        assert_eq!(entry.authorization_fingerprint.as_deref(), Some("ba7816bf"));
        assert!(entry.answer.is_some_and(|answer| answer.output_tokens > 0));
    }
    server.shutdown().await;
}

#[tokio::test]
async fn they_share_one_limit() {
    let server = start(limited(Some(3), None)).await;
    assert_eq!(statuses(&server, "Hello").await, [200, 200, 200, 429, 429]);
    assert_eq!(server.requests().throttled, 2);
    server.shutdown().await;
}

#[tokio::test]
async fn a_prompt_that_is_unlucky_is_so_in_each() {
    let rule = FaultRule { share: 0.5, of: ShareOf::Prompts, ..FaultRule::always(Fault::Forbidden) };
    let server = start(ProviderSettings { faults: vec![rule], ..Default::default() }).await;
    let mut fates = Vec::new();
    for prompt in 0..12 {
        let statuses = statuses(&server, &format!("Ticket {prompt}")).await;
        assert!(statuses == [200; 5] || statuses == [403; 5], "{statuses:?}");
        fates.push(statuses[0]);
    }
    assert!(fates.contains(&200) && fates.contains(&403), "{fates:?}");
    server.shutdown().await;
}
