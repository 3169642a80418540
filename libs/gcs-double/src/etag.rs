//! Entity tags: what differs whenever content or metadata do.

use base64::{Engine, prelude::BASE64_STANDARD};

use crate::bucket::Object;

/// The tag of this version of an object.
pub(crate) fn etag(object: &Object) -> String {
    let versions = [object.generation.0.to_be_bytes(), object.metageneration.to_be_bytes()];
    BASE64_STANDARD.encode(versions.concat())
}
