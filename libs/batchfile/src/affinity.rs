//! What lines are sorted by, so that like prompts go back to back: the model, and the beginning of the system prompt.
//!
//! Tolerant: a body that it does not understand has no system prompt. Judging bodies is the provider's business.

use std::{borrow::Cow, ops::ControlFlow};

use crate::{
    Endpoint, Format, Rules,
    json::{string_content, text_of},
    skim::{elements, members},
};

/// How much of a system prompt is looked at, in bytes.
pub const SYSTEM_PROMPT_PREFIX_BYTES: usize = 256;

/// What a line has in common with others. The lines of a job of prompts have all of it in common.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Affinity<'a> {
    /// The line's own model.
    pub model: Option<Cow<'a, str>>,
    /// The first bytes of its system prompt, at most [`SYSTEM_PROMPT_PREFIX_BYTES`].
    ///
    /// Chat completions: the text of the leading messages whose role is `system` or `developer`; responses:
    /// `instructions`; others have none. The bytes are those that stand in the JSON, with escapes as written: what one
    /// program wrote alike is alike here too, and a prompt in one piece is borrowed.
    pub system_prompt: Option<Cow<'a, [u8]>>,
}

impl<'a> Affinity<'a> {
    /// Reads a line that [`parse`](crate::parse) has let through under the same rules; of another it says nothing, or
    /// something.
    pub fn of(line: &'a [u8], rules: &Rules) -> Self {
        match rules.format {
            Format::Prompts => Self::default(),
            Format::OpenAi => Self::of_openai(line, rules.endpoint).unwrap_or_default(),
        }
    }

    fn of_openai(line: &'a [u8], endpoint: Endpoint) -> Option<Self> {
        let [body] = members(str::from_utf8(line).ok()?, &["body"])?;
        let body = body?;
        let mut prefix = Prefix::default();
        let model = match endpoint {
            Endpoint::ChatCompletions => {
                let [model, messages] = members(body, &["model", "messages"])?;
                let mut messages = messages.into_iter().flat_map(elements);
                let _ = messages.try_for_each(|message| push_message(&mut prefix, message));
                model
            }
            Endpoint::Responses => {
                let [model, instructions] = members(body, &["model", "instructions"])?;
                let _ = instructions.map(|instructions| prefix.push(instructions));
                model
            }
            Endpoint::Completions | Endpoint::Embeddings | Endpoint::Moderations => {
                let [model] = members(body, &["model"])?;
                model
            }
        };
        let system_prompt = (!prefix.0.is_empty()).then_some(prefix.0);
        Some(Self { model: model.and_then(text_of), system_prompt })
    }
}

/// Takes the text of a message; breaks behind the last one of interest.
fn push_message<'a>(prefix: &mut Prefix<'a>, message: &'a str) -> ControlFlow<()> {
    let Some([Some(role), Some(content)]) = members(message, &["role", "content"]) else {
        return ControlFlow::Break(());
    };
    if !text_of(role).is_some_and(|role| role == "system" || role == "developer") {
        return ControlFlow::Break(());
    }
    if string_content(content).is_some() {
        return prefix.push(content);
    }
    let mut texts = elements(content).filter_map(|part| members(part, &["text"]).and_then(|[text]| text));
    texts.try_for_each(|text| prefix.push(text))
}

/// The bytes taken so far.
#[derive(Default)]
struct Prefix<'a>(Cow<'a, [u8]>);

impl<'a> Prefix<'a> {
    /// Adds a string token; breaks when nothing more fits.
    fn push(&mut self, token: &'a str) -> ControlFlow<()> {
        let text = string_content(token).unwrap_or_default().as_bytes();
        let room = SYSTEM_PROMPT_PREFIX_BYTES - self.0.len();
        let text = &text[..text.len().min(room)];
        if self.0.is_empty() {
            self.0 = Cow::Borrowed(text);
        } else {
            self.0.to_mut().extend_from_slice(text);
        }
        if text.len() == room { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(format: Format, endpoint: Endpoint) -> Rules {
        Rules { format, endpoint, has_model: true, strict: false }
    }

    fn prefix(body: &str, endpoint: Endpoint) -> Option<String> {
        let line = format!(r#"{{"custom_id":"a","body":{body}}}"#);
        let affinity = Affinity::of(line.as_bytes(), &rules(Format::OpenAi, endpoint));
        Some(String::from_utf8(affinity.system_prompt?.into_owned()).unwrap())
    }

    #[test]
    fn a_line_is_like_those_of_its_own_model() {
        let model = |line: &'static str, format| {
            Affinity::of(line.as_bytes(), &rules(format, Endpoint::ChatCompletions)).model
        };
        let line = r#"{"body":{"messages":[],"model":"\u006dini"}}"#;
        assert_eq!(model(line, Format::OpenAi).as_deref(), Some("mini"));
        assert_eq!(model(line, Format::Prompts), None);
        for line in [r#"{"body":{"model":null}}"#, r#"{"body":{}}"#, "{}", "[]", ""] {
            assert_eq!(model(line, Format::OpenAi), None, "{line}");
        }
    }

    fn chat(messages: &str) -> Option<String> {
        prefix(&format!(r#"{{"model":"m","messages":{messages}}}"#), Endpoint::ChatCompletions)
    }

    #[test]
    fn the_leading_system_and_developer_messages_count() {
        assert_eq!(chat(r#"[{"role":"system","content":"Be\nbrief."}]"#).as_deref(), Some(r"Be\nbrief."));
        let messages = r#"[{"content":"a","role":"developer"},{"role":"system","content":"b"},
                           {"role":"user","content":"c"},{"role":"system","content":"d"}]"#;
        assert_eq!(chat(messages).as_deref(), Some("ab"));
    }

    #[test]
    fn text_parts_count_like_one_string() {
        let parts = r#"[{"role":"system","content":[{"type":"text","text":"a"},{"type":"x"},{"text":"b"}]}]"#;
        assert_eq!(chat(parts).as_deref(), Some("ab"));
    }

    #[test]
    fn at_most_256_bytes_are_taken_and_borrowed_from_a_prompt_in_one_piece() {
        let line = format!(
            r#"{{"body":{{"messages":[{{"role":"system","content":"{}"}},{{"role":"system","content":"b"}}]}}}}"#,
            "a".repeat(300)
        );
        let affinity = Affinity::of(line.as_bytes(), &rules(Format::OpenAi, Endpoint::ChatCompletions));
        assert!(
            matches!(&affinity.system_prompt, Some(Cow::Borrowed(bytes)) if *bytes == [b'a'; SYSTEM_PROMPT_PREFIX_BYTES])
        );
        let pieces = format!(
            r#"[{{"role":"system","content":["x",{{"text":"b"}},{{"text":"{}"}}]}}]"#,
            "a".repeat(300)
        );
        assert_eq!(chat(&pieces), Some(format!("b{}", "a".repeat(255))));
    }

    #[test]
    fn responses_have_instructions() {
        assert_eq!(prefix(r#"{"instructions":"a"}"#, Endpoint::Responses).as_deref(), Some("a"));
        assert_eq!(prefix(r#"{"instructions":"a"}"#, Endpoint::Completions), None);
    }

    #[test]
    fn what_is_not_understood_has_no_system_prompt() {
        for messages in
            ["null", "7", "{}", "[]", "[7]", r#"[{"role":"user","content":"a"}]"#, r#"[{"role":"system"}]"#]
        {
            assert_eq!(chat(messages), None, "{messages}");
        }
        for content in ["null", "7", "\"\"", "[]", "[{\"text\":7}]"] {
            assert_eq!(chat(&format!(r#"[{{"role":"system","content":{content}}}]"#)), None, "{content}");
        }
    }
}
