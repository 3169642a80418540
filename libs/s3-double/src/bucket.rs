//! The objects and unfinished uploads of one bucket.
//!
//! Refusals are those that the API reference of S3 names for each operation.

use std::collections::{BTreeMap, HashMap};
use std::time::SystemTime;

use bytes::Bytes;
use s3s::dto::ETagCondition;
use s3s::{S3Result, s3_error};

/// The least size of each part of an upload but the last, in bytes.
const LEAST_PART_BYTES: usize = 5 << 20;

/// The highest number of a part.
const MOST_PARTS: i32 = 10_000;

/// What a writer says about an object beside its content.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes {
    pub(crate) metadata: HashMap<String, String>,
    pub(crate) content_type: Option<String>,
    pub(crate) content_encoding: Option<String>,
}

/// One object. As on S3 without a key of one's own, its `ETag` is a digest of the content, so that equal bytes written
/// again have the `ETag` that they had.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) content: Bytes,
    pub(crate) e_tag: String,
    pub(crate) attributes: Attributes,
    pub(crate) modified: SystemTime,
}

/// What must hold for a write to be applied.
#[derive(Clone, Debug, Default)]
pub(crate) struct Precondition {
    pub(crate) if_match: Option<ETagCondition>,
    pub(crate) if_none_match: Option<ETagCondition>,
}

#[derive(Debug)]
struct Upload {
    key: String,
    attributes: Attributes,
    parts: BTreeMap<i32, Part>,
}

#[derive(Debug)]
struct Part {
    content: Bytes,
    digest: [u8; 16],
}

#[derive(Debug, Default)]
pub(crate) struct Bucket {
    objects: BTreeMap<String, Object>,
    uploads: HashMap<String, Upload>,
    uploads_begun: u64,
}

impl Bucket {
    pub(crate) fn objects(&self) -> &BTreeMap<String, Object> {
        &self.objects
    }

    pub(crate) fn unfinished_uploads(&self) -> usize {
        self.uploads.len()
    }

    /// The object, if it has the `ETag` that a reader asks for.
    pub(crate) fn get(&self, key: &str, if_match: Option<&ETagCondition>) -> S3Result<&Object> {
        let object = self.objects.get(key).ok_or_else(|| s3_error!(NoSuchKey))?;
        match if_match {
            Some(condition) if !names(condition, object) => Err(s3_error!(PreconditionFailed)),
            _ => Ok(object),
        }
    }

    /// Writes an object whole; answers with its `ETag`.
    pub(crate) fn put(
        &mut self,
        key: &str,
        content: Bytes,
        attributes: Attributes,
        precondition: &Precondition,
    ) -> S3Result<String> {
        let e_tag = hex(&digest(&content));
        self.write(key, Object { content, e_tag, attributes, modified: SystemTime::now() }, precondition)
    }

    /// Writes an object that another one's content and attributes are those of; answers with its `ETag`.
    pub(crate) fn copy(
        &mut self,
        source: &Object,
        key: &str,
        precondition: &Precondition,
    ) -> S3Result<String> {
        self.put(key, source.content.clone(), source.attributes.clone(), precondition)
    }

    /// Deletes an object; that there is none is success.
    pub(crate) fn delete(&mut self, key: &str) {
        self.objects.remove(key);
    }

    /// Begins an upload in parts and gives its id.
    pub(crate) fn begin_upload(&mut self, key: String, attributes: Attributes) -> String {
        self.uploads_begun += 1;
        let id = format!("upload-{}", self.uploads_begun);
        self.uploads.insert(id.clone(), Upload { key, attributes, parts: BTreeMap::new() });
        id
    }

    /// Stores one part, in place of one of the same number; answers with its `ETag`.
    pub(crate) fn put_part(&mut self, key: &str, id: &str, number: i32, content: Bytes) -> S3Result<String> {
        if !(1..=MOST_PARTS).contains(&number) {
            return Err(s3_error!(InvalidArgument, "a part has a number from 1 to 10000"));
        }
        let digest = digest(&content);
        self.upload(key, id)?.parts.insert(number, Part { content, digest });
        Ok(hex(&digest))
    }

    /// Makes an object of the parts that are named by number and `ETag`; answers with its `ETag`. The upload stays where
    /// this is refused.
    pub(crate) fn complete_upload(
        &mut self,
        key: &str,
        id: &str,
        named: &[(i32, String)],
        precondition: &Precondition,
    ) -> S3Result<String> {
        let upload = self.upload(key, id)?;
        if named.is_empty() {
            return Err(s3_error!(MalformedXML, "an upload is completed with one part at least"));
        }
        if !named.is_sorted_by(|(one, _), (other, _)| one < other) {
            return Err(s3_error!(InvalidPartOrder));
        }
        let mut parts = Vec::new();
        for (number, e_tag) in named {
            let part = upload.parts.get(number).filter(|part| hex(&part.digest) == *e_tag);
            parts.push(part.ok_or_else(|| s3_error!(InvalidPart))?);
        }
        let all_but_the_last = &parts[..parts.len() - 1];
        if all_but_the_last.iter().any(|part| part.content.len() < LEAST_PART_BYTES) {
            return Err(s3_error!(EntityTooSmall));
        }
        let digests: Vec<u8> = parts.iter().flat_map(|part| part.digest).collect();
        let object = Object {
            e_tag: format!("{}-{}", hex(&digest(&digests)), parts.len()),
            content: parts.iter().map(|part| part.content.as_ref()).collect::<Vec<_>>().concat().into(),
            attributes: upload.attributes.clone(),
            modified: SystemTime::now(),
        };
        let e_tag = self.write(key, object, precondition)?;
        self.uploads.remove(id);
        Ok(e_tag)
    }

    /// Forgets an upload and its parts.
    pub(crate) fn abort_upload(&mut self, key: &str, id: &str) -> S3Result<()> {
        self.upload(key, id)?;
        self.uploads.remove(id);
        Ok(())
    }

    fn upload(&mut self, key: &str, id: &str) -> S3Result<&mut Upload> {
        self.uploads.get_mut(id).filter(|upload| upload.key == key).ok_or_else(|| s3_error!(NoSuchUpload))
    }

    fn write(&mut self, key: &str, object: Object, precondition: &Precondition) -> S3Result<String> {
        let present = self.objects.get(key);
        match (&precondition.if_none_match, present) {
            (Some(ETagCondition::ETag(_)), _) => {
                return Err(s3_error!(NotImplemented, "If-None-Match of a write takes * alone"));
            }
            (Some(ETagCondition::Any), Some(_)) => return Err(s3_error!(PreconditionFailed)),
            _ => {}
        }
        match (&precondition.if_match, present) {
            (Some(_), None) => return Err(s3_error!(NoSuchKey)),
            (Some(condition), Some(present)) if !names(condition, present) => {
                return Err(s3_error!(PreconditionFailed));
            }
            _ => {}
        }
        let e_tag = object.e_tag.clone();
        self.objects.insert(key.to_owned(), object);
        Ok(e_tag)
    }
}

fn names(condition: &ETagCondition, object: &Object) -> bool {
    match condition {
        ETagCondition::Any => true,
        ETagCondition::ETag(e_tag) => e_tag.as_strong() == Some(&object.e_tag),
    }
}

fn digest(bytes: &[u8]) -> [u8; 16] {
    md5::compute(bytes).0
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

#[cfg(test)]
mod tests {
    use s3s::S3ErrorCode;
    use s3s::dto::ETag;

    use super::*;

    const ABSENT: Precondition = Precondition { if_match: None, if_none_match: Some(ETagCondition::Any) };

    fn matching(e_tag: &str) -> Precondition {
        let if_match = Some(ETagCondition::ETag(ETag::Strong(e_tag.to_owned())));
        Precondition { if_match, if_none_match: None }
    }

    fn put(bucket: &mut Bucket, content: &'static str, precondition: &Precondition) -> S3Result<String> {
        bucket.put("key", content.into(), Attributes::default(), precondition)
    }

    fn refusal<T>(result: S3Result<T>) -> S3ErrorCode {
        result.err().expect("it is refused").code().clone()
    }

    #[test]
    fn a_write_is_applied_under_its_precondition_alone() {
        let mut bucket = Bucket::default();
        assert_eq!(refusal(put(&mut bucket, "none", &matching("any"))), S3ErrorCode::NoSuchKey);
        let first = put(&mut bucket, "first", &ABSENT).unwrap();
        assert_eq!(first, "8b04d5e3775d298e78455efc5ca404d5");
        assert_eq!(refusal(put(&mut bucket, "again", &ABSENT)), S3ErrorCode::PreconditionFailed);
        let second = put(&mut bucket, "second", &matching(&first)).unwrap();
        assert_eq!(refusal(put(&mut bucket, "third", &matching(&first))), S3ErrorCode::PreconditionFailed);
        assert_eq!(bucket.objects()["key"].e_tag, second);
        assert_eq!(bucket.objects()["key"].content, "second");
    }

    #[test]
    fn an_upload_is_made_of_the_parts_that_its_completion_names() {
        let mut bucket = Bucket::default();
        let id = bucket.begin_upload("key".into(), Attributes::default());
        let large = Bytes::from(vec![b'a'; LEAST_PART_BYTES]);
        let first = bucket.put_part("key", &id, 1, large.clone()).unwrap();
        let small = bucket.put_part("key", &id, 2, "small".into()).unwrap();
        let last = bucket.put_part("key", &id, 3, "last".into()).unwrap();
        let mut complete = |parts: &[(i32, &String)]| {
            let parts: Vec<_> = parts.iter().map(|(number, e_tag)| (*number, (*e_tag).clone())).collect();
            bucket.complete_upload("key", &id, &parts, &ABSENT)
        };
        assert_eq!(refusal(complete(&[])), S3ErrorCode::MalformedXML);
        assert_eq!(refusal(complete(&[(3, &last), (1, &first)])), S3ErrorCode::InvalidPartOrder);
        assert_eq!(refusal(complete(&[(1, &last)])), S3ErrorCode::InvalidPart);
        assert_eq!(refusal(complete(&[(1, &first), (2, &small), (3, &last)])), S3ErrorCode::EntityTooSmall);
        assert!(complete(&[(1, &first), (3, &last)]).unwrap().ends_with("-2"));
        assert_eq!(refusal(complete(&[(1, &first)])), S3ErrorCode::NoSuchUpload);
        assert_eq!(bucket.objects()["key"].content.len(), LEAST_PART_BYTES + 4);
        assert_eq!(bucket.unfinished_uploads(), 0);
    }

    #[test]
    fn an_upload_whose_completion_is_refused_stays_until_it_is_aborted() {
        let mut bucket = Bucket::default();
        put(&mut bucket, "taken", &ABSENT).unwrap();
        let id = bucket.begin_upload("key".into(), Attributes::default());
        let part = bucket.put_part("key", &id, 1, "part".into()).unwrap();
        let refused = bucket.complete_upload("key", &id, &[(1, part)], &ABSENT);
        assert_eq!(refusal(refused), S3ErrorCode::PreconditionFailed);
        assert_eq!(refusal(bucket.abort_upload("other", &id)), S3ErrorCode::NoSuchUpload);
        assert_eq!(bucket.unfinished_uploads(), 1);
        bucket.abort_upload("key", &id).unwrap();
        assert_eq!(bucket.unfinished_uploads(), 0);
        assert_eq!(bucket.objects()["key"].content, "taken");
    }
}
