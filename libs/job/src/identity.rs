//! A job's identity: the hash of its canonical spec, and the first field in which two specs differ.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::spec::CanonicalSpec;

/// Hex SHA-256 of the canonical JSON of a job's canonical spec. Two jobs of one identity over one output are one job.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Identity(String);

impl Identity {
    /// The identity of a canonical spec.
    pub fn of(spec: &CanonicalSpec) -> Self {
        Self(hex(&Sha256::digest(canonical_json(&to_value(spec)))))
    }

    /// All 64 hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first `digits` hex digits, as used in names and record ids.
    pub fn prefix(&self, digits: usize) -> &str {
        self.0.get(..digits).unwrap_or(&self.0)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// JSON with sorted keys and no spaces, whatever the map type behind [`Value`].
pub fn canonical_json(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            text.push('{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                write_canonical(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

/// The path of the first field, in key order, in which two specs differ; `None` when they are equal.
pub fn first_difference(left: &CanonicalSpec, right: &CanonicalSpec) -> Option<String> {
    difference(&to_value(left), &to_value(right), "")
}

fn difference(left: &Value, right: &Value, path: &str) -> Option<String> {
    let (Value::Object(left_map), Value::Object(right_map)) = (left, right) else {
        return (left != right).then(|| path.to_owned());
    };
    let mut keys: Vec<_> = left_map.keys().chain(right_map.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter().find_map(|key| {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        difference(
            left_map.get(key).unwrap_or(&Value::Null),
            right_map.get(key).unwrap_or(&Value::Null),
            &path,
        )
    })
}

fn to_value(spec: &CanonicalSpec) -> Value {
    serde_json::to_value(spec).expect("a canonical spec holds only values that JSON can hold")
}

/// Lower-case hex of bytes.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]])
        .map(char::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::spec::tests::canonical;

    #[test]
    fn canonical_json_sorts_keys_at_every_level_and_keeps_array_order() {
        let value = json!({"b": [2, {"z": 1, "a": null}], "a": "x\"y"});
        assert_eq!(canonical_json(&value), r#"{"a":"x\"y","b":[2,{"a":null,"z":1}]}"#);
    }

    #[test]
    fn the_identity_changes_with_each_field_that_determines_answers() {
        let base = canonical();
        let mut seen = vec![Identity::of(&base)];
        let changes: [fn(&mut CanonicalSpec); 7] = [
            |spec| spec.input.uri.push('x'),
            |spec| spec.input.generation.push('1'),
            |spec| spec.model = Some("other".to_owned()),
            |spec| spec.run = "again".to_owned(),
            |spec| spec.on_invalid = crate::spec::OnInvalid::Fail,
            |spec| spec.provider.api_version = Some("2025-04-01-preview".to_owned()),
            |spec| {
                spec.parameters.insert("temperature".to_owned(), json!(0.5));
            },
        ];
        for change in changes {
            let mut spec = base.clone();
            change(&mut spec);
            let identity = Identity::of(&spec);
            assert!(!seen.contains(&identity), "{spec:?}");
            seen.push(identity);
        }
        assert_eq!(seen[0].as_str().len(), 64);
    }

    #[test]
    fn the_first_difference_is_named_by_its_path() {
        let base = canonical();
        assert_eq!(first_difference(&base, &base), None);
        let mut other = base.clone();
        other.input.generation = "9".to_owned();
        other.run = "again".to_owned();
        assert_eq!(first_difference(&base, &other).as_deref(), Some("input.generation"));
        let mut other = base.clone();
        other.parameters.insert("temperature".to_owned(), json!(0));
        assert_eq!(first_difference(&base, &other).as_deref(), Some("parameters.temperature"));
    }

    proptest! {
        #[test]
        fn a_spec_that_was_stored_keeps_its_identity(fraction in prop::num::f64::NORMAL) {
            let mut spec = canonical();
            spec.parameters.insert("temperature".to_owned(), json!(fraction));
            let stored: CanonicalSpec = serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap();
            prop_assert_eq!(Identity::of(&stored), Identity::of(&spec));
        }
    }
}
