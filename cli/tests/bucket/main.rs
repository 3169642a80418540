//! Jobs in buckets: the real binary against the double of Google Cloud Storage, with its log and that of the provider
//! double as witnesses. What holds of a folder holds of a bucket, under the faults that buckets have.
//!
//! Kills, pauses and writes whose fate is unknown, at every step, are in the crash tests, which go over folders and
//! buckets alike, as the soak does.
//!
//! | module | what |
//! |---|---|
//! | `place` | an input and an output in a bucket, the doubles, and runs of the binary |
//! | `whole` | whole jobs by every command |
//! | `faults` | requests that fail, before and after they were done, and streams that break, with a kill in each job |
//! | `compose` | thousands of parts, with the real limit of one compose |
//! | `s3` | a whole job in a bucket of Amazon S3 |
//! | `kept` | buckets whose objects may not be deleted |
//! | `refused` | inputs and outputs that cannot be used |

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod compose;
mod faults;
mod kept;
#[path = "../site/outside.rs"]
mod outside;
mod place;
mod refused;
#[path = "../crash/rows.rs"]
mod rows;
mod s3;
mod whole;
#[path = "../witness/mod.rs"]
#[expect(dead_code, reason = "the crash tests use the rest")]
mod witness;
