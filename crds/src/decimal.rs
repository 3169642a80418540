//! Amounts of money, without floating point: exact to a millionth.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// What the text of an amount looks like: at most nine digits before and six after the point, and no sign.
pub const PATTERN: &str = r"^(0|[1-9][0-9]{0,8})(\.[0-9]{1,6})?$";

const MILLION: i64 = 1_000_000;

/// An amount of money in millionths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Decimal(i64);

/// A text is no amount.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("read the amount `{0}`: write digits and at most six more after a point, such as \"12.50\"")]
pub struct DecimalError(String);

impl Decimal {
    /// What so many tokens cost at this price for a million of them. A cost beyond what can be written is the highest
    /// that can.
    pub fn for_tokens(self, tokens: i64) -> Self {
        let cost = i128::from(self.0) * i128::from(tokens.max(0)) / i128::from(MILLION);
        Self(i64::try_from(cost).unwrap_or(i64::MAX))
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl FromStr for Decimal {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        let refuse = || DecimalError(text.to_owned());
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str, most| {
            (1..=most).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        let leading_zero = whole.len() > 1 && whole.starts_with('0');
        if !digits(whole, 9) || !digits(fraction, 6) || leading_zero {
            return Err(refuse());
        }
        let whole: i64 = whole.parse().map_err(|_| refuse())?;
        let millionths: i64 = format!("{fraction:0<6}").parse().map_err(|_| refuse())?;
        Ok(Self(whole * MILLION + millionths))
    }
}

impl fmt::Display for Decimal {
    /// With at least two digits after the point, and no zeros beyond.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = format!("{:06}", self.0 % MILLION);
        let end = fraction.trim_end_matches('0').len().max(2);
        write!(formatter, "{}.{}", self.0 / MILLION, &fraction[..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    #[test]
    fn an_amount_is_exact_to_a_millionth() {
        for (text, shown) in [
            ("0", "0.00"),
            ("12.5", "12.50"),
            ("0.000001", "0.000001"),
            ("999999999.999999", "999999999.999999"),
        ] {
            assert_eq!(amount(text).to_string(), shown);
            assert_eq!(amount(shown), amount(text));
        }
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in ["", "1.", ".5", "-1", "+1", "1e3", "01", "1,5", "1.0000001", "1000000000", "١"] {
            assert_eq!(text.parse::<Decimal>(), Err(DecimalError(text.to_owned())));
        }
    }

    #[test]
    fn tokens_cost_their_share_of_the_price_for_a_million() {
        assert_eq!(amount("2.50").for_tokens(400_000), amount("1"));
        assert_eq!(amount("0.25").for_tokens(3), amount("0"));
        assert_eq!(amount("1.5").plus(amount("0.000001")), amount("1.500001"));
        assert_eq!(amount("999999999").for_tokens(i64::MAX), Decimal(i64::MAX));
    }
}
