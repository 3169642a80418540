//! How much of each quantity a request uses up, as providers charge it.

use serde::{Deserialize, Serialize};

use crate::event::{Cost, Dimension};
use crate::profile::Profile;

/// How quickly the means follow: over some hundred requests. What is expected of answers must not waver: all that are
/// under way are expected to be that long.
const FOLLOWED: u32 = 512;
/// So many answers tell their mean roughly.
const SOME: u32 = 8;

/// How tokens are charged, and the means over recent requests, from which lanes of tokens get their unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amounts {
    tokens: Charging,
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
#[serde(from = "Option<f64>", into = "Option<f64>")]
struct Mean {
    mean: Option<f64>,
    /// How many requests it is the mean of, at most [`FOLLOWED`].
    of: u32,
}

impl Mean {
    fn add(&mut self, amount: f64) {
        self.of = self.of.saturating_add(1).min(FOLLOWED);
        self.mean = Some(self.mean.map_or(amount, |mean| mean + (amount - mean) / f64::from(self.of)));
    }
}

impl From<Option<f64>> for Mean {
    fn from(mean: Option<f64>) -> Self {
        Self { mean, of: if mean.is_some() { FOLLOWED } else { 0 } }
    }
}

impl From<Mean> for Option<f64> {
    fn from(mean: Mean) -> Self {
        mean.mean
    }
}

/// When a quantity is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Charging {
    /// When the request arrives, with the most that its answer may have.
    AtOnce,
    /// The same, and what the answer did not use comes back when it is there.
    Refunded,
    /// What an answer takes, when it is there.
    AsProduced,
}

impl Charging {
    /// How a provider of this kind charges tokens, as far as anybody has written it down.
    pub(super) fn usual(profile: Profile) -> Self {
        match profile {
            Profile::Anthropic => Self::AsProduced,
            Profile::OpenAi | Profile::Azure | Profile::Gemini | Profile::Vllm | Profile::Unknown => {
                Self::AtOnce
            }
        }
    }
}

/// What a request takes of one quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Amount {
    /// In all, as far as it is known when the request goes out.
    pub(super) expected: f64,
    /// What of it is charged when the request arrives; the rest is once its answer is there.
    pub(super) at_once: f64,
}

impl Amount {
    /// All of it is charged when the request arrives.
    pub(super) fn at_once(units: f64) -> Self {
        Self { expected: units, at_once: units }
    }
}

impl Amounts {
    pub(super) fn new(tokens: Charging) -> Self {
        Self { tokens, means: Means::default() }
    }

    /// From now on tokens are taken to be charged like this.
    pub(super) fn charge(&mut self, tokens: Charging) {
        self.tokens = tokens;
    }

    /// What is to be remembered.
    pub(super) fn means(&self) -> Means {
        self.means
    }

    /// Goes on from what was remembered; what cannot be a number of tokens is forgotten.
    pub(super) fn restore(tokens: Charging, Means { input, reserved_output, output }: Means) -> Self {
        let sane = |Mean { mean, .. }: Mean| {
            Mean::from(mean.filter(|mean| (0.0..=f64::from(u32::MAX)).contains(mean)))
        };
        let means =
            Means { input: sane(input), reserved_output: sane(reserved_output), output: sane(output) };
        Self { tokens, means }
    }

    pub(super) fn sent(&mut self, cost: Cost) {
        self.means.input.add(cost.input_tokens.into());
        self.means.reserved_output.add(cost.output_tokens.into());
    }

    /// Whether requests, and answers where they count, have shown what one takes.
    pub(super) fn is_known(&self, dimension: Dimension) -> bool {
        self.means.input.of > 0 && (!self.counts_as_produced(dimension) || self.means.output.of >= SOME)
    }

    pub(super) fn succeeded(&mut self, output_tokens: u32) {
        self.means.output.add(output_tokens.into());
    }

    /// What a request takes when it goes out. Most providers reserve the longest answer; where answers are charged as they
    /// are produced, the mean of earlier ones stands for this one.
    pub(super) fn of(&self, dimension: Dimension, cost: Cost) -> Amount {
        let (input, reserved) = (f64::from(cost.input_tokens), f64::from(cost.output_tokens));
        self.amount(dimension, input, reserved)
    }

    fn amount(&self, dimension: Dimension, input: f64, reserved: f64) -> Amount {
        match (dimension, self.tokens) {
            (Dimension::Requests, _) => Amount::at_once(1.0),
            (Dimension::InputTokens, _) => Amount::at_once(input.max(1.0)),
            (Dimension::OutputTokens, _) => Amount { expected: self.expected_output(reserved), at_once: 0.0 },
            (Dimension::Tokens, Charging::AsProduced) => {
                Amount { expected: input + self.expected_output(reserved), at_once: input }
            }
            (Dimension::Tokens, Charging::AtOnce | Charging::Refunded) => {
                Amount::at_once((input + reserved).max(1.0))
            }
        }
    }

    /// How many tokens an answer was expected to have.
    pub(super) fn expected_answer(&self, cost: Cost) -> f64 {
        self.expected_output(cost.output_tokens.into())
    }

    /// The mean of what requests take in the end.
    pub(super) fn mean(&self, dimension: Dimension) -> f64 {
        let (input, reserved) = self.typical();
        match (dimension, self.tokens) {
            (Dimension::Tokens, Charging::Refunded) => (input + self.expected_output(reserved)).max(1.0),
            _ => self.amount(dimension, input, reserved).expected.max(1.0),
        }
    }

    /// What a request takes beyond the mean when it goes out.
    pub(super) fn beyond(&self, dimension: Dimension, cost: Cost) -> f64 {
        let (input, reserved) = self.typical();
        let typical = self.amount(dimension, input, reserved).expected.max(1.0);
        (self.of(dimension, cost).expected - typical).max(0.0)
    }

    /// When the provider charges this quantity.
    pub(super) fn charging(&self, dimension: Dimension) -> Charging {
        match dimension {
            Dimension::OutputTokens => Charging::AsProduced,
            Dimension::Tokens => self.tokens,
            Dimension::Requests | Dimension::InputTokens => Charging::AtOnce,
        }
    }

    /// Tokens of the prompt and the longest answer of a request, on average.
    fn typical(&self) -> (f64, f64) {
        (self.means.input.mean.unwrap_or(0.0), self.means.reserved_output.mean.unwrap_or(0.0))
    }

    fn counts_as_produced(&self, dimension: Dimension) -> bool {
        self.charging(dimension) == Charging::AsProduced
    }

    fn expected_output(&self, reserved: f64) -> f64 {
        self.means.output.mean.unwrap_or(reserved).min(reserved).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: Cost = Cost { input_tokens: 200, output_tokens: 2_000 };

    #[test]
    fn tokens_are_reserved_but_at_anthropic() {
        let mut amounts = Amounts::new(Charging::AtOnce);
        amounts.sent(COST);
        amounts.succeeded(300);
        assert_eq!(amounts.of(Dimension::Tokens, COST), Amount::at_once(2_200.0));
        assert!((amounts.mean(Dimension::Tokens) - 2_200.0).abs() < 1e-9);
        amounts.charge(Charging::usual(Profile::Anthropic));
        assert_eq!(amounts.of(Dimension::Tokens, COST), Amount { expected: 500.0, at_once: 200.0 });
        assert!((amounts.expected_answer(COST) - 300.0).abs() < 1e-9);
        amounts.charge(Charging::Refunded);
        assert_eq!(amounts.of(Dimension::Tokens, COST), Amount::at_once(2_200.0));
        assert!((amounts.mean(Dimension::Tokens) - 500.0).abs() < 1e-9, "what it did not use comes back");
    }

    #[test]
    fn answers_count_as_their_mean_until_they_are_there() {
        let mut amounts = Amounts::new(Charging::AsProduced);
        assert_eq!(amounts.of(Dimension::OutputTokens, COST), Amount { expected: 2_000.0, at_once: 0.0 });
        for tokens in [100, 200, 600] {
            amounts.succeeded(tokens);
        }
        assert_eq!(amounts.of(Dimension::OutputTokens, COST), Amount { expected: 300.0, at_once: 0.0 });
        assert_eq!(amounts.of(Dimension::InputTokens, COST), Amount::at_once(200.0));
    }

    #[test]
    fn a_mean_follows_what_requests_have_become_and_is_remembered_as_a_number() {
        let mut mean = Mean::default();
        (0..10_000).for_each(|_| mean.add(100.0));
        (0..3_000).for_each(|_| mean.add(200.0));
        assert!((mean.mean.unwrap() - 200.0).abs() < 1.0, "{mean:?}");
        let read: Mean = serde_json::from_value(serde_json::to_value(mean).unwrap()).unwrap();
        assert_eq!((read.mean, read.of), (mean.mean, FOLLOWED));
    }
}
