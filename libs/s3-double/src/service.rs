//! The operations of S3 over the buckets. What is not here, `s3s` answers with `NotImplemented`.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryStreamExt;
use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, CompleteMultipartUploadInput,
    CompleteMultipartUploadOutput, CopyObjectInput, CopyObjectOutput, CopyObjectResult, CopyPartResult,
    CopySource, CreateMultipartUploadInput, CreateMultipartUploadOutput, DeleteObjectInput,
    DeleteObjectOutput, DeleteObjectsInput, DeleteObjectsOutput, DeletedObject, ETag, GetObjectInput,
    GetObjectOutput, HeadObjectInput, HeadObjectOutput, ListObjectsV2Input, ListObjectsV2Output,
    MetadataDirective, Object, PutObjectInput, PutObjectOutput, StreamingBlob, Timestamp,
    UploadPartCopyInput, UploadPartCopyOutput, UploadPartInput, UploadPartOutput,
};
use s3s::{Body, S3, S3Error, S3ErrorCode, S3Request, S3Response, S3Result, s3_error};

use crate::bucket::{self, Attributes, Bucket, Precondition};

/// Objects a page at most, as on S3.
const MOST_KEYS: usize = 1_000;

/// The buckets. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    buckets: Arc<Mutex<HashMap<String, Bucket>>>,
    page_keys: usize,
}

impl Service {
    pub(crate) fn new(buckets: &[&str], page_keys: usize) -> Self {
        let buckets = buckets.iter().map(|name| ((*name).to_owned(), Bucket::default())).collect();
        Self { buckets: Arc::new(Mutex::new(buckets)), page_keys: page_keys.min(MOST_KEYS) }
    }

    /// Does something with one bucket while nobody else does.
    pub(crate) fn with<T>(&self, bucket: &str, act: impl FnOnce(&mut Bucket) -> S3Result<T>) -> S3Result<T> {
        act(self.buckets().get_mut(bucket).ok_or_else(|| s3_error!(NoSuchBucket))?)
    }

    fn buckets(&self) -> MutexGuard<'_, HashMap<String, Bucket>> {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn source(&self, source: &CopySource) -> S3Result<bucket::Object> {
        match source {
            CopySource::Bucket { bucket, key, version_id: None } => {
                self.with(bucket, |bucket| bucket.get(key, None).cloned())
            }
            _ => Err(s3_error!(NotImplemented)),
        }
    }
}

#[async_trait]
impl S3 for Service {
    async fn put_object(&self, req: S3Request<PutObjectInput>) -> S3Result<S3Response<PutObjectOutput>> {
        let input = req.input;
        let content = content(input.body).await?;
        let attributes = Attributes {
            metadata: input.metadata.unwrap_or_default(),
            content_type: input.content_type,
            content_encoding: input.content_encoding,
        };
        let precondition = Precondition { if_match: input.if_match, if_none_match: input.if_none_match };
        let e_tag =
            self.with(&input.bucket, |bucket| bucket.put(&input.key, content, attributes, &precondition))?;
        let e_tag = Some(ETag::Strong(e_tag));
        Ok(S3Response::new(PutObjectOutput { e_tag, ..Default::default() }))
    }

    async fn get_object(&self, req: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        let input = req.input;
        let object =
            self.with(&input.bucket, |bucket| bucket.get(&input.key, input.if_match.as_ref()).cloned())?;
        let size = object.content.len();
        let (content, content_range) = match input.range {
            None => (object.content, None),
            Some(range) => {
                let range = range.check(size as u64)?;
                let told = format!("bytes {}-{}/{size}", range.start, range.end - 1);
                (object.content.slice(index(range.start)..index(range.end)), Some(told))
            }
        };
        Ok(S3Response::new(GetObjectOutput {
            content_length: Some(length(&content)),
            body: Some(StreamingBlob::from(Body::from(content))),
            content_range,
            accept_ranges: Some("bytes".to_owned()),
            e_tag: Some(ETag::Strong(object.e_tag)),
            last_modified: Some(Timestamp::from(object.modified)),
            metadata: Some(object.attributes.metadata),
            content_type: object.attributes.content_type,
            content_encoding: object.attributes.content_encoding,
            ..Default::default()
        }))
    }

    async fn head_object(&self, req: S3Request<HeadObjectInput>) -> S3Result<S3Response<HeadObjectOutput>> {
        let input = req.input;
        let object =
            self.with(&input.bucket, |bucket| bucket.get(&input.key, input.if_match.as_ref()).cloned())?;
        Ok(S3Response::new(HeadObjectOutput {
            content_length: Some(length(&object.content)),
            accept_ranges: Some("bytes".to_owned()),
            e_tag: Some(ETag::Strong(object.e_tag)),
            last_modified: Some(Timestamp::from(object.modified)),
            metadata: Some(object.attributes.metadata),
            content_type: object.attributes.content_type,
            content_encoding: object.attributes.content_encoding,
            ..Default::default()
        }))
    }

    async fn list_objects_v2(
        &self,
        req: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let input = req.input;
        if input.delimiter.is_some() {
            return Err(s3_error!(NotImplemented, "the double lists without a delimiter"));
        }
        let prefix = input.prefix.clone().unwrap_or_default();
        // A token is the last key of its page, which only this function knows.
        let after = input.continuation_token.clone().or_else(|| input.start_after.clone());
        let asked = input.max_keys.map_or(MOST_KEYS, |keys| usize::try_from(keys).unwrap_or_default());
        let most = asked.min(self.page_keys);
        self.with(&input.bucket, |bucket| {
            let start = match &after {
                Some(after) if *after >= prefix => Bound::Excluded(after.as_str()),
                _ => Bound::Included(prefix.as_str()),
            };
            let mut found = bucket
                .objects()
                .range::<str, _>((start, Bound::Unbounded))
                .take_while(|(key, _)| key.starts_with(&prefix));
            let contents: Vec<_> = found
                .by_ref()
                .take(most)
                .map(|(key, object)| Object {
                    key: Some(key.clone()),
                    size: Some(length(&object.content)),
                    e_tag: Some(ETag::Strong(object.e_tag.clone())),
                    last_modified: Some(Timestamp::from(object.modified)),
                    ..Default::default()
                })
                .collect();
            let more = found.next().is_some() && most > 0;
            let last = contents.last().and_then(|object| object.key.clone());
            Ok(S3Response::new(ListObjectsV2Output {
                name: Some(input.bucket.clone()),
                prefix: input.prefix.clone(),
                start_after: input.start_after.clone(),
                max_keys: i32::try_from(asked).ok(),
                key_count: i32::try_from(contents.len()).ok(),
                contents: Some(contents),
                is_truncated: Some(more),
                continuation_token: input.continuation_token.clone(),
                next_continuation_token: last.filter(|_| more),
                ..Default::default()
            }))
        })
    }

    async fn delete_object(
        &self,
        req: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let input = req.input;
        if input.if_match.is_some() {
            return Err(s3_error!(NotImplemented, "the double deletes without a precondition"));
        }
        self.with(&input.bucket, |bucket| {
            bucket.delete(&input.key);
            Ok(())
        })?;
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }

    async fn delete_objects(
        &self,
        req: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let input = req.input;
        let keys: Vec<_> = input.delete.objects.into_iter().map(|object| object.key).collect();
        if keys.is_empty() || keys.len() > MOST_KEYS {
            return Err(s3_error!(MalformedXML, "a request deletes from 1 to 1000 objects"));
        }
        self.with(&input.bucket, |bucket| {
            for key in &keys {
                bucket.delete(key);
            }
            Ok(())
        })?;
        let deleted = keys.into_iter().map(|key| DeletedObject { key: Some(key), ..Default::default() });
        let deleted = (input.delete.quiet != Some(true)).then(|| deleted.collect());
        Ok(S3Response::new(DeleteObjectsOutput { deleted, ..Default::default() }))
    }

    async fn copy_object(&self, req: S3Request<CopyObjectInput>) -> S3Result<S3Response<CopyObjectOutput>> {
        let replaced = req.input.metadata_directive.as_ref().map(MetadataDirective::as_str);
        if replaced.is_some_and(|directive| directive != MetadataDirective::COPY) {
            return Err(s3_error!(NotImplemented, "the double copies metadata with the content"));
        }
        let if_none_match = match req.headers.get(http::header::IF_NONE_MATCH) {
            Some(value) => Some(
                s3s::dto::ETagCondition::parse_http_header(value.as_bytes())
                    .map_err(|error| s3_error!(error, InvalidArgument))?,
            ),
            None => None,
        };
        let input = req.input;
        let source = self.source(&input.copy_source)?;
        let precondition = Precondition { if_match: None, if_none_match };
        let e_tag = self.with(&input.bucket, |bucket| bucket.copy(&source, &input.key, &precondition))?;
        let result = CopyObjectResult { e_tag: Some(ETag::Strong(e_tag)), ..Default::default() };
        Ok(S3Response::new(CopyObjectOutput { copy_object_result: Some(result), ..Default::default() }))
    }

    async fn create_multipart_upload(
        &self,
        req: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let input = req.input;
        let attributes = Attributes {
            metadata: input.metadata.unwrap_or_default(),
            content_type: input.content_type,
            content_encoding: input.content_encoding,
        };
        let begun = input.key.clone();
        let id = self.with(&input.bucket, |bucket| Ok(bucket.begin_upload(begun, attributes)))?;
        Ok(S3Response::new(CreateMultipartUploadOutput {
            bucket: Some(input.bucket),
            key: Some(input.key),
            upload_id: Some(id),
            ..Default::default()
        }))
    }

    async fn upload_part(&self, req: S3Request<UploadPartInput>) -> S3Result<S3Response<UploadPartOutput>> {
        let input = req.input;
        let content = content(input.body).await?;
        let e_tag = self.with(&input.bucket, |bucket| {
            bucket.put_part(&input.key, &input.upload_id, input.part_number, content)
        })?;
        let e_tag = Some(ETag::Strong(e_tag));
        Ok(S3Response::new(UploadPartOutput { e_tag, ..Default::default() }))
    }

    async fn upload_part_copy(
        &self,
        req: S3Request<UploadPartCopyInput>,
    ) -> S3Result<S3Response<UploadPartCopyOutput>> {
        let input = req.input;
        if input.copy_source_range.is_some() {
            return Err(s3_error!(NotImplemented, "the double copies an object whole into a part"));
        }
        let source = self.source(&input.copy_source)?;
        let e_tag = self.with(&input.bucket, |bucket| {
            bucket.put_part(&input.key, &input.upload_id, input.part_number, source.content)
        })?;
        let result = CopyPartResult { e_tag: Some(ETag::Strong(e_tag)), ..Default::default() };
        Ok(S3Response::new(UploadPartCopyOutput { copy_part_result: Some(result), ..Default::default() }))
    }

    async fn complete_multipart_upload(
        &self,
        req: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let input = req.input;
        let parts = input.multipart_upload.and_then(|upload| upload.parts).unwrap_or_default();
        let parts = parts
            .into_iter()
            .map(|part| part.part_number.zip(part.e_tag.map(ETag::into_value)))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| s3_error!(MalformedXML, "a part is named by number and ETag"))?;
        let precondition = Precondition { if_match: input.if_match, if_none_match: input.if_none_match };
        let e_tag = self.with(&input.bucket, |bucket| {
            bucket.complete_upload(&input.key, &input.upload_id, &parts, &precondition)
        })?;
        Ok(S3Response::new(CompleteMultipartUploadOutput {
            bucket: Some(input.bucket),
            key: Some(input.key),
            e_tag: Some(ETag::Strong(e_tag)),
            ..Default::default()
        }))
    }

    async fn abort_multipart_upload(
        &self,
        req: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        let input = req.input;
        self.with(&input.bucket, |bucket| bucket.abort_upload(&input.key, &input.upload_id))?;
        Ok(S3Response::new(AbortMultipartUploadOutput::default()))
    }
}

/// The whole of a request's body. `s3s` fails the stream where it contradicts the signed digest.
async fn content(body: Option<StreamingBlob>) -> S3Result<Bytes> {
    let Some(body) = body else {
        return Ok(Bytes::new());
    };
    let chunks: Vec<Bytes> = body.try_collect().await.map_err(refused_body)?;
    Ok(chunks.concat().into())
}

fn refused_body(error: s3s::StdError) -> S3Error {
    match error.downcast::<S3Error>() {
        Ok(error) => *error,
        Err(error) => S3Error::with_source(S3ErrorCode::IncompleteBody, error),
    }
}

fn index(position: u64) -> usize {
    usize::try_from(position).expect("invariant: it lies within an object in memory")
}

fn length(content: &Bytes) -> i64 {
    i64::try_from(content.len()).expect("invariant: an object in memory has fewer bytes than 2^63")
}
