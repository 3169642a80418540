//! From an input line to the body that is sent. Pure.
//!
//! OpenAI lines are sent as slices of the line; only where the job's model has to be put in is there a copy. A prompt
//! goes into the frame that the job's dialect makes for it.

use std::borrow::Cow;

use bytes::Bytes;
use penstock_batchfile::{Body, Json, Rejection, Rules, parse, parse_validated, splice_model};
use penstock_job::CanonicalSpec;

use super::{dialect::Dialect, frame::Frame};

/// Bytes of a body that make one token, as a rule of thumb.
pub(super) const BYTES_PER_TOKEN: usize = 4;

/// Makes request bodies for one job.
#[derive(Debug)]
pub(super) struct Composer {
    rules: Rules,
    model: Option<Box<str>>,
    frame: Frame,
}

/// A body that is ready to be sent.
#[derive(Debug)]
pub(super) struct Composed<'a> {
    pub(super) id: Json<'a>,
    pub(super) model: Cow<'a, str>,
    pub(super) body: Bytes,
    pub(super) input_tokens: u32,
}

impl Composer {
    pub(super) fn new(spec: &CanonicalSpec) -> Self {
        let dialect = Dialect::of(spec);
        Self {
            rules: Rules {
                format: spec.format,
                endpoint: spec.endpoint,
                has_model: spec.model.is_some(),
                strict: spec.strict,
            },
            model: spec.model.as_deref().map(Into::into),
            frame: dialect.frame(spec),
        }
    }

    /// Makes the body for `line`, which validation has let through.
    pub(super) fn compose<'a>(&'a self, line: &'a Bytes) -> Result<Composed<'a>, Rejection> {
        let request = match parse_validated(line, &self.rules) {
            Some(request) => request,
            None => parse(line, &self.rules)?,
        };
        let id = request.id.token();
        let body = match request.body {
            Body::Prompt(prompt) => self.frame.with(prompt),
            Body::OpenAi(body) => self.openai(line, body, request.model.is_some()),
        };
        let own = request.model.or_else(|| self.model.as_deref().map(Cow::Borrowed));
        let model = own.expect("invariant: a line that names no model is valid only where the job names one");
        let input_tokens = u32::try_from(body.len() / BYTES_PER_TOKEN).unwrap_or(u32::MAX);
        Ok(Composed { id, model, body, input_tokens })
    }

    /// The line's own body, as a slice of the line unless the model has to be put in.
    fn openai(&self, line: &Bytes, body: &str, names_model: bool) -> Bytes {
        match &self.model {
            Some(model) if !names_model => {
                let mut spliced = Vec::new();
                splice_model(body, model, &mut spliced);
                spliced.into()
            }
            _ => line.slice_ref(body.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use penstock_batchfile::{Endpoint, Format};
    use penstock_job::spec::{CanonicalInput, CanonicalProvider, OnInvalid, ProviderKind};
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    fn spec(format: Format, endpoint: Endpoint) -> CanonicalSpec {
        CanonicalSpec {
            input: CanonicalInput { uri: "in.jsonl".to_owned(), generation: "1".to_owned() },
            format,
            strict: false,
            on_invalid: OnInvalid::Skip,
            max_line_bytes: 8 << 20,
            provider: CanonicalProvider {
                kind: ProviderKind::OpenAiCompatible,
                base_url: None,
                routes: BTreeMap::new(),
                api_version: None,
            },
            model: Some("m".to_owned()),
            endpoint,
            system_prompt: None,
            max_output_tokens: None,
            parameters: Map::new(),
            run: String::new(),
        }
    }

    fn compose(spec: &CanonicalSpec, line: &str) -> String {
        let composer = Composer::new(spec);
        let line = Bytes::copy_from_slice(line.as_bytes());
        let request = composer.compose(&line).unwrap();
        String::from_utf8(request.body.to_vec()).unwrap()
    }

    #[test]
    fn a_prompt_becomes_the_body_of_each_endpoint() {
        let line = r#"{"prompt_id":1,"prompt":"a\u00e9\n"}"#;
        for (endpoint, system_prompt, expected) in [
            (
                Endpoint::ChatCompletions,
                None,
                r#"{"model":"m","messages":[{"role":"user","content":"a\u00e9\n"}]}"#,
            ),
            (
                Endpoint::ChatCompletions,
                Some("be \"brief\""),
                r#"{"model":"m","messages":[{"role":"system","content":"be \"brief\""},{"role":"user","content":"a\u00e9\n"}]}"#,
            ),
            (Endpoint::Responses, None, r#"{"model":"m","input":"a\u00e9\n"}"#),
            (Endpoint::Responses, Some("s"), r#"{"model":"m","instructions":"s","input":"a\u00e9\n"}"#),
            (Endpoint::Completions, None, r#"{"model":"m","prompt":"a\u00e9\n"}"#),
            (Endpoint::Completions, Some("say \"s\""), r#"{"model":"m","prompt":"say \"s\"\n\na\u00e9\n"}"#),
        ] {
            let system_prompt = system_prompt.map(str::to_owned);
            let spec = CanonicalSpec { system_prompt, ..spec(Format::Prompts, endpoint) };
            assert_eq!(compose(&spec, line), expected);
        }
    }

    #[test]
    fn the_bound_on_an_answer_has_the_name_that_its_server_knows() {
        for (endpoint, kind, name) in [
            (Endpoint::ChatCompletions, ProviderKind::OpenAi, "max_completion_tokens"),
            (Endpoint::ChatCompletions, ProviderKind::OpenAiCompatible, "max_tokens"),
            (Endpoint::ChatCompletions, ProviderKind::Simulated, "max_tokens"),
            (Endpoint::ChatCompletions, ProviderKind::AzureOpenAi, "max_completion_tokens"),
            (Endpoint::ChatCompletions, ProviderKind::Anthropic, "max_tokens"),
            (Endpoint::Responses, ProviderKind::OpenAi, "max_output_tokens"),
            (Endpoint::Completions, ProviderKind::OpenAi, "max_tokens"),
        ] {
            let mut spec = CanonicalSpec { max_output_tokens: Some(9), ..spec(Format::Prompts, endpoint) };
            spec.provider.kind = kind;
            spec.parameters.insert("temperature".to_owned(), json!(0.5));
            let body: Value =
                serde_json::from_str(&compose(&spec, r#"{"prompt_id":1,"prompt":"x"}"#)).unwrap();
            assert_eq!((&body[name], &body["temperature"]), (&json!(9), &json!(0.5)));
        }
    }

    #[test]
    fn a_parameter_that_bounds_the_answer_goes_before_the_jobs_bound() {
        let mut spec =
            CanonicalSpec { max_output_tokens: Some(9), ..spec(Format::Prompts, Endpoint::ChatCompletions) };
        spec.parameters.insert("max_completion_tokens".to_owned(), json!(7));
        let body = compose(&spec, r#"{"prompt_id":1,"prompt":"x"}"#);
        assert!(body.ends_with(r#","max_completion_tokens":7}"#), "{body}");
    }

    #[test]
    fn a_parameter_that_bounds_the_answer_is_known_in_each_dialect() {
        for (kind, name) in [
            (ProviderKind::Gemini, "maxOutputTokens"),
            (ProviderKind::Gemini, "max_output_tokens"),
            (ProviderKind::Anthropic, "max_tokens"),
            (ProviderKind::AzureOpenAi, "max_tokens"),
        ] {
            let mut spec = CanonicalSpec {
                max_output_tokens: Some(9),
                ..spec(Format::Prompts, Endpoint::ChatCompletions)
            };
            spec.provider.kind = kind;
            spec.parameters.insert(name.to_owned(), json!(7));
            let body = compose(&spec, r#"{"prompt_id":1,"prompt":"x"}"#);
            assert_eq!((body.matches(":7").count(), body.contains(":9")), (1, false), "{body}");
        }
    }

    #[test]
    fn an_openai_body_is_a_slice_of_its_line() {
        let composer = Composer::new(&spec(Format::OpenAi, Endpoint::ChatCompletions));
        let line = Bytes::from_static(br#"{"custom_id":"a","body":{ "model":"own", "max_tokens": 5 }}"#);
        let request = composer.compose(&line).unwrap();
        assert_eq!(request.body, br#"{ "model":"own", "max_tokens": 5 }"#[..]);
        assert_eq!(line.slice_ref(&request.body), request.body, "the bytes are the line's own");
        assert_eq!((request.id.get(), request.model.as_ref()), (r#""a""#, "own"));
        assert_eq!(request.input_tokens as usize, request.body.len() / 4);
    }

    #[test]
    fn a_body_without_a_model_gets_the_jobs() {
        let spec = spec(Format::OpenAi, Endpoint::Embeddings);
        let body = compose(&spec, r#"{"custom_id":"a","body":{"input":"x"}}"#);
        assert_eq!(body, r#"{"model":"m","input":"x"}"#);
    }

    #[test]
    fn a_line_that_validation_would_not_let_through_is_refused() {
        let composer = Composer::new(&spec(Format::Prompts, Endpoint::ChatCompletions));
        assert!(composer.compose(&Bytes::from_static(b"{}")).is_err());
    }

    proptest! {
        #[test]
        fn every_prompt_arrives_as_it_was_meant(prompt in ".*", system in proptest::option::of(".*")) {
            for endpoint in [Endpoint::ChatCompletions, Endpoint::Responses, Endpoint::Completions] {
                let spec = CanonicalSpec { system_prompt: system.clone(), ..spec(Format::Prompts, endpoint) };
                let body = compose(&spec, &json!({"prompt_id": 1, "prompt": prompt}).to_string());
                let body: Value = serde_json::from_str(&body).unwrap();
                let (system_sent, prompt_sent) = match endpoint {
                    Endpoint::Responses => (body["instructions"].as_str(), body["input"].as_str()),
                    Endpoint::Completions => (system.as_deref(), body["prompt"].as_str().map(|sent| {
                        let start = system.as_deref().map(|system| format!("{system}\n\n")).unwrap_or_default();
                        sent.strip_prefix(&start).expect("the system prompt comes first")
                    })),
                    _ => {
                        let messages = body["messages"].as_array().unwrap();
                        let user = messages.last().unwrap()["content"].as_str();
                        ((messages.len() == 2).then(|| messages[0]["content"].as_str()).flatten(), user)
                    }
                };
                prop_assert_eq!(system_sent, system.as_deref());
                prop_assert_eq!(prompt_sent, Some(prompt.as_str()));
            }
        }

        #[test]
        fn every_prompt_arrives_at_each_provider_as_it_was_meant(
            prompt in ".*", system in proptest::option::of(".*"),
        ) {
            for (kind, prompt_at, system_at) in [
                (ProviderKind::Gemini, "/contents/0/parts/0/text", "/systemInstruction/parts/0/text"),
                (ProviderKind::Anthropic, "/messages/0/content", "/system"),
            ] {
                let mut spec = CanonicalSpec {
                    system_prompt: system.clone(),
                    ..spec(Format::Prompts, Endpoint::ChatCompletions)
                };
                spec.provider.kind = kind;
                let body = compose(&spec, &json!({"prompt_id": 1, "prompt": prompt}).to_string());
                let body: Value = serde_json::from_str(&body).unwrap();
                let text = |pointer| body.pointer(pointer).and_then(Value::as_str);
                prop_assert_eq!(text(prompt_at), Some(prompt.as_str()));
                prop_assert_eq!(text(system_at), system.as_deref());
            }
        }
    }
}
