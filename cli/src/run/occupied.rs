//! An output that belongs to another job: which difference it is, and what to do about it.

use penstock_job::{CanonicalSpec, identity::first_difference};
use thiserror::Error;

use crate::output::Output;

/// The output belongs to another job.
#[derive(Debug, Error)]
#[error("use the output {output}: {}", explain(difference.as_deref()))]
pub(crate) struct OccupiedError {
    output: String,
    /// The first field that differs, where it is known.
    difference: Option<String>,
}

impl OccupiedError {
    /// The `output` belongs to a job that differs in `difference`.
    pub(crate) fn new(output: &Output, difference: Option<String>) -> Self {
        Self { output: output.location().to_string(), difference }
    }
}

/// Whether the job in the output is ours.
pub(super) fn check(
    output: &Output,
    theirs: &CanonicalSpec,
    ours: &CanonicalSpec,
) -> Result<(), OccupiedError> {
    // Another file differs in its generation too, but has not changed.
    let other_input = (theirs.input.uri != ours.input.uri).then(|| "input.uri".to_owned());
    match other_input.or_else(|| first_difference(theirs, ours)) {
        None => Ok(()),
        Some(field) => Err(OccupiedError::new(output, Some(field))),
    }
}

fn explain(difference: Option<&str>) -> String {
    match difference {
        Some("input.generation") => {
            "the input has changed since the job in it began; run the changed input with \
                                     another --output, or put the old one back: a file with its modification time, an \
                                     object by restoring its generation"
                .to_owned()
        }
        Some("input.uri") => "it belongs to a job with another input; choose another --output".to_owned(),
        Some(field) => format!(
            "it belongs to another job (`{field}` differs); choose another --output, or run with the same settings to \
             go on with that job"
        ),
        None => "it belongs to another job; choose another --output".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::tests::in_folder;

    #[test]
    fn a_changed_input_is_told_in_words_that_a_user_knows() {
        let message = OccupiedError::new(&in_folder("out"), Some("input.generation".to_owned())).to_string();
        assert!(message.starts_with("use the output out: the input has changed since"), "{message}");
        let message = OccupiedError::new(&in_folder("out"), Some("model".to_owned())).to_string();
        assert!(message.contains("`model` differs"), "{message}");
    }
}
