//! What a failing provider does to its clients.

use std::time::{Duration, Instant};

use penstock_simulator::{Fault, FaultRule, Moment, ProviderSettings, ShareOf, Slots, WhenFull};
use reqwest::StatusCode;
use serde_json::Value;

use crate::client::{always, ask, chat, client, json, start};

#[tokio::test]
async fn faults_with_a_status_come_in_the_envelope() {
    let server = start(ProviderSettings::default()).await;
    for (fault, status, word) in [
        (Fault::InternalError, 500, "server_error"),
        (Fault::BadGateway, 502, "server_error"),
        (Fault::Unavailable, 503, "unavailable"),
        (Fault::SlowDown, 503, "Slow Down"),
        (Fault::Overloaded, 529, "overloaded_error"),
        (Fault::RejectedPrompt, 400, "invalid_prompt"),
        (Fault::Unauthorized, 401, "invalid_api_key"),
        (Fault::Forbidden, 403, "permission_denied"),
        (Fault::InsufficientQuota, 429, "insufficient_quota"),
        (Fault::DeadlineExceeded, 504, "server_error"),
        (Fault::InvalidRequest, 400, "invalid_value"),
        (Fault::RequestTooLarge, 413, "request_too_large"),
        (Fault::Unauthenticated, 401, "invalid_request_error"),
        (Fault::ModelNotFound, 404, "The model `m` does not exist"),
        (Fault::RateLimited { wait_ms: 1_200 }, 429, "rate_limit_exceeded"),
        (Fault::DayQuota, 429, "(RPD): Limit 200, Used 200"),
        (Fault::ZeroQuota, 429, "Limit 0"),
        (Fault::SpendLimit, 429, "billing_hard_limit_reached"),
        (Fault::FilteredAnswer, 200, "content_filter"),
        (Fault::RecitedAnswer, 200, "content_filter"),
    ] {
        server.update(always(fault)).unwrap();
        let response = ask(&server, "Hello").await;
        assert_eq!(response.status().as_u16(), status, "{fault:?}");
        let body = json(response).await.to_string();
        assert!(body.contains(word), "{fault:?}: {body}");
    }
    server.shutdown().await;
}

#[tokio::test]
async fn a_dropped_connection_has_no_answer() {
    let server = start(always(Fault::DropBeforeAnswer)).await;
    let error = chat(&client(), &server, "Hello").send().await.unwrap_err();
    assert!(error.is_request(), "{error:?}");
    assert_eq!(server.requests().unanswered, 1);
    server.shutdown().await;
}

#[tokio::test]
async fn a_broken_or_truncated_body_starts_well_and_fails() {
    for http2 in [false, true] {
        for fault in [Fault::DropInBody, Fault::TruncatedBody] {
            let server = start(always(fault)).await;
            let builder = reqwest::Client::builder().no_proxy();
            let client = if http2 { builder.http2_prior_knowledge() } else { builder }.build().unwrap();
            let mut response = chat(&client, &server, "Hello").send().await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            let start = response.chunk().await.unwrap().expect("half of the body");
            assert!(start.starts_with(b"{"), "{fault:?} http2 {http2}");
            assert!(response.chunk().await.is_err(), "{fault:?} http2 {http2}");
            drop((response, client));
            server.shutdown().await;
        }
    }
}

#[tokio::test]
async fn a_web_page_comes_with_status_200() {
    let server = start(always(Fault::NotJson)).await;
    let response = ask(&server, "Hello").await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(serde_json::from_slice::<Value>(&response.bytes().await.unwrap()).is_err());
    server.shutdown().await;
}

#[tokio::test]
async fn a_slow_or_oversized_body_is_the_right_answer_in_the_end() {
    let server = start(ProviderSettings::default()).await;
    let right = json(ask(&server, "Hello").await).await["choices"].clone();

    server.update(always(Fault::SlowBody { total_ms: 60 })).unwrap();
    let started = Instant::now();
    let slow = json(ask(&server, "Hello").await).await;
    assert_eq!(slow["choices"], right);
    assert!(started.elapsed() >= Duration::from_millis(60));

    server.update(always(Fault::OversizedBody { bytes: 300_000 })).unwrap();
    let oversized = ask(&server, "Hello").await.bytes().await.unwrap();
    assert_eq!(oversized.len(), 300_000);
    assert_eq!(serde_json::from_slice::<Value>(&oversized).unwrap()["choices"], right);
    server.shutdown().await;
}

#[tokio::test]
async fn a_share_of_the_prompts_always_fails_and_the_others_never() {
    let rule = FaultRule { share: 0.3, of: ShareOf::Prompts, ..FaultRule::always(Fault::RejectedPrompt) };
    let settings = ProviderSettings { faults: vec![rule], ..Default::default() };
    let server = start(settings).await;
    let mut fates = Vec::new();
    for _ in 0..2 {
        let mut round = Vec::new();
        for prompt in 0..40 {
            round.push(ask(&server, &format!("Ticket {prompt}")).await.status().as_u16());
        }
        fates.push(round);
    }
    assert_eq!(fates[0], fates[1]);
    assert!(fates[0].contains(&400) && fates[0].contains(&200), "{:?}", fates[0]);
    server.shutdown().await;
}

#[tokio::test]
async fn a_key_revoked_after_some_requests_is_healed_by_another_key() {
    let revoked = FaultRule {
        from: Moment { requests: 2, elapsed_ms: 0 },
        only_key: Some("first".to_owned()),
        ..FaultRule::always(Fault::Unauthorized)
    };
    let settings = ProviderSettings {
        api_keys: vec!["first".to_owned(), "second".to_owned()],
        faults: vec![revoked],
        ..Default::default()
    };
    let server = start(settings).await;
    let client = client();
    let mut statuses = Vec::new();
    for key in ["first", "first", "first", "second"] {
        let response = chat(&client, &server, "Hello").bearer_auth(key).send().await.unwrap();
        statuses.push(response.status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 401, 200]);
    server.shutdown().await;
}

#[tokio::test]
async fn a_full_server_refuses_or_queues_as_told() {
    for (when_full, second) in [(WhenFull::Refuse, Some(503)), (WhenFull::Queue, None)] {
        let settings =
            ProviderSettings { slots: Some(Slots { at_once: 1, when_full }), ..always(Fault::Hang) };
        let server = start(settings).await;
        let client = client();
        // Both hang for a place or in it; only a refusal comes back.
        let answers = [chat(&client, &server, "one"), chat(&client, &server, "two")].map(|request| {
            tokio::spawn(async move { request.send().await.map(|response| response.status().as_u16()).ok() })
        });
        while server.requests().received < 2
            || server.requests().in_flight() > 1 + u64::from(second.is_none())
        {
            tokio::task::yield_now().await;
        }
        server.shutdown().await;
        let mut statuses = Vec::new();
        for answer in answers {
            statuses.push(answer.await.unwrap());
        }
        assert!(statuses.contains(&second) && statuses.contains(&None), "{when_full:?}: {statuses:?}");
    }
}
