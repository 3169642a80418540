//! What a job may use up before it is held, and whether its prices are enough to tell.

use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Prices;
use crate::money::Decimal;

/// What a job may use up over all of its runs. What is absent is not bounded. It does not determine the answers, so a job
/// that is held goes on when it is run again with a larger one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Tokens, of requests and answers together.
    pub tokens: Option<NonZeroU64>,
    /// Money, in the currency of the prices, such as "12.50". Needs a price for every model.
    pub cost: Option<Decimal>,
}

impl Budget {
    /// Whether anything is bounded.
    pub fn is_set(&self) -> bool {
        self.tokens.is_some() || self.cost.is_some()
    }

    /// Whether this one allows no more than `reached` in what that bounds.
    pub fn is_within(&self, reached: &Self) -> bool {
        fn within<T: Ord>(own: Option<T>, reached: Option<T>) -> bool {
            reached.is_none_or(|reached| own.is_some_and(|own| own <= reached))
        }
        within(self.tokens, reached.tokens) && within(self.cost, reached.cost)
    }

    /// Whether it can be kept to with these prices by a job with this model.
    pub fn check(&self, prices: Option<&Prices>, model: Option<&str>) -> Result<(), BudgetError> {
        if self.cost.is_none() {
            return Ok(());
        }
        let prices = prices.filter(|prices| !prices.models.is_empty()).ok_or(BudgetError::NoPrices)?;
        match model.filter(|model| !prices.models.contains_key(*model)) {
            Some(model) => Err(BudgetError::NoPrice(model.to_owned())),
            None => Ok(()),
        }
    }
}

/// Why nobody could keep to a budget. Messages read after "failed to".
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BudgetError {
    /// Money is bounded, and nothing has a price.
    #[error(
        "keep to a budget in money: no prices are known; add `prices` for the models, or set a budget in tokens"
    )]
    NoPrices,
    /// Money is bounded, and the job's model has no price.
    #[error(
        "keep to a budget in money: `prices` has none for the model `{0}`; add it, or set a budget in tokens"
    )]
    NoPrice(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Price;

    fn budget(tokens: u64, cost: &str) -> Budget {
        Budget { tokens: NonZeroU64::new(tokens), cost: cost.parse().ok() }
    }

    #[test]
    fn a_budget_that_was_reached_holds_until_a_larger_one_or_none_is_set() {
        for (now, reached, holds) in [
            (budget(100, ""), budget(100, ""), true),
            (budget(99, "9"), budget(100, ""), true),
            (budget(101, ""), budget(100, ""), false),
            (budget(0, ""), budget(100, ""), false),
            (budget(100, "1.50"), budget(0, "1.50"), true),
            (budget(1, "1.51"), budget(0, "1.50"), false),
            (budget(1, ""), budget(0, "1.50"), false),
        ] {
            assert_eq!(now.is_within(&reached), holds, "{now:?} {reached:?}");
        }
    }

    #[test]
    fn a_budget_in_money_needs_the_prices_that_it_is_kept_with() {
        let price = Price {
            input_per_million_tokens: "1".parse().unwrap(),
            cached_input_per_million_tokens: None,
            output_per_million_tokens: "1".parse().unwrap(),
        };
        let prices = Prices { models: [("m".to_owned(), price)].into(), ..Prices::default() };
        let none = Prices::default();
        for (budget, prices, model, expected) in [
            (budget(1, ""), None, Some("m"), Ok(())),
            (budget(0, "1"), None, Some("m"), Err(BudgetError::NoPrices)),
            (budget(0, "1"), Some(&none), None, Err(BudgetError::NoPrices)),
            (budget(0, "1"), Some(&prices), Some("n"), Err(BudgetError::NoPrice("n".to_owned()))),
            (budget(0, "1"), Some(&prices), Some("m"), Ok(())),
            (budget(0, "1"), Some(&prices), None, Ok(())),
        ] {
            assert_eq!(budget.check(prices, model), expected);
        }
    }
}
