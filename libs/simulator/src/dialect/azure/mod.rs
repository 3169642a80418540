//! Azure OpenAI's dialect: OpenAI's bodies behind deployments, with its own errors and content filters.
//!
//! Source: <https://learn.microsoft.com/en-us/azure/ai-foundry/openai/reference>. Headers as quoted in
//! EvolvingPrograms/oaib#11 and openai/openai-python#937.

mod error;
mod filter;

use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, request::Parts};

use super::{
    Context, Dialect, RequestId, Told, bearer, header_text,
    openai::{OpenAi, allowed, task, write_limits},
    parameter, value,
};
use crate::{
    answer::Written,
    limit::{Claims, rounded_up},
    question::{Form, Question, Route, Target},
    refusal::Refusal,
};

/// `/openai/deployments/{deployment}/...`, `/openai/responses` and `/openai/v1/...`.
#[derive(Debug)]
pub(crate) struct Azure;

impl Dialect for Azure {
    /// Every path but the newest asks for an `api-version`.
    fn route(&self, head: &Parts) -> Result<Route, Refusal> {
        let path = head.uri.path();
        let rest = path.strip_prefix("/openai/").unwrap_or_default();
        let ask = |path, model: Option<&str>| {
            let model = model.map(str::to_owned);
            task(path).map(|task| Route::Ask(Target { task, model }))
        };
        if let Some(rest) = rest.strip_prefix("v1/") {
            let route = if rest == "models" { Some(Route::Models) } else { ask(rest, None) };
            return allowed(&head.method, path, route);
        }
        let route = match rest.strip_prefix("deployments/").and_then(|rest| rest.split_once('/')) {
            Some((deployment, rest)) => ask(rest, Some(deployment)),
            None => Some(rest).filter(|rest| *rest == "responses").and_then(|rest| ask(rest, None)),
        };
        let route = allowed(&head.method, path, route)?;
        version(&head.uri).map(|_| route).ok_or(Refusal::MissingVersion)
    }

    /// The key of the resource, or a token.
    fn key<'a>(&self, head: &'a Parts) -> Option<&'a str> {
        header_text(head, "api-key").or_else(|| bearer(head))
    }

    fn question(&self, target: Target, body: &[u8]) -> Result<Question, Refusal> {
        OpenAi.question(target, body)
    }

    fn text(&self, question: &Question, form: Form, written: &Written, created: u64) -> Bytes {
        filter::with_results(&OpenAi.text(question, form, written, created), form, written.end)
    }

    fn refusal(&self, refusal: &Refusal, context: &Context<'_>) -> Told {
        error::told(refusal, context)
    }

    /// Resets are whole seconds.
    fn write_limits(&self, headers: &mut HeaderMap, claims: &Claims, _now: SystemTime) {
        write_limits(headers, claims, |reset| rounded_up(reset, 1_000).to_string());
    }

    fn write_name(&self, headers: &mut HeaderMap, id: RequestId) {
        let id = value(&id.as_uuid());
        headers.insert(HeaderName::from_static("apim-request-id"), id.clone());
        headers.insert(HeaderName::from_static("x-request-id"), id);
        headers.insert(HeaderName::from_static("x-ms-region"), value("East US"));
    }
}

/// The version that a URL asks for.
fn version(uri: &http::Uri) -> Option<&str> {
    parameter(uri, "api-version").filter(|version| !version.is_empty())
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::question::Task;

    fn route(method: Method, uri: &str) -> Result<Route, Refusal> {
        Azure.route(&http::Request::builder().method(method).uri(uri).body(()).unwrap().into_parts().0)
    }

    #[test]
    fn each_surface_leads_to_its_task() {
        let asks = |uri: &str| match route(Method::POST, uri) {
            Ok(Route::Ask(target)) => Some((target.task, target.model)),
            _ => None,
        };
        let chat = Task::Write(Form::Chat);
        let deployed = "/openai/deployments/mine/chat/completions?api-version=2024-10-21";
        assert_eq!(asks(deployed), Some((chat, Some("mine".to_owned()))));
        let embed = "/openai/deployments/mine/embeddings?api-version=2024-10-21";
        assert_eq!(asks(embed), Some((Task::Embed, Some("mine".to_owned()))));
        let response = Task::Write(Form::Response);
        assert_eq!(asks("/openai/responses?api-version=preview"), Some((response, None)));
        assert_eq!(asks("/openai/v1/chat/completions"), Some((chat, None)));
        assert_eq!(route(Method::GET, "/openai/v1/models"), Ok(Route::Models));
    }

    #[test]
    fn a_version_is_asked_for() {
        for uri in ["/openai/deployments/mine/chat/completions", "/openai/responses?api-version="] {
            assert_eq!(route(Method::POST, uri), Err(Refusal::MissingVersion), "{uri}");
        }
        let unknown = route(Method::POST, "/openai/deployments/mine/guess?api-version=2024-10-21");
        assert!(matches!(unknown, Err(Refusal::UnknownPath { .. })));
    }
}
