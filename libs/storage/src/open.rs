//! From a [`Location`] to what is there: the one place that knows which backend a scheme leads to.

use std::sync::Arc;

use bytes::Bytes;

use crate::Result;
use crate::error::{Action, ErrorKind, StorageError};
use crate::file::FileStore;
use crate::input::{FileInput, Input};
use crate::location::{BucketPath, Location};
use crate::store::Store;

/// The first bytes of what gzip has written (RFC 1952, section 2.3.1).
const GZIP: &[u8] = &[0x1f, 0x8b];

/// Opens an output: a folder, which the first write makes, or what is below a path in a bucket.
pub async fn open_store(location: &Location) -> Result<Arc<dyn Store>> {
    match location {
        Location::Path(path) => Ok(Arc::new(FileStore::open(path).await?)),
        Location::Bucket(place) => Err(not_there(place)),
    }
}

/// Opens an input and pins it to the generation that it has now. One that is compressed is refused: it is read twice and
/// at any place.
pub async fn open_input(location: &Location) -> Result<Arc<dyn Input>> {
    let input: Arc<dyn Input> = match location {
        Location::Path(path) => Arc::new(FileInput::open(path).await?),
        Location::Bucket(place) => return Err(not_there(place)),
    };
    if input.size_bytes() >= GZIP.len() as u64
        && input.read(0..GZIP.len() as u64).await? == Bytes::from_static(GZIP)
    {
        return Err(StorageError::new(
            ErrorKind::Invalid,
            Action::Open,
            input.uri(),
            "it is compressed with gzip",
            "decompress it first and name the result: an input is read twice and at any place",
        ));
    }
    Ok(input)
}

fn not_there(place: &BucketPath) -> StorageError {
    StorageError::new(
        ErrorKind::Invalid,
        Action::Open,
        place,
        format!("{}:// is not there yet", place.cloud()),
        "name a file or a folder of this machine",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_compressed_input_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.jsonl.gz");
        std::fs::write(&path, [0x1f, 0x8b, 8, 0]).unwrap();
        let refused = open_input(&Location::Path(path.clone())).await.unwrap_err().to_string();
        assert!(refused.contains("compressed with gzip; decompress it first"), "{refused}");
        std::fs::write(&path, "x").unwrap();
        assert!(open_input(&Location::Path(path)).await.is_ok());
    }
}
