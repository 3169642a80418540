//! Composing: S3 does not, so the sources are read in order and written as one object.

use std::pin::Pin;

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt, TryStreamExt};
use object_store::{GetOptions, ObjectStore};

use super::answer::storage_error;
use super::bucket::{S3Bucket, path};
use super::object;
use crate::Result;
use crate::error::Action;
use crate::generation::Generation;
use crate::name::ObjectName;

/// Sources that are asked for before their turn, so that small ones do not cost a round trip each. What the service
/// sends of them waits in the buffers of their connections.
const AHEAD: usize = 16;

type Chunks = Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>;

/// The bytes of all sources in order.
pub(super) fn content<'a>(
    bucket: &'a S3Bucket,
    prefix: &'a str,
    sources: &'a [(ObjectName, Generation)],
) -> impl Stream<Item = Result<Bytes>> + Send + 'a {
    stream::iter(sources)
        .map(move |(name, generation)| open(bucket, prefix, name, generation))
        .buffered(AHEAD)
        .try_flatten()
}

/// Asks for one source at its generation. A stream that breaks off goes on where it was.
async fn open(bucket: &S3Bucket, prefix: &str, name: &ObjectName, generation: &Generation) -> Result<Chunks> {
    let path = path(&format!("{prefix}{name}"))?;
    let options = GetOptions { if_match: Some(object::e_tag(generation)), ..GetOptions::default() };
    let found = bucket.answer(Action::Read, name, bucket.repeating.get_opts(&path, options)).await?;
    let name = name.clone();
    Ok(found.into_stream().map_err(move |error| storage_error(Action::Read, &name, &error)).boxed())
}
