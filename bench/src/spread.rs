//! The spread of a figure over its rounds.

/// Least, median and most of some rounds.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) most: f64,
    pub(crate) rounds: usize,
}

impl Spread {
    /// The spread of at least one value.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (Some(least), Some(most)) = (values.first(), values.last()) else {
            panic!("invariant: a row has at least one round");
        };
        let (middle, rounds) = (values.len() / 2, values.len());
        let median =
            if rounds % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) };
        Self { least: *least, median, most: *most, rounds }
    }
}

/// Counts as numbers that can be divided.
#[expect(clippy::cast_precision_loss, reason = "counts of lines and bytes stay below 2^53")]
pub(crate) fn number(count: u64) -> f64 {
    count as f64
}

/// What each round of one came to against the same round of the other.
pub(crate) fn ratios(figures: &[f64], others: &[f64]) -> Spread {
    Spread::of(figures.iter().zip(others).map(|(figure, other)| figure / other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_whatever_the_order() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Spread { least: 1.0, median: 2.0, most: 3.0, rounds: 3 });
        assert_eq!(
            Spread::of([4.0, 1.0, 2.0, 3.0]),
            Spread { least: 1.0, median: 2.5, most: 4.0, rounds: 4 }
        );
    }

    #[test]
    fn rounds_are_compared_with_the_round_beside_them() {
        assert_eq!(ratios(&[1.0, 9.0], &[2.0, 3.0]), Spread::of([0.5, 3.0]));
    }
}
