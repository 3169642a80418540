//! What an answer in OpenAI's API says. Pure.

use std::borrow::Cow;

use penstock_batchfile::{Endpoint, Format, Json, Tokens};

use crate::provider::reply::{NoReply, Reply, Response, joined};

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
    let (body, top) = str::from_utf8(body).ok().and_then(Top::read).ok_or(NoReply::Invalid)?;
    if top.is_refusal() {
        return Err(NoReply::Refusal);
    }
    let response = match format {
        Format::OpenAi => Response::AsItCame(body),
        Format::Prompts => text(&top, endpoint)?,
    };
    Ok(Reply { response, tokens: tokens(top.usage) })
}

/// The members of a body that matter, as far as they are not `null`.
struct Top<'a> {
    choices: Option<Json<'a>>,
    output: Option<Json<'a>>,
    has_other_result: bool,
    usage: Option<Json<'a>>,
    error: Option<Json<'a>>,
    status: Option<Json<'a>>,
    incomplete_details: Option<Json<'a>>,
}

impl<'a> Top<'a> {
    /// The whole body, and what matters of it. `None`: it is no JSON object.
    fn read(body: &'a str) -> Option<(Json<'a>, Self)> {
        let names =
            ["choices", "output", "data", "results", "usage", "error", "status", "incomplete_details"];
        let (body, members) = Json::object(body, &names)?;
        let [choices, output, data, results, usage, error, status, incomplete_details] =
            members.map(|member| member.filter(|value| value.get() != "null"));
        let has_other_result = data.or(results).is_some();
        Some((body, Self { choices, output, has_other_result, usage, error, status, incomplete_details }))
    }

    /// Some gateways send their refusals as 200, and a response can fail after it was accepted.
    fn is_refusal(&self) -> bool {
        let has_result = self.choices.or(self.output).is_some() || self.has_other_result;
        let has_failed = self.status.is_some_and(|status| status.get() == "\"failed\"");
        self.error.is_some() && (!has_result || has_failed)
    }
}

fn text<'a>(top: &Top<'a>, endpoint: Endpoint) -> Result<Response<'a>, NoReply> {
    let choice = |names| top.choices.and_then(|choices| choices.elements().next())?.members(names);
    let (text, finish) = match endpoint {
        Endpoint::ChatCompletions => choice(&["message", "finish_reason"])
            .map(|[message, finish]| (message.and_then(message_text), finish.and_then(Json::text)))
            .unwrap_or_default(),
        Endpoint::Completions => choice(&["text", "finish_reason"])
            .map(|[text, finish]| (joined(text), finish.and_then(Json::text)))
            .unwrap_or_default(),
        Endpoint::Responses => {
            let status = top.status.and_then(Json::text);
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

fn message_text(message: Json<'_>) -> Option<Response<'_>> {
    let [content, refusal] = message.members(&["content", "refusal"])?;
    let text = content.and_then(|content| joined([content]).or_else(|| joined(part_texts(content))));
    text.or_else(|| joined(refusal))
}

fn output_text(output: Json<'_>) -> Option<Response<'_>> {
    let messages = output
        .elements()
        .filter_map(|item| item.members(&["type", "content"]))
        .filter(|[kind, _]| kind.and_then(Json::text).as_deref() == Some("message"));
    joined(messages.filter_map(|[_, content]| content).flat_map(part_texts))
}

/// What the text parts say; parts of another kind, such as a model's thoughts, have neither member.
fn part_texts(parts: Json<'_>) -> impl Iterator<Item = Json<'_>> {
    parts
        .elements()
        .filter_map(|part| part.members(&["text", "refusal"]))
        .filter_map(|[text, refusal]| text.or(refusal))
}

/// Why a response is not complete.
fn incomplete_reason(details: Option<Json<'_>>) -> Option<Cow<'_, str>> {
    let [reason] = details?.members(&["reason"])?;
    reason.and_then(Json::text)
}

/// Reads the tokens of an answer: one that is recorded as failed was paid for as well.
pub(in crate::provider) fn used(body: &[u8]) -> Option<Tokens> {
    let (_, [usage]) = Json::object(str::from_utf8(body).ok()?, &["usage"])?;
    Some(tokens(usage))
}

/// The older endpoints have other names for the same.
fn tokens(usage: Option<Json<'_>>) -> Tokens {
    let names = [
        "prompt_tokens",
        "input_tokens",
        "completion_tokens",
        "output_tokens",
        "prompt_tokens_details",
        "input_tokens_details",
    ];
    let members = usage.and_then(|usage| usage.members(&names)).unwrap_or_default();
    let [prompt, input, completion, output, prompt_details, input_details] = members;
    let cached = prompt_details.or(input_details).and_then(|details| details.members(&["cached_tokens"]));
    Tokens {
        input: prompt.or(input).and_then(count),
        // Most answers come from no cache, and some providers say so each time.
        cached_input: cached.and_then(|[cached]| count(cached?)).filter(|cached| *cached > 0),
        output: completion.or(output).and_then(count),
    }
}

fn count(number: Json<'_>) -> Option<u64> {
    number.get().parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answer(body: &str, endpoint: Endpoint) -> Result<(String, Tokens), NoReply> {
        read(body.as_bytes(), endpoint, Format::Prompts)
            .map(|reply| (reply.response.json().get().to_owned(), reply.tokens))
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
        assert_eq!(reply.response.json().get().as_bytes(), body.trim_ascii());
        assert_eq!(reply.tokens, Tokens { input: Some(8), output: None, ..Tokens::default() });
    }

    #[test]
    fn tokens_are_read_under_both_names_and_otherwise_unknown() {
        let with = |usage: &str| {
            let body = format!(r#"{{"choices":[{{"text":"x"}}],"usage":{usage}}}"#);
            answer(&body, Endpoint::Completions).unwrap().1
        };
        let nine = Tokens { input: Some(9), output: Some(40), ..Tokens::default() };
        assert_eq!(with(r#"{"prompt_tokens":9,"completion_tokens":40,"details":{}}"#), nine);
        assert_eq!(with(r#"{"input_tokens":9,"output_tokens":40}"#), nine);
        assert_eq!(
            with(r#"{"prompt_tokens":9,"completion_tokens":40,"input_tokens":0,"output_tokens":0}"#),
            nine
        );
        for details in ["prompt_tokens_details", "input_tokens_details"] {
            let cached = |count: u32| {
                with(&format!(
                    r#"{{"prompt_tokens":9,"completion_tokens":40,"{details}":{{"cached_tokens":{count}}}}}"#
                ))
            };
            assert_eq!(cached(4), Tokens { cached_input: Some(4), ..nine });
            assert_eq!(cached(0), nine);
        }
        let withheld = br#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":40}}"#;
        assert_eq!(used(withheld), Some(nine), "an answer that is no use is paid for");
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
