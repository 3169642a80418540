//! Durations as people write them: `24h`, `90m`, `1h30m`, `2d`.

use std::num::NonZeroU64;

use thiserror::Error;

/// A text that is no duration.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("write a duration above zero such as 24h, 90m, 1h30m or 2d")]
pub(super) struct NoDuration;

/// Whole seconds.
pub(super) fn seconds(text: &str) -> Result<NonZeroU64, NoDuration> {
    let mut rest = text;
    let mut total = 0u64;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).ok_or(NoDuration)?;
        let count: u64 = rest[..digits].parse().map_err(|_| NoDuration)?;
        let unit = match rest.as_bytes()[digits] {
            b'd' => 86_400,
            b'h' => 3_600,
            b'm' => 60,
            b's' => 1,
            _ => return Err(NoDuration),
        };
        let part = count.checked_mul(unit).ok_or(NoDuration)?;
        total = total.checked_add(part).ok_or(NoDuration)?;
        rest = &rest[digits + 1..];
    }
    NonZeroU64::new(total).ok_or(NoDuration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_may_be_combined() {
        let table =
            [("24h", 86_400), ("90m", 5_400), ("1h30m", 5_400), ("2d", 172_800), ("1d1h1m1s", 90_061)];
        for (text, expected) in table {
            assert_eq!(seconds(text).map(NonZeroU64::get), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in [
            "",
            "24",
            "h",
            "0s",
            "1w",
            "-1h",
            "1.5h",
            "1h ",
            "1é",
            "99999999999999999999s",
            "999999999999999999d",
        ] {
            assert_eq!(seconds(text), Err(NoDuration), "{text}");
        }
    }
}
