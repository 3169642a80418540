//! Object storage behind one small trait, and what a job needs around it.
//!
//! | module | what it owns |
//! |---|---|
//! | [`store`] | the trait [`Store`]: the conditional writes, pinned reads and listings of the job protocol |
//! | [`name`], [`generation`], [`error`] | the words of that trait |
//! | [`file`](mod@file) | [`FileStore`]: a folder as a store, with real generations |
//! | [`gs`] | [`GsStore`], [`GsInput`]: Google Cloud Storage |
//! | [`s3`] | [`S3Store`], [`S3Input`]: a bucket of Amazon S3, or of a service that speaks like it |
//! | [`signed`] | [`SignedUrls`]: URLs with which others read or write one object for some time |
//! | [`run_lock`] | [`RunLock`]: one `penstock run` at a time over one folder |
//! | [`input`], [`reader`] | [`Input`]: a job's input, pinned to a generation, and its sequential readers |
//! | [`location`], [`open`] | [`Location`]: where something is, as a user says it, and the way from there to a backend |
//! | [`memory`], [`faults`] | backends for tests: one in memory, and one that fails on demand |
//! | [`conformance`] | the laws that every backend must keep, as functions over any [`Store`] |
//!
//! It knows nothing of jobs, lines or records: what the objects mean is told in `docs/protocol.md`.

mod blocking;
mod cause;
mod durable;
mod settle;
mod unreadable;
mod version;

pub mod conformance;
pub mod error;
pub mod faults;
pub mod file;
pub mod generation;
pub mod gs;
pub mod input;
pub mod location;
pub mod memory;
pub mod name;
pub mod open;
pub mod reader;
pub mod run_lock;
pub mod s3;
pub mod signed;
pub mod store;

pub use error::{Action, ErrorKind, StorageError};
pub use file::FileStore;
pub use generation::{Checksum, Generation, ObjectMeta};
pub use gs::{GsBucket, GsInput, GsSettings, GsSigner, GsStore};
pub use input::{FileInput, Input};
pub use location::{BucketPath, Cloud, InvalidLocation, Location};
pub use memory::MemoryStore;
pub use name::{InvalidName, ObjectName};
pub use open::{open_input, open_object, open_signer, open_store};
pub use reader::{Chunks, InputReader};
pub use run_lock::{Holder, RunLock, RunLockError};
pub use s3::{S3Bucket, S3Input, S3Key, S3Settings, S3Store};
pub use signed::{SignedRequest, SignedUpload, SignedUrls};
pub use store::{Page, Store};

/// What every operation of this crate returns.
pub type Result<T, E = StorageError> = std::result::Result<T, E>;
