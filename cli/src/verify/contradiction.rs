//! What contradicts a receipt, as precisely as it can be told.

use std::fmt;

use penstock_batchfile::Ordinal;
use serde::Serialize;

/// One contradiction.
#[derive(Debug, Serialize)]
pub(crate) struct Contradiction {
    /// The file, by its name in the folder; the input by its path.
    file: String,
    /// Its physical line, from 1.
    line: Option<u64>,
    /// The line of the input that it is about.
    ordinal: Option<Ordinal>,
    /// What is and what should be.
    problem: String,
}

impl Contradiction {
    /// A contradiction in a file.
    pub(super) fn of(file: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, ordinal: None, problem: problem.into() }
    }

    /// In this line of it.
    pub(super) fn at_line(self, line: u64) -> Self {
        Self { line: Some(line), ..self }
    }

    /// About this ordinal.
    pub(super) fn about(self, ordinal: Ordinal) -> Self {
        Self { ordinal: Some(ordinal), ..self }
    }
}

impl fmt::Display for Contradiction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(formatter, ":{line}")?;
        }
        if let Some(ordinal) = self.ordinal {
            write!(formatter, " (ordinal {ordinal})")?;
        }
        write!(formatter, ": {}", self.problem)
    }
}

impl std::error::Error for Contradiction {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_line_and_ordinal_are_named_as_far_as_they_are_known() {
        let plain = Contradiction::of("receipt.json", "wrong");
        assert_eq!(plain.to_string(), "receipt.json: wrong");
        let precise = plain.at_line(7).about(Ordinal::new(6));
        assert_eq!(precise.to_string(), "receipt.json:7 (ordinal 6): wrong");
    }
}
