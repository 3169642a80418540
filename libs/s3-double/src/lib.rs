//! A double of Amazon S3 in one process, for tests of whatever speaks to S3.
//!
//! | module | what it owns |
//! |---|---|
//! | `bucket` | the objects and unfinished uploads of one bucket, and what S3 refuses about them. Pure |
//! | `service` | the operations of S3 over those buckets; signatures and XML are the crate `s3s`'s |
//! | `server` | the socket, the log of requests, and requests that go wrong on demand |
//!
//! It is strict: preconditions, signatures, payload hashes, the least size of a part and the order of parts are held
//! as S3 holds them, and what it does not know it refuses as not implemented. It keeps everything in memory.

mod bucket;
mod server;
mod service;

pub use server::{Call, Fault, S3Double};
