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
    ///
    /// As zlib's `crc32_combine` does it: a CRC is a remainder of polynomials, so `size_bytes` further bytes multiply it by
    /// x^(8 * `size_bytes`). This takes less than a microsecond; `crc32c_combine` squares matrices for 13 us, and the plan
    /// of the published files has a call for each of some thousand parts.
    pub const fn followed_by(self, next: Self, size_bytes: u64) -> Self {
        Self(product(power_of_x(size_bytes), self.0) ^ next.0)
    }
}

/// Castagnoli's polynomial without its highest term. Here and below the highest bit is the coefficient of x^0.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// x^(2^n), modulo the polynomial. The powers of x repeat after 2^31 - 1, so those of 2 after 31.
const SQUARES: [u32; 31] = {
    let mut squares = [1 << 30; 31];
    let mut place = 1;
    while place < squares.len() {
        squares[place] = product(squares[place - 1], squares[place - 1]);
        place += 1;
    }
    squares
};

/// The product of two polynomials, modulo Castagnoli's.
const fn product(left: u32, mut right: u32) -> u32 {
    let mut sum = 0;
    let mut place = 1 << 31;
    while place > 0 {
        if left & place != 0 {
            sum ^= right;
        }
        right = (right >> 1) ^ if right & 1 == 1 { POLYNOMIAL } else { 0 };
        place >>= 1;
    }
    sum
}

/// x^(8 * `bytes`), modulo the polynomial.
const fn power_of_x(mut bytes: u64) -> u32 {
    let mut power = 1 << 31;
    // Eight bits a byte: 2^3.
    let mut place = 3;
    while bytes > 0 {
        if bytes & 1 == 1 {
            power = product(SQUARES[place % SQUARES.len()], power);
        }
        bytes >>= 1;
        place += 1;
    }
    power
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_sum_of_two_pieces_is_that_of_the_whole(first in prop::collection::vec(any::<u8>(), 0..99), second in prop::collection::vec(any::<u8>(), 0..99)) {
            let whole = Crc32c(crc32c::crc32c(&[&*first, &*second].concat()));
            let (first, next) = (Crc32c(crc32c::crc32c(&first)), Crc32c(crc32c::crc32c(&second)));
            prop_assert_eq!(first.followed_by(next, second.len() as u64), whole);
        }

        #[test]
        fn pieces_of_any_size_are_joined_as_the_crate_joins_them(first: u32, next: u32, size_bytes in 0..u64::from(u32::MAX) << 8) {
            let size = usize::try_from(size_bytes).unwrap();
            let joined = Crc32c(first).followed_by(Crc32c(next), size_bytes);
            prop_assert_eq!(joined, Crc32c(crc32c::crc32c_combine(first, next, size)));
        }
    }
}
