//! Where shared state lies, as a user says it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use penstock_storage::{FileStore, InvalidLocation, Location, StorageError, open_store};
use thiserror::Error;

use super::{SharedState, StoredState};

/// The word for no place at all.
const NONE: &str = "none";

/// A place that shared state cannot have. Messages read after "failed to".
#[derive(Debug, Error)]
pub enum LocationError {
    /// The output belongs to one job, whose receipt accounts for all that is there.
    #[error(
        "share rates in {0}: it lies in the output of this job, where only the job's own files may be; name another place \
         with --shared-state, or none"
    )]
    InOutput(String),
    /// What stands there is no location.
    #[error(transparent)]
    Invalid(#[from] InvalidLocation),
    /// The place cannot be used.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Opens the place `uri`: a folder, which the first write makes, or a path in a bucket; `none` is no place. It must not lie
/// in `output`.
pub async fn open(uri: &str, output: &Location) -> Result<Option<Arc<dyn SharedState>>, LocationError> {
    if uri == NONE {
        return Ok(None);
    }
    match Location::parse(uri)? {
        Location::Path(folder) => open_folder(&folder, output).await.map(Some),
        Location::Bucket(place) => {
            let place_in =
                |output: &Location| matches!(output, Location::Bucket(output) if output.contains(&place));
            if place_in(output) {
                return Err(LocationError::InOutput(place.to_string()));
            }
            let store = open_store(&Location::Bucket(place)).await?;
            Ok(Some(Arc::new(StoredState::new(store))))
        }
    }
}

/// Opens a folder, which the first write makes. It must not lie in `output`.
pub async fn open_folder(folder: &Path, output: &Location) -> Result<Arc<dyn SharedState>, LocationError> {
    let folder = resolved(folder);
    if output.as_path().is_some_and(|output| folder.starts_with(resolved(output))) {
        return Err(LocationError::InOutput(folder.display().to_string()));
    }
    let store = FileStore::open(folder).await?;
    Ok(Arc::new(StoredState::new(Arc::new(store))))
}

/// The path with links followed as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for ancestor in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (ancestor.canonicalize(), path.strip_prefix(ancestor)) {
            return real.join(rest);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_folder_is_named_by_its_path_or_uri_and_none_is_none() {
        let place = tempfile::tempdir().unwrap();
        let output = Location::Path(place.path().join("out"));
        let path = place.path().join("shared").display().to_string();
        assert!(open(&path, &output).await.unwrap().is_some());
        assert!(open(&format!("file://{path}"), &output).await.unwrap().is_some());
        assert!(open(NONE, &output).await.unwrap().is_none());
        for unknown in ["az://bucket/shared", "file://host/shared"] {
            let refused = open(unknown, &output).await.unwrap_err().to_string();
            assert!(refused.contains(unknown), "{refused}");
        }
    }

    #[tokio::test]
    async fn the_output_of_a_job_is_refused_however_it_is_reached() {
        let place = tempfile::tempdir().unwrap();
        let output = place.path().join("out");
        std::fs::create_dir(&output).unwrap();
        std::os::unix::fs::symlink(&output, place.path().join("link")).unwrap();
        let output = Location::Path(output);
        for within in ["out", "out/shared", "link/shared"] {
            let path = place.path().join(within).display().to_string();
            let refused = open(&path, &output).await.unwrap_err().to_string();
            assert!(refused.contains("--shared-state"), "{refused}");
        }
        assert!(open(&place.path().join("output-of-none").display().to_string(), &output).await.is_ok());
        let output = Location::parse("gs://bucket/out").unwrap();
        let refused = open("gs://bucket/out/shared", &output).await.unwrap_err().to_string();
        assert!(refused.contains("--shared-state"), "{refused}");
    }
}
