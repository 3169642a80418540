//! A set of lines. A model has a handful, so it is a byte.

use std::fmt;

/// A set of lines, each named by its ordinal (0-based).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lines(u8);

impl Lines {
    /// No line.
    pub const NONE: Self = Self(0);

    /// The first `count` lines; at most 8.
    pub const fn first(count: u8) -> Self {
        Self(0xff_u8.unbounded_shr(8_u32.saturating_sub(count as u32)))
    }

    /// One line.
    pub const fn one(ordinal: u8) -> Self {
        Self(1 << ordinal)
    }

    /// Whether `ordinal` is in the set.
    pub const fn contains(self, ordinal: u8) -> bool {
        self.0 & (1 << ordinal) != 0
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The lines of either.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The lines of both.
    pub const fn shared_with(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The lines that are not in `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether no line is in both.
    pub const fn is_disjoint(self, other: Self) -> bool {
        self.0 & other.0 == 0
    }

    /// Its ordinals, ascending.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..8).filter(move |ordinal| self.contains(*ordinal))
    }
}

impl FromIterator<Lines> for Lines {
    fn from_iter<I: IntoIterator<Item = Lines>>(sets: I) -> Self {
        sets.into_iter().fold(Self::NONE, Self::and)
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_into_it() {
        assert_eq!(Lines::first(3).iter().collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(Lines::first(0), Lines::NONE);
        assert_eq!(Lines::first(8).iter().count(), 8);
        assert_eq!(Lines::first(3).without(Lines::one(1)), Lines::one(0).and(Lines::one(2)));
        assert!(Lines::one(0).is_disjoint(Lines::one(1)) && !Lines::first(2).is_disjoint(Lines::one(1)));
    }
}
