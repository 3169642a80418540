//! What an answer in OpenAI's API says. Pure.

use std::borrow::Cow;

use penstock_batchfile::{Endpoint, Format, Tokens};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::provider::reply::{NoReply, Reply, is_string, joined, object};

/// How an answer ends that the provider's filter withheld, from here on or altogether.
const FILTERED: &str = "content_filter";

/// Reads the body of an answer. For the format Prompts its text is
///
/// * of a chat completion the first choice's content, parts of it joined; a refusal, where it refuses instead, since
///   that is the model's answer, and paid for;
/// * of a response the text (or refusal) parts of all its messages, joined;
/// * of a completion the first choice's text.
///
/// An answer that ended at the token limit counts, one that a filter ended does not: its record would not tell.
pub(in crate::provider) fn read(
    body: &[u8],
    endpoint: Endpoint,
    format: Format,
) -> Result<Reply<'_>, NoReply> {
    let top: Top<'_> = object(body)?;
    if top.is_refusal() {
        return Err(NoReply::Refusal);
    }
    let response = match format {
        Format::OpenAi => Cow::Borrowed(serde_json::from_slice(body).map_err(|_| NoReply::Invalid)?),
        Format::Prompts => text(&top, endpoint)?,
    };
    Ok(Reply { response, tokens: tokens(top.usage) })
}

#[derive(Deserialize)]
struct Top<'a> {
    #[serde(borrow)]
    choices: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    results: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(borrow)]
    incomplete_details: Option<&'a RawValue>,
}

impl Top<'_> {
    /// Some gateways send their refusals as 200, and a response can fail after it was accepted.
    fn is_refusal(&self) -> bool {
        let has_result = [self.choices, self.output, self.data, self.results].iter().any(Option::is_some);
        let has_failed = self.status.is_some_and(|status| status.get() == "\"failed\"");
        self.error.is_some() && (!has_result || has_failed)
    }
}

#[derive(Deserialize)]
struct ChatChoice<'a> {
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CompletionChoice<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    finish_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct OutputItem<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
}

fn text<'a>(top: &Top<'a>, endpoint: Endpoint) -> Result<Cow<'a, RawValue>, NoReply> {
    let (text, finish) = match endpoint {
        Endpoint::ChatCompletions => first::<ChatChoice<'_>>(top.choices)
            .map(|choice| (choice.message.as_ref().and_then(message_text), choice.finish_reason))
            .unwrap_or_default(),
        Endpoint::Completions => first::<CompletionChoice<'_>>(top.choices)
            .map(|choice| {
                (choice.text.filter(|text| is_string(text)).map(Cow::Borrowed), choice.finish_reason)
            })
            .unwrap_or_default(),
        Endpoint::Responses => {
            let status = top.status.and_then(|status| serde_json::from_str(status.get()).ok());
            (output_text(top.output), incomplete_reason(top.incomplete_details).or(status))
        }
        // A job of prompts has no such endpoint.
        Endpoint::Embeddings | Endpoint::Moderations => (None, None),
    };
    if finish.as_deref() == Some(FILTERED) {
        return Err(NoReply::Filtered(FILTERED.to_owned()));
    }
    text.ok_or_else(|| NoReply::NoText { finish: finish.map(Cow::into_owned) })
}

fn message_text<'a>(message: &Message<'a>) -> Option<Cow<'a, RawValue>> {
    let content = message.content.and_then(|content| match content.get().as_bytes().first() {
        Some(b'"') => Some(Cow::Borrowed(content)),
        Some(b'[') => joined(&part_texts(content)),
        _ => None,
    });
    content.or_else(|| message.refusal.filter(|refusal| is_string(refusal)).map(Cow::Borrowed))
}

fn output_text(output: Option<&RawValue>) -> Option<Cow<'_, RawValue>> {
    let items: Vec<OutputItem<'_>> = serde_json::from_str(output?.get()).ok()?;
    let texts: Vec<&RawValue> = items
        .into_iter()
        .filter(|item| item.kind.as_deref() == Some("message"))
        .filter_map(|item| item.content)
        .flat_map(part_texts)
        .collect();
    joined(&texts)
}

/// The string tokens of the text parts; parts of another kind, such as a model's thoughts, have neither member.
fn part_texts(parts: &RawValue) -> Vec<&RawValue> {
    let parts: Vec<Part<'_>> = serde_json::from_str(parts.get()).unwrap_or_default();
    parts.into_iter().filter_map(|part| part.text.or(part.refusal)).filter(|text| is_string(text)).collect()
}

/// Why a response is not complete.
fn incomplete_reason(details: Option<&RawValue>) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Details<'a> {
        #[serde(borrow)]
        reason: Option<Cow<'a, str>>,
    }
    serde_json::from_str::<Option<Details<'_>>>(details?.get()).ok()??.reason
}

/// The first element of an array, read as far as it can be.
fn first<'a, T: Deserialize<'a>>(array: Option<&'a RawValue>) -> Option<T> {
    let elements: Vec<&RawValue> = serde_json::from_str(array?.get()).ok()?;
    serde_json::from_str(elements.first()?.get()).ok()
}

#[derive(Deserialize, Default)]
#[expect(clippy::struct_field_names, reason = "these are the names in the body")]
struct Usage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

fn tokens(usage: Option<&RawValue>) -> Tokens {
    let usage: Usage = usage.and_then(|usage| serde_json::from_str(usage.get()).ok()).unwrap_or_default();
    Tokens {
        input: usage.prompt_tokens.or(usage.input_tokens),
        output: usage.completion_tokens.or(usage.output_tokens),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answer(body: &str, endpoint: Endpoint) -> Result<(String, Tokens), NoReply> {
        read(body.as_bytes(), endpoint, Format::Prompts)
            .map(|reply| (reply.response.get().to_owned(), reply.tokens))
    }

    fn text_of(body: &str, endpoint: Endpoint) -> Result<String, NoReply> {
        answer(body, endpoint).map(|(text, _)| text)
    }

    #[test]
    fn the_text_of_each_endpoint_is_its_token_byte_for_byte() {
        for (endpoint, body, text) in [
            (
                Endpoint::ChatCompletions,
                r#"{"choices":[{"message":{"content":"a\u00e9\n\ud83d"}}]}"#,
                r#""a\u00e9\n\ud83d""#,
            ),
            (Endpoint::ChatCompletions, r#"{"choices":[{"message":{"content":""}}]}"#, r#""""#),
            (
                Endpoint::ChatCompletions,
                r#"{"choices":[{"message":{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"a\""},{"type":"text","text":"\tb"}]}}]}"#,
                r#""a\"\tb""#,
            ),
            (
                Endpoint::ChatCompletions,
                r#"{"choices":[{"message":{"content":null,"refusal":"No."}}]}"#,
                r#""No.""#,
            ),
            (Endpoint::Completions, r#"{ "choices" : [ { "text" : "x" }, {"text":"y"} ] }"#, r#""x""#),
            (
                Endpoint::Responses,
                r#"{"error":null,"status":"completed","output":[{"type":"reasoning","content":[{"type":"reasoning_text","text":"hm"}]},{"type":"message","content":[{"type":"output_text","text":"a"}]},{"type":"message","content":[{"type":"refusal","refusal":"b"}]}]}"#,
                r#""ab""#,
            ),
        ] {
            assert_eq!(text_of(body, endpoint).as_deref(), Ok(text), "{body}");
        }
    }

    #[test]
    fn an_answer_without_text_says_why_it_ended() {
        let no_text = |finish: Option<&str>| Err(NoReply::NoText { finish: finish.map(str::to_owned) });
        let cut = r#"{"choices":[{"message":{"content":null},"finish_reason":"length"}]}"#;
        assert_eq!(text_of(cut, Endpoint::ChatCompletions), no_text(Some("length")));
        let incomplete = r#"{"status":"incomplete","output":[]}"#;
        assert_eq!(text_of(incomplete, Endpoint::Responses), no_text(Some("incomplete")));
        let cut =
            r#"{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}"#;
        assert_eq!(text_of(cut, Endpoint::Responses), no_text(Some("max_output_tokens")));
        for body in
            ["{}", r#"{"choices":[]}"#, r#"{"choices":7}"#, r#"{"choices":[{"message":{"content":7}}]}"#]
        {
            assert_eq!(text_of(body, Endpoint::ChatCompletions), no_text(None), "{body}");
            assert_eq!(text_of(body, Endpoint::Completions), no_text(None), "{body}");
        }
    }

    #[test]
    fn an_answer_that_was_cut_off_counts_and_one_that_was_withheld_does_not() {
        let chat = |finish: &str| {
            format!(r#"{{"choices":[{{"message":{{"content":"half"}},"finish_reason":"{finish}"}}]}}"#)
        };
        assert_eq!(text_of(&chat("length"), Endpoint::ChatCompletions).as_deref(), Ok(r#""half""#));
        let filtered = Err(NoReply::Filtered("content_filter".to_owned()));
        assert_eq!(text_of(&chat("content_filter"), Endpoint::ChatCompletions), filtered);
        let response = r#"{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[{"type":"message","content":[{"type":"output_text","text":"half"}]}]}"#;
        assert_eq!(text_of(response, Endpoint::Responses), filtered);
    }

    #[test]
    fn what_is_no_answer_is_told_apart() {
        // An array with as many elements as an answer has members that are read.
        let array = "[null,null,null,null,null,null,null,null]";
        for body in ["", "<html>", "[]", array, "\"text\"", "null", r#"{"choices":["#, "{} {}"] {
            for format in [Format::OpenAi, Format::Prompts] {
                let found = read(body.as_bytes(), Endpoint::ChatCompletions, format).map(|_| ());
                assert_eq!(found, Err(NoReply::Invalid), "{body}");
            }
        }
        for body in [
            r#"{"error":{"code":502,"message":"m"}}"#,
            r#"{"status":"failed","error":{"code":"server_error"},"output":[]}"#,
        ] {
            assert_eq!(text_of(body, Endpoint::Responses), Err(NoReply::Refusal), "{body}");
        }
    }

    #[test]
    fn an_openai_body_passes_as_it_came() {
        let body = b" {\n \"object\": \"list\", \"data\": [], \"usage\": {\"prompt_tokens\": 8, \"total_tokens\": 8}\n} ";
        let reply = read(body, Endpoint::Embeddings, Format::OpenAi).unwrap();
        assert_eq!(reply.response.get().as_bytes(), body.trim_ascii());
        assert_eq!(reply.tokens, Tokens { input: Some(8), output: None });
    }

    #[test]
    fn tokens_are_read_under_both_names_and_otherwise_unknown() {
        let with = |usage: &str| {
            let body = format!(r#"{{"choices":[{{"text":"x"}}],"usage":{usage}}}"#);
            answer(&body, Endpoint::Completions).unwrap().1
        };
        let nine = Tokens { input: Some(9), output: Some(40) };
        assert_eq!(with(r#"{"prompt_tokens":9,"completion_tokens":40,"details":{}}"#), nine);
        assert_eq!(with(r#"{"input_tokens":9,"output_tokens":40}"#), nine);
        assert_eq!(
            with(r#"{"prompt_tokens":9,"completion_tokens":40,"input_tokens":0,"output_tokens":0}"#),
            nine
        );
        for usage in ["null", "7", "{}", r#"{"prompt_tokens":"many"}"#] {
            assert_eq!(with(usage), Tokens::default(), "{usage}");
        }
    }

    proptest! {
        #[test]
        fn joined_parts_decode_to_their_texts_joined(texts in proptest::collection::vec(".*", 1..5)) {
            let parts: Vec<_> = texts.iter().map(|text| serde_json::json!({"type": "text", "text": text})).collect();
            let body = serde_json::json!({"choices": [{"message": {"content": parts}}]}).to_string();
            let token = text_of(&body, Endpoint::ChatCompletions).unwrap();
            prop_assert_eq!(serde_json::from_str::<String>(&token).unwrap(), texts.concat());
        }

        #[test]
        fn no_body_is_a_reason_to_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            for endpoint in Endpoint::ALL {
                let _ = read(&body, endpoint, Format::Prompts);
            }
        }
    }
}
