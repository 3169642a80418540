//! Amounts of a resource, as Kubernetes writes them: `2`, `500m`, `512Mi`.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

/// An amount of a resource. Whether it is one is for the API server to say, when the pod is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Quantity(pub String);

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrInteger)
    }
}

/// People write `cpu: 2` as well as `cpu: 500m`.
struct TextOrInteger;

impl de::Visitor<'_> for TextOrInteger {
    type Value = Quantity;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an amount such as 2 or 512Mi")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
        Ok(Quantity(text.to_owned()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string()))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string()))
    }
}

impl JsonSchema for Quantity {
    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "x-kubernetes-int-or-string": true, "maxLength": 32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_a_text_or_an_integer() {
        for (yaml, expected) in [("2", "2"), ("500m", "500m"), ("\"512Mi\"", "512Mi")] {
            assert_eq!(serde_saphyr::from_str::<Quantity>(yaml).unwrap(), Quantity(expected.to_owned()));
        }
        assert!(serde_saphyr::from_str::<Quantity>("[1]").is_err());
    }
}
