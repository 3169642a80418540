//! Uploads in chunks: sessions that outlive the requests which fill them.
//!
//! Owns what of an upload is kept when a connection breaks: whole blocks of 256 KiB, as the service does it.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::BytesMut;
use serde_json::Value;

use crate::{
    bucket::{Metadata, Preconditions},
    checksum::{Checksums, ExpectedChecksums},
    content::{Content, ContentBuilder, Spool},
    name::{BucketName, ObjectName},
};

/// Chunks are kept by blocks of so many bytes.
pub(crate) const BLOCK: u64 = 256 << 10;

/// The sessions that were started.
#[derive(Debug, Default)]
pub(crate) struct Uploads {
    sessions: Mutex<HashMap<String, Arc<tokio::sync::Mutex<Session>>>>,
}

/// What an upload is for.
#[derive(Debug, Clone)]
pub(crate) struct Purpose {
    pub(crate) bucket: BucketName,
    pub(crate) name: ObjectName,
    pub(crate) metadata: Metadata,
    pub(crate) expected: ExpectedChecksums,
    pub(crate) preconditions: Preconditions,
}

/// One upload.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) purpose: Purpose,
    pub(crate) stage: Stage,
}

/// How far an upload is.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Bytes are still to come.
    Receiving(Receiving),
    /// All bytes are there; the object is not.
    Received(Content, Checksums),
    /// The object is there, described as it was when it was made.
    Finished(Value),
    /// It was given up.
    Cancelled,
}

/// What came of a content.
#[derive(Debug)]
pub(crate) struct Receiving {
    /// What is kept.
    kept: ContentBuilder,
    /// What came since, in the request that is being answered.
    loose: BytesMut,
}

impl Uploads {
    /// Starts a session and names it.
    pub(crate) fn start(&self, purpose: Purpose, spool: Arc<Spool>) -> String {
        let receiving = Receiving { kept: ContentBuilder::new(spool), loose: BytesMut::new() };
        let session = Session { purpose, stage: Stage::Receiving(receiving) };
        let mut sessions = self.lock();
        let id = format!("upload-{:08}", sessions.len());
        sessions.insert(id.clone(), Arc::new(tokio::sync::Mutex::new(session)));
        id
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<tokio::sync::Mutex<Session>>> {
        self.lock().get(id).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<tokio::sync::Mutex<Session>>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Receiving {
    /// How many bytes are kept.
    pub(crate) fn kept(&self) -> u64 {
        self.kept.length()
    }

    /// Begins a request: what was left over of one that broke is forgotten.
    pub(crate) fn begin(&mut self) {
        self.loose.clear();
    }

    /// Takes bytes, and keeps the blocks that are whole.
    pub(crate) async fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.loose.extend_from_slice(bytes);
        let whole = self.loose.len() - self.loose.len() % usize::try_from(BLOCK).unwrap_or(usize::MAX);
        let blocks = self.loose.split_to(whole);
        self.kept.push(&blocks).await
    }

    /// Keeps all that came: it was the last.
    pub(crate) async fn finish(mut self) -> io::Result<(Content, Checksums)> {
        let loose = self.loose.split();
        self.kept.push(&loose).await?;
        self.kept.finish().await
    }
}
