//! Reads back what a record says about its line, and that the record is whole.

use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::{Format, Ordinal, OutcomeKind, json::string_content, members::Members};

/// What a record says about its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordHead<'a> {
    /// Which line it is.
    pub ordinal: Ordinal,
    /// What became of it.
    pub outcome: OutcomeKind,
    /// The raw token of the line's id, `None` when none was known.
    pub id: Option<&'a str>,
}

/// Why a line of a part is no record. A part with such a line is damaged.
#[derive(Debug, Error)]
pub enum RecordError {
    /// Bytes that are no text.
    #[error("read the record as text: it is not UTF-8, so the part is damaged")]
    Utf8(#[from] std::str::Utf8Error),
    /// Torn or damaged.
    #[error("read the record as a JSON object, so the part is damaged: {0}")]
    Json(#[from] serde_json::Error),
    /// A member is absent, stands twice, or has no sense.
    #[error(
        "read `{0}` of the record: it is absent, double or malformed, so the part is damaged or of another job"
    )]
    Member(&'static str),
}

/// Reads one record; its `\n` may be there or not. All of the line must be well-formed JSON.
pub fn read_record(line: &[u8], format: Format) -> Result<RecordHead<'_>, RecordError> {
    let text = str::from_utf8(line)?;
    match format {
        Format::Prompts => {
            let [id, ordinal, outcome, response] =
                members(text, &["prompt_id", "ordinal", "outcome", "response"])?;
            let ordinal = ordinal.and_then(number).ok_or(RecordError::Member("ordinal"))?;
            head(ordinal, id, Format::Prompts, outcome, response)
        }
        Format::OpenAi => {
            let [name, id, outcome, ordinal, response] =
                members(text, &["id", "custom_id", "outcome", "ordinal", "response"])?;
            let named = name.and_then(ordinal_in_name).ok_or(RecordError::Member("id"))?;
            match (outcome, ordinal) {
                (None, None) => {}
                (Some(_), Some(ordinal)) if number(ordinal) == Some(named) => {}
                _ => return Err(RecordError::Member("ordinal")),
            }
            head(named, id, Format::OpenAi, outcome, response)
        }
    }
}

/// Only successes are without `outcome`; they have a response instead.
fn head<'a>(
    ordinal: Ordinal,
    id: Option<&'a RawValue>,
    format: Format,
    outcome: Option<&RawValue>,
    response: Option<&RawValue>,
) -> Result<RecordHead<'a>, RecordError> {
    let id = id.ok_or(RecordError::Member(format.id_name()))?;
    let outcome = match (outcome, response) {
        (None, Some(_)) => OutcomeKind::Succeeded,
        (None, None) => return Err(RecordError::Member("response")),
        (Some(outcome), _) => match OutcomeKind::deserialize(outcome) {
            Ok(OutcomeKind::Succeeded) | Err(_) => return Err(RecordError::Member("outcome")),
            Ok(outcome) => outcome,
        },
    };
    Ok(RecordHead {
        ordinal,
        outcome,
        id: Some(id.get()).filter(|id| *id != "null"),
    })
}

fn members<'a, const N: usize>(
    text: &'a str,
    names: &'static [&'static str; N],
) -> Result<[Option<&'a RawValue>; N], RecordError> {
    let members = Members::read(text, names)?;
    match members.duplicate {
        Some(name) => Err(RecordError::Member(name)),
        None => Ok(members.values),
    }
}

fn number(value: &RawValue) -> Option<Ordinal> {
    value.get().parse().ok().map(Ordinal::new)
}

/// The ordinal at the end of `batch_req_<identity>_<epoch>_<ordinal>`.
fn ordinal_in_name(name: &RawValue) -> Option<Ordinal> {
    let (_, ordinal) = string_content(name)?
        .strip_prefix("batch_req_")?
        .rsplit_once('_')?;
    ordinal.parse().ok().map(Ordinal::new)
}
