//! How `validation.json`, `state.json` and `receipt.json`, and what executor and operator tell each other, are read and
//! written.
//!
//! A reader refuses what it does not know: another format or major version first (so that the message speaks of
//! versions and not of some field that changed), then any unknown, missing or wrongly typed field, by name.

use serde::{Serialize, de::DeserializeOwned};
use thiserror::Error;

/// A JSON object whose `format` names its schema and major version.
pub trait Document: Serialize + DeserializeOwned {
    /// What it is called: the object's name below the output, such as `state.json`, or the name of a message.
    const NAME: &'static str;
    /// The value of `format`, such as `penstock.state/1`.
    const FORMAT: &'static str;
    /// Where it is found.
    const MEDIUM: Medium = Medium::Store;
}

/// Where a document is found, which decides what helps when it cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// Below the job's output.
    Store,
    /// Between an executor and the operator.
    Message,
}

impl Medium {
    fn not_an_object(self) -> &'static str {
        match self {
            Self::Store => "restore it from a copy, or use another output",
            Self::Message => "look at who answers at that address",
        }
    }

    fn other_format(self) -> &'static str {
        match self {
            Self::Store => "use the version that wrote it, or another output",
            Self::Message => "run the operator and the executor in versions that know each other",
        }
    }

    fn wrong_field(self) -> &'static str {
        match self {
            Self::Store => "the file was changed by hand or damaged: restore it, or use another output",
            Self::Message => self.other_format(),
        }
    }
}

/// Why a document could not be read.
#[derive(Debug, Error)]
pub enum DocumentError {
    /// The bytes are not a JSON object.
    #[error("read {name}: it is not a JSON object ({detail}); {}", medium.not_an_object())]
    NotAnObject {
        /// Which document.
        name: &'static str,
        /// Where it was found.
        medium: Medium,
        /// The parser's words.
        detail: String,
    },
    /// The document was written by another kind of program or a newer major version.
    #[error(
        "read {name}: its format is {found}, this version of penstock reads {expected}; {}",
        medium.other_format()
    )]
    Format {
        /// Which document.
        name: &'static str,
        /// Where it was found.
        medium: Medium,
        /// What stands in `format`.
        found: String,
        /// What this version reads.
        expected: &'static str,
    },
    /// A field is unknown, missing or of the wrong type.
    #[error(
        "read {name}: field `{field}`: {detail}; {}",
        medium.wrong_field()
    )]
    Field {
        /// Which document.
        name: &'static str,
        /// Where it was found.
        medium: Medium,
        /// The path of the field, such as `finalization.finals[0].lines`.
        field: String,
        /// The parser's words.
        detail: String,
    },
}

/// Reads a document, refusing what it does not know.
pub fn read<D: Document>(bytes: &[u8]) -> Result<D, DocumentError> {
    #[derive(serde::Deserialize)]
    struct Head {
        format: Option<String>,
    }
    let head: Head = serde_json::from_slice(bytes).map_err(|error| DocumentError::NotAnObject {
        name: D::NAME,
        medium: D::MEDIUM,
        detail: error.to_string(),
    })?;
    if head.format.as_deref() != Some(D::FORMAT) {
        return Err(DocumentError::Format {
            name: D::NAME,
            medium: D::MEDIUM,
            found: head.format.map_or_else(|| "absent".to_owned(), |format| format!("`{format}`")),
            expected: D::FORMAT,
        });
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| DocumentError::Field {
        name: D::NAME,
        medium: D::MEDIUM,
        field: error.path().to_string(),
        detail: error.into_inner().to_string(),
    })
}

/// Writes a document as one line of JSON, ending in a newline.
pub fn write<D: Document>(document: &D) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(document).expect("a document holds only values that JSON can hold");
    bytes.push(b'\n');
    bytes
}

/// Implements serde for a field that always holds one constant string, the document's format.
macro_rules! format_tag {
    ($(#[$doc:meta])* $name:ident = $value:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct $name;

        impl $name {
            /// The tag's text.
            pub const TEXT: &'static str = $value;
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(Self::TEXT)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let found = String::deserialize(deserializer)?;
                if found == Self::TEXT {
                    Ok(Self)
                } else {
                    Err(serde::de::Error::custom(format_args!("expected `{}`", Self::TEXT)))
                }
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "const": Self::TEXT })
            }

            fn inline_schema() -> bool {
                true
            }
        }
    };
}
pub(crate) use format_tag;
