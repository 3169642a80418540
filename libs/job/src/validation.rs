//! `validation.json`: what one accepted validation found. Written last, so it commits its attempt.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    checksum::Crc32c,
    document::{Document, format_tag},
    identity::Identity,
    identity_sum::IdentitySum,
    spec::CanonicalSpec,
};

format_tag! {
    /// The format of `validation.json`.
    ValidationFormat = "penstock.validation/1"
}

/// The record of one accepted validation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Validation {
    /// Names this schema.
    pub format: ValidationFormat,
    /// The job's identity.
    pub identity: Identity,
    /// What the identity is the hash of.
    pub spec: CanonicalSpec,
    /// Which attempt wrote this.
    #[schemars(with = "String")]
    pub attempt: Uuid,
    /// When, in milliseconds since the epoch.
    pub validated_at_ms: u64,
    /// The input as it was read.
    pub input: ValidatedInput,
    /// Non-blank lines.
    pub lines: u64,
    /// How many of them are invalid.
    pub rejected: u64,
    /// How many lines were rejected for each code.
    pub rejected_codes: BTreeMap<String, u64>,
    /// Valid lines per model; at most [`MODELS_LISTED`], the rest under `other`.
    pub models: BTreeMap<String, u64>,
    /// Rough number of tokens that the valid lines will send: a quarter of their bytes.
    pub token_estimate: u64,
    /// The sum that the published ids must arrive at.
    pub identity_sum: IdentitySum,
    /// Files of rejected records, in order.
    pub rejected_files: Vec<RejectedFile>,
    /// The set of rejected ordinals; absent when no line was rejected.
    pub rejected_set: Option<StoredObject>,
}

/// How many models are counted by name.
pub const MODELS_LISTED: usize = 1_000;

/// The input as validation read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ValidatedInput {
    /// Where it is.
    pub uri: String,
    /// The generation that was read.
    pub generation: String,
    /// Its size.
    pub size_bytes: u64,
    /// Its CRC32C.
    pub crc32c: Crc32c,
    /// Hex SHA-256.
    pub sha256: String,
}

/// One file of rejected records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RejectedFile {
    /// Its name below the output.
    pub name: String,
    /// The generation that was written.
    pub generation: String,
    /// How many records it holds.
    pub lines: u64,
    /// Its size.
    pub size_bytes: u64,
    /// Its CRC32C.
    pub crc32c: Crc32c,
}

/// One stored object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoredObject {
    /// Its name below the output.
    pub name: String,
    /// The generation that was written.
    pub generation: String,
    /// Its size.
    pub size_bytes: u64,
    /// Its CRC32C.
    pub crc32c: Crc32c,
}

impl Document for Validation {
    const NAME: &'static str = crate::layout::VALIDATION;
    const FORMAT: &'static str = ValidationFormat::TEXT;
}
