//! What a request asks for, whatever dialect it came in.
//!
//! Each dialect reads its own requests into a [`Question`]; from there on nothing depends on the dialect but
//! the words of the answer.

use crate::draw::PromptHash;

/// What a method and a path lead to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// A request with a prompt.
    Ask(Target),
    /// The list of models.
    Models,
}

/// What the URL says of a request with a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) task: Task,
    /// The model, in the dialects whose paths name it.
    pub(crate) model: Option<String>,
}

/// What is to be done with the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    Write(Form),
    Embed,
    Moderate,
}

/// How a written answer is asked for. Dialects with one form of their own have chats only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Chat,
    Response,
    Completion,
}

/// A request, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) task: Task,
    pub(crate) model: String,
    /// The last user text; where there are no messages the last input.
    pub(crate) prompt: String,
    pub(crate) prompt_hash: PromptHash,
    /// Tokens of everything that was sent, by the four-characters rule of thumb.
    pub(crate) input_tokens: u32,
    /// The most tokens that the request allows its answer.
    pub(crate) most_output_tokens: Option<u32>,
    /// How many inputs are to be embedded or moderated.
    pub(crate) inputs: usize,
    /// The length of an embedding, where the request names it.
    pub(crate) dimensions: Option<u32>,
}

/// Tokens of a text, by the rule of thumb that a token is four characters (bytes here).
pub(crate) fn tokens(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(4)).unwrap_or(u32::MAX)
}
