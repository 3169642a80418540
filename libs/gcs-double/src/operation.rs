//! What clients may ask: the operations that faults and the log tell apart.

use serde::{Deserialize, Serialize};

/// What a request is for, over REST and gRPC alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// The content of an object.
    Read,
    /// The metadata of an object.
    Get,
    /// A page of objects.
    List,
    /// An object written in one request.
    Write,
    /// The start of an upload in chunks.
    StartUpload,
    /// A chunk, or the question how many bytes arrived.
    UploadChunk,
    /// The end of an upload without an object.
    CancelUpload,
    /// Metadata changed.
    Update,
    /// Objects joined to one.
    Compose,
    /// An object deleted.
    Delete,
    /// Whatever is asked of buckets.
    Bucket,
}

/// How a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// JSON and media over HTTP.
    Rest,
    /// Protocol buffers over HTTP/2.
    Grpc,
}
