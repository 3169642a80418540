//! What a job may use up, and what tokens cost: from text to exact amounts.

use penstock_job::{
    money::Decimal,
    spec::{self, BudgetError},
};

use super::{ResolveError, limits};
use crate::{
    batch_job::BatchJobSpec,
    provider::{Prices, ProviderSpec},
};

/// The sections `budget` and `prices` of the job file. Who bounds money without prices would be surprised by the bill.
pub(super) fn resolve(
    job: &BatchJobSpec,
    provider: &ProviderSpec,
) -> Result<(spec::Budget, Option<spec::Prices>), ResolveError> {
    let budget = match &job.budget {
        None => spec::Budget::default(),
        Some(budget) => spec::Budget {
            tokens: limits::positive_long("spec.budget.tokens", budget.tokens)?,
            cost: budget.cost.as_deref().map(|text| amount("spec.budget.cost", text)).transpose()?,
        },
    };
    let prices = provider.prices.as_ref().map(prices).transpose()?;
    budget.check(prices.as_ref(), job.model.as_deref()).map_err(|error| match error {
        BudgetError::NoPrices => ResolveError::NoPrices,
        BudgetError::NoPrice(model) => ResolveError::NoPrice(model),
    })?;
    Ok((budget, prices))
}

fn prices(prices: &Prices) -> Result<spec::Prices, ResolveError> {
    let mut models = std::collections::BTreeMap::new();
    for price in &prices.models {
        let cached = price.cached_input_per_million_tokens.as_deref();
        let resolved = spec::Price {
            input_per_million_tokens: amount("inputPerMillionTokens", &price.input_per_million_tokens)?,
            cached_input_per_million_tokens: cached
                .map(|text| amount("cachedInputPerMillionTokens", text))
                .transpose()?,
            output_per_million_tokens: amount("outputPerMillionTokens", &price.output_per_million_tokens)?,
        };
        models.insert(price.model.clone(), resolved);
    }
    Ok(spec::Prices { currency: prices.currency.parse().map_err(ResolveError::Currency)?, models })
}

fn amount(field: &'static str, text: &str) -> Result<Decimal, ResolveError> {
    text.parse().map_err(|source| ResolveError::Amount { field, source })
}
