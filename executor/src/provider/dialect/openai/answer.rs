//! What an answer in OpenAI's API says. Pure.

use std::borrow::Cow;

use penstock_batchfile::{Endpoint, Format, Tokens, skim, text_of};
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
    let body: &RawValue = object(body)?;
    let top = Top::of(body).ok_or(NoReply::Invalid)?;
    if top.is_refusal() {
        return Err(NoReply::Refusal);
    }
    let response = match format {
        Format::OpenAi => Cow::Borrowed(body),
        Format::Prompts => text(&top, endpoint)?,
    };
    Ok(Reply { response, tokens: tokens(top.usage) })
}

/// The members of a body that matter, as JSON.
struct Top<'a> {
    choices: Option<&'a str>,
    output: Option<&'a str>,
    has_other_result: bool,
    usage: Option<&'a str>,
    error: Option<&'a str>,
    status: Option<&'a str>,
    incomplete_details: Option<&'a str>,
}

impl<'a> Top<'a> {
    fn of(body: &'a RawValue) -> Option<Self> {
        let names =
            ["choices", "output", "data", "results", "usage", "error", "status", "incomplete_details"];
        let members = skim::members(body.get(), &names)?;
        let [choices, output, data, results, usage, error, status, incomplete_details] =
            members.map(|member| member.filter(|value| *value != "null"));
        let has_other_result = data.or(results).is_some();
        Some(Self { choices, output, has_other_result, usage, error, status, incomplete_details })
    }

    /// Some gateways send their refusals as 200, and a response can fail after it was accepted.
    fn is_refusal(&self) -> bool {
        let has_result = self.choices.or(self.output).is_some() || self.has_other_result;
        self.error.is_some() && (!has_result || self.status == Some("\"failed\""))
    }
}

fn text<'a>(top: &Top<'a>, endpoint: Endpoint) -> Result<Cow<'a, RawValue>, NoReply> {
    let choice =
        |names| skim::members(top.choices.and_then(|choices| skim::elements(choices).next())?, names);
    let (text, finish) = match endpoint {
        Endpoint::ChatCompletions => choice(&["message", "finish_reason"])
            .map(|[message, finish]| (message.and_then(message_text), finish.and_then(text_of)))
            .unwrap_or_default(),
        Endpoint::Completions => choice(&["text", "finish_reason"])
            .map(|[text, finish]| (text.and_then(string).map(Cow::Borrowed), finish.and_then(text_of)))
            .unwrap_or_default(),
        Endpoint::Responses => {
            let status = top.status.and_then(text_of);
            (top.output.and_then(output_text), incomplete_reason(top.incomplete_details).or(status))
        }
        // A job of prompts has no such endpoint.
        Endpoint::Embeddings | Endpoint::Moderations => (None, None),
    };
    if finish.as_deref() == Some(FILTERED) {
        return Err(NoReply::Filtered(FILTERED.to_owned()));
    }
    text.ok_or_else(|| NoReply::NoText { finish: finish.map(Cow::into_owned) })
}

fn message_text(message: &str) -> Option<Cow<'_, RawValue>> {
    let [content, refusal] = skim::members(message, &["content", "refusal"])?;
    let text = content.and_then(|content| match string(content) {
        Some(text) => Some(Cow::Borrowed(text)),
        None => joined(&part_texts(content).collect::<Vec<_>>()),
    });
    text.or_else(|| refusal.and_then(string).map(Cow::Borrowed))
}

fn output_text(output: &str) -> Option<Cow<'_, RawValue>> {
    let messages = skim::elements(output)
        .filter_map(|item| skim::members(item, &["type", "content"]))
        .filter(|[kind, _]| kind.and_then(text_of).as_deref() == Some("message"));
    let texts: Vec<&RawValue> = messages.filter_map(|[_, content]| content).flat_map(part_texts).collect();
    joined(&texts)
}

/// The string tokens of the text parts; parts of another kind, such as a model's thoughts, have neither member.
fn part_texts(parts: &str) -> impl Iterator<Item = &RawValue> {
    skim::elements(parts)
        .filter_map(|part| skim::members(part, &["text", "refusal"]))
        .filter_map(|[text, refusal]| string(text.or(refusal)?))
}

/// A value that is a string.
fn string(value: &str) -> Option<&RawValue> {
    serde_json::from_str::<&RawValue>(value).ok().filter(|value| is_string(value))
}

/// Why a response is not complete.
fn incomplete_reason(details: Option<&str>) -> Option<Cow<'_, str>> {
    let [reason] = skim::members(details?, &["reason"])?;
    reason.and_then(text_of)
}

#[derive(Deserialize, Default)]
#[expect(clippy::struct_field_names, reason = "these are the names in the body")]
struct Usage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

fn tokens(usage: Option<&str>) -> Tokens {
    let usage: Usage = usage.and_then(|usage| serde_json::from_str(usage).ok()).unwrap_or_default();
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
