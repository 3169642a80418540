//! What tokens cost, added up: exact to the last token.

use std::{fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::Decimal;

/// Units of one: a price for a million tokens has six digits after the point, so one token costs whole units.
const ONE: u128 = 1_000_000_000_000;
/// Digits after the point.
const DIGITS: usize = 12;
/// The least of what is shown of an amount below one.
const MILLIONTH: u128 = ONE / 1_000_000;
/// The least of what is shown of others.
const HUNDREDTH: u128 = ONE / 100;

/// An exact amount of money. What is higher than can be held counts as the highest that can.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sum(u128);

impl Sum {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// What so many tokens cost at this price for a million of them.
    pub fn of_tokens(price: Decimal, tokens: u64) -> Self {
        Self(u128::from(price.millionths()).saturating_mul(u128::from(tokens)))
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// This without the other; nothing where the other is more.
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// This for `all` if it is for `part` of it; nothing can be said of no part.
    pub fn projected(self, part: u64, all: u64) -> Option<Self> {
        let whole = (self.0 / u128::from(part.max(1))).saturating_mul(u128::from(all));
        (part > 0).then_some(Self(whole))
    }

    /// For people: to the hundredth, and below one to the millionth. Rounded up, so that nothing looks cheaper than it is.
    pub fn rounded(self) -> Self {
        let least = if self.0 < ONE { MILLIONTH } else { HUNDREDTH };
        Self(self.0.div_ceil(least).saturating_mul(least))
    }
}

impl From<Decimal> for Sum {
    fn from(amount: Decimal) -> Self {
        Self(u128::from(amount.millionths()).saturating_mul(MILLIONTH))
    }
}

impl fmt::Display for Sum {
    /// With at least two digits after the point, and no zeros beyond.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = format!("{:0DIGITS$}", self.0 % ONE);
        let end = fraction.trim_end_matches('0').len().max(2);
        write!(formatter, "{}.{}", self.0 / ONE, &fraction[..end])
    }
}

/// A text is no exact amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read the amount `{0}`: write digits and at most twelve more after a point")]
pub struct SumError(String);

impl FromStr for Sum {
    type Err = SumError;

    fn from_str(text: &str) -> Result<Self, SumError> {
        let read = || {
            let (whole, fraction) = text.split_once('.')?;
            let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            if !digits(whole) || !digits(fraction) || fraction.len() > DIGITS {
                return None;
            }
            let fraction: u128 = format!("{fraction:0<DIGITS$}").parse().ok()?;
            whole.parse::<u128>().ok()?.checked_mul(ONE)?.checked_add(fraction)
        };
        read().map(Self).ok_or_else(|| SumError(text.to_owned()))
    }
}

impl Serialize for Sum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for Sum {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Sum".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": r"^[0-9]+\.[0-9]{2,12}$" })
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn price(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    #[test]
    fn tokens_cost_their_exact_share_of_the_price_for_a_million() {
        for (at, tokens, cost) in
            [("2.50", 400_000, "1.00"), ("0.25", 3, "0.00000075"), ("0.000001", 1, "0.000000000001")]
        {
            assert_eq!(Sum::of_tokens(price(at), tokens).to_string(), cost);
        }
        let most = Sum::of_tokens(price("999999999.999999"), u64::MAX);
        assert!(most > Sum::of_tokens(price("999999999.999998"), u64::MAX), "no price and count overflow");
    }

    #[test]
    fn people_see_cents_and_below_one_millionths_and_never_too_little() {
        for (exact, shown) in [
            ("0.00", "0.00"),
            ("0.000000000001", "0.000001"),
            ("0.25", "0.25"),
            ("12.500000000001", "12.51"),
            ("12.50", "12.50"),
            ("0.9999999", "1.00"),
        ] {
            assert_eq!(exact.parse::<Sum>().unwrap().rounded().to_string(), shown);
        }
    }

    #[test]
    fn what_a_part_costs_says_what_all_costs() {
        assert_eq!(Sum::from(price("1.50")).projected(3, 10), Some(Sum::from(price("5"))));
        assert_eq!(Sum::from(price("1.50")).projected(0, 10), None);
    }

    proptest! {
        #[test]
        fn an_exact_amount_reads_back_as_it_was_written(units: u128) {
            let sum = Sum(units);
            prop_assert_eq!(sum.to_string().parse::<Sum>(), Ok(sum));
        }

        #[test]
        fn the_order_of_adding_up_does_not_matter(tokens in prop::collection::vec(0..u64::MAX / 64, 0..40)) {
            let at = price("0.123457");
            let together = Sum::of_tokens(at, tokens.iter().sum());
            let one_by_one = tokens.iter().map(|tokens| Sum::of_tokens(at, *tokens)).fold(Sum::ZERO, Sum::plus);
            prop_assert_eq!(together, one_by_one);
        }
    }
}
