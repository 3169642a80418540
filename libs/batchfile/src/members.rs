//! Reads chosen members of a JSON object and checks the syntax of all of it, in one pass and without copying.
//!
//! Owns the look at an object from outside; what the members mean belongs to the callers.

use std::{borrow::Cow, fmt};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object that were asked for, as they stand in the text.
#[derive(Debug)]
pub(crate) struct Members<'a, const N: usize> {
    /// In the order of the names; the first where a name stands twice. `null` is a value, not an absence.
    pub(crate) values: [Option<&'a RawValue>; N],
    /// The first of the names that stands twice.
    pub(crate) duplicate: Option<&'static str>,
    /// The first member that was not asked for.
    pub(crate) unknown: Option<Cow<'a, str>>,
}

impl<'a, const N: usize> Members<'a, N> {
    /// Reads `text`, which must be one well-formed JSON object and nothing else.
    ///
    /// The error is of the category `Data` when the text is JSON of another kind.
    pub(crate) fn read(text: &'a str, names: &'static [&'static str; N]) -> serde_json::Result<Self> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let members = Named(names).deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(members)
    }
}

/// Deserializes the members with these names.
#[derive(Clone, Copy)]
struct Named<const N: usize>(&'static [&'static str; N]);

impl<'de, const N: usize> DeserializeSeed<'de> for Named<N> {
    type Value = Members<'de, N>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, const N: usize> Visitor<'de> for Named<N> {
    type Value = Members<'de, N>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Members { values: [None; N], duplicate: None, unknown: None };
        while let Some(key) = map.next_key_seed(KeyAmong(self.0))? {
            match key {
                Key::Known(index) => {
                    let value = map.next_value()?;
                    match &mut members.values[index] {
                        Some(_) => members.duplicate = members.duplicate.or(Some(self.0[index])),
                        absent => *absent = Some(value),
                    }
                }
                Key::Unknown(name) => {
                    map.next_value::<IgnoredAny>()?;
                    members.unknown.get_or_insert(name);
                }
            }
        }
        Ok(members)
    }
}

/// A member's name: its place among the known names, or itself.
enum Key<'a> {
    Known(usize),
    Unknown(Cow<'a, str>),
}

/// Deserializes a member's name.
struct KeyAmong(&'static [&'static str]);

impl KeyAmong {
    fn known(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|known| *known == name)
    }
}

impl<'de> DeserializeSeed<'de> for KeyAmong {
    type Value = Key<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeyAmong {
    type Value = Key<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a member's name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(self.known(name).map_or(Key::Unknown(Cow::Borrowed(name)), Key::Known))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.known(name).map_or_else(|| Key::Unknown(Cow::Owned(name.to_owned())), Key::Known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> serde_json::Result<Members<'_, 2>> {
        Members::read(text, &["id", "body"])
    }

    #[test]
    fn members_are_found_in_any_order_and_kept_as_written() {
        let members = read(r#" {"x":[1, 2],"body":{ "a" : 1e2 },"i\u0064":null} "#).unwrap();
        assert_eq!(
            members.values.map(|value| value.map(RawValue::get)),
            [Some("null"), Some(r#"{ "a" : 1e2 }"#)]
        );
        assert_eq!(members.unknown.as_deref(), Some("x"));
        assert_eq!(members.duplicate, None);
    }

    #[test]
    fn the_first_of_two_members_with_one_name_is_kept_and_the_name_reported() {
        let members = read(r#"{"id":1,"body":2,"body":3,"id":4}"#).unwrap();
        assert_eq!(members.values.map(|value| value.map(RawValue::get)), [Some("1"), Some("2")]);
        assert_eq!(members.duplicate, Some("body"));
    }

    #[test]
    fn damage_anywhere_is_an_error() {
        for text in ["", "{", r#"{"x":[1,}"#, r#"{"x":"a"#, "{} {}", "{}x", r#"{"x":tru}"#, "{\"x\":\"\n\"}"]
        {
            assert!(!read(text).unwrap_err().is_data(), "{text}");
        }
    }

    #[test]
    fn json_of_another_kind_is_told_apart_from_damage() {
        for text in ["[]", "1", "\"a\"", "null", "true"] {
            assert!(read(text).unwrap_err().is_data(), "{text}");
        }
    }

    #[test]
    fn deep_nesting_does_not_exhaust_the_stack() {
        let text = format!(r#"{{"x":{}{}}}"#, "[".repeat(500_000), "]".repeat(500_000));
        assert!(read(&text).is_ok());
    }
}
