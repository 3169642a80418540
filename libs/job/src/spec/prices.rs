//! What tokens cost at a job's provider.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    money::{Currency, Decimal, Sum},
    usage::Tokens,
};

/// What tokens cost, for each model. None of it determines the answers, so it may change when a job is resumed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// The currency of all amounts, by default `USD`.
    #[serde(default)]
    pub currency: Currency,
    /// The price of each model, by the name that requests have.
    pub models: BTreeMap<String, Price>,
}

/// What the tokens of one model cost, for a million of them, such as "0.25".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Tokens of answers.
    pub output_per_million_tokens: Decimal,
    /// Tokens of requests.
    pub input_per_million_tokens: Decimal,
    /// Tokens of requests that the provider had cached; by default the price of the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input_per_million_tokens: Option<Decimal>,
}

impl Price {
    /// What these tokens cost.
    pub fn of(&self, tokens: Tokens) -> Sum {
        let cached = tokens.cached_input.min(tokens.input);
        let at_cache = self.cached_input_per_million_tokens.unwrap_or(self.input_per_million_tokens);
        Sum::of_tokens(self.input_per_million_tokens, tokens.input - cached)
            .plus(Sum::of_tokens(at_cache, cached))
            .plus(Sum::of_tokens(self.output_per_million_tokens, tokens.output))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_have_their_own_price_or_that_of_the_others() {
        let tokens = Tokens { input: 1_000_000, cached_input: 400_000, output: 10_000 };
        let price = |cached: Option<&str>| Price {
            input_per_million_tokens: "2.50".parse().unwrap(),
            cached_input_per_million_tokens: cached.map(|text| text.parse().unwrap()),
            output_per_million_tokens: "10".parse().unwrap(),
        };
        assert_eq!(price(None).of(tokens).to_string(), "2.60");
        assert_eq!(price(Some("0.25")).of(tokens).to_string(), "1.70");
        let more_than_all = Tokens { cached_input: 9_000_000, ..tokens };
        assert_eq!(price(Some("0")).of(more_than_all).to_string(), "0.10", "a provider that miscounts");
    }
}
