//! What a healthy provider answers, before a dialect puts it into its own shape.
//!
//! Pure: an answer follows from the seed, the settings and the question, so the same prompt gets the same
//! answer; only `created` is a time.

mod text;

use bytes::Bytes;
use serde::Serialize;

pub(crate) use text::{End, Written};

use crate::{
    dialect::{Dialect, openai},
    draw::{Purpose, draw},
    question::{Question, Task},
    settings::OutputLength,
};

/// A finished answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) body: Bytes,
    /// Tokens of the answer, those of thinking included.
    pub(crate) output_tokens: u32,
}

/// The answer to a question. `cut` is how a fault ends a text before it began; `created` is in seconds since the
/// epoch. Every dialect that embeds or moderates does it in OpenAI's shape.
pub(crate) fn answer(
    dialect: &dyn Dialect,
    seed: u64,
    length: OutputLength,
    question: &Question,
    cut: Option<End>,
    created: u64,
) -> Answer {
    let mut content = draw(seed, question.prompt_hash, 0, Purpose::Content);
    match question.task {
        Task::Embed => Answer { body: openai::embeddings(question, &mut content), output_tokens: 0 },
        Task::Moderate => Answer { body: openai::moderations(question, &mut content), output_tokens: 0 },
        Task::Write(form) => {
            let written = cut.map_or_else(
                || {
                    let mut drawn = draw(seed, question.prompt_hash, 0, Purpose::Length);
                    let wanted = whole_tokens(length.tokens.sample(&mut drawn));
                    let most = question.most_output_tokens.unwrap_or(u32::MAX).min(length.most_tokens);
                    Written::write(&mut content, wanted, most, length.thought_tokens)
                },
                Written::nothing,
            );
            let body = dialect.text(question, form, &written, created);
            Answer { body, output_tokens: written.output_tokens() }
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float cast saturates, as it should"
)]
fn whole_tokens(wanted: f64) -> u32 {
    wanted.round() as u32
}

/// A value of our own as JSON.
pub(crate) fn json(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).expect("invariant: our own structs have string keys and finite numbers").into()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::{
        distribution::Distribution,
        question::{Form, Target},
    };

    const CHAT: &str = r#"{"model":"m","messages":[{"role":"user","content":"Where is my parcel?"}]"#;

    fn asked(task: Task, body: &str) -> Question {
        openai::OpenAi.question(Target { task, model: None }, body.as_bytes()).unwrap()
    }

    fn ask(seed: u64, task: Task, body: &str) -> (Value, u32) {
        let question = asked(task, body);
        let answer = answer(&openai::OpenAi, seed, OutputLength::default(), &question, None, 1_700_000_000);
        (serde_json::from_slice(&answer.body).unwrap(), answer.output_tokens)
    }

    #[test]
    fn the_same_prompt_and_seed_get_the_same_answer() {
        let chat = format!("{CHAT}}}");
        let first = ask(1, Task::Write(Form::Chat), &chat);
        assert_eq!(first, ask(1, Task::Write(Form::Chat), &chat));
        assert_ne!(first, ask(2, Task::Write(Form::Chat), &chat));
    }

    #[test]
    fn a_chat_answer_has_a_text_and_its_usage() {
        let (body, output_tokens) = ask(1, Task::Write(Form::Chat), &format!("{CHAT}}}"));
        let text = body["choices"][0]["message"]["content"].as_str().unwrap();
        assert!(!text.is_empty());
        assert_eq!(body["choices"][0]["finish_reason"], "stop");
        assert_eq!(
            body["usage"],
            serde_json::json!({
                "prompt_tokens": 5, "completion_tokens": output_tokens, "total_tokens": 5 + output_tokens,
            })
        );
    }

    #[test]
    fn the_limit_of_the_request_cuts_the_answer() {
        let (body, output_tokens) =
            ask(1, Task::Write(Form::Chat), &format!("{CHAT},\"max_completion_tokens\":3}}"));
        assert_eq!(output_tokens, 3);
        assert_eq!(body["choices"][0]["finish_reason"], "length");
    }

    #[test]
    fn lengths_follow_their_distribution_and_thinking_counts() {
        let length = OutputLength { tokens: Distribution::Constant(200.0), ..OutputLength::default() };
        let question = asked(Task::Write(Form::Chat), &format!("{CHAT}}}"));
        let tokens = answer(&openai::OpenAi, 1, length, &question, None, 0).output_tokens;
        assert!((200..230).contains(&tokens), "{tokens} tokens");
        let thinking = OutputLength { thought_tokens: 100, ..length };
        assert_eq!(answer(&openai::OpenAi, 1, thinking, &question, None, 0).output_tokens, tokens + 100);
    }

    #[test]
    fn each_endpoint_answers_in_its_own_shape() {
        let (body, _) = ask(1, Task::Write(Form::Response), r#"{"model":"m","input":"Hello"}"#);
        assert!(body["output"][0]["content"][0]["text"].as_str().is_some_and(|text| !text.is_empty()));
        assert_eq!(body["usage"]["input_tokens"], 2);

        let (body, _) = ask(1, Task::Write(Form::Completion), r#"{"model":"m","prompt":"Hello"}"#);
        assert!(body["choices"][0]["text"].as_str().is_some_and(|text| !text.is_empty()));

        let (body, _) = ask(1, Task::Embed, r#"{"model":"m","input":["a","b"],"dimensions":3}"#);
        assert_eq!(body["data"][1]["embedding"].as_array().map(Vec::len), Some(3));

        let (body, _) = ask(1, Task::Moderate, r#"{"input":"Hello"}"#);
        assert!(body["results"][0]["flagged"].is_boolean());
    }
}
