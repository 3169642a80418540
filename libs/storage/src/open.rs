//! From a [`Location`] to what is there: the one place that knows which backend a scheme leads to.

use std::env;
use std::sync::Arc;

use bytes::Bytes;

use crate::Result;
use crate::error::{Action, ErrorKind, StorageError};
use crate::file::FileStore;
use crate::gs::{GsBucket, GsInput, GsSettings, GsSigner, GsStore};
use crate::input::{FileInput, Input};
use crate::location::{BucketPath, Cloud, Location};
use crate::s3::{S3Bucket, S3Input, S3Settings, S3Store};
use crate::signed::SignedUrls;
use crate::store::Store;

/// The first bytes of what gzip has written (RFC 1952, section 2.3.1).
const GZIP: &[u8] = &[0x1f, 0x8b];

/// Opens an output: a folder, which the first write makes, or what is below a path in a bucket.
pub async fn open_store(location: &Location) -> Result<Arc<dyn Store>> {
    match location {
        Location::Path(path) => Ok(Arc::new(FileStore::open(path).await?)),
        Location::Bucket(place) => match place.cloud() {
            Cloud::Gs => Ok(Arc::new(GsStore::open(gs(place).await?, place.path()).await?)),
            Cloud::S3 => Ok(Arc::new(S3Store::open(s3(place)?, place.path()).await?)),
        },
    }
}

/// Opens one object, whatever it is, to be read at the generation that it has now.
pub async fn open_object(location: &Location) -> Result<Arc<dyn Input>> {
    match location {
        Location::Path(path) => Ok(Arc::new(FileInput::open(path).await?)),
        Location::Bucket(place) => {
            let object = place.object().ok_or_else(|| no_object(place))?;
            match place.cloud() {
                Cloud::Gs => Ok(Arc::new(GsInput::open(gs(place).await?, object.as_str()).await?)),
                Cloud::S3 => Ok(Arc::new(S3Input::open(s3(place)?, object.as_str()).await?)),
            }
        }
    }
}

/// Opens what signs URLs of the object at `place`, and gives its key.
pub fn open_signer(place: &BucketPath) -> Result<(Arc<dyn SignedUrls>, String)> {
    let key = place.object().ok_or_else(|| no_object(place))?.to_string();
    let signer: Arc<dyn SignedUrls> = match place.cloud() {
        Cloud::Gs => {
            let settings = gs_settings(|name| env::var(name).ok());
            Arc::new(GsSigner::open(place.bucket(), settings.endpoint)?)
        }
        Cloud::S3 => Arc::new(s3(place)?),
    };
    Ok((signer, key))
}

fn s3(place: &BucketPath) -> Result<S3Bucket> {
    S3Bucket::connect(&S3Settings::default(), place.bucket())
}

async fn gs(place: &BucketPath) -> Result<GsBucket> {
    GsBucket::connect(&gs_settings(|name| env::var(name).ok()), place.bucket()).await
}

/// Where Google Cloud Storage is, if not at its public address. `STORAGE_EMULATOR_HOST`, which Google's own libraries
/// know, is a server that asks for no credentials; `CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE`, which `gcloud` knows, is
/// another way to the service itself.
fn gs_settings(variable: impl Fn(&str) -> Option<String>) -> GsSettings {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    let trimmed = |url: String| url.trim_end_matches('/').to_owned();
    match set("STORAGE_EMULATOR_HOST") {
        Some(host) => {
            let url = if host.contains("://") { host } else { format!("http://{host}") };
            GsSettings { endpoint: Some(trimmed(url)), anonymous: true, ..GsSettings::default() }
        }
        None => GsSettings {
            // gcloud's own value ends with the path of the JSON API.
            endpoint: set("CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE")
                .map(|url| trimmed(trimmed(url).trim_end_matches("/storage/v1").to_owned())),
            ..GsSettings::default()
        },
    }
}

/// Opens the input of a job. One that is compressed is refused: it is read twice and at any place.
pub async fn open_input(location: &Location) -> Result<Arc<dyn Input>> {
    let input = open_object(location).await?;
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

fn no_object(place: &BucketPath) -> StorageError {
    StorageError::new(
        ErrorKind::Invalid,
        Action::Open,
        place,
        "it is a bucket and names no object in it",
        "write the object's name after the bucket's",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_is_where_the_usual_variables_say() {
        let settings = |name: &'static str, value: &'static str| {
            let found = gs_settings(|asked| (asked == name).then(|| value.to_owned()));
            (found.endpoint, found.anonymous)
        };
        let url = |url: &str| Some(url.to_owned());
        for host in ["localhost:9000", "http://localhost:9000", "http://localhost:9000/"] {
            assert_eq!(settings("STORAGE_EMULATOR_HOST", host), (url("http://localhost:9000"), true));
        }
        for private in ["https://storage.p.example.com/storage/v1/", "https://storage.p.example.com"] {
            let found = settings("CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE", private);
            assert_eq!(found, (url("https://storage.p.example.com"), false));
        }
        assert_eq!(settings("STORAGE_EMULATOR_HOST", ""), (None, false));
    }

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
