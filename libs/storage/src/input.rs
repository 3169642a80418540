//! A job's input: one object outside the output, read at one generation.
//!
//! An input is never written here, and what its lines mean is not known here.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::Result;
use crate::blocking::run_blocking;
use crate::error::{Action, ErrorKind, StorageError};
use crate::generation::Generation;
use crate::reader::{ByRange, Chunks};
use crate::version::FileVersion;

/// One object at one generation.
#[async_trait]
pub trait Input: Debug + Send + Sync {
    /// Where it is, in the form that the job's identity is made of.
    fn uri(&self) -> &str;

    /// The generation that every read is pinned to.
    fn generation(&self) -> &Generation;

    /// Its length in bytes.
    fn size_bytes(&self) -> u64;

    /// Exactly the bytes of `range`. Past the end: [`Invalid`](ErrorKind::Invalid); if the input is another one by
    /// now: [`Changed`](ErrorKind::Changed).
    async fn read(&self, range: Range<u64>) -> Result<Bytes>;

    /// The bytes of `range` in order, for who reads much of it. A backend that each call costs a way over the network
    /// brings them with one; here each chunk is a [`read`](Self::read).
    fn chunks(&self, range: Range<u64>) -> Box<dyn Chunks + '_> {
        Box::new(ByRange::new(self, range))
    }

    /// Ok while the URI still leads to this generation; [`Changed`](ErrorKind::Changed) or
    /// [`NotFound`](ErrorKind::NotFound) once it does not.
    async fn verify_unchanged(&self) -> Result<()>;
}

/// A local file as an input. Its URI is the canonical absolute path; its generation is
/// `<size in bytes>-<modification time in ns>`.
#[derive(Clone, Debug)]
pub struct FileInput {
    opened: Arc<Opened>,
}

#[derive(Debug)]
struct Opened {
    file: File,
    path: PathBuf,
    uri: String,
    version: FileVersion,
    generation: Generation,
}

impl FileInput {
    /// Opens a file and takes note of its generation.
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let opened = run_blocking(move || Opened::new(&path)).await?;
        Ok(Self { opened: Arc::new(opened) })
    }
}

#[async_trait]
impl Input for FileInput {
    fn uri(&self) -> &str {
        &self.opened.uri
    }

    fn generation(&self) -> &Generation {
        &self.opened.generation
    }

    fn size_bytes(&self) -> u64 {
        self.opened.version.size_bytes
    }

    async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let opened = Arc::clone(&self.opened);
        run_blocking(move || opened.read(&range)).await
    }

    async fn verify_unchanged(&self) -> Result<()> {
        let opened = Arc::clone(&self.opened);
        run_blocking(move || opened.verify_unchanged()).await
    }
}

impl Opened {
    fn new(given: &Path) -> Result<Self> {
        let failed = |answer: &io::Error| StorageError::io(Action::Open, given.display(), answer);
        let path = given.canonicalize().map_err(|answer| failed(&answer))?;
        let Some(uri) = path.to_str().map(str::to_owned) else {
            return Err(StorageError::new(
                ErrorKind::Invalid,
                Action::Open,
                given.display(),
                "its path is not UTF-8",
                "rename it, or the folder that it is in",
            ));
        };
        let file = File::open(&path).map_err(|answer| failed(&answer))?;
        let metadata = file.metadata().map_err(|answer| failed(&answer))?;
        if !metadata.is_file() {
            return Err(StorageError::new(
                ErrorKind::Invalid,
                Action::Open,
                given.display(),
                "it is not a regular file",
                "give a file: the input is read twice and at any place",
            ));
        }
        let version = FileVersion::from(&metadata);
        let generation = Generation::new(format!("{}-{}", version.size_bytes, version.modified_ns));
        Ok(Self { file, path, uri, version, generation })
    }

    /// The version is compared after the read, so bytes that were changed before it are not handed out.
    fn read(&self, range: &Range<u64>) -> Result<Bytes> {
        let bytes = read_exactly(&self.file, range, self.version.size_bytes, &self.uri);
        let now = self.file.metadata().map_err(|answer| self.failed(&answer))?;
        if FileVersion::from(&now) != self.version {
            return Err(self.changed());
        }
        bytes
    }

    fn verify_unchanged(&self) -> Result<()> {
        let open = self.file.metadata().map_err(|answer| self.failed(&answer))?;
        let named = self.path.metadata().map_err(|answer| self.failed(&answer))?;
        if [&open, &named].into_iter().all(|metadata| FileVersion::from(metadata) == self.version) {
            Ok(())
        } else {
            Err(self.changed())
        }
    }

    fn failed(&self, answer: &io::Error) -> StorageError {
        StorageError::io(Action::Read, &self.uri, answer)
    }

    fn changed(&self) -> StorageError {
        StorageError::new(
            ErrorKind::Changed,
            Action::Read,
            &self.uri,
            "it was changed or replaced after it had been opened",
            "put the old file back, or run the new one as a job of its own with another output",
        )
    }
}

/// Reads `range` of a file of `size_bytes` with `pread`, so that readers share the handle.
pub(crate) fn read_exactly(file: &File, range: &Range<u64>, size_bytes: u64, object: &str) -> Result<Bytes> {
    if range.start > range.end || range.end > size_bytes {
        return Err(StorageError::past_the_end(object, range, size_bytes));
    }
    let failed = |answer: &io::Error| StorageError::io(Action::Read, object, answer);
    let length = usize::try_from(range.end - range.start)
        .map_err(|_| failed(&io::Error::from(io::ErrorKind::OutOfMemory)))?;
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, range.start).map_err(|answer| failed(&answer))?;
    Ok(Bytes::from(bytes))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn a_file_is_known_by_its_canonical_path_and_by_size_and_modification_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("in.jsonl");
        fs::write(&path, "line\n").unwrap();
        let modified = path.metadata().unwrap().modified().unwrap();
        let since_epoch = modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();

        let input = FileInput::open(folder.path().join("./link")).await.unwrap();
        assert_eq!(input.uri(), path.to_str().unwrap());
        assert_eq!(input.generation().as_str(), format!("5-{since_epoch}"));
        assert_eq!(input.size_bytes(), 5);
        assert_eq!(input.read(1..3).await.unwrap(), "in");
        assert_eq!(input.read(0..6).await.unwrap_err().kind(), ErrorKind::Invalid);
        input.verify_unchanged().await.unwrap();
    }

    #[tokio::test]
    async fn an_input_that_is_written_to_is_not_read_any_more() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "before").unwrap();
        let input = FileInput::open(file.path()).await.unwrap();
        fs::write(file.path(), "longer than before").unwrap();
        assert_eq!(input.read(0..6).await.unwrap_err().kind(), ErrorKind::Changed);
        assert_eq!(input.verify_unchanged().await.unwrap_err().kind(), ErrorKind::Changed);
    }

    #[tokio::test]
    async fn an_input_whose_path_leads_elsewhere_is_noticed_though_the_old_one_can_still_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in");
        fs::write(&path, "same").unwrap();
        let input = FileInput::open(&path).await.unwrap();
        let other = folder.path().join("other");
        fs::write(&other, "same").unwrap();
        fs::rename(&other, &path).unwrap();
        assert_eq!(input.read(0..4).await.unwrap(), "same");
        assert_eq!(input.verify_unchanged().await.unwrap_err().kind(), ErrorKind::Changed);
        fs::remove_file(&path).unwrap();
        assert_eq!(input.verify_unchanged().await.unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn what_cannot_be_an_input_is_refused_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let missing = FileInput::open(folder.path().join("none")).await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        assert!(missing.to_string().contains("none"), "{missing}");
        assert_eq!(FileInput::open(folder.path()).await.unwrap_err().kind(), ErrorKind::Invalid);
    }
}
