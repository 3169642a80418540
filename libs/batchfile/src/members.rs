//! Reads chosen members of a JSON object and checks the syntax of all of it, in one pass and without copying.
//!
//! Owns the look at an object from outside; what the members mean belongs to the callers.

use std::{borrow::Cow, fmt, ops::ControlFlow};

use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{Json, json::text_of, scan, skim};

/// The members of an object that were asked for, as they stand in the text.
#[derive(Debug)]
pub(crate) struct Members<'a, const N: usize> {
    /// In the order of the names; the first where a name stands twice. `null` is a value, not an absence.
    pub(crate) values: [Option<Json<'a>>; N],
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
        let mut members = Self::none();
        let scanned = scan::each_member(text, |name, value| {
            members.take(names, text_of(name)?, Json::part(value));
            Some(())
        });
        match scanned {
            Some(_) => Ok(members),
            None => Self::parse(text, names),
        }
    }

    /// The same of an object inside of one that was read. `None`: it is no object, or has a name that is no text.
    pub(crate) fn of(object: Json<'a>, names: &'static [&'static str; N]) -> Option<Self> {
        let mut members = Self::none();
        let mut is_text = true;
        skim::each_member(object.get(), |name, value| {
            let Some(name) = text_of(name) else {
                is_text = false;
                return ControlFlow::Break(());
            };
            members.take(names, name, Json::part(value));
            ControlFlow::Continue(())
        })?;
        is_text.then_some(members)
    }

    /// The same by the parser, which knows what is wrong where something is.
    pub(crate) fn parse(text: &'a str, names: &'static [&'static str; N]) -> serde_json::Result<Self> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let members = Named(names).deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(members)
    }

    fn none() -> Self {
        Self { values: [None; N], duplicate: None, unknown: None }
    }

    fn take(&mut self, names: &'static [&'static str; N], name: Cow<'a, str>, value: Json<'a>) {
        let Some(index) = names.iter().position(|known| *known == name) else {
            self.unknown.get_or_insert(name);
            return;
        };
        match &mut self.values[index] {
            Some(_) => self.duplicate = self.duplicate.or(Some(names[index])),
            absent => *absent = Some(value),
        }
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
        let mut members = Members::none();
        while let Some(Name(name)) = map.next_key()? {
            members.take(self.0, name, map.next_value::<&RawValue>()?.into());
        }
        Ok(members)
    }
}

/// A member's name, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

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
            members.values.map(|value| value.map(Json::get)),
            [Some("null"), Some(r#"{ "a" : 1e2 }"#)]
        );
        assert_eq!(members.unknown.as_deref(), Some("x"));
        assert_eq!(members.duplicate, None);
    }

    #[test]
    fn the_first_of_two_members_with_one_name_is_kept_and_the_name_reported() {
        let members = read(r#"{"id":1,"body":2,"body":3,"id":4}"#).unwrap();
        assert_eq!(members.values.map(|value| value.map(Json::get)), [Some("1"), Some("2")]);
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
