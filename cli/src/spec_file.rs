//! A job file or a settings file: YAML, of which JSON is a part. Unknown fields are refused and named.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

/// A file that cannot be used. No message repeats what stands where a key could stand.
#[derive(Debug, Error)]
pub(crate) enum SpecFileError {
    /// The file itself.
    #[error("read {path}: {source}; name a file that can be read")]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is not YAML.
    #[error("read {path}: {detail}; write it in YAML or JSON")]
    Syntax {
        /// Which file.
        path: PathBuf,
        /// What the parser says, and where.
        detail: String,
    },
    /// A field is unknown or holds what it cannot.
    #[error("read {path}: field `{field}`: {detail}")]
    Field {
        /// Which file.
        path: PathBuf,
        /// Which field, as a path of names.
        field: String,
        /// What is wrong with it.
        detail: String,
    },
}

/// Reads a file.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, SpecFileError> {
    let text =
        fs::read_to_string(path).map_err(|source| SpecFileError::File { path: path.to_owned(), source })?;
    parse(path, &text)
}

fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, SpecFileError> {
    let value: Value = serde_saphyr::from_str(text).map_err(|error| SpecFileError::Syntax {
        path: path.to_owned(),
        // The parser's excerpt could show a key.
        detail: error.without_snippet().to_string(),
    })?;
    // A list would be taken for the fields in their order.
    if !value.is_object() {
        return Err(SpecFileError::Syntax {
            path: path.to_owned(),
            detail: "it is no map of fields".to_owned(),
        });
    }
    serde_path_to_error::deserialize(value).map_err(|error| {
        let field = error.path().to_string();
        let holds_a_key = error.path().iter().any(|segment| segment.to_string().starts_with("api_key"));
        let detail = if holds_a_key {
            "expected a place, {env: NAME} or {file: PATH}; the key itself never stands in a job file"
                .to_owned()
        } else {
            error.into_inner().to_string()
        };
        SpecFileError::Field { path: path.to_owned(), field, detail }
    })
}

#[cfg(test)]
mod tests {
    use penstock_job::{JobSpec, spec::ProviderKind};

    use super::*;

    fn job(text: &str) -> Result<JobSpec, String> {
        parse(Path::new("job.yaml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn yaml_and_json_say_the_same() {
        let yaml = job("provider:\n  kind: simulated\nlimits: {rpm: 60}\n").unwrap();
        let json = job(r#"{"provider": {"kind": "simulated"}, "limits": {"rpm": 60}}"#).unwrap();
        assert_eq!(yaml, json);
        assert_eq!(yaml.provider.kind, ProviderKind::Simulated);
    }

    #[test]
    fn a_field_that_is_unknown_or_wrong_is_named_by_its_path() {
        for (text, named) in [
            ("limits: {rmp: 60}", "rmp"),
            ("limits: {rpm: 0}", "`limits.rpm`"),
            ("provider: {kind: gemini}", "`provider.kind`"),
            ("model: 7", "`model`"),
            ("[]", "job.yaml"),
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
