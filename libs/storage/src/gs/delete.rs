//! Deleting generations, many at once.

use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use google_cloud_gax::options::RequestOptionsBuilder as _;
use google_cloud_gax::retry_policy::NeverRetry;

use super::GsStore;
use super::bucket::answered;
use super::object::number;
use crate::Result;
use crate::error::{Action, ErrorKind, StorageError};
use crate::generation::Generation;
use crate::name::ObjectName;

/// Deletions under way at once: 2,000 parts are gone after some 60 round trips.
const AT_ONCE: usize = 32;

impl GsStore {
    /// See [`Store::delete`](crate::Store::delete).
    pub(super) async fn delete_generation(&self, name: &ObjectName, generation: &Generation) -> Result<()> {
        let changed = || StorageError::changed(Action::Delete, name);
        let pinned = number(generation).ok_or_else(changed)?;
        let request = self
            .bucket
            .control
            .delete_object()
            .set_bucket(self.bucket.resource())
            .set_object(self.path(name))
            .set_if_generation_match(pinned)
            .with_retry_policy(NeverRetry);
        match answered(self.bucket.patience, Action::Delete, name, request.send()).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) if error.kind() == ErrorKind::Changed => match self.look(name).await? {
                None => Ok(()),
                Some(_) => Err(error),
            },
            answer => answer,
        }
    }

    /// See [`Store::delete_all`](crate::Store::delete_all).
    pub(super) async fn delete_generations(&self, objects: &[(ObjectName, Generation)]) -> Result<()> {
        let mut deletions = FuturesOrdered::new();
        let mut result = Ok(());
        for (name, generation) in objects {
            if deletions.len() == AT_ONCE {
                result = result.and(deletions.next().await.unwrap_or(Ok(())));
            }
            deletions.push_back(self.delete_generation(name, generation));
        }
        while let Some(deleted) = deletions.next().await {
            result = result.and(deleted);
        }
        result
    }
}
