//! Hidden limits, as a client meets them.

use penstock_simulator::{
    Enforcement, LimitSettings, ProviderSettings, Quota, RateLimitHeaders, RetryAfter, TokenCharge,
};
use reqwest::StatusCode;

use crate::client::{ask, json, start};

fn minute_bucket(per_minute: u64) -> Quota {
    Quota { per_minute, enforcement: Enforcement::MinuteBucket }
}

fn with_limits(limits: LimitSettings) -> ProviderSettings {
    ProviderSettings { limits, ..Default::default() }
}

#[tokio::test]
async fn beyond_the_limit_requests_are_refused_with_the_headers_that_were_asked_for() {
    let limits = LimitSettings {
        requests: Some(minute_bucket(2)),
        retry_after: RetryAfter::Seconds,
        headers: RateLimitHeaders::Honest,
        ..Default::default()
    };
    let server = start(with_limits(limits)).await;
    let first = ask(&server, "one").await;
    assert_eq!(first.headers()["x-ratelimit-limit-requests"], "2");
    assert_eq!(first.headers()["x-ratelimit-remaining-requests"], "1");
    assert_eq!(ask(&server, "two").await.status(), StatusCode::OK);
    let refused = ask(&server, "three").await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    let seconds: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=30).contains(&seconds), "retry after {seconds} s");
    let body = json(refused).await;
    assert_eq!(
        (&body["error"]["type"], &body["error"]["code"]),
        (&"requests".into(), &"rate_limit_exceeded".into())
    );
    assert_eq!((server.requests().succeeded, server.requests().throttled), (2, 1));
    server.shutdown().await;
}

#[tokio::test]
async fn a_hidden_limit_shows_in_nothing_but_the_refusal() {
    let limits = LimitSettings { requests: Some(minute_bucket(1)), ..Default::default() };
    let server = start(with_limits(limits)).await;
    for status in [StatusCode::OK, StatusCode::TOO_MANY_REQUESTS] {
        let response = ask(&server, "Hello").await;
        assert_eq!(response.status(), status);
        let telling = |name: &str| name.starts_with("x-ratelimit") || name.starts_with("retry-after");
        assert!(!response.headers().keys().any(|name| telling(name.as_str())), "{:?}", response.headers());
    }
    server.shutdown().await;
}

#[tokio::test]
async fn tokens_of_answers_use_up_an_actual_token_limit() {
    let limits = LimitSettings {
        tokens: Some(minute_bucket(20)),
        token_charge: TokenCharge::Actual,
        ..Default::default()
    };
    let server = start(with_limits(limits)).await;
    assert_eq!(ask(&server, "one").await.status(), StatusCode::OK);
    let refused = ask(&server, "two").await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(json(refused).await["error"]["type"], "tokens");
    server.shutdown().await;
}

#[tokio::test]
async fn a_raised_limit_takes_hold_at_once() {
    let limits = |per_minute| {
        with_limits(LimitSettings { requests: Some(minute_bucket(per_minute)), ..Default::default() })
    };
    let server = start(limits(1)).await;
    assert_eq!(ask(&server, "one").await.status(), StatusCode::OK);
    assert_eq!(ask(&server, "two").await.status(), StatusCode::TOO_MANY_REQUESTS);
    server.update(limits(100)).unwrap();
    assert_eq!(ask(&server, "two").await.status(), StatusCode::OK);
    server.shutdown().await;
}
