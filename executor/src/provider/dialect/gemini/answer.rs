//! What an answer of `generateContent` says. Pure.
//!
//! Shape, and the words for how an answer ends: <https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse>.

use std::borrow::Cow;

use penstock_batchfile::{Json, Tokens};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::provider::reply::{NoReply, Reply, joined, object};

/// How answers end that a filter withheld.
const FILTERED: [&str; 8] = [
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
];

/// Reads the body of an answer: the text parts of the first candidate, joined, without the model's thoughts. An answer
/// that ended at the token limit counts, one that a filter ended does not.
pub(in crate::provider) fn read(body: &[u8]) -> Result<Reply<'_>, NoReply> {
    let answer: GenerateContentResponse<'_> = object(body)?;
    if let Some(reason) = answer.prompt_feedback.and_then(|feedback| feedback.block_reason) {
        return Err(NoReply::Filtered(reason.into_owned()));
    }
    let Some(candidate) = answer.candidates.and_then(|candidates| candidates.into_iter().next()) else {
        return Err(if answer.error.is_some() { NoReply::Refusal } else { NoReply::NoText { finish: None } });
    };
    let finish = candidate.finish_reason;
    if let Some(finish) = finish.as_deref()
        && FILTERED.contains(&finish)
    {
        return Err(NoReply::Filtered(finish.to_owned()));
    }
    let parts = candidate.content.and_then(|content| content.parts).unwrap_or_default();
    let texts = parts.into_iter().filter(|part| part.thought != Some(true)).filter_map(|part| part.text);
    let response = joined(texts.map(Json::from))
        .ok_or_else(|| NoReply::NoText { finish: finish.map(Cow::into_owned) })?;
    Ok(Reply { response, tokens: tokens(answer.usage_metadata) })
}

/// Reads the tokens of an answer: one that is recorded as failed was paid for as well.
pub(in crate::provider) fn used(body: &[u8]) -> Option<Tokens> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Used<'a> {
        #[serde(borrow)]
        usage_metadata: Option<&'a RawValue>,
    }
    object::<Used<'_>>(body).ok().map(|answer| tokens(answer.usage_metadata))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GenerateContentResponse<'a> {
    #[serde(borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow)]
    prompt_feedback: Option<PromptFeedback<'a>>,
    #[serde(borrow)]
    usage_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback<'a> {
    #[serde(borrow)]
    block_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow)]
    content: Option<Content<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    thought: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "these are the names in the body")]
struct UsageMetadata {
    prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
}

/// Thoughts are paid for as output. A prompt that was cached is counted in whole.
fn tokens(usage: Option<&RawValue>) -> Tokens {
    let usage: UsageMetadata =
        usage.and_then(|usage| serde_json::from_str(usage.get()).ok()).unwrap_or_default();
    let output = [usage.candidates_token_count, usage.thoughts_token_count];
    Tokens {
        input: usage.prompt_token_count,
        cached_input: usage.cached_content_token_count.filter(|cached| *cached > 0),
        output: output.into_iter().flatten().reduce(u64::saturating_add),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text_of(body: &str) -> Result<(String, Tokens), NoReply> {
        read(body.as_bytes()).map(|reply| (reply.response.json().get().to_owned(), reply.tokens))
    }

    #[test]
    fn the_text_is_the_answers_token_byte_for_byte_without_thoughts() {
        // As published: https://ai.google.dev/gemini-api/docs/generate-content/thinking
        let body = r#"{"candidates":[{"content":{"parts":[{"text":"Hm.","thought":true},{"text":"a\u00e9","thoughtSignature":"x"},{"text":"\n\"b"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":11,"candidatesTokenCount":73,"totalTokenCount":184,"thoughtsTokenCount":100,"promptTokensDetails":[{"modality":"TEXT","tokenCount":11}]},"modelVersion":"gemini-2.5-flash","responseId":"mAitaLmkHPPlz7IPvtfUqQ4"}"#;
        let tokens = Tokens { input: Some(11), output: Some(173), ..Tokens::default() };
        assert_eq!(text_of(body), Ok((r#""a\u00e9\n\"b""#.to_owned(), tokens)));
    }

    #[test]
    fn an_answer_that_was_cut_off_counts_and_one_that_was_withheld_does_not() {
        let half = |finish: &str| {
            format!(
                r#"{{"candidates":[{{"content":{{"parts":[{{"text":"half"}}]}},"finishReason":"{finish}"}}]}}"#
            )
        };
        assert_eq!(text_of(&half("MAX_TOKENS")), Ok((r#""half""#.to_owned(), Tokens::default())));
        for finish in FILTERED {
            assert_eq!(text_of(&half(finish)), Err(NoReply::Filtered(finish.to_owned())));
            let empty = format!(r#"{{"candidates":[{{"finishReason":"{finish}","index":0}}]}}"#);
            assert_eq!(text_of(&empty), Err(NoReply::Filtered(finish.to_owned())));
        }
        // As seen: https://github.com/vercel/ai/issues/4235
        let blocked = r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":12559,"totalTokenCount":12559},"modelVersion":"gemini-1.5-flash-002"}"#;
        assert_eq!(text_of(blocked), Err(NoReply::Filtered("PROHIBITED_CONTENT".to_owned())));
        assert_eq!(used(blocked.as_bytes()).unwrap().input, Some(12_559), "it is paid for");
        let cached = r#"{"usageMetadata":{"promptTokenCount":9,"cachedContentTokenCount":4}}"#;
        assert_eq!(used(cached.as_bytes()).unwrap().cached_input, Some(4));
    }

    #[test]
    fn an_answer_without_text_says_why_it_ended() {
        for (body, finish) in [
            (
                r#"{"candidates":[{"content":{"role":"model"},"finishReason":"MAX_TOKENS"}]}"#,
                Some("MAX_TOKENS"),
            ),
            (
                r#"{"candidates":[{"content":{},"finishReason":"MALFORMED_FUNCTION_CALL"}]}"#,
                Some("MALFORMED_FUNCTION_CALL"),
            ),
            (r#"{"candidates":[{"content":{"parts":[{"text":7}]}}]}"#, None),
            (r#"{"candidates":[]}"#, None),
            ("{}", None),
        ] {
            let finish = finish.map(str::to_owned);
            assert_eq!(text_of(body), Err(NoReply::NoText { finish }), "{body}");
        }
    }

    #[test]
    fn what_is_no_answer_is_told_apart() {
        for body in
            ["", "<html>", "[]", "[null,null,null,null]", "null", r#"{"candidates":["#, r#"{"candidates":7}"#]
        {
            assert_eq!(text_of(body), Err(NoReply::Invalid), "{body}");
        }
        assert_eq!(text_of(r#"{"error":{"code":503,"status":"UNAVAILABLE"}}"#), Err(NoReply::Refusal));
    }

    proptest! {
        #[test]
        fn no_body_is_a_reason_to_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&body);
        }
    }
}
