//! What a job has used up so far: the tokens of the answers that it paid for, by model, and what they cost.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    money::{Cost, Sum},
    spec::{Budget, Prices},
};

/// Models that are counted one by one. The tokens of any beyond are counted together, under the empty name, which no
/// model has.
pub const MOST_MODELS: usize = 1_000;

/// Tokens as a provider counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    /// Tokens of the requests that were answered.
    pub input: u64,
    /// Of these, tokens that the provider says it had cached.
    #[serde(default)]
    pub cached_input: u64,
    /// Tokens of the answers.
    pub output: u64,
}

impl Tokens {
    /// Of requests and answers together.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Adds others.
    pub fn add(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.cached_input = self.cached_input.saturating_add(other.cached_input);
        self.output = self.output.saturating_add(other.output);
    }
}

/// Tokens by model, as requests name it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TokensByModel(BTreeMap<String, Tokens>);

impl TokensByModel {
    /// Counts tokens of one model.
    pub fn count(&mut self, model: &str, tokens: Tokens) {
        if let Some(known) = self.0.get_mut(model) {
            known.add(tokens);
        } else {
            let name = if self.0.len() < MOST_MODELS { model } else { "" };
            self.0.entry(name.to_owned()).or_default().add(tokens);
        }
    }

    /// Adds all of others.
    pub fn add(&mut self, others: &Self) {
        for (model, tokens) in &others.0 {
            self.count(model, *tokens);
        }
    }

    /// Each model with its tokens.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Tokens)> {
        self.0.iter().map(|(model, tokens)| (model.as_str(), *tokens))
    }

    /// Over all models.
    pub fn total(&self) -> Tokens {
        let mut total = Tokens::default();
        self.0.values().for_each(|tokens| total.add(*tokens));
        total
    }
}

/// What a job has used up so far, over all of its runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// Tokens by model; beyond a thousand models the others are counted together under the empty name.
    pub models: TokensByModel,
    /// The prices that the newest run with any knew.
    pub prices: Option<Prices>,
    /// The budget that was found used up. A run with no larger one, at the same prices, sends nothing.
    pub reached: Option<Budget>,
}

impl Usage {
    /// Goes on under the budget and the prices of another run: what was reached holds while neither allows more.
    pub fn renew(&mut self, budget: &Budget, prices: Option<&Prices>) {
        let same_prices = prices.is_none_or(|prices| self.prices.as_ref() == Some(prices));
        if !same_prices {
            self.prices = prices.cloned();
        }
        self.reached = self.reached.filter(|reached| same_prices && budget.is_within(reached));
    }

    /// What it costs; `None` where no prices are known, or where one is missing.
    pub fn cost(&self) -> Option<Cost> {
        let prices = self.prices.as_ref()?;
        let mut amount = Sum::ZERO;
        for (model, tokens) in self.models.iter().filter(|(_, tokens)| tokens.total() > 0) {
            amount = amount.plus(prices.models.get(model)?.of(tokens));
        }
        Some(Cost { amount, currency: prices.currency })
    }

    /// A model that took tokens and has no price.
    pub fn unpriced(&self) -> Option<&str> {
        let has_price =
            |model: &str| self.prices.as_ref().is_some_and(|prices| prices.models.contains_key(model));
        let used = self.models.iter().filter(|(_, tokens)| tokens.total() > 0);
        used.map(|(model, _)| model).find(|model| !has_price(model))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::spec::Price;

    fn price(input: u32, cached: Option<u32>, output: u32) -> Price {
        let amount = |millionths: u32| {
            format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000).parse().unwrap()
        };
        Price {
            input_per_million_tokens: amount(input),
            cached_input_per_million_tokens: cached.map(amount),
            output_per_million_tokens: amount(output),
        }
    }

    #[test]
    fn a_cost_is_told_only_where_every_model_that_took_tokens_has_a_price() {
        let mut usage = Usage::default();
        usage.models.count("a", Tokens { input: 1_000_000, cached_input: 0, output: 0 });
        assert_eq!((usage.cost(), usage.unpriced()), (None, Some("a")));
        let models = [("a".to_owned(), price(250_000, None, 0))].into();
        usage.prices = Some(Prices { models, ..Prices::default() });
        assert_eq!(usage.cost().unwrap().to_string(), "0.25 USD");
        usage.models.count("free", Tokens::default());
        assert!(usage.cost().is_some(), "nothing was taken of it");
        usage.models.count("b", Tokens { output: 1, ..Tokens::default() });
        assert_eq!((usage.cost(), usage.unpriced()), (None, Some("b")));
    }

    #[test]
    fn what_was_reached_holds_until_the_budget_is_larger_or_the_prices_are_others() {
        let at = |price_of_input| {
            let models = [("a".to_owned(), price(price_of_input, None, 0))].into();
            Prices { models, ..Prices::default() }
        };
        let small = Budget { cost: "1".parse().ok(), tokens: None };
        let large = Budget { cost: "2".parse().ok(), tokens: None };
        let before = Usage { prices: Some(at(1)), reached: Some(small), ..Usage::default() };
        let known = at(1);
        for (budget, prices, reached, left) in [
            (small, Some(&known), Some(small), &known),
            (small, None, Some(small), &known),
            (large, Some(&known), None, &known),
            (small, Some(&at(2)), None, &at(2)),
            (Budget::default(), None, None, &known),
        ] {
            let mut usage = before.clone();
            usage.renew(&budget, prices);
            assert_eq!((usage.reached, usage.prices.as_ref()), (reached, Some(left)));
        }
    }

    #[test]
    fn models_without_number_are_counted_all_the_same() {
        let one = Tokens { input: 1, cached_input: 0, output: 1 };
        let mut models = TokensByModel::default();
        (0..MOST_MODELS + 5).for_each(|model| models.count(&model.to_string(), one));
        models.count("0", one);
        assert_eq!(models.iter().count(), MOST_MODELS + 1);
        assert_eq!(models.total().total(), 2 * (MOST_MODELS as u64 + 6));
        let mut twice = models.clone();
        twice.add(&models);
        assert_eq!(twice.total().total(), 2 * models.total().total());
    }

    proptest! {
        /// The law that people rely on: what is shown is the sum over models and prices, to the last digit.
        #[test]
        fn the_cost_is_the_sum_over_models_and_prices(
            rows in prop::collection::vec(
                (any::<u32>(), any::<u32>(), any::<u32>(), 0..1_000_000_u32, prop::option::of(0..1_000_000_u32), 0..1_000_000_u32),
                0..20,
            ),
        ) {
            let mut usage = Usage { prices: Some(Prices::default()), ..Usage::default() };
            let mut units = 0_u128;
            for (index, (fresh, cached, output, at_fresh, at_cached, at_output)) in rows.iter().enumerate() {
                let model = format!("m{index}");
                let (fresh, cached, output) = (u64::from(*fresh), u64::from(*cached), u64::from(*output));
                let tokens = Tokens { input: fresh + cached, cached_input: cached, output };
                usage.models.count(&model, tokens);
                let price = price(*at_fresh, *at_cached, *at_output);
                usage.prices.as_mut().unwrap().models.insert(model, price);
                units += u128::from(fresh) * u128::from(*at_fresh)
                    + u128::from(cached) * u128::from(at_cached.unwrap_or(*at_fresh))
                    + u128::from(output) * u128::from(*at_output);
            }
            let shown = usage.cost().unwrap().amount.to_string();
            let (whole, fraction) = shown.split_once('.').unwrap();
            let found: u128 = format!("{whole}{fraction:0<12}").parse().unwrap();
            prop_assert_eq!(found, units);
        }
    }
}
