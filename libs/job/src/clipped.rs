//! Text of a bounded size, for documents that must not outgrow a limit whatever an error message says.

use std::{fmt, ops::Deref};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de::Error};

/// What stands where the end of a text was cut off.
const CUT: &str = "…";

/// A text that takes at most `MOST` bytes between its quotes in JSON. A longer one is cut at a character.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Clipped<const MOST: usize>(String);

impl<const MOST: usize> From<&str> for Clipped<MOST> {
    fn from(text: &str) -> Self {
        let room = MOST.saturating_sub(CUT.len());
        // How much of the text fits together with the sign that it was cut.
        let (mut taken, mut kept) = (0, 0);
        for (at, character) in text.char_indices() {
            taken += in_json(character);
            if taken <= room {
                kept = at + character.len_utf8();
            }
            if taken > MOST {
                return Self(format!("{}{}", &text[..kept], if MOST < CUT.len() { "" } else { CUT }));
            }
        }
        Self(text.to_owned())
    }
}

impl<const MOST: usize> Deref for Clipped<MOST> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<const MOST: usize> fmt::Display for Clipped<MOST> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl<'de, const MOST: usize> Deserialize<'de> for Clipped<MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.chars().map(in_json).sum::<usize>() <= MOST {
            Ok(Self(text))
        } else {
            Err(D::Error::custom(format_args!("expected a text of at most {MOST} bytes")))
        }
    }
}

impl<const MOST: usize> JsonSchema for Clipped<MOST> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("TextOfAtMost{MOST}Bytes").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "maxLength": MOST })
    }

    fn inline_schema() -> bool {
        true
    }
}

/// Bytes that a character takes inside a JSON string.
fn in_json(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_character_and_says_so() {
        assert_eq!(&*Clipped::<10>::from("0123456789"), "0123456789");
        assert_eq!(&*Clipped::<10>::from("0123456789a"), "0123456…");
        assert_eq!(&*Clipped::<10>::from("012345ÄÖÜ"), "012345…");
        assert_eq!(&*Clipped::<2>::from("012"), "");
    }

    #[test]
    fn a_text_that_is_too_long_is_refused_when_it_is_read() {
        assert!(serde_json::from_str::<Clipped<3>>(r#""abc""#).is_ok());
        assert!(serde_json::from_str::<Clipped<3>>(r#""abcd""#).is_err());
    }

    proptest! {
        #[test]
        fn no_text_outgrows_its_bound_in_json_and_what_was_cut_reads_back(text in any::<String>()) {
            let clipped = Clipped::<20>::from(text.as_str());
            let json = serde_json::to_string(&clipped).unwrap();
            prop_assert!(json.len() <= 22, "{json}");
            prop_assert_eq!(&serde_json::from_str::<Clipped<20>>(&json).unwrap(), &clipped);
            let whole = clipped.strip_suffix(CUT).unwrap_or(&clipped);
            prop_assert!(text.starts_with(whole));
        }
    }
}
