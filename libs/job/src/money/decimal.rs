//! Amounts as people write them: prices and budgets, exact to a millionth.

use std::{fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, Visitor},
};
use thiserror::Error;

/// What the text of an amount looks like: at most nine digits before and six after the point, and no sign.
pub const PATTERN: &str = r"^(0|[1-9][0-9]{0,8})(\.[0-9]{1,6})?$";

const MILLION: u64 = 1_000_000;

/// An amount of money in millionths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Decimal(u64);

/// A text is no amount.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("read the amount `{0}`: write digits and at most six more after a point, such as \"12.50\"")]
pub struct DecimalError(String);

impl Decimal {
    /// How many millionths it is.
    pub(super) fn millionths(self) -> u64 {
        self.0
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
        let whole: u64 = whole.parse().map_err(|_| refuse())?;
        let millionths: u64 = format!("{fraction:0<6}").parse().map_err(|_| refuse())?;
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

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    /// From text alone: a number would have gone through a float before anybody could look at it.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Decimal;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an amount in quotes, such as \"12.50\"")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Decimal, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Text).map_err(D::Error::custom)
    }
}

impl JsonSchema for Decimal {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Decimal".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": PATTERN })
    }

    fn inline_schema() -> bool {
        true
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
    fn an_amount_is_read_from_text_and_never_from_a_float() {
        assert_eq!(serde_json::from_str::<Decimal>("\"12.5\"").unwrap(), amount("12.50"));
        let refused = serde_json::from_str::<Decimal>("12.5").unwrap_err().to_string();
        assert!(refused.contains("in quotes"), "{refused}");
    }
}
