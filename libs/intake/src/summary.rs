//! The figures of an input: counted line by line, and corrected for repeated ids, which are known only at the end.

use std::collections::BTreeMap;

use penstock_batchfile::{Ordinal, RejectionCode};
use penstock_job::{
    OrdinalSet,
    identity_sum::IdentitySum,
    validation::{MODELS_LISTED, ValidatedInput},
};

/// Longest name of a model that is counted by itself, in bytes. A longer one is no model's name, and a thousand of
/// them would not fit into memory.
const MODEL_NAME_BYTES: usize = 256;

/// Under this name stand the models that are not counted by themselves.
const OTHER: &str = "other";

/// What an intake found out about an input.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The input as it was read.
    pub input: ValidatedInput,
    /// Non-blank lines.
    pub lines: u64,
    /// Which of them are invalid.
    pub rejected: OrdinalSet,
    /// How many lines were rejected for each code.
    pub rejected_codes: BTreeMap<String, u64>,
    /// Valid lines per model; at most [`MODELS_LISTED`], the rest under `other`.
    pub models: BTreeMap<String, u64>,
    /// Rough number of tokens that the valid lines will send: a quarter of their bytes.
    pub token_estimate: u64,
    /// The sum that the published ids must arrive at.
    pub identity_sum: IdentitySum,
}

/// The figures while they are being counted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    lines: u64,
    rejected: OrdinalSet,
    codes: BTreeMap<RejectionCode, u64>,
    models: BTreeMap<String, u64>,
    valid_bytes: u64,
    identity_sum: IdentitySum,
}

impl Tally {
    /// Counts a line with its id's token, valid or not.
    pub(crate) fn line(&mut self, ordinal: Ordinal, raw_id: Option<&str>) {
        self.lines += 1;
        self.identity_sum.add(ordinal, raw_id);
    }

    /// Counts an invalid line.
    pub(crate) fn invalid(&mut self, ordinal: Ordinal, code: RejectionCode) {
        self.rejected.insert(ordinal);
        *self.codes.entry(code).or_default() += 1;
    }

    /// Counts a valid line that goes to `model`.
    pub(crate) fn valid(&mut self, model: &str, bytes: u64) {
        self.valid_bytes += bytes;
        let name = listed_name(model);
        if let Some(count) = self.models.get_mut(name) {
            *count += 1;
        } else if self.models.len() < MODELS_LISTED {
            self.models.insert(name.to_owned(), 1);
        } else {
            *self.models.entry(OTHER.to_owned()).or_default() += 1;
        }
    }

    /// Takes back that a line was valid: its id repeats. `model` and `bytes` are those of [`Tally::valid`].
    pub(crate) fn repeated(&mut self, ordinal: Ordinal, model: &str, bytes: u64) {
        self.valid_bytes -= bytes;
        let name = listed_name(model);
        let name = if self.models.contains_key(name) { name } else { OTHER };
        if let Some(count) = self.models.get_mut(name) {
            *count -= 1;
        }
        self.invalid(ordinal, RejectionCode::DuplicateId);
    }

    /// The figures, once all is counted.
    pub(crate) fn summary(self, input: ValidatedInput) -> Summary {
        Summary {
            input,
            lines: self.lines,
            rejected: self.rejected,
            rejected_codes: self.codes.into_iter().map(|(code, count)| (code.to_string(), count)).collect(),
            models: self.models.into_iter().filter(|(_, count)| *count > 0).collect(),
            token_estimate: self.valid_bytes / 4,
            identity_sum: self.identity_sum,
        }
    }
}

/// The name that a model is counted under while there is room.
pub(crate) fn listed_name(model: &str) -> &str {
    if model.len() <= MODEL_NAME_BYTES { model } else { OTHER }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(tally: Tally) -> Summary {
        let input = ValidatedInput {
            uri: String::new(),
            generation: String::new(),
            size_bytes: 0,
            crc32c: penstock_job::checksum::Crc32c(0),
            sha256: String::new(),
        };
        tally.summary(input)
    }

    #[test]
    fn however_many_models_and_however_long_their_names_a_bounded_number_is_kept() {
        let mut tally = Tally::default();
        for index in 0..MODELS_LISTED as u64 + 5 {
            tally.valid(&format!("model-{index}"), 8);
        }
        tally.valid(&"m".repeat(1 << 20), 8);
        tally.valid("model-7", 8);
        let models = summary(tally).models;
        assert_eq!(models.len(), MODELS_LISTED + 1);
        assert_eq!((models["other"], models["model-7"]), (6, 2));
    }

    #[test]
    fn taking_lines_back_leaves_what_the_others_would_have_counted() {
        let mut tally = Tally::default();
        for model in ["a", "b", "a"] {
            tally.valid(model, 100);
        }
        tally.repeated(Ordinal::new(1), "b", 100);
        tally.repeated(Ordinal::new(2), "a", 100);
        let summary = summary(tally);
        assert_eq!(summary.models, BTreeMap::from([("a".to_owned(), 1)]));
        assert_eq!(summary.token_estimate, 25);
        assert_eq!(summary.rejected_codes, BTreeMap::from([("duplicate_id".to_owned(), 2)]));
        assert_eq!(summary.rejected.len(), 2);
    }
}
