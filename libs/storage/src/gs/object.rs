//! What the service tells of an object, and what a written one is given beside its bytes.

use google_cloud_gax::options::RequestOptionsBuilder as _;
use google_cloud_storage::model::Object;

use super::bucket::{GsBucket, answered};
use crate::Result;
use crate::error::{Action, ErrorKind, StorageError};
use crate::generation::{Generation, ObjectMeta};
use crate::name::ObjectName;
use crate::settle::{Found, MARK};

/// The media type that an object of this name is stored with: a document, or else records (`docs/protocol.md`).
pub(super) fn content_type(name: &ObjectName) -> &'static str {
    match name.as_str().rsplit_once('.') {
        Some((_, "json")) => "application/json",
        _ => "application/x-ndjson",
    }
}

/// What the service tells of the object at `path`, which messages call `display`; `None` when there is none.
pub(super) async fn head(bucket: &GsBucket, path: &str, display: &str) -> Result<Option<Object>> {
    let request = bucket.control.get_object().set_bucket(bucket.resource()).set_object(path);
    let request = request.with_attempt_timeout(bucket.patience);
    match answered(bucket.patience_in_all(), Action::Read, display, request.send()).await {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// What a look at `name` found.
pub(super) fn found(action: Action, name: &ObjectName, object: &Object) -> Result<Found> {
    let meta = listed(name.clone(), object);
    if meta.crc32c.is_none() {
        return Err(without_checksum(action, name));
    }
    Ok(Found { meta, mark: object.metadata.get(MARK).cloned() })
}

/// What is known of an object that may come without a checksum.
pub(super) fn listed(name: ObjectName, object: &Object) -> ObjectMeta {
    ObjectMeta {
        name,
        generation: Generation::new(object.generation.to_string()),
        size_bytes: object.size.unsigned_abs(),
        crc32c: object.checksums.as_ref().and_then(|checksums| checksums.crc32c),
    }
}

/// The service's number of a generation; `None` where it cannot be one of its.
pub(super) fn number(generation: &Generation) -> Option<i64> {
    generation.as_str().parse().ok().filter(|number| *number > 0)
}

pub(super) fn without_checksum(action: Action, object: impl std::fmt::Display) -> StorageError {
    StorageError::new(
        ErrorKind::Damaged,
        action,
        object,
        "the storage tells no CRC32C of it",
        "use Google Cloud Storage, or a service that keeps checksums as it does",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_objects_of_a_job_are_stored_as_what_they_are() {
        for (name, expected) in [
            ("state.json", "application/json"),
            ("parts/00000001-00000001-r.jsonl", "application/x-ndjson"),
            ("compose/results_final.jsonl/1-000001", "application/x-ndjson"),
        ] {
            assert_eq!(content_type(&ObjectName::from_static(name)), expected, "{name}");
        }
    }

    #[test]
    fn only_a_positive_number_can_be_a_generation_of_the_service() {
        assert_eq!(number(&Generation::new("1763764000000000")), Some(1_763_764_000_000_000));
        for other in ["0", "-1", "", "5-17", "\"etag\""] {
            assert_eq!(number(&Generation::new(other)), None, "{other}");
        }
    }
}
