//! The JSON of each kind of record but a success: names and order of the fields, as the job protocol fixes them.

use std::fmt;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{Attempt, Json, Ordinal, OutcomeKind};

#[derive(Serialize)]
pub(super) struct PromptError<'a> {
    pub(super) prompt_id: Option<Json<'a>>,
    pub(super) ordinal: Ordinal,
    pub(super) outcome: OutcomeKind,
    pub(super) error: PromptErrorCause<'a>,
    pub(super) attempts: &'a [Attempt],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line_number: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) byte_offset: Option<u64>,
}

#[derive(Serialize)]
pub(super) struct PromptErrorCause<'a> {
    pub(super) code: &'a str,
    pub(super) message: &'a str,
    pub(super) status: Option<u16>,
}

#[derive(Serialize)]
pub(super) struct OpenAiError<'a> {
    pub(super) id: fmt::Arguments<'a>,
    pub(super) custom_id: Option<Json<'a>>,
    pub(super) response: Option<OpenAiResponse<'a>>,
    pub(super) error: OpenAiErrorCause<'a>,
    pub(super) outcome: OutcomeKind,
    pub(super) ordinal: Ordinal,
    pub(super) attempts: &'a [Attempt],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line_number: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) byte_offset: Option<u64>,
}

#[derive(Serialize)]
pub(super) struct OpenAiErrorCause<'a> {
    pub(super) code: &'a str,
    pub(super) message: &'a str,
}

#[derive(Serialize)]
pub(super) struct OpenAiResponse<'a> {
    pub(super) status_code: u16,
    pub(super) request_id: Option<&'a str>,
    pub(super) body: Option<&'a RawValue>,
}
