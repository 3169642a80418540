//! A job's output as the commands look at it: its documents and published files, read as they are. Nothing is locked,
//! settled or changed, so this also works beside a running job and on a folder that cannot be written.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use penstock_job::{
    CanonicalSpec, DocumentError, Receipt, State, Validation,
    document::{self, Document},
    layout,
    state::Phase,
};
use penstock_storage::{InvalidLocation, Location, ObjectName, StorageError, Store, open_store};
use thiserror::Error;

use crate::error::storage_exit_code;

/// Largest document: 10,000,000 lines take about 5 MiB.
const DOCUMENT_LIMIT: u64 = 256 << 20;

/// Where the output of a job is.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    location: Location,
    place: Place,
}

/// What is behind the location.
#[derive(Debug, Clone)]
enum Place {
    /// A folder, which need not exist and is not opened as a store before something is written.
    Folder(PathBuf),
    Bucket(Arc<dyn Store>),
}

/// An output, or a document in it, that cannot be read.
#[derive(Debug, Error)]
pub(crate) enum OutputError {
    /// What names it is no location.
    #[error(transparent)]
    Location(#[from] InvalidLocation),
    /// The file itself.
    #[error("read {path}: {source}; make it readable, or name another folder")]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The bucket does not show it.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// What is in it.
    #[error(transparent)]
    Document(#[from] DocumentError),
}

impl OutputError {
    /// What the process exits with.
    pub(crate) fn exit_code(&self) -> penstock_job::ExitCode {
        match self {
            Self::Storage(error) => storage_exit_code(error),
            Self::Location(_) | Self::File { .. } | Self::Document(_) => {
                penstock_job::ExitCode::Configuration
            }
        }
    }
}

/// How far the job of an output has come, by its newest document.
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

    /// The same once the job holds the output; a validation alone does not keep a mended input away.
    pub(crate) fn begun(&self) -> Option<&CanonicalSpec> {
        match self {
            Self::Nothing | Self::Validated(_) => None,
            Self::Begun(_) | Self::Over(_) => self.spec(),
        }
    }
}

impl Output {
    /// The output at a location, where there need be nothing yet.
    pub(crate) async fn at(location: Location) -> Result<Self, OutputError> {
        let place = match &location {
            Location::Path(folder) => Place::Folder(folder.clone()),
            Location::Bucket(_) => Place::Bucket(open_store(&location).await?),
        };
        Ok(Self { location, place })
    }

    /// Where it is.
    pub(crate) fn location(&self) -> &Location {
        &self.location
    }

    /// The folder that it is, if it is one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.location.as_path()
    }

    /// To be written to.
    pub(crate) async fn store(&self) -> Result<Arc<dyn Store>, StorageError> {
        match &self.place {
            Place::Folder(_) => open_store(&self.location).await,
            Place::Bucket(store) => Ok(Arc::clone(store)),
        }
    }

    /// A document, if it is there.
    pub(crate) async fn read<D: Document>(&self) -> Result<Option<D>, OutputError> {
        let bytes = match &self.place {
            Place::Folder(folder) => {
                let path = folder.join(D::NAME);
                match fs::read(&path) {
                    Ok(bytes) => Some(bytes.into()),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                    Err(source) => return Err(OutputError::File { path, source }),
                }
            }
            Place::Bucket(store) => {
                let name = ObjectName::from_static(D::NAME);
                store.get(&name, DOCUMENT_LIMIT).await?.map(|(_, bytes)| bytes)
            }
        };
        Ok(bytes.map(|bytes| document::read(&bytes)).transpose()?)
    }

    /// How far the job has come.
    pub(crate) async fn standing(&self) -> Result<Standing, OutputError> {
        if let Some(receipt) = self.read::<Receipt>().await? {
            return Ok(Standing::Over(Box::new(receipt)));
        }
        if let Some(state) = self.read::<State>().await? {
            return Ok(Standing::Begun(Box::new(state)));
        }
        let validation = self.read::<Validation>().await?;
        Ok(validation.map_or(Standing::Nothing, |validation| Standing::Validated(Box::new(validation))))
    }

    /// The names of everything in it that is named like a published file, in order.
    pub(crate) async fn published(&self) -> Result<Vec<String>, OutputError> {
        let mut names = match &self.place {
            Place::Folder(folder) => {
                names_in(folder).map_err(|source| OutputError::File { path: folder.clone(), source })?
            }
            Place::Bucket(store) => {
                let mut names = Vec::new();
                let mut after = None;
                loop {
                    let page = store.list("", after.as_deref()).await?;
                    names.extend(page.objects.into_iter().map(|object| object.name.to_string()));
                    after = page.next;
                    if after.is_none() {
                        break names;
                    }
                }
            }
        };
        names.retain(|name| layout::is_final(name));
        names.sort_unstable();
        Ok(names)
    }
}

fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The output in a folder.
    pub(crate) fn in_folder(folder: impl Into<PathBuf>) -> Output {
        let folder = folder.into();
        Output { location: Location::Path(folder.clone()), place: Place::Folder(folder) }
    }

    #[tokio::test]
    async fn a_folder_that_is_not_there_holds_no_job() {
        assert!(matches!(in_folder("/nowhere/at/all").standing().await, Ok(Standing::Nothing)));
    }

    #[tokio::test]
    async fn a_document_that_cannot_be_understood_is_an_error_and_not_an_empty_folder() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("state.json"), r#"{"format":"theirs/9"}"#).unwrap();
        let error = in_folder(root.path()).standing().await.unwrap_err().to_string();
        assert!(error.contains("theirs/9"), "{error}");
    }

    #[tokio::test]
    async fn a_bucket_is_read_through_its_store() {
        let store = penstock_storage::MemoryStore::new();
        for name in ["results_part_001.jsonl", "errors.jsonl", "parts/00000001-00000001-r.jsonl"] {
            store.create(&ObjectName::from_static(name), "{}\n".into()).await.unwrap();
        }
        let place = Place::Bucket(Arc::new(store.clone()));
        let output = Output { location: Location::parse("gs://bucket/out").unwrap(), place };
        assert!(matches!(output.standing().await, Ok(Standing::Nothing)));
        assert_eq!(output.published().await.unwrap(), ["errors.jsonl", "results_part_001.jsonl"]);
        let state = ObjectName::from_static("state.json");
        store.create(&state, r#"{"format":"theirs/9"}"#.into()).await.unwrap();
        let error = output.standing().await.unwrap_err().to_string();
        assert!(error.contains("theirs/9"), "{error}");
    }
}
