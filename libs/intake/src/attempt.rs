//! One validation attempt: the objects below `intake/<attempt>/`. They mean nothing until `validation.json` names them.

use std::{future::Future, pin::Pin};

use bytes::Bytes;
use penstock_job::{
    OrdinalSet,
    checksum::Crc32c,
    layout,
    validation::{RejectedFile, StoredObject},
};
use penstock_storage::{Action, Checksum, ErrorKind, ObjectMeta, ObjectName, StorageError, Store};
use tokio::sync::mpsc::Receiver;
use uuid::Uuid;

use crate::{
    rejected_files::FinishedFile,
    retry::{Repeats, retry, within_deadline},
};

/// One attempt, named at random, so that nobody else writes below its name.
#[derive(Debug)]
pub(crate) struct Attempt<'a> {
    pub(crate) id: Uuid,
    store: &'a dyn Store,
}

impl<'a> Attempt<'a> {
    /// A new attempt with nothing written.
    pub(crate) fn new(store: &'a dyn Store) -> Self {
        Self { id: Uuid::new_v4(), store }
    }

    /// Uploads the files of rejected records as they come.
    pub(crate) async fn upload_rejected(
        &self,
        mut files: Receiver<FinishedFile>,
    ) -> Result<Vec<RejectedFile>, StorageError> {
        let mut uploaded = Vec::new();
        while let Some(FinishedFile { path, checksum, lines }) = files.recv().await {
            let name = ObjectName::parse(layout::rejected_file(self.id, uploaded.len()))?;
            let meta = self.create(&name, checksum, || self.store.upload(&name, &path, checksum)).await?;
            uploaded.push(RejectedFile {
                name: name.to_string(),
                generation: meta.generation.to_string(),
                lines,
                size_bytes: checksum.size_bytes,
                crc32c: Crc32c(checksum.crc32c),
            });
        }
        Ok(uploaded)
    }

    /// Writes the set of rejected ordinals, unless it is empty.
    pub(crate) async fn write_rejected_set(
        &self,
        rejected: &OrdinalSet,
    ) -> Result<Option<StoredObject>, StorageError> {
        if rejected.is_empty() {
            return Ok(None);
        }
        let name = ObjectName::parse(layout::rejected_set(self.id))?;
        let content = Bytes::from(rejected.to_bytes());
        let checksum = Checksum::of(&content);
        let meta = self.create(&name, checksum, || self.store.create(&name, content.clone())).await?;
        Ok(Some(StoredObject {
            name: name.to_string(),
            generation: meta.generation.to_string(),
            size_bytes: checksum.size_bytes,
            crc32c: Crc32c(checksum.crc32c),
        }))
    }

    /// Makes a create-only write. After an ambiguous answer the object that is there, if any, decides.
    async fn create<'f>(
        &self,
        name: &ObjectName,
        checksum: Checksum,
        write: impl Fn() -> Pin<Box<dyn Future<Output = Result<ObjectMeta, StorageError>> + Send + 'f>>,
    ) -> Result<ObjectMeta, StorageError> {
        let mut repeats = Repeats::new(self.store.mutation_interval());
        loop {
            let error = match within_deadline(Action::Create, name.as_str(), write()).await {
                Ok(meta) => return Ok(meta),
                Err(error) if error.ambiguous() => error,
                Err(error) => return Err(error),
            };
            match retry(Action::Read, name.as_str(), || self.store.head(name)).await? {
                Some(meta) if meta.checksum() == Some(checksum) => return Ok(meta),
                Some(_) => return Err(error),
                None => repeats.after(error).await?,
            }
        }
    }

    /// Deletes what the attempt has written. What cannot be deleted stays as garbage that nothing refers to.
    pub(crate) async fn delete(&self) {
        if let Err(error) = self.delete_objects().await {
            tracing::warn!(attempt = %self.id, %error, "a validation attempt without effect stays in the output");
        }
    }

    async fn delete_objects(&self) -> Result<(), StorageError> {
        let prefix = format!("{}{}/", layout::INTAKE, self.id);
        let mut start_after = None;
        loop {
            let page =
                retry(Action::List, &prefix, || self.store.list(&prefix, start_after.as_deref())).await?;
            for object in &page.objects {
                let name = &object.name;
                retry(Action::Delete, name.as_str(), || self.store.delete(name, &object.generation))
                    .await
                    .or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
            }
            match page.next {
                Some(next) => start_after = Some(next),
                None => return Ok(()),
            }
        }
    }
}
