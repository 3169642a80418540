//! Money: amounts as people write them, exact sums of what tokens cost, and the currency. No floating point anywhere.

mod currency;
mod decimal;
mod sum;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use currency::{Currency, CurrencyError};
pub use decimal::{Decimal, DecimalError, PATTERN};
pub use sum::Sum;

/// What something costs, exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// How much.
    pub amount: Sum,
    /// Of which currency.
    pub currency: Currency,
}

impl fmt::Display for Cost {
    /// As in a column: `12.51 USD`, rounded as [`Sum::rounded`] says.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.amount.rounded(), self.currency)
    }
}
