//! Deleting generations. `object_store` has no conditional delete: an object is compared first and deleted then.
//!
//! So a replacement that lands between the two is deleted with what it replaced. The protocol can live with that: what
//! it deletes is created once and never replaced (parts, intermediates, objects of a validation), apart from documents
//! that only their own job replaces, which deletes them when it is over.

use std::collections::HashMap;

use futures_util::stream::{self, StreamExt};
use object_store::ObjectStore;

use super::answer::storage_error;
use super::bucket::{S3Bucket, late, path};
use super::list;
use super::read::{self, Found};
use crate::Result;
use crate::error::{Action, StorageError};
use crate::generation::Generation;
use crate::name::ObjectName;

/// Deletes one generation.
pub(super) async fn delete(
    bucket: &S3Bucket,
    prefix: &str,
    name: &ObjectName,
    generation: &Generation,
) -> Result<()> {
    let key = format!("{prefix}{name}");
    match read::head(bucket, &key, name.as_str()).await?.as_ref().map(Found::of) {
        None => Ok(()),
        Some(found) if found.generation != *generation => Err(StorageError::changed(Action::Delete, name)),
        Some(_) => delete_keys(bucket, prefix, &[name]).await.into_iter().next().unwrap_or(Ok(())),
    }
}

/// Deletes generations, at most 1,000, with one request. What they are compared with is a listing from the first name
/// to the last, since that is one request for 1,000 objects, too.
pub(super) async fn delete_all(
    bucket: &S3Bucket,
    prefix: &str,
    objects: &[(ObjectName, Generation)],
) -> Result<()> {
    let names = || objects.iter().map(|(name, _)| name.as_str());
    let (Some(first), Some(last)) = (names().min(), names().max()) else {
        return Ok(());
    };
    let present = between(bucket, prefix, first, last).await?;
    let mut results: Vec<Result<()>> = Vec::new();
    let mut deleted = Vec::new();
    for (name, generation) in objects {
        results.push(match present.get(name) {
            Some(found) if found != generation => Err(StorageError::changed(Action::Delete, name)),
            Some(_) => {
                deleted.push((results.len(), name));
                Ok(())
            }
            None => Ok(()),
        });
    }
    let names: Vec<_> = deleted.iter().map(|(_, name)| *name).collect();
    let answers = delete_keys(bucket, prefix, &names).await;
    for ((index, _), answer) in deleted.into_iter().zip(answers) {
        results[index] = answer;
    }
    results.into_iter().collect()
}

/// The generations of all objects from `first` to `last`.
async fn between(
    bucket: &S3Bucket,
    prefix: &str,
    first: &str,
    last: &str,
) -> Result<HashMap<ObjectName, Generation>> {
    let common = first.char_indices().zip(last.chars()).find(|((_, one), other)| one != other);
    let common = common.map_or(first.len().min(last.len()), |((index, _), _)| index);
    let mut before = first.to_owned();
    before.pop();
    let mut after = Some(before);
    let mut found = HashMap::new();
    while let Some(start) = after {
        let page = list::page(bucket, prefix, &first[..common], Some(&start)).await?;
        found.extend(page.objects.into_iter().map(|object| (object.name, object.generation)));
        after = page.next.filter(|next| next.as_str() < last);
    }
    Ok(found)
}

/// Deletes whatever the names hold; an answer for each name, in their order.
async fn delete_keys(bucket: &S3Bucket, prefix: &str, names: &[&ObjectName]) -> Vec<Result<()>> {
    let paths: Vec<_> = names
        .iter()
        .map(|name| path(&format!("{prefix}{name}")).expect("invariant: a name is a path of the library"))
        .map(Ok)
        .collect();
    let call = bucket.repeating.delete_stream(stream::iter(paths).boxed()).collect::<Vec<_>>();
    match tokio::time::timeout(bucket.deadline, call).await {
        Err(_) => names.iter().map(|name| Err(late(Action::Delete, name, bucket.deadline))).collect(),
        // A request that failed as a whole has one answer.
        Ok(answers) if answers.len() < names.len() => {
            let failed = answers.into_iter().find_map(Result::err);
            let told = |name: &&ObjectName| match &failed {
                Some(error) => Err(storage_error(Action::Delete, name, error)),
                None => Ok(()),
            };
            names.iter().map(told).collect()
        }
        Ok(answers) => names
            .iter()
            .zip(answers)
            .map(|(name, answer)| match answer {
                Ok(_) => Ok(()),
                Err(error) => Err(storage_error(Action::Delete, name, &error)),
            })
            .collect(),
    }
}
