//! Composing: the service concatenates, no byte comes here.

use google_cloud_gax::options::RequestOptionsBuilder as _;
use google_cloud_gax::retry_policy::NeverRetry;
use google_cloud_storage::model::compose_object_request::source_object::ObjectPreconditions;
use google_cloud_storage::model::{Object, compose_object_request::SourceObject};

use super::bucket::answered;
use super::object::{content_type, found, number};
use super::{COMPOSE_LIMIT, GsStore};
use crate::Result;
use crate::error::{Action, ErrorKind, StorageError};
use crate::generation::{Generation, ObjectMeta};
use crate::name::ObjectName;
use crate::settle::{MARK, Write, new_mark, settled};

impl GsStore {
    /// See [`Store::compose`](crate::Store::compose).
    pub(super) async fn compose_objects(
        &self,
        target: &ObjectName,
        sources: &[(ObjectName, Generation)],
    ) -> Result<ObjectMeta> {
        if sources.is_empty() || sources.len() > COMPOSE_LIMIT {
            return Err(StorageError::wrong_source_count(target, sources.len()));
        }
        let pinned = sources
            .iter()
            .map(|(name, generation)| self.source(name, generation))
            .collect::<Result<Vec<_>>>()?;
        let mark = new_mark();
        let destination = Object::new()
            .set_bucket(self.bucket.resource())
            .set_name(self.path(target))
            .set_content_type(content_type(target))
            .set_metadata([(MARK, &mark)]);
        let request = self.bucket.control.compose_object();
        let request = request
            .set_destination(destination)
            .set_source_objects(pinned)
            .set_if_generation_match(0)
            .with_retry_policy(NeverRetry);
        let answer = answered(self.bucket.patience * 2, Action::Compose, target, request.send()).await;
        let written =
            answer.and_then(|object| found(Action::Compose, target, &object)).map(|found| found.meta);
        let write = Write { action: Action::Compose, name: target, mark: &mark, replaces: None };
        match settled(&write, written, self.look(target)).await {
            Err(error) if matches!(error.kind(), ErrorKind::Exists | ErrorKind::NotFound) => {
                Err(self.failed_condition(target, sources, error).await)
            }
            settled => settled,
        }
    }

    fn source(&self, name: &ObjectName, generation: &Generation) -> Result<SourceObject> {
        let pinned = number(generation).ok_or_else(|| StorageError::changed(Action::Read, name))?;
        // A generation alone would be "not found" once it is replaced, as if the object were gone.
        let condition = ObjectPreconditions::new().set_if_generation_match(pinned);
        Ok(SourceObject::new().set_name(self.path(name)).set_object_preconditions(condition))
    }

    /// The service does not say whose condition failed, or what it has not found: the target's, or, where there is no
    /// target, that of a source.
    async fn failed_condition(
        &self,
        target: &ObjectName,
        sources: &[(ObjectName, Generation)],
        error: StorageError,
    ) -> StorageError {
        if !matches!(self.look(target).await, Ok(None)) {
            return error;
        }
        for (name, generation) in sources {
            match self.look(name).await {
                Ok(None) => return StorageError::not_found(Action::Compose, name),
                Ok(Some(found)) if found.meta.generation != *generation => {
                    return StorageError::changed(Action::Compose, name);
                }
                Ok(Some(_)) => {}
                Err(error) => return error,
            }
        }
        error
    }
}
