//! JSON that is known to be well-formed, as it stands in a text: what a record may take in without another look.
//!
//! Owns the knowledge; judging a text is `scan`'s and the parser's.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::{
    json::{string_content, text_of},
    scan, skim,
};

/// One well-formed JSON value, without white space around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<'a>(&'a str);

impl<'a> Json<'a> {
    /// The value that a text is; `None` where it is not one and well-formed.
    pub fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str::<&RawValue>(text).ok().map(Self::from)
    }

    /// The object that a text is, and its members with these names; the first where a name stands twice. `None`: the
    /// text is no object.
    pub fn object<const N: usize>(text: &'a str, names: &[&str; N]) -> Option<(Self, [Option<Self>; N])> {
        if let Some((object, members)) = scan::object(text, names) {
            return Some((Self(object), members.map(|member| member.map(Self))));
        }
        let value = Self::parse(text)?;
        Some((value, value.members(names)?))
    }

    /// The same of a value.
    pub fn members<const N: usize>(self, names: &[&str; N]) -> Option<[Option<Self>; N]> {
        skim::members(self.0, names).map(|members| members.map(|member| member.map(Self)))
    }

    /// The elements of an array; none of what is no array.
    pub fn elements(self) -> impl Iterator<Item = Self> {
        skim::elements(self.0).map(Self)
    }

    /// A value that a scan has passed over.
    pub(crate) fn part(value: &'a str) -> Self {
        Self(value)
    }

    /// A copy that owns its text.
    pub fn to_raw_value(self) -> Box<RawValue> {
        RawValue::from_string(self.0.to_owned()).expect("invariant: the text is well-formed")
    }

    /// As it is written.
    pub fn get(self) -> &'a str {
        self.0
    }

    /// What stands between the quotes of a string, escapes as written; `None` of another kind of value.
    pub fn string_content(self) -> Option<&'a str> {
        string_content(self.0)
    }

    /// The text of a string; `None` of another kind of value, and where its escapes are no Unicode text.
    pub fn text(self) -> Option<Cow<'a, str>> {
        text_of(self.0)
    }
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_raw_value().serialize(serializer)
    }
}

impl<'a> From<&'a RawValue> for Json<'a> {
    fn from(value: &'a RawValue) -> Self {
        Self(value.get())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::skim::tests::json;

    #[test]
    fn an_object_is_read_however_deep_it_is_nested() {
        for levels in [1, 63, 64, 500_000] {
            let text = format!(" {{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
            let (object, [a, b]) = Json::object(&text, &["a", "b"]).unwrap();
            assert_eq!(object.get(), text.trim());
            assert_eq!((a.map(|a| a.get().len()), b), (Some(2 * levels), None));
        }
    }

    #[test]
    fn what_is_no_object_has_no_members() {
        for text in ["", "[]", "[1]", "7", "null", "\"text\"", "{}x", "{"] {
            assert_eq!(Json::object(text, &["a"]), None, "{text}");
        }
    }

    #[test]
    fn a_name_that_is_no_text_is_none_of_those_asked_for() {
        let (_, members) = Json::object(r#"{"\ud800":1,"a":2}"#, &["a"]).unwrap();
        assert_eq!(members.map(|member| member.map(Json::get)), [Some("2")]);
    }

    proptest! {
        #[test]
        fn whatever_is_taken_from_an_object_is_json(text in json()) {
            let parts = Json::object(&text, &["id", "a", "b"]).into_iter().flat_map(|(_, members)| members).flatten();
            for part in parts.flat_map(|part| part.elements().chain([part]).collect::<Vec<_>>()) {
                prop_assert_eq!(Json::parse(part.get()), Some(part));
            }
        }
    }
}
