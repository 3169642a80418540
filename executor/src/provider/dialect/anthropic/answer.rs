//! What an answer of Messages says. Pure.
//!
//! Shape: <https://platform.claude.com/docs/en/api/messages>; the words for how an answer ends:
//! <https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons>.

use std::borrow::Cow;

use penstock_batchfile::{Json, Tokens};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::provider::reply::{NoReply, Reply, joined, object};

/// How an answer ends that a classifier withheld, from here on or altogether.
const REFUSAL: &str = "refusal";

/// Reads the body of an answer: its text blocks, joined, without the model's thoughts. An answer that ended at the token
/// limit counts, one that a classifier ended does not.
pub(in crate::provider) fn read(body: &[u8]) -> Result<Reply<'_>, NoReply> {
    let answer: Message<'_> = object(body)?;
    let Some(content) = answer.content else {
        return Err(if answer.error.is_some() {
            NoReply::Refusal
        } else {
            NoReply::NoText { finish: answer.stop_reason.map(Cow::into_owned) }
        });
    };
    if answer.stop_reason.as_deref() == Some(REFUSAL) {
        return Err(NoReply::Filtered(REFUSAL.to_owned()));
    }
    let texts = content.into_iter().filter_map(|block| block.text).map(Json::from);
    let no_text = || NoReply::NoText { finish: answer.stop_reason.map(Cow::into_owned) };
    let response = joined(texts).ok_or_else(no_text)?;
    Ok(Reply { response, tokens: tokens(answer.usage) })
}

/// Reads the tokens of an answer: one that is recorded as failed was paid for as well.
pub(in crate::provider) fn used(body: &[u8]) -> Option<Tokens> {
    #[derive(Deserialize)]
    struct Used<'a> {
        #[serde(borrow)]
        usage: Option<&'a RawValue>,
    }
    object::<Used<'_>>(body).ok().map(|answer| tokens(answer.usage))
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<Vec<Block<'a>>>,
    #[serde(borrow)]
    stop_reason: Option<Cow<'a, str>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// A block of another kind, such as `thinking` or `tool_use`, has no text.
#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[expect(clippy::struct_field_names, reason = "these are the names in the body")]
struct Usage {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

/// What went into the prompt cache or came out of it is counted beside `input_tokens`, and is a part of the prompt.
fn tokens(usage: Option<&RawValue>) -> Tokens {
    let usage: Usage = usage.and_then(|usage| serde_json::from_str(usage.get()).ok()).unwrap_or_default();
    let input = [usage.input_tokens, usage.cache_creation_input_tokens, usage.cache_read_input_tokens];
    Tokens {
        input: input.into_iter().flatten().reduce(u64::saturating_add),
        cached_input: usage.cache_read_input_tokens.filter(|cached| *cached > 0),
        output: usage.output_tokens,
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
        let body = r#"{"id":"msg_01XFDUDYJgAACzvnptvVoYEL","type":"message","role":"assistant","model":"claude-opus-4-6","content":[{"type":"thinking","thinking":"Hm.","signature":"x"},{"type":"text","text":"a\u00e9"},{"type":"text","text":"\n\"b","citations":null}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":100,"cache_read_input_tokens":1000,"output_tokens":6}}"#;
        let tokens = Tokens { input: Some(1_112), cached_input: Some(1_000), output: Some(6) };
        assert_eq!(text_of(body), Ok((r#""a\u00e9\n\"b""#.to_owned(), tokens)));
        assert_eq!(used(body.as_bytes()), Some(tokens));
    }

    #[test]
    fn an_answer_that_was_cut_off_counts_and_one_that_was_withheld_does_not() {
        let half =
            |stop: &str| format!(r#"{{"content":[{{"type":"text","text":"half"}}],"stop_reason":"{stop}"}}"#);
        for stop in ["max_tokens", "stop_sequence", "end_turn", "model_context_window_exceeded"] {
            assert_eq!(text_of(&half(stop)), Ok((r#""half""#.to_owned(), Tokens::default())), "{stop}");
        }
        let filtered = Err(NoReply::Filtered("refusal".to_owned()));
        assert_eq!(text_of(&half("refusal")), filtered);
        let withheld = r#"{"type":"message","role":"assistant","content":[],"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber","explanation":"declined"},"usage":{"input_tokens":87,"output_tokens":0}}"#;
        assert_eq!(text_of(withheld), filtered);
    }

    #[test]
    fn an_answer_without_text_says_why_it_ended() {
        for (body, finish) in [
            (r#"{"content":[],"stop_reason":"max_tokens"}"#, Some("max_tokens")),
            (r#"{"content":[{"type":"tool_use","input":{}}],"stop_reason":"tool_use"}"#, Some("tool_use")),
            (r#"{"content":[{"type":"text","text":7}]}"#, None),
            ("{}", None),
        ] {
            let finish = finish.map(str::to_owned);
            assert_eq!(text_of(body), Err(NoReply::NoText { finish }), "{body}");
        }
    }

    #[test]
    fn what_is_no_answer_is_told_apart() {
        for body in
            ["", "<html>", "[]", "[null,null,null,null]", "null", r#"{"content":["#, r#"{"content":"text"}"#]
        {
            assert_eq!(text_of(body), Err(NoReply::Invalid), "{body}");
        }
        let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        assert_eq!(text_of(error), Err(NoReply::Refusal));
    }

    proptest! {
        #[test]
        fn no_body_is_a_reason_to_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&body);
        }
    }
}
