//! What Gemini answers with status 200: texts, texts that it held back, and prompts that it blocked.
//!
//! Source: <https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse>; a candidate without content
//! is quoted in xtekky/gpt4free#2341.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::{
    answer::{End, Written, json as bytes},
    dialect::{Context, Told},
    question::Question,
};

const CATEGORIES: [&str; 4] = [
    "HARM_CATEGORY_SEXUALLY_EXPLICIT",
    "HARM_CATEGORY_HATE_SPEECH",
    "HARM_CATEGORY_HARASSMENT",
    "HARM_CATEGORY_DANGEROUS_CONTENT",
];

/// The answer to a prompt.
pub(super) fn text(question: &Question, written: &Written) -> Bytes {
    let candidate = match written.end {
        End::Stop | End::Length => {
            let mut content = json!({ "role": "model" });
            // Where the thinking took all tokens, the content has a role and no parts.
            if !written.text.is_empty() {
                content["parts"] = json!([{ "text": written.text }]);
            }
            let reason = if written.end == End::Stop { "STOP" } else { "MAX_TOKENS" };
            json!({ "content": content, "finishReason": reason, "index": 0, "safetyRatings": ratings(false) })
        }
        End::Filtered => json!({ "finishReason": "SAFETY", "index": 0, "safetyRatings": ratings(true) }),
        End::Recited => json!({
            "finishReason": "RECITATION",
            "index": 0,
            "citationMetadata": {
                "citationSources": [{ "startIndex": 0, "endIndex": 120, "uri": "https://example.com/", "license": "" }],
            },
        }),
    };
    let mut answer = about(question);
    answer["candidates"] = json!([candidate]);
    let usage = &mut answer["usageMetadata"];
    usage["totalTokenCount"] = question.input_tokens.saturating_add(written.output_tokens()).into();
    // A count of 0 is left out, as Google's JSON leaves out every 0.
    for (name, count) in
        [("candidatesTokenCount", written.tokens()), ("thoughtsTokenCount", written.thought_tokens)]
    {
        if count > 0 {
            usage[name] = count.into();
        }
    }
    bytes(&answer)
}

/// The answer to a prompt that was blocked: a reason, and no candidates.
pub(super) fn blocked(context: &Context<'_>) -> Told {
    let mut answer = context.question.map_or_else(|| json!({}), about);
    answer["promptFeedback"] = json!({ "blockReason": "PROHIBITED_CONTENT" });
    Told::json(200, &answer)
}

/// What every answer to a question holds.
fn about(question: &Question) -> Value {
    let tokens = question.input_tokens;
    json!({
        "usageMetadata": {
            "promptTokenCount": tokens,
            "totalTokenCount": tokens,
            "promptTokensDetails": [{ "modality": "TEXT", "tokenCount": tokens }],
        },
        "modelVersion": question.model,
        "responseId": question.prompt_hash.to_string(),
    })
}

fn ratings(is_blocked: bool) -> Value {
    let rated = CATEGORIES.iter().map(|&category| {
        if is_blocked && category == "HARM_CATEGORY_DANGEROUS_CONTENT" {
            json!({ "category": category, "probability": "HIGH", "blocked": true })
        } else {
            json!({ "category": category, "probability": "NEGLIGIBLE" })
        }
    });
    rated.collect()
}
