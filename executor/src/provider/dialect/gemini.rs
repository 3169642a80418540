//! Google's Gemini API: `generateContent` for prompts, its OpenAI-compatible endpoints for OpenAI lines.
//!
//! The key stands in the header `x-goog-api-key`, never in the query, where proxies would log it; at the
//! OpenAI-compatible endpoints it is a bearer token. Body and answer: <https://ai.google.dev/api/generate-content>.

mod answer;
mod refusal;

use http::HeaderName;
use penstock_batchfile::Endpoint;
use penstock_job::{CanonicalSpec, spec::BaseUrl};
use serde_json::{Map, Value};
use url::Url;

pub(super) use self::{
    answer::{read, used},
    refusal::{error_body, judge},
};
use super::url_of;
use crate::provider::{
    frame::{Frame, closed_with, json},
    key::KeyHeader,
};

/// Where Google's own tools read the key from.
pub(super) const KEYS: &[&str] = &["GEMINI_API_KEY", "GOOGLE_API_KEY"];

/// Where the key goes.
pub(super) const KEY_HEADER: KeyHeader = KeyHeader::plain(HeaderName::from_static("x-goog-api-key"));

/// The parameters that bound the length of an answer; the JSON of the API takes both spellings.
const BOUNDS: &[&str] = &["maxOutputTokens", "max_output_tokens"];

/// The fields of `generationConfig` (<https://ai.google.dev/api/generate-content#generationconfig>), as documented.
const GENERATION_CONFIG: [&str; 22] = [
    "stopSequences",
    "responseMimeType",
    "responseSchema",
    "_responseJsonSchema",
    "responseJsonSchema",
    "responseFormat",
    "responseModalities",
    "candidateCount",
    "maxOutputTokens",
    "temperature",
    "topP",
    "topK",
    "seed",
    "presencePenalty",
    "frequencyPenalty",
    "responseLogprobs",
    "logprobs",
    "enableEnhancedCivicAnswers",
    "speechConfig",
    "thinkingConfig",
    "imageConfig",
    "mediaResolution",
];

/// `BASE/v1beta/models/MODEL:generateContent`. A model may be named with its collection, as Google writes it:
/// `models/NAME`, `tunedModels/NAME`.
pub(super) fn url(base: &BaseUrl, model: &str) -> Url {
    let (collection, name) = match model.split_once('/') {
        Some((collection @ ("models" | "tunedModels"), name)) => (collection, name),
        _ => ("models", model),
    };
    url_of(base, ["v1beta", collection, &format!("{name}:generateContent")])
}

/// `BASE/v1beta/openai/chat/completions`
pub(super) fn openai_url(base: &BaseUrl, endpoint: Endpoint) -> Url {
    let path = endpoint.path().trim_start_matches("/v1/").split('/');
    url_of(base, ["v1beta", "openai"].into_iter().chain(path))
}

/// What is the same for every prompt. A parameter goes into `generationConfig` when it is one of its fields, else it
/// stands at the top as it is, such as `safetySettings`.
pub(super) fn frame(spec: &CanonicalSpec) -> Frame {
    let system = |text| format!(r#""systemInstruction":{{"parts":[{{"text":{}}}]}},"#, json(text));
    let system = spec.system_prompt.as_deref().map(system).unwrap_or_default();
    let before = format!(r#"{{{system}"contents":[{{"role":"user","parts":[{{"text":"#);
    Frame::around(before, format!("}}]}}]{}", closed_with(further_members(spec))))
}

fn further_members(spec: &CanonicalSpec) -> Map<String, Value> {
    let is_generation_config = |name: &str| {
        GENERATION_CONFIG.contains(&name) || GENERATION_CONFIG.contains(&camel_case(name).as_str())
    };
    let (mut config, mut members): (Map<_, _>, Map<_, _>) =
        spec.parameters.clone().into_iter().partition(|(name, _)| is_generation_config(name));
    if let Some(bound) = spec.max_output_tokens
        && !BOUNDS.iter().any(|name| config.contains_key(*name))
    {
        config.insert("maxOutputTokens".to_owned(), bound.into());
    }
    if !config.is_empty() {
        members.insert("generationConfig".to_owned(), config.into());
    }
    members
}

/// `top_p` as `topP`.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut text, word| {
        let mut letters = word.chars();
        text.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        text + letters.as_str()
    })
}

#[cfg(test)]
mod tests {
    use penstock_job::{JobSpec, spec::ProviderKind};
    use serde_json::json;

    use super::{super::body_of_hello, *};

    fn body(change: impl FnOnce(&mut JobSpec)) -> Value {
        body_of_hello(ProviderKind::Gemini, change)
    }

    #[test]
    fn a_prompt_becomes_one_content() {
        assert_eq!(body(|_| ()), json!({"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}));
        let with_all = body(|spec| {
            spec.system_prompt = Some("be \"brief\"".to_owned());
            spec.max_output_tokens = 9.try_into().ok();
        });
        assert_eq!(
            with_all,
            json!({
                "systemInstruction": {"parts": [{"text": "be \"brief\""}]},
                "contents": [{"role": "user", "parts": [{"text": "hello"}]}],
                "generationConfig": {"maxOutputTokens": 9},
            })
        );
    }

    #[test]
    fn parameters_go_where_the_api_has_them() {
        let parameters = json!({
            "temperature": 0.5,
            "top_p": 0.9,
            "thinkingConfig": {"thinkingBudget": 0},
            "safetySettings": [],
            "cachedContent": "cachedContents/1",
        });
        let body = body(|spec| spec.parameters = parameters.as_object().unwrap().clone());
        assert_eq!(
            body["generationConfig"],
            json!({"temperature": 0.5, "top_p": 0.9, "thinkingConfig": {"thinkingBudget": 0}})
        );
        assert_eq!(body["safetySettings"], json!([]));
        assert_eq!(body["cachedContent"], "cachedContents/1");
    }
}
