//! A job file or a settings file on disk.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use penstock_job::spec::text::{self, TextError};
use serde::de::DeserializeOwned;
use thiserror::Error;

/// A file that cannot be used.
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
    /// What stands in it.
    #[error("read {path}: {source}")]
    Text {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        source: TextError,
    },
}

/// Reads a file; unknown fields are refused and named.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, SpecFileError> {
    let text =
        fs::read_to_string(path).map_err(|source| SpecFileError::File { path: path.to_owned(), source })?;
    text::parse(&text).map_err(|source| SpecFileError::Text { path: path.to_owned(), source })
}
