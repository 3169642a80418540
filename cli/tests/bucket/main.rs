//! Jobs in buckets: the real binary against the double of Google Cloud Storage, with its log and that of the provider
//! double as witnesses. What holds of a folder holds of a bucket, under the faults that buckets have.
//!
//! | module | what |
//! |---|---|
//! | `place` | an input and an output in a bucket, the doubles, and runs of the binary |
//! | `outside` | the bucket as anybody sees it, and a copy of the output as files for the `witness` |
//! | `whole` | whole jobs by every command |
//! | `killed` | a run is killed at every step that a job comes by, and the next one goes on |
//! | `faults` | requests that fail, before and after they were done, and streams that break, with a kill in each job |
//! | `refused` | inputs and outputs that cannot be used |

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod faults;
mod killed;
mod outside;
mod place;
mod refused;
#[path = "../crash/rows.rs"]
mod rows;
mod whole;
#[path = "../witness/mod.rs"]
#[expect(dead_code, reason = "the crash tests use the rest")]
mod witness;
