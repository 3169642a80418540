//! Where a line is in its input. Owns the ordinal and the position; finding the lines is `lines`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The 0-based count of non-blank lines before a line: its identity inside the system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ordinal(u32);

impl Ordinal {
    /// The bound of a job: no line may have it. A splitter that finds more lines stays at it instead of wrapping, so
    /// who validates an input refuses it when a line with this ordinal appears.
    pub const MAX: Self = Self(u32::MAX);

    /// The ordinal of the line that `count` non-blank lines precede.
    pub const fn new(count: u32) -> Self {
        Self(count)
    }

    /// The number itself.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The ordinal of the following line; stays at [`Ordinal::MAX`].
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Ordinal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The start of a physical line, from which an input can be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Ordinal of the next non-blank line from here.
    pub ordinal: Ordinal,
    /// Bytes before the line.
    pub byte_offset: u64,
    /// Number of the physical line; the first is 1 and blank lines count.
    pub line_number: u64,
}

impl Position {
    /// The start of an input.
    pub const START: Self = Self { ordinal: Ordinal(0), byte_offset: 0, line_number: 1 };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinal_does_not_wrap() {
        assert_eq!(Ordinal::new(6).next().get(), 7);
        assert_eq!(Ordinal::MAX.next(), Ordinal::MAX);
    }

    #[test]
    fn a_position_is_plain_numbers_in_json() {
        let json = serde_json::to_string(&Position::START).unwrap();
        assert_eq!(json, r#"{"ordinal":0,"byte_offset":0,"line_number":1}"#);
        assert_eq!(serde_json::from_str::<Position>(&json).unwrap(), Position::START);
    }
}
