//! How each provider is spoken to: where requests go, how they carry the key, what is written for a prompt, what an
//! answer says and what a refusal means. One file for each API; this one says whose is whose.
//!
//! | provider | prompts | OpenAI lines |
//! |---|---|---|
//! | `openai`, `openai-compatible`, `simulated` | `openai` | `openai` |
//! | `azure-openai` | `azure_openai`, with the bodies of `openai` | the same |
//! | `gemini` | `gemini` | bodies and answers of `openai`, refusals of `gemini` |
//! | `anthropic` | `anthropic` | bodies and answers of `openai`, refusals of `anthropic` |
//!
//! Pure.

mod anthropic;
mod azure_openai;
mod gemini;
mod openai;

use std::time::SystemTime;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use penstock_batchfile::{Endpoint, Format, Tokens};
use penstock_job::{
    CanonicalSpec,
    spec::{BaseUrl, ProviderKind},
};
use penstock_rate::Hints;
use url::Url;

use super::{
    error_body::ErrorBody,
    frame::Frame,
    hints,
    key::KeyHeader,
    refusal::Meaning,
    reply::{NoReply, Reply},
};

/// Where OpenAI's own tools read the key from.
const OPENAI_KEYS: &[&str] = &["OPENAI_API_KEY"];

/// What is spoken to the provider of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    kind: ProviderKind,
    format: Format,
    endpoint: Endpoint,
}

impl Dialect {
    /// The dialect of a job.
    pub fn of(spec: &CanonicalSpec) -> Self {
        Self::new(spec.provider.kind, spec.format, spec.endpoint)
    }

    /// What a kind of provider is spoken to in, at one endpoint and for lines of one format.
    pub const fn new(kind: ProviderKind, format: Format, endpoint: Endpoint) -> Self {
        Self { kind, format, endpoint }
    }

    /// The kind of provider that speaks it.
    pub(super) fn kind(self) -> ProviderKind {
        self.kind
    }

    /// The variables that hold the key where a job names no place for it, the first one first.
    pub(super) fn keys(self) -> &'static [&'static str] {
        match self.kind {
            ProviderKind::OpenAi => OPENAI_KEYS,
            ProviderKind::Gemini => gemini::KEYS,
            ProviderKind::Anthropic => anthropic::KEYS,
            ProviderKind::AzureOpenAi => azure_openai::KEYS,
            ProviderKind::OpenAiCompatible | ProviderKind::Simulated => &[],
        }
    }

    /// Where the key goes.
    pub(super) fn key_header(self) -> KeyHeader {
        match (self.kind, self.format) {
            (ProviderKind::AzureOpenAi, _) => azure_openai::KEY_HEADER,
            (ProviderKind::Gemini, Format::Prompts) => gemini::KEY_HEADER,
            (ProviderKind::Anthropic, Format::Prompts) => anthropic::KEY_HEADER,
            _ => KeyHeader::BEARER,
        }
    }

    /// A header that every request has beside those of all dialects.
    pub(super) fn header(self) -> Option<(HeaderName, HeaderValue)> {
        (self.kind == ProviderKind::Anthropic && self.format == Format::Prompts).then_some(anthropic::VERSION)
    }

    /// Whether requests for another model go to another URL.
    pub(super) fn names_model_in_url(self) -> bool {
        self.kind == ProviderKind::AzureOpenAi
            || self.kind == ProviderKind::Gemini && self.format == Format::Prompts
    }

    /// Where requests go.
    pub(super) fn url(self, base: &BaseUrl, model: &str, api_version: Option<&str>) -> Url {
        match (self.kind, self.format) {
            (ProviderKind::AzureOpenAi, _) => azure_openai::url(base, model, self.endpoint, api_version),
            (ProviderKind::Gemini, Format::Prompts) => gemini::url(base, model),
            (ProviderKind::Gemini, Format::OpenAi) => gemini::openai_url(base, self.endpoint),
            (ProviderKind::Anthropic, Format::Prompts) => anthropic::url(base),
            _ => base.endpoint(self.endpoint).parse().expect("invariant: a base URL and a path make a URL"),
        }
    }

    /// What stands around each prompt of a job.
    pub(super) fn frame(self, spec: &CanonicalSpec) -> Frame {
        match self.kind {
            ProviderKind::Gemini => gemini::frame(spec),
            ProviderKind::Anthropic => anthropic::frame(spec),
            _ => openai::frame(spec),
        }
    }

    /// Reads the body of an answer with a status of success.
    pub(super) fn read(self, body: &[u8]) -> Result<Reply<'_>, NoReply> {
        match (self.kind, self.format) {
            (ProviderKind::Gemini, Format::Prompts) => gemini::read(body),
            (ProviderKind::Anthropic, Format::Prompts) => anthropic::read(body),
            _ => openai::read(body, self.endpoint, self.format),
        }
    }

    /// The tokens that an answer with a status of success took, whatever it is worth.
    pub(crate) fn used(self, body: &[u8]) -> Tokens {
        let used = match (self.kind, self.format) {
            (ProviderKind::Gemini, Format::Prompts) => gemini::used(body),
            (ProviderKind::Anthropic, Format::Prompts) => anthropic::used(body),
            _ => openai::used(body),
        };
        used.unwrap_or_default()
    }

    /// Reads the body of a refusal.
    pub(super) fn error_body(self, body: &[u8]) -> ErrorBody {
        match self.kind {
            ProviderKind::Gemini => gemini::error_body(body),
            ProviderKind::Anthropic => anthropic::error_body(body),
            _ => ErrorBody::parse(body),
        }
    }

    /// Decides what a refusal means.
    pub(super) fn judge(self, status: StatusCode, body: &ErrorBody) -> Meaning {
        match self.kind {
            ProviderKind::Gemini => gemini::judge(status, body),
            ProviderKind::Anthropic => anthropic::judge(status, body),
            ProviderKind::AzureOpenAi => azure_openai::judge(status, body),
            _ => openai::judge(status, body),
        }
    }

    /// What the headers of an answer, which came at `now`, say about the limits.
    pub(super) fn hints(self, headers: &HeaderMap, now: SystemTime) -> Hints {
        match (self.kind, self.format) {
            (ProviderKind::Anthropic, Format::Prompts) => hints::anthropic(headers, now),
            _ => hints::openai(headers, now),
        }
    }
}

/// A base URL and a path below it. Each segment is encoded, so that a model's name cannot lead elsewhere.
fn url_of<'a>(base: &BaseUrl, segments: impl IntoIterator<Item = &'a str>) -> Url {
    let mut url: Url = base.as_str().parse().expect("invariant: a base URL is a URL");
    url.path_segments_mut().expect("invariant: an http URL has a path").pop_if_empty().extend(segments);
    url
}

/// The body that a job of this kind makes of the prompt `hello`.
#[cfg(test)]
fn body_of_hello(kind: ProviderKind, change: impl FnOnce(&mut penstock_job::JobSpec)) -> serde_json::Value {
    let mut spec = penstock_job::JobSpec { model: Some("m".to_owned()), ..Default::default() };
    spec.provider.kind = kind;
    change(&mut spec);
    let input = penstock_job::spec::CanonicalInput { uri: "in.jsonl".to_owned(), generation: "1".to_owned() };
    let spec = spec.canonical(input, penstock_batchfile::Format::Prompts).unwrap();
    let prompt = serde_json::value::to_raw_value("hello").unwrap();
    serde_json::from_slice(&Dialect::of(&spec).frame(&spec).with(prompt.get())).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(kind: ProviderKind, format: Format, endpoint: Endpoint, base: &str, model: &str) -> String {
        let base = BaseUrl::of(kind, base).unwrap();
        Dialect::new(kind, format, endpoint).url(&base, model, Some("2024-10-21")).into()
    }

    #[test]
    fn each_provider_is_asked_at_its_published_paths() {
        use Endpoint::{ChatCompletions, Completions, Embeddings};
        use ProviderKind::{Anthropic, AzureOpenAi, Gemini, OpenAi};
        for (kind, format, endpoint, expected) in [
            (OpenAi, Format::Prompts, ChatCompletions, "http://host/v1/chat/completions"),
            (Gemini, Format::Prompts, ChatCompletions, "http://host/v1beta/models/m:generateContent"),
            (Gemini, Format::OpenAi, ChatCompletions, "http://host/v1beta/openai/chat/completions"),
            (Gemini, Format::OpenAi, Embeddings, "http://host/v1beta/openai/embeddings"),
            (Anthropic, Format::Prompts, ChatCompletions, "http://host/v1/messages"),
            (Anthropic, Format::OpenAi, ChatCompletions, "http://host/v1/chat/completions"),
            (
                AzureOpenAi,
                Format::Prompts,
                ChatCompletions,
                "http://host/openai/deployments/m/chat/completions?api-version=2024-10-21",
            ),
            (
                AzureOpenAi,
                Format::OpenAi,
                Completions,
                "http://host/openai/deployments/m/completions?api-version=2024-10-21",
            ),
        ] {
            assert_eq!(url(kind, format, endpoint, "http://host/v1/", "m"), expected);
        }
        assert_eq!(
            url(Anthropic, Format::Prompts, ChatCompletions, "https://gateway/team/v1", "m"),
            "https://gateway/team/v1/messages"
        );
    }

    #[test]
    fn the_name_of_a_model_stays_one_segment_of_the_path() {
        for (kind, model, expected) in [
            (
                ProviderKind::Gemini,
                "models/gemini-2.5-flash",
                "/v1beta/models/gemini-2.5-flash:generateContent",
            ),
            (ProviderKind::Gemini, "tunedModels/mine-1", "/v1beta/tunedModels/mine-1:generateContent"),
            (ProviderKind::Gemini, "../x?key=1#y", "/v1beta/models/..%2Fx%3Fkey=1%23y:generateContent"),
            (ProviderKind::AzureOpenAi, "a/b c", "/openai/deployments/a%2Fb%20c/chat/completions"),
        ] {
            let url = url(kind, Format::Prompts, Endpoint::ChatCompletions, "http://host", model);
            let path = url.strip_prefix("http://host").unwrap().split('?').next().unwrap();
            assert_eq!(path, expected);
        }
    }
}
