//! The currency of prices.

use std::{fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use thiserror::Error;

/// A currency by its three letters (ISO 4217), such as `USD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Currency([u8; 3]);

/// A text names no currency.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("read the currency `{0}`: write three capital letters such as USD")]
pub struct CurrencyError(String);

impl Default for Currency {
    /// The dollar, in which most providers bill.
    fn default() -> Self {
        Self(*b"USD")
    }
}

impl FromStr for Currency {
    type Err = CurrencyError;

    fn from_str(text: &str) -> Result<Self, CurrencyError> {
        match text.as_bytes().try_into() {
            Ok(letters) if text.bytes().all(|letter| letter.is_ascii_uppercase()) => Ok(Self(letters)),
            _ => Err(CurrencyError(text.to_owned())),
        }
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|letter| write!(formatter, "{}", char::from(*letter)))
    }
}

impl Serialize for Currency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for Currency {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Currency".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[A-Z]{3}$" })
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_currency_has_three_capital_letters() {
        assert_eq!("EUR".parse::<Currency>().unwrap().to_string(), "EUR");
        for text in ["", "US", "USDT", "usd", "U D", "€"] {
            assert_eq!(text.parse::<Currency>(), Err(CurrencyError(text.to_owned())));
        }
    }
}
