//! The CRC32C of an object: what tells apart two objects of one name without reading them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// A CRC32C, in JSON eight hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Crc32c(pub u32);

impl Crc32c {
    /// The CRC32C of nothing.
    pub const EMPTY: Self = Self(0);

    /// The CRC32C of these bytes followed by `size_bytes` bytes whose own is `next`.
    pub fn followed_by(self, next: Self, size_bytes: u64) -> Self {
        let size = usize::try_from(size_bytes).expect("a size fits a 64-bit address");
        Self(crc32c::crc32c_combine(self.0, next.0, size))
    }
}

impl fmt::Display for Crc32c {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:08x}", self.0)
    }
}

impl Serialize for Crc32c {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Crc32c {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            u32::from_str_radix(&text, 16).map(Self).map_err(D::Error::custom)
        } else {
            Err(D::Error::custom("expected eight hex digits"))
        }
    }
}

impl JsonSchema for Crc32c {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Crc32c".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9a-f]{8}$" })
    }
}
