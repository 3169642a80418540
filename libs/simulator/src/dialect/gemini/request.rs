//! The request body of `generateContent`.
//!
//! Source: <https://ai.google.dev/api/generate-content#request-body>. Like all of Google's JSON it may name its
//! fields in camel case or in snake case. A field that is not in the reference is refused, as the service refuses it:
//! a client that misplaces a parameter is to be noticed.

use std::borrow::Cow;

use serde::Deserialize;

use crate::{
    dialect::{OtherFields, unknown_field},
    draw::PromptHash,
    question::{Question, Target, tokens},
    refusal::Refusal,
};

/// Fields of a request beside those of [`Body`].
const OTHER_FIELDS: [&str; 7] =
    ["model", "tools", "toolConfig", "safetySettings", "cachedContent", "serviceTier", "store"];

/// Fields of `generationConfig` beside those of [`GenerationConfig`].
const OTHER_SETTINGS: [&str; 20] = [
    "stopSequences",
    "responseMimeType",
    "responseSchema",
    "responseJsonSchema",
    "responseModalities",
    "candidateCount",
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
    "responseFormat",
];

/// The fields that change the answer, and the others.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(borrow, default)]
    contents: Vec<Content<'a>>,
    #[serde(borrow, alias = "system_instruction")]
    system_instruction: Option<Content<'a>>,
    #[serde(borrow, alias = "generation_config")]
    generation_config: Option<GenerationConfig<'a>>,
    #[serde(borrow, flatten)]
    others: OtherFields<'a>,
}

#[derive(Debug, Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    role: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    parts: Vec<Part<'a>>,
}

#[derive(Debug, Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig<'a> {
    #[serde(alias = "max_output_tokens")]
    max_output_tokens: Option<u32>,
    #[serde(borrow, flatten)]
    others: OtherFields<'a>,
}

impl Content<'_> {
    fn into_text(self) -> String {
        let texts: Vec<_> = self.parts.into_iter().filter_map(|part| part.text).collect();
        texts.join("\n")
    }
}

/// Reads the body of a request.
pub(super) fn read(target: Target, body: &[u8]) -> Result<Question, Refusal> {
    let body: Body<'_> =
        serde_json::from_slice(body).map_err(|error| Refusal::UnreadableBody(error.to_string()))?;
    let settings = body.generation_config.as_ref();
    let unknown = unknown_field(&body.others, &OTHER_FIELDS)
        .or_else(|| settings.and_then(|settings| unknown_field(&settings.others, &OTHER_SETTINGS)));
    if let Some(name) = unknown {
        return Err(Refusal::UnreadableBody(format!("Unknown name \"{name}\": Cannot find field.")));
    }
    if body.contents.is_empty() {
        return Err(Refusal::Missing("contents"));
    }
    let mut prompt = String::new();
    let mut bytes = body.system_instruction.map_or(0, |content| content.into_text().len());
    for content in body.contents {
        // A content without a role is the user's.
        let is_user = content.role.as_deref().is_none_or(|role| role == "user");
        let text = content.into_text();
        bytes += text.len();
        if is_user {
            prompt = text;
        }
    }
    Ok(Question {
        task: target.task,
        model: target.model.unwrap_or_default(),
        prompt_hash: PromptHash::of(&prompt),
        prompt,
        input_tokens: tokens(bytes),
        most_output_tokens: body.generation_config.and_then(|config| config.max_output_tokens),
        inputs: 1,
        dimensions: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::{Form, Task};

    fn parse(body: &str) -> Result<Question, Refusal> {
        read(Target { task: Task::Write(Form::Chat), model: Some("g".to_owned()) }, body.as_bytes())
    }

    #[test]
    fn the_prompt_is_the_last_text_of_the_user_in_either_case() {
        for body in [
            r#"{"systemInstruction":{"parts":[{"text":"be kind"}]},"generationConfig":{"maxOutputTokens":9},
                "contents":[{"role":"user","parts":[{"text":"one"}]},{"role":"model","parts":[{"text":"two"}]},
                {"role":"user","parts":[{"text":"thr"},{"inlineData":{}},{"text":"ee"}]}]}"#,
            r#"{"system_instruction":{"parts":[{"text":"be kind"}]},"generation_config":{"max_output_tokens":9},
                "contents":[{"parts":[{"text":"onetwo"}]},{"parts":[{"text":"thr"},{"text":"ee"}]}]}"#,
        ] {
            let question = parse(body).unwrap();
            assert_eq!((question.prompt.as_str(), question.model.as_str()), ("thr\nee", "g"));
            assert_eq!(question.most_output_tokens, Some(9));
            assert_eq!(question.input_tokens, tokens("be kindonetwothr\nee".len()));
        }
    }

    #[test]
    fn a_misplaced_parameter_is_refused_by_name() {
        let contents = r#""contents":[{"parts":[{"text":"x"}]}]"#;
        for (rest, unknown) in [
            (r#""safety_settings":[],"generationConfig":{"top_p":1,"thinkingConfig":{}}"#, None),
            (r#""temperature":1"#, Some("temperature")),
            (r#""generationConfig":{"maxTokens":9}"#, Some("maxTokens")),
        ] {
            let refusal = unknown
                .map(|name| Refusal::UnreadableBody(format!("Unknown name \"{name}\": Cannot find field.")));
            assert_eq!(parse(&format!("{{{contents},{rest}}}")).err(), refusal, "{rest}");
        }
    }

    #[test]
    fn a_body_without_contents_is_refused() {
        assert_eq!(parse("{}"), Err(Refusal::Missing("contents")));
        assert!(matches!(parse("["), Err(Refusal::UnreadableBody(_))));
    }
}
