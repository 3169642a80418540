//! A real Kubernetes cluster on this machine, and what the end-to-end suite asks of it.
//!
//! `cluster` starts and stops it; `layout` says where everything is; the rest runs programs and waits. Nothing of it
//! is shipped, and nothing of the product is linked into it: what it tests, it sees from outside.

pub mod cluster;
pub mod command;
pub mod daemon;
pub mod files;
pub mod layout;
pub mod patience;
