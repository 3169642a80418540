//! From outcomes to durable parts.
//!
//! *collect* appends each outcome to the part under construction, a file in scratch, before it counts as answered;
//! *flush* closes that file and *upload* makes it durable and enters it into the ledger.

mod collect;
mod interval;
mod part_file;
mod upload;

pub(crate) use collect::{Answered, Collector, Entry, Hold, collect, made_by_time};
pub(crate) use upload::pause;
