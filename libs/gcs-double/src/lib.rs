//! A double of Google Cloud Storage: buckets of objects in one process, over REST and gRPC on one port.
//!
//! It stands in for a bucket wherever one is needed: in tests, in benchmarks, at a desk
//! (`penstock simulate storage`). It is strict: what the real service refuses, it refuses, in the same words
//! and with the same statuses; one object name may change once a second. What goes wrong is said by
//! [rules](FaultRule), and its [log](LogEntry) is a witness of what was really asked, and of what was really
//! done, whatever a client believes.
//!
//! The rooms: `bucket` is the state, pure and told the time; `content` holds bytes, in memory or in temporary
//! files; `upload` keeps what of an upload in chunks has arrived; `faults` decide what goes wrong, purely; `rest`
//! and `grpc` read requests and word answers; `visit` is one request from arrival to end; `notify` tells what was
//! written, and `history` keeps it; `server` accepts connections.

mod body;
mod bucket;
mod checksum;
mod content;
mod counters;
mod draw;
mod etag;
mod event;
mod faults;
mod grpc;
mod history;
mod log;
mod name;
mod notify;
mod operation;
mod rest;
mod server;
mod service;
mod settings;
mod upload;
mod visit;

pub use counters::Requests;
pub use faults::{Calls, Fault, FaultRule, InvalidFaultRule, Pattern};
pub use history::{Change, History};
pub use log::{LogEntry, ReadLogError, read_log};
pub use name::{BucketName, InvalidBucketName};
pub use notify::NotificationSettings;
pub use operation::{Operation, Transport};
pub use server::{StartError, StorageServer};
pub use settings::StorageSettings;
