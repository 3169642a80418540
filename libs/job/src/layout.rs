//! The names of the objects below a job's output.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

use crate::incarnation::Epoch;

/// The proof of conservation; a job is over when it exists.
pub const RECEIPT: &str = "receipt.json";
/// The checkpoint.
pub const STATE: &str = "state.json";
/// The record of one accepted validation.
pub const VALIDATION: &str = "validation.json";
/// Prefix of all parts.
pub const PARTS: &str = "parts/";
/// Prefix of all intermediate results of composing.
pub const COMPOSE: &str = "compose/";
/// Prefix of what validation attempts write.
pub const INTAKE: &str = "intake/";

/// What kind of outcomes an object holds. One object holds one kind, since a compose cannot split an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Lines that succeeded.
    Results,
    /// Every other outcome.
    Errors,
}

impl Kind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Results, Self::Errors];

    fn letter(self) -> char {
        match self {
            Self::Results => 'r',
            Self::Errors => 'e',
        }
    }

    /// The name of the `index`-th (0-based) of `count` published files of this kind.
    pub fn final_name(self, index: usize, count: usize) -> String {
        match (self, count) {
            (Self::Results, 1) => "results_final.jsonl".to_owned(),
            (Self::Errors, 1) => "errors.jsonl".to_owned(),
            (Self::Results, _) => format!("results_part_{:03}.jsonl", index + 1),
            (Self::Errors, _) => format!("errors_part_{:03}.jsonl", index + 1),
        }
    }
}

/// Whether `name` is that of a published file of records.
pub fn is_final(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".jsonl") else { return false };
    let numbered =
        |prefix| stem.strip_prefix(prefix).is_some_and(|number: &str| number.parse::<u32>().is_ok());
    matches!(stem, "results_final" | "errors") || numbered("results_part_") || numbered("errors_part_")
}

/// The name of one intermediate result of composing `final_name`.
pub fn intermediate(final_name: &str, level: usize, index: usize) -> String {
    format!("{COMPOSE}{final_name}/{level}-{index:06}")
}

/// The name of the `index`-th (0-based) file of rejected records of a validation attempt.
pub fn rejected_file(attempt: Uuid, index: usize) -> String {
    format!("{INTAKE}{attempt}/rejected-{index:05}.jsonl")
}

/// The name of the set of rejected ordinals of a validation attempt.
pub fn rejected_set(attempt: Uuid) -> String {
    format!("{INTAKE}{attempt}/rejected.roaring")
}

/// The name of one part: `parts/<epoch:08>-<sequence:08>-r.jsonl` or `-e.jsonl`. Orders by epoch, then sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartName {
    /// Whose part it is.
    pub epoch: Epoch,
    /// Rises with each upload of an epoch; gaps are allowed.
    pub sequence: u32,
    /// What it holds.
    pub kind: Kind,
}

impl PartName {
    /// The name without its folder, as used for the file under construction.
    pub fn file_name(self) -> String {
        format!("{:08}-{:08}-{}.jsonl", self.epoch.0, self.sequence, self.kind.letter())
    }
}

impl fmt::Display for PartName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{PARTS}{}", self.file_name())
    }
}

/// A name below `parts/` (or in scratch) that is not that of a part.
#[derive(Debug, Error)]
#[error("read the part name `{0}`: expected {PARTS}<epoch>-<sequence>-r.jsonl or -e.jsonl")]
pub struct PartNameError(String);

impl FromStr for PartName {
    type Err = PartNameError;

    /// Accepts the full name and the name without its folder.
    fn from_str(name: &str) -> Result<Self, PartNameError> {
        let parse = || {
            let stem = name.strip_prefix(PARTS).unwrap_or(name).strip_suffix(".jsonl")?;
            let mut fields = stem.split('-');
            let epoch = number(fields.next()?)?;
            let sequence = number(fields.next()?)?;
            let kind = match fields.next()? {
                "r" => Kind::Results,
                "e" => Kind::Errors,
                _ => return None,
            };
            fields.next().is_none().then_some(Self { epoch: Epoch(epoch), sequence, kind })
        };
        parse().ok_or_else(|| PartNameError(name.to_owned()))
    }
}

/// A number as [`PartName`] writes it, so that no part has two names.
fn number(field: &str) -> Option<u32> {
    let is_padded = field.len() == 8 || field.len() > 8 && !field.starts_with('0');
    (is_padded && field.bytes().all(|byte| byte.is_ascii_digit())).then(|| field.parse().ok())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_part_name_survives_its_text_form(epoch in any::<u32>(), sequence in any::<u32>(), results in any::<bool>()) {
            let kind = if results { Kind::Results } else { Kind::Errors };
            let name = PartName { epoch: Epoch(epoch), sequence, kind };
            prop_assert_eq!(name.to_string().parse::<PartName>().unwrap(), name);
            prop_assert_eq!(name.file_name().parse::<PartName>().unwrap(), name);
        }
    }

    #[test]
    fn other_names_are_not_parts() {
        for name in [
            "",
            "parts/",
            "1-2-r.jsonl",
            "00000001-00000002-x.jsonl",
            "00000001-00000002-r.jsonl.tmp",
            "+0000001-00000002-r.jsonl",
            "000000001-00000002-r.jsonl",
        ] {
            assert!(name.parse::<PartName>().is_err(), "{name}");
        }
    }

    #[test]
    fn published_names_follow_the_number_of_files() {
        assert_eq!(Kind::Results.final_name(0, 1), "results_final.jsonl");
        assert_eq!(Kind::Results.final_name(1, 3), "results_part_002.jsonl");
        assert_eq!(Kind::Errors.final_name(0, 1), "errors.jsonl");
        assert!(is_final("errors_part_001.jsonl") && is_final("results_final.jsonl"));
        assert!(!is_final("parts/errors.jsonl") && !is_final("receipt.json"));
    }
}
