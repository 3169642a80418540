//! Listing, page by page.

use object_store::list::{PaginatedListOptions, PaginatedListStore};

use super::bucket::S3Bucket;
use super::object;
use crate::Result;
use crate::error::Action;
use crate::generation::ObjectMeta;
use crate::name::ObjectName;
use crate::store::Page;

/// One page of the objects below `prefix`, which ends with a slash or is empty. What is no name of this crate, such as
/// the marker of a folder, is left out.
pub(super) async fn page(
    bucket: &S3Bucket,
    prefix: &str,
    below: &str,
    start_after: Option<&str>,
) -> Result<Page> {
    let wanted = format!("{prefix}{below}");
    let options = PaginatedListOptions {
        offset: start_after.map(|name| format!("{prefix}{name}")),
        ..PaginatedListOptions::default()
    };
    let call = bucket.repeating.list_paginated(Some(&wanted), options);
    let listed = bucket.answer(Action::List, bucket.uri(&wanted), call).await?;
    let names: Vec<_> =
        listed.result.objects.iter().map(|object| object.location.as_ref().strip_prefix(prefix)).collect();
    let next = listed.page_token.and(names.last().copied().flatten()).map(str::to_owned);
    let objects = names
        .iter()
        .zip(&listed.result.objects)
        .filter_map(|(name, object)| {
            Some(ObjectMeta {
                name: ObjectName::parse((*name)?).ok()?,
                generation: object::generation(object.e_tag.as_deref()),
                size_bytes: object.size,
                crc32c: None,
            })
        })
        .collect();
    Ok(Page { objects, next })
}
