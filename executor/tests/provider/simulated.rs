//! Against the provider double.

use std::{fs, net::SocketAddr, time::Duration};

use futures_util::future::join_all;
use penstock_batchfile::{Endpoint, Format};
use penstock_executor::{
    budget::Budget,
    provider::{Disposition, PrepareError, classify},
};
use penstock_job::spec::{KeySource, Route};
use penstock_rate::{Dimension, Verdict};
use penstock_simulator::{
    Enforcement, Fault, FaultRule, LimitSettings, LogSettings, ProviderSettings, Quota, RateLimitHeaders,
    RetryAfter, Server,
};

use super::{PATIENCE, Setup, prompt, send};

async fn start(settings: ProviderSettings) -> Server {
    let log = LogSettings { entries_in_memory: 1_000, ..LogSettings::default() };
    Server::start(ProviderSettings { log, ..settings }, SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap()
}

async fn start_with(fault: Fault) -> Server {
    start(ProviderSettings { faults: vec![FaultRule::always(fault)], ..ProviderSettings::default() }).await
}

#[tokio::test]
async fn prompts_are_answered_with_text_at_each_endpoint_that_has_text() {
    let server = start(ProviderSettings::default()).await;
    for endpoint in [Endpoint::ChatCompletions, Endpoint::Responses, Endpoint::Completions] {
        let setup = Setup::new(Format::Prompts, endpoint, &server.base_url());
        let provider = setup.connect().unwrap();
        let outcome = setup.ask(&provider, &prompt(1)).await;
        let Disposition::Succeeded(reply) = classify(&outcome, provider.dialect()) else {
            panic!("{endpoint}: {}", setup.word(&outcome));
        };
        let text: String = serde_json::from_str(reply.response.json().get()).unwrap();
        assert!(!text.is_empty());
        assert!(reply.tokens.input > Some(0) && reply.tokens.output > Some(0), "{:?}", reply.tokens);
        let answer = outcome.as_ref().unwrap();
        assert!(answer.request_id.is_some() && answer.latency < PATIENCE);
    }
    let log = server.log();
    assert_eq!(log.len(), 3);
    assert!(log.iter().all(|entry| entry.prompt.contains("the café's printer")), "{log:?}");
    assert!(log.iter().all(|entry| entry.model.as_deref() == Some("small")), "{log:?}");
    server.shutdown().await;
}

#[tokio::test]
async fn openai_bodies_arrive_as_they_were_written_at_every_endpoint() {
    let server = start(ProviderSettings::default()).await;
    for (endpoint, body) in [
        (Endpoint::ChatCompletions, r#"{"messages":[{"role":"user","content":"x"}]}"#),
        (Endpoint::Responses, r#"{"model":"large","input":"x"}"#),
        (Endpoint::Completions, r#"{"model":"large","prompt":"x"}"#),
        (Endpoint::Embeddings, r#"{"model":"large","input":"x"}"#),
        (Endpoint::Moderations, r#"{"model":"large","input":"x"}"#),
    ] {
        let setup = Setup::new(Format::OpenAi, endpoint, &server.base_url());
        let provider = setup.connect().unwrap();
        let line = format!(r#"{{"custom_id":"a","method":"POST","url":"{endpoint}","body":{body}}}"#);
        let outcome = setup.ask(&provider, &line).await;
        assert_eq!(setup.word(&outcome), "succeeded", "{endpoint}");
    }
    let models: Vec<_> = server.log().into_iter().map(|entry| (entry.path, entry.model.unwrap())).collect();
    let expected = Endpoint::ALL.map(|endpoint| {
        let model = if endpoint == Endpoint::ChatCompletions { "small" } else { "large" };
        (endpoint.path().to_owned(), model.to_owned())
    });
    assert_eq!(models, expected);
    server.shutdown().await;
}

#[tokio::test]
async fn each_fault_of_a_provider_has_its_consequence() {
    for (fault, expected) in [
        (Fault::InternalError, "retry http_500"),
        (Fault::BadGateway, "retry http_502"),
        (Fault::Unavailable, "retry http_503"),
        (Fault::SlowDown, "slow down"),
        (Fault::Overloaded, "retry http_529"),
        (Fault::RejectedPrompt, "failed invalid_prompt"),
        (Fault::Unauthorized, "blocked CredentialsRefused"),
        (Fault::Forbidden, "blocked CredentialsRefused"),
        (Fault::InsufficientQuota, "blocked BillingOrZeroQuota"),
        (Fault::DropBeforeAnswer, "retry connection_lost"),
        (Fault::DropInBody, "retry response_truncated"),
        (Fault::TruncatedBody, "retry response_truncated"),
        (Fault::NotJson, "retry invalid_response"),
        (Fault::SlowBody { total_ms: 50 }, "succeeded"),
        (Fault::OversizedBody { bytes: 1 << 20 }, "succeeded"),
        (Fault::OversizedBody { bytes: (8 << 20) + 1 }, "failed response_too_large"),
    ] {
        let server = start_with(fault).await;
        let setup = Setup::prompts(&server.base_url());
        let verdict = setup.verdict(&setup.connect().unwrap(), &prompt(1)).await;
        assert_eq!(verdict, expected, "{fault:?}");
        server.shutdown().await;
    }
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_given_up_at_the_deadline() {
    for fault in [Fault::Hang, Fault::SlowBody { total_ms: 60_000 }] {
        let server = start_with(fault).await;
        let mut setup = Setup::prompts(&server.base_url());
        setup.request_timeout = Duration::from_millis(200);
        let outcome = setup.ask(&setup.connect().unwrap(), &prompt(1)).await;
        assert_eq!(setup.word(&outcome), "retry timeout", "{fault:?}");
        assert!(outcome.unwrap_err().latency >= setup.request_timeout);
        server.shutdown().await;
    }
}

#[tokio::test]
async fn a_rate_refusal_says_which_limit_it_was_and_how_long_to_wait() {
    for style in [RetryAfter::Seconds, RetryAfter::Milliseconds, RetryAfter::HttpDate] {
        let one_a_minute = Quota { per_minute: 1, enforcement: Enforcement::MinuteBucket };
        let limits = LimitSettings {
            requests: Some(one_a_minute),
            retry_after: style,
            headers: RateLimitHeaders::Honest,
            ..LimitSettings::default()
        };
        let server = start(ProviderSettings { limits, ..ProviderSettings::default() }).await;
        let setup = Setup::prompts(&server.base_url());
        let provider = setup.connect().unwrap();
        let first = setup.ask(&provider, &prompt(1)).await.unwrap();
        assert_eq!((first.hints.requests.limit, first.hints.requests.remaining), (Some(1), Some(0)));
        let second = setup.ask(&provider, &prompt(2)).await;
        let Disposition::Throttled { after, verdict: Verdict::Refused { dimension, hints, .. }, .. } =
            classify(&second, provider.dialect())
        else {
            panic!("{style:?}: {}", setup.word(&second));
        };
        assert_eq!(dimension, Some(Dimension::Requests));
        assert_eq!(hints.requests.limit, Some(1));
        let after = after.unwrap();
        assert!((Duration::from_secs(50)..=Duration::from_secs(62)).contains(&after), "{style:?} {after:?}");
        server.shutdown().await;
    }
}

#[tokio::test]
async fn a_new_key_in_the_file_is_taken_up_when_the_old_one_is_refused() {
    let api_keys = vec!["sk-new".to_owned()];
    let server = start(ProviderSettings { api_keys, ..ProviderSettings::default() }).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    fs::write(&path, "sk-old\n").unwrap();
    let mut setup = Setup::prompts(&server.base_url());
    setup.provider.api_key = Some(KeySource::File(path.clone()));
    let provider = setup.connect().unwrap();
    assert_eq!(setup.verdict(&provider, &prompt(1)).await, "blocked CredentialsRefused");
    assert!(!provider.refresh_keys().await, "the file is as it was");
    fs::write(&path, "sk-new\n").unwrap();
    assert!(provider.refresh_keys().await);
    assert_eq!(setup.verdict(&provider, &prompt(1)).await, "succeeded");
    fs::remove_file(&path).unwrap();
    assert!(!provider.refresh_keys().await, "the old key stays");
    assert_eq!(setup.verdict(&provider, &prompt(1)).await, "succeeded", "the last good key stays in force");
    server.shutdown().await;
}

#[tokio::test]
async fn each_model_is_asked_where_it_is_served_and_with_its_own_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    fs::write(&path, "sk-large").unwrap();
    let api_keys = vec!["sk-large".to_owned()];
    let (small, large) = (
        start(ProviderSettings::default()).await,
        start(ProviderSettings { api_keys, ..ProviderSettings::default() }).await,
    );
    let route = |server: &Server, api_key| Route { base_url: server.base_url(), api_key, ..Route::default() };
    let mut setup = Setup::new(Format::OpenAi, Endpoint::Embeddings, "http://127.0.0.1:1");
    setup.provider.api_key = Some(KeySource::File("/nowhere".into()));
    setup.provider.routes = [
        ("small".to_owned(), route(&small, None)),
        ("large".to_owned(), route(&large, Some(KeySource::File(path)))),
    ]
    .into();
    let provider = setup.connect().unwrap();
    let line = |model: &str| format!(r#"{{"custom_id":"a","body":{{"model":"{model}","input":"x"}}}}"#);
    for model in ["small", "large"] {
        assert_eq!(setup.verdict(&provider, &line(model)).await, "succeeded", "{model}");
    }
    assert_eq!(small.log()[0].authorization_fingerprint, None);
    assert!(large.log()[0].authorization_fingerprint.is_some());
    let refused = provider.prepare(&line("other").into()).unwrap_err();
    assert!(matches!(&refused, PrepareError::ModelNotFound(model) if model.as_ref() == "other"));
    assert_eq!(refused.code(), "model_not_found");
    small.shutdown().await;
    large.shutdown().await;
}

#[tokio::test]
async fn answers_far_beyond_the_budget_all_arrive_one_after_the_other() {
    let server = start_with(Fault::OversizedBody { bytes: 1 << 20 }).await;
    let setup = Setup::prompts(&server.base_url());
    let provider = setup.connect().unwrap();
    // Room for all lines to be sent at once, and for none of their answers.
    let budget = Budget::new(30 * 10 * 1024);
    let outcomes = join_all((0..30).map(|id| {
        let (provider, budget) = (&provider, &budget);
        async move { send(provider, budget, &prompt(id)).await }
    }));
    for outcome in outcomes.await {
        assert_eq!(setup.word(&outcome), "succeeded");
    }
    server.shutdown().await;
}
