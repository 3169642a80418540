//! What a person writes: YAML, of which JSON is a part. Unknown fields are refused and named.

use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

/// Why a text was refused. No message repeats what stands where a key could stand.
#[derive(Debug, Error)]
pub enum TextError {
    /// It is not YAML.
    #[error("{0}; write it in YAML or JSON")]
    Syntax(String),
    /// A field is unknown or holds what it cannot.
    #[error("field `{field}`: {detail}")]
    Field {
        /// Which field, as a path of names.
        field: String,
        /// What is wrong with it.
        detail: String,
    },
}

/// Reads a text that says a `T`.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, TextError> {
    let value: Value = serde_saphyr::from_str(text)
        // The parser's excerpt could show a key.
        .map_err(|error| TextError::Syntax(error.without_snippet().to_string()))?;
    // A list would be taken for the fields in their order.
    if !value.is_object() {
        return Err(TextError::Syntax("it is no map of fields".to_owned()));
    }
    serde_path_to_error::deserialize(value).map_err(|error| {
        let field = error.path().to_string();
        let holds_a_key = error.path().iter().any(|segment| segment.to_string().starts_with("api_key"));
        let detail = if holds_a_key {
            "expected a place, {env: NAME} or {file: PATH}; the key itself never stands in a file".to_owned()
        } else {
            error.into_inner().to_string()
        };
        TextError::Field { field, detail }
    })
}

#[cfg(test)]
mod tests {
    use crate::spec::{JobSpec, KeySource, ProviderKind, RateMode};

    fn job(text: &str) -> Result<JobSpec, String> {
        super::parse(text).map_err(|error| error.to_string())
    }

    #[test]
    fn yaml_and_json_say_the_same_and_leave_out_what_they_like() {
        let yaml = "provider:\n  kind: simulated\n  api_key: {env: KEY}\nparameters: {temperature: 0.5}\nlimits: {rate: aimd, per_model: {a: {rpm: 10}}}\n";
        let spec = job(yaml).unwrap();
        assert_eq!(job(&serde_json::to_string(&spec).unwrap()).unwrap(), spec);
        assert_eq!(spec.provider.kind, ProviderKind::Simulated);
        assert_eq!(spec.provider.api_key, Some(KeySource::Env("KEY".to_owned())));
        assert_eq!(spec.parameters["temperature"], 0.5);
        assert_eq!(spec.limits.rate, Some(RateMode::Aimd));
        assert_eq!(job("{}").unwrap(), JobSpec::default());
    }

    #[test]
    fn a_field_that_is_unknown_or_wrong_is_named_by_its_path() {
        for (text, named) in [
            ("limits: {rmp: 60}", "rmp"),
            ("limits: {rpm: 0}", "`limits.rpm`"),
            ("provider: {kind: oracle}", "`provider.kind`"),
            ("model: 7", "`model`"),
            ("[]", "map of fields"),
            ("a: b: c", "YAML"),
        ] {
            let message = job(text).unwrap_err();
            assert!(message.contains(named), "{message}");
        }
    }

    #[test]
    fn a_key_that_stands_in_the_file_is_not_repeated() {
        for text in [
            "provider: {api_key: sk-secret}",
            "provider: {api_key: {value: sk-secret}}",
            "provider: {api_key: {env: [sk-secret]}}",
            "provider:\n  api_key: sk-secret\n bad indentation: {",
        ] {
            let message = job(text).unwrap_err();
            assert!(!message.contains("sk-secret"), "{message}");
        }
    }
}
