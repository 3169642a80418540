//! Gemini, Anthropic and Azure OpenAI in their own APIs, against the double.

use std::{fs, net::SocketAddr, path::Path, time::Duration};

use penstock_batchfile::{Endpoint, Format};
use penstock_executor::provider::{Disposition, classify};
use penstock_job::spec::{KeySource, ProviderKind, Route};
use penstock_rate::{Dimension, Verdict};
use penstock_simulator::{
    Enforcement, Fault, FaultRule, LimitSettings, LogSettings, ProviderSettings, Quota, RateLimitHeaders,
    RetryAfter, Server,
};

use super::{Setup, prompt};

const KINDS: [ProviderKind; 3] = [ProviderKind::Gemini, ProviderKind::Anthropic, ProviderKind::AzureOpenAi];

async fn start(settings: ProviderSettings) -> Server {
    let log = LogSettings { entries_in_memory: 1_000, ..LogSettings::default() };
    Server::start(ProviderSettings { log, ..settings }, SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap()
}

fn setup(kind: ProviderKind, format: Format, endpoint: Endpoint, server: &Server) -> Setup {
    let mut setup = Setup::new(format, endpoint, &server.origin());
    setup.provider.kind = kind;
    // Without a place of its own the key would be looked for in the environment.
    setup.provider.api_key = Some(KeySource::File(key_file(server)));
    setup
}

/// The double knows no key unless it is told one, so any will do.
fn key_file(server: &Server) -> std::path::PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("native-key-{}", server.origin().rsplit(':').next().unwrap()));
    fs::write(&path, "right").unwrap();
    path
}

fn chat(model: &str) -> String {
    format!(
        r#"{{"custom_id":"a","body":{{ "model":"{model}", "messages":[{{"role":"user","content":"hello"}}] }}}}"#
    )
}

#[tokio::test]
async fn each_provider_answers_in_its_own_api_with_the_key_in_its_own_header() {
    use Endpoint::{ChatCompletions, Completions, Embeddings};
    use ProviderKind::{Anthropic, AzureOpenAi, Gemini};
    let settings = ProviderSettings { api_keys: vec!["right".to_owned()], ..ProviderSettings::default() };
    let server = start(settings).await;
    let embedding = r#"{"custom_id":"a","body":{"model":"small","input":"hello"}}"#.to_owned();
    let completion = r#"{"custom_id":"a","body":{"model":"small","prompt":"hello"}}"#.to_owned();
    for (kind, format, endpoint, line, path) in [
        (Gemini, Format::Prompts, ChatCompletions, prompt(1), "/v1beta/models/small:generateContent"),
        (Gemini, Format::OpenAi, ChatCompletions, chat("small"), "/v1beta/openai/chat/completions"),
        (Gemini, Format::OpenAi, Embeddings, embedding.clone(), "/v1beta/openai/embeddings"),
        (Anthropic, Format::Prompts, ChatCompletions, prompt(1), "/v1/messages"),
        (Anthropic, Format::OpenAi, ChatCompletions, chat("small"), "/v1/chat/completions"),
        (
            AzureOpenAi,
            Format::Prompts,
            ChatCompletions,
            prompt(1),
            "/openai/deployments/small/chat/completions",
        ),
        (AzureOpenAi, Format::Prompts, Completions, prompt(1), "/openai/deployments/small/completions"),
        (
            AzureOpenAi,
            Format::OpenAi,
            ChatCompletions,
            chat("mine"),
            "/openai/deployments/mine/chat/completions",
        ),
        (AzureOpenAi, Format::OpenAi, Embeddings, embedding, "/openai/deployments/small/embeddings"),
        (AzureOpenAi, Format::OpenAi, Completions, completion, "/openai/deployments/small/completions"),
    ] {
        let setup = setup(kind, format, endpoint, &server);
        let provider = setup.connect().unwrap();
        let outcome = setup.ask(&provider, &line).await;
        let Disposition::Succeeded(reply) = classify(&outcome, provider.dialect()) else {
            panic!("{kind} {format:?} {endpoint}: {} {outcome:?}", setup.word(&outcome));
        };
        assert!(reply.tokens.input > Some(0), "{kind} {endpoint}: {:?}", reply.tokens);
        if format == Format::Prompts {
            assert!(!serde_json::from_str::<String>(reply.response.json().get()).unwrap().is_empty());
            assert!(reply.tokens.output > Some(0), "{kind}: {:?}", reply.tokens);
        }
        let asked = server.log().pop().unwrap();
        assert_eq!(asked.path.split('?').next(), Some(path));
        assert!(asked.authorization_fingerprint.is_some());
    }
    server.shutdown().await;
}

#[tokio::test]
async fn an_openai_body_arrives_byte_for_byte_and_its_answer_is_kept_byte_for_byte() {
    for kind in KINDS {
        let server = start(ProviderSettings::default()).await;
        let setup = setup(kind, Format::OpenAi, Endpoint::ChatCompletions, &server);
        let provider = setup.connect().unwrap();
        let request = provider.prepare(&chat("small").into()).unwrap();
        assert_eq!(
            request.body,
            br#"{ "model":"small", "messages":[{"role":"user","content":"hello"}] }"#[..]
        );
        let outcome = setup.ask(&provider, &chat("small")).await;
        let Disposition::Succeeded(reply) = classify(&outcome, provider.dialect()) else {
            panic!("{kind}: {}", setup.word(&outcome));
        };
        assert_eq!(reply.response.json().get().as_bytes(), outcome.as_ref().unwrap().body);
        server.shutdown().await;
    }
}

#[tokio::test]
async fn each_fault_of_a_provider_has_its_consequence_in_its_own_words() {
    let faults = [
        (Fault::InternalError, ["retry"; 3]),
        (Fault::BadGateway, ["retry"; 3]),
        (Fault::Unavailable, ["overloaded UNAVAILABLE", "retry http_503", "retry http_503"]),
        (Fault::DeadlineExceeded, ["retry"; 3]),
        (Fault::SlowDown, ["throttled None", "throttled None", "slow down"]),
        (
            Fault::Overloaded,
            ["overloaded UNAVAILABLE", "retry overloaded_error", "overloaded too_many_requests"],
        ),
        (Fault::RejectedPrompt, ["failed content_filter"; 3]),
        (Fault::FilteredAnswer, ["failed content_filter"; 3]),
        (Fault::RecitedAnswer, ["failed content_filter"; 3]),
        (Fault::Unauthorized, ["blocked CredentialsRefused"; 3]),
        (Fault::Unauthenticated, ["blocked CredentialsRefused"; 3]),
        (Fault::Forbidden, ["blocked CredentialsRefused"; 3]),
        (Fault::ModelNotFound, ["failed NOT_FOUND", "failed not_found_error", "failed DeploymentNotFound"]),
        (
            Fault::RateLimited { wait_ms: 3_000 },
            ["throttled Some(Requests)", "throttled None", "throttled Some(Requests)"],
        ),
        (
            Fault::DayQuota,
            ["blocked DayQuotaExhausted", "blocked DayQuotaExhausted", "blocked BillingOrZeroQuota"],
        ),
        (Fault::ZeroQuota, ["blocked BillingOrZeroQuota"; 3]),
        (Fault::InsufficientQuota, ["blocked BillingOrZeroQuota"; 3]),
        (Fault::SpendLimit, ["blocked BillingOrZeroQuota"; 3]),
        (Fault::DropInBody, ["retry response_truncated"; 3]),
        (Fault::NotJson, ["retry invalid_response"; 3]),
    ];
    let server = start(ProviderSettings::default()).await;
    for (fault, expected) in faults {
        let faults = vec![FaultRule::always(fault)];
        let limits = LimitSettings { retry_after: RetryAfter::Seconds, ..LimitSettings::default() };
        server.update(ProviderSettings { faults, limits, ..ProviderSettings::default() }).unwrap();
        for (kind, expected) in KINDS.into_iter().zip(expected) {
            let setup = setup(kind, Format::Prompts, Endpoint::ChatCompletions, &server);
            let verdict = setup.verdict(&setup.connect().unwrap(), &prompt(1)).await;
            assert!(verdict.starts_with(expected), "{kind} {fault:?}: {verdict}");
        }
    }
    server.shutdown().await;
}

#[tokio::test]
async fn a_line_of_openai_is_refused_in_the_words_of_its_provider() {
    let server = start(ProviderSettings::default()).await;
    for (fault, kind, expected) in [
        (Fault::Unauthorized, ProviderKind::Gemini, "blocked CredentialsRefused"),
        (Fault::DayQuota, ProviderKind::Gemini, "blocked DayQuotaExhausted"),
        (Fault::ZeroQuota, ProviderKind::Gemini, "blocked BillingOrZeroQuota"),
        (Fault::InvalidRequest, ProviderKind::Gemini, "failed INVALID_ARGUMENT"),
        (Fault::FilteredAnswer, ProviderKind::Gemini, "succeeded"),
        (Fault::RejectedPrompt, ProviderKind::AzureOpenAi, "failed content_filter"),
        (Fault::FilteredAnswer, ProviderKind::AzureOpenAi, "succeeded"),
        (Fault::DayQuota, ProviderKind::Anthropic, "blocked DayQuotaExhausted"),
    ] {
        let faults = vec![FaultRule::always(fault)];
        server.update(ProviderSettings { faults, ..ProviderSettings::default() }).unwrap();
        let setup = setup(kind, Format::OpenAi, Endpoint::ChatCompletions, &server);
        let verdict = setup.verdict(&setup.connect().unwrap(), &chat("small")).await;
        assert_eq!(verdict, expected, "{kind} {fault:?}");
    }
    server.shutdown().await;
}

#[tokio::test]
async fn a_rate_refusal_says_which_limit_it_was_and_how_long_to_wait() {
    for kind in KINDS {
        let one_a_minute = Quota { per_minute: 1, enforcement: Enforcement::MinuteBucket };
        let limits = LimitSettings {
            requests: Some(one_a_minute),
            retry_after: RetryAfter::Milliseconds,
            headers: RateLimitHeaders::Honest,
            ..LimitSettings::default()
        };
        let server = start(ProviderSettings { limits, ..ProviderSettings::default() }).await;
        let setup = setup(kind, Format::Prompts, Endpoint::ChatCompletions, &server);
        let provider = setup.connect().unwrap();
        setup.ask(&provider, &prompt(1)).await.unwrap();
        let second = setup.ask(&provider, &prompt(2)).await;
        let Disposition::Throttled { after, verdict: Verdict::Refused { dimension, hints, .. }, .. } =
            classify(&second, provider.dialect())
        else {
            panic!("{kind}: {}", setup.word(&second));
        };
        assert_eq!(dimension, Some(Dimension::Requests), "{kind}");
        assert_eq!(hints.requests.limit, Some(1), "{kind}");
        let after = after.unwrap();
        assert!((Duration::from_secs(50)..=Duration::from_secs(62)).contains(&after), "{kind} {after:?}");
        server.shutdown().await;
    }
}

#[tokio::test]
async fn each_model_is_asked_where_it_is_served() {
    for (kind, path) in [
        (ProviderKind::Gemini, "/v1beta/openai/chat/completions"),
        (ProviderKind::Anthropic, "/v1/chat/completions"),
        (ProviderKind::AzureOpenAi, "/openai/deployments/large/chat/completions"),
    ] {
        let (small, large) =
            (start(ProviderSettings::default()).await, start(ProviderSettings::default()).await);
        let mut setup = setup(kind, Format::OpenAi, Endpoint::ChatCompletions, &small);
        let route = |server: &Server| Route {
            base_url: server.origin(),
            api_key: Some(KeySource::File(key_file(server))),
            ..Route::default()
        };
        setup.provider.routes =
            [("small".to_owned(), route(&small)), ("large".to_owned(), route(&large))].into();
        let provider = setup.connect().unwrap();
        for model in ["small", "large", "large"] {
            assert_eq!(setup.verdict(&provider, &chat(model)).await, "succeeded", "{kind} {model}");
        }
        let asked: Vec<_> = large.log().into_iter().map(|entry| entry.path).collect();
        assert_eq!((small.log().len(), asked.len()), (1, 2), "{kind}");
        assert!(asked.iter().all(|asked| asked.split('?').next() == Some(path)), "{asked:?}");
        small.shutdown().await;
        large.shutdown().await;
    }
}
