//! The client of these tests.
#![expect(clippy::unwrap_used, reason = "a test that cannot ask has failed")]

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::LazyLock,
};

use penstock_simulator::{
    Enforcement, Fault, FaultRule, LimitSettings, ProviderSettings, Quota, RateLimitHeaders, RetryAfter,
    Server,
};
use reqwest::{Client, RequestBuilder, Response, header::HeaderMap};
use serde_json::Value;

/// Any free port of this machine.
pub(crate) const ANYWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

pub(crate) async fn start(settings: ProviderSettings) -> Server {
    Server::start(settings, ANYWHERE).await.unwrap()
}

/// One client for all tests, since building one takes tens of milliseconds. It shares no connection among them: each
/// has a server of its own.
pub(crate) fn client() -> Client {
    static CLIENT: LazyLock<Client> = LazyLock::new(|| Client::builder().no_proxy().build().unwrap());
    CLIENT.clone()
}

/// A chat request with one user message.
pub(crate) fn chat(client: &Client, server: &Server, prompt: &str) -> RequestBuilder {
    let body = serde_json::json!({ "model": "m", "messages": [{ "role": "user", "content": prompt }] });
    client
        .post(format!("{}/chat/completions", server.base_url()))
        .header("content-type", "application/json")
        .body(body.to_string())
}

pub(crate) async fn ask(server: &Server, prompt: &str) -> Response {
    chat(&client(), server, prompt).send().await.unwrap()
}

pub(crate) async fn json(response: Response) -> Value {
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}

/// The text of a chat answer.
pub(crate) async fn text(response: Response) -> String {
    json(response).await["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
}

/// The status, the headers and the JSON body of an answer.
pub(crate) async fn answered(request: RequestBuilder) -> (u16, HeaderMap, Value) {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    (status, headers, json(response).await)
}

/// The value of a header, empty where it is missing.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).map_or("", |value| value.to_str().unwrap())
}

/// Settings under which every request meets a fault.
pub(crate) fn always(fault: Fault) -> ProviderSettings {
    ProviderSettings { faults: vec![FaultRule::always(fault)], ..Default::default() }
}

/// Settings with honest limits, refusals that say when to come back, and room for one request or so many tokens.
pub(crate) fn limited(requests: Option<u64>, tokens: Option<u64>) -> ProviderSettings {
    let quota = |per_minute| Quota { per_minute, enforcement: Enforcement::MinuteBucket };
    let limits = LimitSettings {
        requests: requests.map(quota),
        tokens: tokens.map(quota),
        retry_after: RetryAfter::Seconds,
        headers: RateLimitHeaders::Honest,
        ..Default::default()
    };
    ProviderSettings { limits, ..Default::default() }
}
