//! Single JSON tokens: their kind, their text, and writing them. Objects are read by `members`.

use std::borrow::Cow;

use serde::Serialize;

use crate::Json;

/// What kind of JSON value a token is, with its article, for messages.
pub(crate) fn kind_of(value: Json<'_>) -> &'static str {
    match value.get().as_bytes().first() {
        Some(b'"') => "a string",
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// The text of a JSON string token, given as it stands; `None` when the token is no string or its escapes are no Unicode text.
pub fn text_of(token: &str) -> Option<Cow<'_, str>> {
    let inner = string_content(token)?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str::<String>(token).ok().map(Cow::Owned)
}

/// What stands between the quotes of a JSON string token, escapes as written.
pub(crate) fn string_content(token: &str) -> Option<&str> {
    token.strip_prefix('"')?.strip_suffix('"')
}

/// Appends a value to a buffer.
pub(crate) fn append(value: &(impl Serialize + ?Sized), out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("writing into memory does not fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_value_is_told_by_its_article() {
        let kinds = [
            ("\"a\"", "a string"),
            ("{}", "an object"),
            ("[]", "an array"),
            ("true", "a boolean"),
            ("false", "a boolean"),
            ("null", "null"),
            ("-1", "a number"),
            ("0.5", "a number"),
        ];
        for (text, kind) in kinds {
            assert_eq!(kind_of(Json::parse(text).unwrap()), kind);
        }
    }

    #[test]
    fn text_without_escapes_is_borrowed_and_with_escapes_decoded() {
        assert!(matches!(text_of("\"\u{e9}\""), Some(Cow::Borrowed("\u{e9}"))));
        assert_eq!(text_of(r#""\u00e9\n""#).as_deref(), Some("\u{e9}\n"));
        assert_eq!(text_of(r#""\ud800""#), None);
        assert_eq!(text_of("7"), None);
    }
}
