//! The documents of an output folder, read as they are. Nothing is locked, settled or changed, so this also works beside
//! a running job and on a folder that cannot be written.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use penstock_job::{
    CanonicalSpec, DocumentError, Receipt, State, Validation,
    document::{self, Document},
    state::Phase,
};
use thiserror::Error;

/// A job's output folder.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    root: PathBuf,
}

/// A document that cannot be read.
#[derive(Debug, Error)]
pub(crate) enum FolderError {
    /// The file itself.
    #[error("read {path}: {source}; make it readable, or name another folder")]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// What is in it.
    #[error(transparent)]
    Document(#[from] DocumentError),
}

/// How far the job of a folder has come, by its newest document.
#[derive(Debug)]
pub(crate) enum Standing {
    /// There is no job.
    Nothing,
    /// The input was validated; whether it was accepted is for `penstock_intake::Verdict` to say.
    Validated(Box<Validation>),
    /// It was begun.
    Begun(Box<State>),
    /// It is over.
    Over(Box<Receipt>),
}

impl Standing {
    /// What determines the answers of the job, if there is one.
    pub(crate) fn spec(&self) -> Option<&CanonicalSpec> {
        match self {
            Self::Nothing => None,
            Self::Validated(validation) => Some(&validation.spec),
            Self::Begun(state) => Some(&state.job.spec),
            Self::Over(receipt) => Some(&receipt.job.spec),
        }
    }

    /// Whether it was begun and is only to be published any more.
    pub(crate) fn is_decided(&self) -> bool {
        matches!(self, Self::Begun(state) if state.phase == Phase::Finalizing)
    }

    /// The same once the job holds the folder; a validation alone does not keep a mended input away.
    pub(crate) fn begun(&self) -> Option<&CanonicalSpec> {
        match self {
            Self::Nothing | Self::Validated(_) => None,
            Self::Begun(_) | Self::Over(_) => self.spec(),
        }
    }
}

impl Folder {
    /// The folder at `root`, which need not exist.
    pub(crate) fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Where it is.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The path of a file in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A document, if it is there.
    pub(crate) fn read<D: Document>(&self) -> Result<Option<D>, FolderError> {
        let path = self.path(D::NAME);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(document::read(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(FolderError::File { path, source }),
        }
    }

    /// How far the job has come.
    pub(crate) fn standing(&self) -> Result<Standing, FolderError> {
        if let Some(receipt) = self.read::<Receipt>()? {
            return Ok(Standing::Over(Box::new(receipt)));
        }
        if let Some(state) = self.read::<State>()? {
            return Ok(Standing::Begun(Box::new(state)));
        }
        Ok(self
            .read::<Validation>()?
            .map_or(Standing::Nothing, |validation| Standing::Validated(Box::new(validation))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_there_holds_no_job() {
        let folder = Folder::new("/nowhere/at/all");
        assert!(matches!(folder.standing(), Ok(Standing::Nothing)));
    }

    #[test]
    fn a_document_that_cannot_be_understood_is_an_error_and_not_an_empty_folder() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("state.json"), r#"{"format":"theirs/9"}"#).unwrap();
        let error = Folder::new(root.path()).standing().unwrap_err().to_string();
        assert!(error.contains("theirs/9"), "{error}");
    }
}
