//! What a completed validation means for its job. Pure: it follows from `validation.json` alone, so a repeated run
//! comes to the same verdict without reading the input.

use penstock_job::{Reason, Validation, spec::OnInvalid};
use penstock_storage::Generation;

/// What a completed validation means for its job.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The job may run on this `validation.json`, at this generation.
    Accepted(Validation, Generation),
    /// Nothing may be sent.
    Refused(Refusal),
}

/// Why an input is refused as a whole. Its `validation.json` is in the output, so the rejected records can be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// [`Reason::EmptyInput`] or [`Reason::InvalidInput`].
    pub reason: Reason,
    /// What is wrong, where the rejected records are (below the output), and what to do.
    pub message: String,
    /// What was found.
    pub validation: Validation,
    /// The generation of `validation.json`.
    pub generation: Generation,
}

impl Verdict {
    /// The verdict on what was found.
    pub fn of(validation: Validation, generation: Generation) -> Self {
        match objection(&validation) {
            None => Self::Accepted(validation, generation),
            Some((reason, message)) => Self::Refused(Refusal { reason, message, validation, generation }),
        }
    }

    /// What was found, whatever it means.
    pub fn validation(&self) -> &Validation {
        match self {
            Self::Accepted(validation, _) => validation,
            Self::Refused(refusal) => &refusal.validation,
        }
    }
}

/// What speaks against running the job.
fn objection(validation: &Validation) -> Option<(Reason, String)> {
    let Validation { lines, rejected, .. } = *validation;
    if lines == 0 {
        let message = "The input has no lines. Write one JSON object on each line.".to_owned();
        return Some((Reason::EmptyInput, message));
    }
    let place = match validation.rejected_files.as_slice() {
        [] => return None,
        [only] => only.name.clone(),
        [first, .., last] => format!("{} to {}", first.name, last.name),
    };
    let message = if rejected == lines {
        format!(
            "None of the {lines} lines of the input is valid. Read why in {place} below the output, and correct them."
        )
    } else if validation.spec.on_invalid == OnInvalid::Fail {
        format!(
            "{rejected} of the {lines} lines of the input are invalid, and the job is to fail then. Read why in {place} \
             below the output, and correct them or run with --on-invalid skip."
        )
    } else {
        return None;
    };
    Some((Reason::InvalidInput, message))
}
