//! Whom a run tells how far it is.

use std::{num::NonZeroU64, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whom a run tells how far it is, and who may direct it. No part of the job's identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportTo {
    /// Where reports are posted.
    pub url: String,
    /// PEM file of the certificate authorities to trust instead of the system's.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// The same as PEM text.
    #[serde(default)]
    pub ca: Option<String>,
    /// A file with the bearer token, read for each report.
    #[serde(default)]
    pub token_file: Option<PathBuf>,
    /// How often to report, in seconds.
    #[serde(default = "every_seconds")]
    pub every_seconds: NonZeroU64,
}

const fn every_seconds() -> NonZeroU64 {
    const { NonZeroU64::new(10).expect("a positive number") }
}
