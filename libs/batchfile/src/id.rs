//! The id that a user gave to a line: compared decoded, copied as it was written.

use std::borrow::Cow;

use crate::{Format, Json, Rejection, json::kind_of, members::Members};

/// A line's id as its JSON token stands in the input, known to be valid for the line's format.
#[derive(Debug, Clone)]
pub struct RawId<'a> {
    token: Json<'a>,
    decoded: DecodedId<'a>,
}

/// What two ids are compared by: the string `"a"` equals `"\u0061"`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DecodedId<'a> {
    /// A `prompt_id`: a 64-bit integer, signed or not.
    Integer(i128),
    /// A `custom_id`: a string that is not empty.
    Text(Cow<'a, str>),
}

impl<'a> RawId<'a> {
    /// Finds the id in a line that may be invalid otherwise, so that its `rejected` record can carry it. `None` when
    /// the line is no JSON object or the id itself is at fault.
    pub fn find(line: &'a [u8], format: Format) -> Option<Self> {
        let text = str::from_utf8(line).ok()?;
        let names = match format {
            Format::Prompts => &["prompt_id"],
            Format::OpenAi => &["custom_id"],
        };
        let members = Members::<1>::read(text, names).ok()?;
        match (members.values, members.duplicate) {
            ([Some(value)], None) => Self::new(value, format).ok(),
            _ => None,
        }
    }

    /// Checks an id token.
    pub(crate) fn new(value: Json<'a>, format: Format) -> Result<Self, Rejection> {
        let decoded = match format {
            Format::Prompts => integer(value)?,
            Format::OpenAi => text(value)?,
        };
        Ok(Self { token: value, decoded })
    }

    /// The JSON token, byte for byte as in the input; a string's quotes belong to it.
    pub fn raw(&self) -> &'a str {
        self.token.get()
    }

    /// The same as a JSON value, as records take it.
    pub fn token(&self) -> Json<'a> {
        self.token
    }

    /// What the id is compared by.
    pub fn decoded(&self) -> &DecodedId<'a> {
        &self.decoded
    }
}

fn integer(value: Json<'_>) -> Result<DecodedId<'_>, Rejection> {
    const NAME: &str = Format::Prompts.id_name();
    const RANGE: std::ops::RangeInclusive<i128> = i64::MIN as i128..=u64::MAX as i128;
    let token = value.get();
    if kind_of(value) != "a number" {
        return Err(Rejection::invalid_type(NAME, "an integer", kind_of(value)));
    }
    if token.contains(['.', 'e', 'E']) {
        return Err(Rejection::invalid_type(NAME, "an integer", "a number with a fraction or an exponent"));
    }
    match token.parse::<i128>() {
        Ok(integer) if RANGE.contains(&integer) => Ok(DecodedId::Integer(integer)),
        _ => Err(Rejection::invalid_id(NAME, "does not fit into 64 bits; write a smaller integer")),
    }
}

fn text(value: Json<'_>) -> Result<DecodedId<'_>, Rejection> {
    const NAME: &str = Format::OpenAi.id_name();
    if kind_of(value) != "a string" {
        return Err(Rejection::invalid_type(NAME, "a string", kind_of(value)));
    }
    match value.text() {
        Some(text) if text.is_empty() => {
            Err(Rejection::invalid_id(NAME, "is empty; write a string that no other line has"))
        }
        Some(text) => Ok(DecodedId::Text(text)),
        None => {
            Err(Rejection::invalid_id(NAME, "has a `\\u` escape that is no character; write valid Unicode"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RejectionCode;

    fn check(token: &str, format: Format) -> Result<DecodedId<'static>, RejectionCode> {
        match RawId::new(Json::parse(token).unwrap(), format) {
            Ok(id) => {
                assert_eq!(id.raw(), token);
                Ok(match id.decoded {
                    DecodedId::Integer(integer) => DecodedId::Integer(integer),
                    DecodedId::Text(text) => DecodedId::Text(Cow::Owned(text.into_owned())),
                })
            }
            Err(rejection) => Err(rejection.code),
        }
    }

    #[test]
    fn prompt_ids_are_integers_of_64_bits() {
        for (token, integer) in
            [("0", 0), ("-0", 0), ("7", 7), ("-9223372036854775808", i128::from(i64::MIN))]
        {
            assert_eq!(check(token, Format::Prompts), Ok(DecodedId::Integer(integer)));
        }
        assert_eq!(check("18446744073709551615", Format::Prompts), Ok(DecodedId::Integer(u64::MAX.into())));
        for token in ["18446744073709551616", "-9223372036854775809", &"9".repeat(60)] {
            assert_eq!(check(token, Format::Prompts), Err(RejectionCode::InvalidId), "{token}");
        }
        for token in ["7.0", "7e0", "7E2", "\"7\"", "null", "true", "[7]", "{}"] {
            assert_eq!(check(token, Format::Prompts), Err(RejectionCode::InvalidType), "{token}");
        }
    }

    #[test]
    fn custom_ids_are_strings_compared_decoded() {
        assert_eq!(check("\"a\"", Format::OpenAi), check(r#""\u0061""#, Format::OpenAi));
        assert_eq!(check("\"\u{e9}\"", Format::OpenAi), check(r#""\u00e9""#, Format::OpenAi));
        assert_ne!(check("\"a\"", Format::OpenAi), check("\"A\"", Format::OpenAi));
        assert_eq!(check("\"\"", Format::OpenAi), Err(RejectionCode::InvalidId));
        assert_eq!(check(r#""\ud800""#, Format::OpenAi), Err(RejectionCode::InvalidId));
        assert_eq!(check("7", Format::OpenAi), Err(RejectionCode::InvalidType));
    }

    #[test]
    fn an_invalid_line_still_yields_its_id() {
        let found =
            |line: &'static str, format| RawId::find(line.as_bytes(), format).map(|id| id.raw().to_owned());
        assert_eq!(found(r#"{"custom_id":"a","url":7}"#, Format::OpenAi).as_deref(), Some("\"a\""));
        assert_eq!(found(r#"{"prompt_id":-3}"#, Format::Prompts).as_deref(), Some("-3"));
        for line in
            [r#"{"prompt_id":"x"}"#, r#"{"prompt_id":1,"prompt_id":2}"#, r#"{"prompt_id":1"#, "[]", "{}"]
        {
            assert_eq!(found(line, Format::Prompts), None, "{line}");
        }
    }
}
