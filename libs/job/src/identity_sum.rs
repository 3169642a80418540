//! The identity sum: an order-free sum over all lines that ties the published ids to those of the input.
//!
//! Modulo 2^256, the sum of SHA-256(`ordinal` u64 little-endian, byte length of the raw id u32 little-endian, raw id).
//! A line without a readable id counts with length 0. Order-free, so validation and reconciliation, which meet the
//! lines in different orders, arrive at the same value.

use std::fmt;

use penstock_batchfile::Ordinal;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use sha2::{Digest, Sha256};

use crate::identity::hex;

/// A sum modulo 2^256, printed as 64 hex digits (most significant first).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IdentitySum([u64; 4]);

impl IdentitySum {
    /// Adds one line; `raw_id` is the id's JSON token as it stands in the input, `None` when none could be read.
    pub fn add(&mut self, ordinal: Ordinal, raw_id: Option<&str>) {
        let raw_id = raw_id.unwrap_or_default().as_bytes();
        let length = u32::try_from(raw_id.len()).expect("a line is shorter than 4 GiB");
        let mut hasher = Sha256::new();
        hasher.update(u64::from(ordinal.get()).to_le_bytes());
        hasher.update(length.to_le_bytes());
        hasher.update(raw_id);
        let digest = hasher.finalize();
        let mut addend = Self::default();
        for (limb, bytes) in addend.0.iter_mut().zip(digest.chunks_exact(8)) {
            *limb = u64::from_be_bytes(bytes.try_into().expect("a chunk has eight bytes"));
        }
        self.merge(addend);
    }

    /// Adds the sum over other lines.
    pub fn merge(&mut self, other: Self) {
        let mut carry = false;
        for (limb, addend) in self.0.iter_mut().zip(other.0).rev() {
            let (sum, first) = limb.overflowing_add(addend);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            *limb = sum;
            carry = first || second;
        }
    }
}

impl fmt::Display for IdentitySum {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|limb| write!(formatter, "{}", hex(&limb.to_be_bytes())))
    }
}

impl Serialize for IdentitySum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for IdentitySum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut limbs = [0; 4];
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(D::Error::custom("expected 64 hex digits"));
        }
        for (index, limb) in limbs.iter_mut().enumerate() {
            *limb = u64::from_str_radix(&text[index * 16..index * 16 + 16], 16).map_err(D::Error::custom)?;
        }
        Ok(Self(limbs))
    }
}

impl JsonSchema for IdentitySum {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "IdentitySum".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_sum_of_one_line_is_its_hash() {
        let mut sum = IdentitySum::default();
        sum.add(Ordinal::new(1), Some("7"));
        let mut hasher = Sha256::new();
        hasher.update([1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, b'7']);
        assert_eq!(sum.to_string(), hex(&hasher.finalize()));
    }

    #[test]
    fn only_hex_digits_are_a_sum() {
        for text in ["", "0", &"+".repeat(64), &"+00000000000000a".repeat(4), &"\u{e9}".repeat(32)] {
            let json = serde_json::to_string(text).unwrap();
            assert!(serde_json::from_str::<IdentitySum>(&json).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_order_of_lines_does_not_matter_and_each_id_does(ids in prop::collection::vec(prop::option::of("[a-z]{0,6}"), 2..40)) {
            let total = |order: &mut dyn Iterator<Item = usize>| {
                let mut sum = IdentitySum::default();
                for index in order {
                    sum.add(Ordinal::new(u32::try_from(index).unwrap()), ids[index].as_deref());
                }
                sum
            };
            let forward = total(&mut (0..ids.len()));
            prop_assert_eq!(forward, total(&mut (0..ids.len()).rev()));
            prop_assert_ne!(forward, total(&mut (1..ids.len())));
            let text = serde_json::to_string(&forward).unwrap();
            prop_assert_eq!(serde_json::from_str::<IdentitySum>(&text).unwrap(), forward);
        }
    }
}
