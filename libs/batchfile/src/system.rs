//! The beginning of a body's system prompt, by which lines are sorted so that like prompts go back to back.
//!
//! Tolerant: a body that it does not understand has no system prompt. Judging bodies is the provider's business.

use std::{borrow::Cow, fmt};

use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::{
    Endpoint, Request,
    json::{string_content, text_of},
    members::{Members, Named},
};

/// How much of a system prompt is looked at, in bytes.
pub const SYSTEM_PROMPT_PREFIX_BYTES: usize = 256;

/// The first bytes of the system prompt of an OpenAI line, at most [`SYSTEM_PROMPT_PREFIX_BYTES`].
///
/// Chat completions: the text of the leading messages whose role is `system` or `developer`; responses:
/// `instructions`; others have none. The bytes are those that stand in the JSON, with escapes as written: what one
/// program wrote alike is alike here too, and a prompt in one piece is borrowed.
pub fn system_prompt_prefix<'a>(request: &Request<'a>) -> Option<Cow<'a, [u8]>> {
    let mut prefix = Prefix::default();
    let prompt = request.prompt?;
    match request.endpoint {
        Endpoint::ChatCompletions => {
            each_element(prompt, &["role", "content"], |[role, content]| {
                push_message(&mut prefix, role?, content?)
            });
        }
        Endpoint::Responses => {
            let _ = prefix.push(prompt);
        }
        Endpoint::Completions | Endpoint::Embeddings | Endpoint::Moderations => {}
    }
    (!prefix.0.is_empty()).then_some(prefix.0)
}

/// Takes the text of a message; `None` behind the last one of interest.
fn push_message<'a>(prefix: &mut Prefix<'a>, role: &'a RawValue, content: &'a RawValue) -> Option<()> {
    if !text_of(role).is_some_and(|role| role == "system" || role == "developer") {
        return None;
    }
    if string_content(content).is_some() {
        return prefix.push(content);
    }
    let mut more = Some(());
    each_element(content, &["text"], |[text]| {
        more = text.map_or(Some(()), |text| prefix.push(text));
        more
    });
    more
}

/// The bytes taken so far.
#[derive(Default)]
struct Prefix<'a>(Cow<'a, [u8]>);

impl<'a> Prefix<'a> {
    /// Adds a string token; `None` when nothing more fits.
    fn push(&mut self, token: &'a RawValue) -> Option<()> {
        let text = string_content(token).unwrap_or_default().as_bytes();
        let room = SYSTEM_PROMPT_PREFIX_BYTES - self.0.len();
        let text = &text[..text.len().min(room)];
        if self.0.is_empty() {
            self.0 = Cow::Borrowed(text);
        } else {
            self.0.to_mut().extend_from_slice(text);
        }
        (text.len() < room).then_some(())
    }
}

/// Visits these members of each element of a JSON array of objects, as long as `visit` returns something.
fn each_element<'a, const N: usize>(
    array: &'a RawValue,
    names: &'static [&'static str; N],
    visit: impl FnMut([Option<&'a RawValue>; N]) -> Option<()>,
) {
    let mut deserializer = serde_json::Deserializer::from_str(array.get());
    // The visitor has what it wants, whatever comes behind the last element that it looked at.
    let _: Result<(), serde_json::Error> = deserializer.deserialize_seq(Elements(names, visit));
}

struct Elements<F, const N: usize>(&'static [&'static str; N], F);

impl<'de, F, const N: usize> Visitor<'de> for Elements<F, N>
where
    F: FnMut([Option<&'de RawValue>; N]) -> Option<()>,
{
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        while let Some(Members { values, .. }) = elements.next_element_seed(Named(self.0))? {
            if (self.1)(values).is_none() {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, Rules, parse};

    fn line(body: &str) -> String {
        format!(r#"{{"custom_id":"a","body":{body}}}"#)
    }

    fn request(line: &str, endpoint: Endpoint) -> Request<'_> {
        let rules = Rules { format: Format::OpenAi, endpoint, has_model: true, strict: false };
        parse(line.as_bytes(), &rules).unwrap()
    }

    fn prefix(body: &str, endpoint: Endpoint) -> Option<String> {
        let line = line(body);
        let prefix = system_prompt_prefix(&request(&line, endpoint))?;
        Some(String::from_utf8(prefix.into_owned()).unwrap())
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
        let body = format!(
            r#"{{"messages":[{{"role":"system","content":"{}"}},{{"role":"system","content":"b"}}]}}"#,
            "a".repeat(300)
        );
        let line = line(&body);
        let prefix = system_prompt_prefix(&request(&line, Endpoint::ChatCompletions));
        assert!(
            matches!(&prefix, Some(Cow::Borrowed(bytes)) if *bytes == [b'a'; SYSTEM_PROMPT_PREFIX_BYTES])
        );
        let pieces = format!(
            r#"[{{"role":"system","content":[{{"x":"x"}},{{"text":"b"}},{{"text":"{}"}}]}}]"#,
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
