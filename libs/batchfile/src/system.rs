//! The beginning of a body's system prompt, by which lines are sorted so that like prompts go back to back.
//!
//! Tolerant: a body that it does not understand has no system prompt. Judging bodies is the provider's business.

use std::{borrow::Cow, fmt, ops::ControlFlow};

use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::{
    Endpoint,
    json::{string_content, text_of},
    members::Members,
};

/// How much of a system prompt is looked at, in bytes.
pub const SYSTEM_PROMPT_PREFIX_BYTES: usize = 256;

/// The first bytes of the system prompt of an OpenAI body, at most [`SYSTEM_PROMPT_PREFIX_BYTES`].
///
/// Chat completions: the text of the leading messages whose role is `system` or `developer`; responses:
/// `instructions`; others have none. The bytes are those that stand in the JSON, with escapes as written: what one
/// program wrote alike is alike here too, and a prompt in one piece is borrowed.
pub fn system_prompt_prefix(body: &RawValue, endpoint: Endpoint) -> Option<Cow<'_, [u8]>> {
    let mut prefix = Prefix::default();
    match endpoint {
        Endpoint::ChatCompletions => {
            let [messages] = members(body, &["messages"])?;
            each_element(messages?, |message| push_message(&mut prefix, message));
        }
        Endpoint::Responses => {
            let [instructions] = members(body, &["instructions"])?;
            let _ = prefix.push(instructions?);
        }
        Endpoint::Completions | Endpoint::Embeddings | Endpoint::Moderations => {}
    }
    (!prefix.0.is_empty()).then_some(prefix.0)
}

/// Takes the text of a message; breaks behind the last one of interest.
fn push_message<'a>(prefix: &mut Prefix<'a>, message: &'a RawValue) -> ControlFlow<()> {
    let Some([Some(role), Some(content)]) = members(message, &["role", "content"]) else {
        return ControlFlow::Break(());
    };
    if !text_of(role).is_some_and(|role| role == "system" || role == "developer") {
        return ControlFlow::Break(());
    }
    if string_content(content).is_some() {
        return prefix.push(content);
    }
    let mut full = ControlFlow::Continue(());
    each_element(content, |part| {
        if let Some([Some(text)]) = members(part, &["text"]) {
            full = prefix.push(text);
        }
        full
    });
    full
}

fn members<'a, const N: usize>(
    value: &'a RawValue,
    names: &'static [&'static str; N],
) -> Option<[Option<&'a RawValue>; N]> {
    Members::read(value.get(), names)
        .ok()
        .map(|members| members.values)
}

/// The bytes taken so far.
#[derive(Default)]
struct Prefix<'a>(Cow<'a, [u8]>);

impl<'a> Prefix<'a> {
    /// Adds a string token; breaks when nothing more fits.
    fn push(&mut self, token: &'a RawValue) -> ControlFlow<()> {
        let text = string_content(token).unwrap_or_default().as_bytes();
        let room = SYSTEM_PROMPT_PREFIX_BYTES - self.0.len();
        let text = &text[..text.len().min(room)];
        if self.0.is_empty() {
            self.0 = Cow::Borrowed(text);
        } else {
            self.0.to_mut().extend_from_slice(text);
        }
        if text.len() == room {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Visits the elements of a JSON array until `visit` breaks.
fn each_element<'a>(array: &'a RawValue, visit: impl FnMut(&'a RawValue) -> ControlFlow<()>) {
    let mut deserializer = serde_json::Deserializer::from_str(array.get());
    // The visitor has what it wants even where the rest is no array: that only means no further elements.
    let _: Result<(), serde_json::Error> = deserializer.deserialize_seq(Elements(visit));
}

struct Elements<F>(F);

impl<'de, F: FnMut(&'de RawValue) -> ControlFlow<()>> Visitor<'de> for Elements<F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        while let Some(element) = elements.next_element()? {
            if (self.0)(element).is_break() {
                break;
            }
        }
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}
