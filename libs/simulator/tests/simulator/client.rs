//! The client of these tests.
#![expect(clippy::unwrap_used, reason = "a test that cannot ask has failed")]

use std::net::{Ipv4Addr, SocketAddr};

use penstock_simulator::{ProviderSettings, Server};
use reqwest::{Client, RequestBuilder, Response};
use serde_json::Value;

/// Any free port of this machine.
pub(crate) const ANYWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

pub(crate) async fn start(settings: ProviderSettings) -> Server {
    Server::start(settings, ANYWHERE).await.unwrap()
}

pub(crate) fn client() -> Client {
    Client::builder().no_proxy().build().unwrap()
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
