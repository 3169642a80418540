//! Providers that nobody has named: drawn by seed, so that nothing is tuned to the ones that have a name.

use std::{
    num::{NonZeroU16, NonZeroU64},
    ops::Range,
};

use penstock_simulator::{
    Distribution, Enforcement,
    rate::{Provider, Step},
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{Case, Rule, Scenario};

/// Requests per minute.
const LIMITS: Range<f64> = 30.0..20_000.0;

/// A scenario drawn from a seed: a limit from 30 to 20,000 requests a minute, judged over 1 to 60 seconds in one of
/// three ways, with round trips from 20 to 600 ms, and refusals that count at every fourth provider. With `steps` the
/// limit changes twice within the hour.
pub fn generated(seed: u64, steps: bool) -> Scenario {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let limit = between(&mut random, LIMITS);
    let seconds = NonZeroU16::new(random.random_range(1..=60)).unwrap_or(NonZeroU16::MIN);
    let enforcement = match random.random_range(0..3) {
        0 => Enforcement::Bucket { seconds },
        1 => Enforcement::FixedWindow { seconds },
        _ => Enforcement::SlidingWindow { seconds },
    };
    let mut provider = Provider::default();
    let round_trip = between(&mut random, 20.0..600.0);
    provider.latency.refusal_ms = Distribution::Exponential { least: round_trip, mean: round_trip / 2.0 };
    provider.latency.start_ms =
        Distribution::Uniform { low: round_trip, high: round_trip + between(&mut random, 100.0..5_000.0) };
    provider.latency.per_output_token_ms = between(&mut random, 2.0..15.0);
    provider.limits.refusals_count = random.random_bool(0.25);
    if steps {
        provider.steps = [15..25, 35..45]
            .map(|minutes| Step {
                after_minutes: f64::from(random.random_range(minutes)),
                times: between(&mut random, 0.3..2.0),
            })
            .to_vec();
    }
    let changes = if steps { " that changes twice" } else { "" };
    Scenario {
        about: format!("{limit:.0} requests a minute{changes}, drawn from seed {seed}."),
        requests_per_minute: NonZeroU64::new(whole(limit)),
        enforcements: vec![enforcement],
        provider,
        ..Scenario::default()
    }
}

/// A value in a range in which every factor is equally likely.
fn between(random: &mut ChaCha8Rng, range: Range<f64>) -> f64 {
    range.start * (range.end / range.start).powf(random.random())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it lies in `LIMITS`")]
fn whole(limit: f64) -> u64 {
    limit as u64
}

/// How a rule fares with many providers. Shares are from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Survey {
    /// The utilisation of each, with the seed of its provider, the worst first.
    pub utilisations: Vec<(f64, u64)>,
    /// Requests that were refused, of those sent, on average over the providers.
    pub mean_refused: f64,
}

impl Survey {
    /// Runs each of these seeds for an hour.
    pub fn of(rule: Rule, seeds: Range<u64>, steps: bool) -> Self {
        let mut utilisations = Vec::new();
        let mut refused = 0.0;
        for seed in seeds {
            let scenario = generated(seed, steps);
            let case = Case { enforcement: scenario.enforcements[0], seed };
            let measures = scenario.judge(rule, case).measures;
            utilisations.push((measures.utilisation.unwrap_or_default(), seed));
            refused += measures.refused;
        }
        utilisations.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let count = f64::from(u32::try_from(utilisations.len()).unwrap_or(u32::MAX).max(1));
        Self { mean_refused: refused / count, utilisations }
    }

    /// The utilisation that so many percent of the providers stay below (nearest rank).
    pub fn percentile(&self, percent: usize) -> f64 {
        let rank = (self.utilisations.len() * percent).div_ceil(100).max(1);
        self.utilisations.get(rank - 1).map_or(0.0, |(utilisation, _)| *utilisation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_draws_the_same_provider_and_another_one_another() {
        assert_eq!(generated(7, true), generated(7, true));
        assert_ne!(generated(7, true).requests_per_minute, generated(8, true).requests_per_minute);
    }

    #[test]
    fn what_knows_the_limit_uses_nearly_all_of_it_whoever_the_provider_is() {
        let survey = Survey::of(Rule::Oracle, 0..20, false);
        assert!(survey.percentile(1) > 0.97, "{:?}", survey.utilisations);
        assert!(survey.mean_refused < 0.001, "{}", survey.mean_refused);
    }
}
