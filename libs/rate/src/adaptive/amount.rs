//! How much of each quantity a request uses up, as providers charge it.

use serde::{Deserialize, Serialize};

use crate::event::{Cost, Dimension};
use crate::profile::Profile;

/// How quickly the means follow: over some hundred requests.
const WEIGHT: f64 = 1.0 / 128.0;

/// The means over recent requests, from which lanes of tokens get their unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amounts {
    profile: Profile,
    means: Means,
}

/// Means of tokens.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Means {
    input: Mean,
    reserved_output: Mean,
    output: Mean,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Mean(Option<f64>);

impl Mean {
    fn add(&mut self, amount: f64) {
        self.0 = Some(self.0.map_or(amount, |mean| mean + (amount - mean) * WEIGHT));
    }
}

impl Amounts {
    pub(super) fn new(profile: Profile) -> Self {
        Self { profile, means: Means::default() }
    }

    /// What is to be remembered.
    pub(super) fn means(&self) -> Means {
        self.means
    }

    /// Goes on from what was remembered; what cannot be a number of tokens is forgotten.
    pub(super) fn restore(profile: Profile, Means { input, reserved_output, output }: Means) -> Self {
        let sane = |Mean(mean): Mean| Mean(mean.filter(|mean| (0.0..=f64::from(u32::MAX)).contains(mean)));
        let means =
            Means { input: sane(input), reserved_output: sane(reserved_output), output: sane(output) };
        Self { profile, means }
    }

    pub(super) fn sent(&mut self, cost: Cost) {
        self.means.input.add(cost.input_tokens.into());
        self.means.reserved_output.add(cost.output_tokens.into());
    }

    pub(super) fn succeeded(&mut self, output_tokens: u32) {
        self.means.output.add(output_tokens.into());
    }

    /// What a request takes when it goes out. Providers reserve the longest answer, only Anthropic counts answers as
    /// they are produced: there the mean of earlier answers stands for this one.
    pub(super) fn of(&self, dimension: Dimension, cost: Cost) -> f64 {
        let (input, reserved) = (f64::from(cost.input_tokens), f64::from(cost.output_tokens));
        match dimension {
            Dimension::Requests => 1.0,
            Dimension::InputTokens => input.max(1.0),
            Dimension::OutputTokens => self.expected_output(reserved),
            Dimension::Tokens if self.counts_as_produced(dimension) => input + self.expected_output(reserved),
            Dimension::Tokens => (input + reserved).max(1.0),
        }
    }

    /// By how much more than that it took, once its answer is there.
    pub(super) fn correction(&self, dimension: Dimension, cost: Cost, output_tokens: u32) -> Option<f64> {
        self.counts_as_produced(dimension)
            .then(|| f64::from(output_tokens) - self.expected_output(cost.output_tokens.into()))
    }

    /// The mean of what requests take when they go out.
    pub(super) fn mean(&self, dimension: Dimension) -> f64 {
        let (input, reserved) =
            (self.means.input.0.unwrap_or(0.0), self.means.reserved_output.0.unwrap_or(0.0));
        let mean = match dimension {
            Dimension::Requests => 1.0,
            Dimension::InputTokens => input,
            Dimension::OutputTokens => self.expected_output(reserved),
            Dimension::Tokens if self.counts_as_produced(dimension) => input + self.expected_output(reserved),
            Dimension::Tokens => input + reserved,
        };
        mean.max(1.0)
    }

    fn counts_as_produced(&self, dimension: Dimension) -> bool {
        match dimension {
            Dimension::Requests | Dimension::InputTokens => false,
            Dimension::OutputTokens => true,
            Dimension::Tokens => self.profile == Profile::Anthropic,
        }
    }

    fn expected_output(&self, reserved: f64) -> f64 {
        self.means.output.0.unwrap_or(reserved).min(reserved).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: Cost = Cost { input_tokens: 200, output_tokens: 2_000 };

    fn of(amounts: &Amounts, dimension: Dimension) -> f64 {
        amounts.of(dimension, COST)
    }

    #[test]
    fn tokens_are_reserved_but_at_anthropic() {
        let mut amounts = Amounts::new(Profile::OpenAi);
        amounts.sent(COST);
        amounts.succeeded(300);
        assert!((of(&amounts, Dimension::Tokens) - 2_200.0).abs() < 1e-9);
        assert_eq!(amounts.correction(Dimension::Tokens, COST, 300), None);
        assert!((amounts.mean(Dimension::Tokens) - 2_200.0).abs() < 1e-9);
        let anthropic = Amounts { profile: Profile::Anthropic, ..amounts };
        assert!((of(&anthropic, Dimension::Tokens) - 500.0).abs() < 1e-9);
        assert_eq!(anthropic.correction(Dimension::Tokens, COST, 340), Some(40.0));
    }

    #[test]
    fn answers_count_as_their_mean_until_they_are_there() {
        let mut amounts = Amounts::new(Profile::Anthropic);
        assert!((of(&amounts, Dimension::OutputTokens) - 2_000.0).abs() < 1e-9);
        for _ in 0..2_000 {
            amounts.succeeded(300);
        }
        assert!((of(&amounts, Dimension::OutputTokens) - 300.0).abs() < 1e-9);
        assert_eq!(amounts.correction(Dimension::OutputTokens, COST, 100), Some(-200.0));
        assert!((of(&amounts, Dimension::InputTokens) - 200.0).abs() < 1e-9);
    }
}
