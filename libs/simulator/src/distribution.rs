//! The shapes of random quantities: latencies and output lengths.
//!
//! Owns how a value is drawn; what the value means (milliseconds, tokens) is the business of who asks.

use rand::{Rng, RngExt};
use rand_distr::{Distribution as _, Exp1, StandardNormal};
use serde::{Deserialize, Serialize};

/// How a non-negative quantity is distributed. The unit is that of the field that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Distribution {
    /// Always the same value.
    Constant(f64),
    /// Every value between `low` and `high` is equally likely.
    Uniform {
        /// The smallest value.
        low: f64,
        /// The largest value.
        high: f64,
    },
    /// `least` and a wait on top of it that ends at any moment with the same chance.
    Exponential {
        /// The smallest value.
        least: f64,
        /// What is added to it, on average.
        mean: f64,
    },
    /// The natural logarithm is normally distributed: most values near the median, a few far above it.
    LogNormal {
        /// Half of the values are below it.
        median: f64,
        /// Standard deviation of the logarithm; 1.0 puts one value in forty above seven medians.
        sigma: f64,
    },
}

/// A distribution that has no meaning.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("draw from {0:?}: use finite values that are not negative, and a `low` that is not above `high`")]
pub struct InvalidDistribution(pub Distribution);

impl Distribution {
    /// The distribution itself, if one can draw from it.
    pub(crate) fn checked(self) -> Result<Self, InvalidDistribution> {
        let usable = |value: f64| value.is_finite() && value >= 0.0;
        let valid = match self {
            Self::Constant(value) => usable(value),
            Self::Uniform { low, high } => usable(low) && usable(high) && low <= high,
            Self::Exponential { least, mean } => usable(least) && usable(mean),
            Self::LogNormal { median, sigma } => usable(median) && usable(sigma),
        };
        if valid { Ok(self) } else { Err(InvalidDistribution(self)) }
    }

    /// One value. The same state of `random` gives the same value.
    pub(crate) fn sample(self, random: &mut impl Rng) -> f64 {
        match self {
            Self::Constant(value) => value,
            Self::Uniform { low, high } => low + (high - low) * random.random::<f64>(),
            Self::Exponential { least, mean } => {
                let unit: f64 = Exp1.sample(random);
                least + mean * unit
            }
            Self::LogNormal { median, sigma } => {
                let normal: f64 = StandardNormal.sample(random);
                median * (sigma * normal).exp()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn sorted_samples(distribution: Distribution) -> Vec<f64> {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let mut samples: Vec<f64> = (0..10_001).map(|_| distribution.sample(&mut random)).collect();
        samples.sort_by(f64::total_cmp);
        samples
    }

    #[test]
    fn a_lognormal_has_the_median_and_the_tail_that_it_was_given() {
        let samples = sorted_samples(Distribution::LogNormal { median: 200.0, sigma: 1.0 });
        assert!((180.0..220.0).contains(&samples[5_000]), "median {}", samples[5_000]);
        // One standard deviation above the median is a factor of e.
        assert!((490.0..600.0).contains(&samples[8_413]), "84th percentile {}", samples[8_413]);
    }

    #[test]
    fn values_without_meaning_are_refused() {
        for invalid in [
            Distribution::Constant(-1.0),
            Distribution::Constant(f64::NAN),
            Distribution::Uniform { low: 2.0, high: 1.0 },
            Distribution::LogNormal { median: 1.0, sigma: f64::INFINITY },
        ] {
            assert!(invalid.checked().is_err(), "{invalid:?} passed");
        }
    }

    proptest! {
        #[test]
        fn uniform_samples_stay_within_their_bounds(low in 0.0..1e6_f64, width in 0.0..1e6_f64, seed: u64) {
            let high = low + width;
            let sample = Distribution::Uniform { low, high }.sample(&mut ChaCha8Rng::seed_from_u64(seed));
            prop_assert!((low..=high).contains(&sample));
        }
    }
}
