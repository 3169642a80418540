//! The line formats of a batch job: what goes in, what comes out.
//!
//! Owns the two formats of input lines ([`Format`]), splitting a byte stream into lines ([`LineSplitter`]), telling
//! one format from the other ([`Detector`]), the validation of one line ([`parse`]), and the records of every outcome
//! ([`RecordWriter`], [`read_record`]).
//!
//! Does no I/O, knows no clock and no provider. Whatever needs more than one line (duplicate ids, counts, digests)
//! belongs to the intake.
//!
//! Bodies are never re-serialised: they pass through as the bytes that came. On the good path a line costs no
//! allocation.
//!
//! ```
//! use std::ops::ControlFlow;
//! use penstock_batchfile::{Content, Endpoint, Format, LineSplitter, Position, Rules, parse};
//!
//! let rules =
//!     Rules { format: Format::Prompts, endpoint: Endpoint::ChatCompletions, has_model: true, strict: false };
//! let mut refused = Vec::new();
//! let mut splitter = LineSplitter::new(Position::START, 8 << 20);
//! let flow = splitter.feed(b"{\"prompt_id\": 7, \"prompt\": \"Hello\"}\n\n{\"prompt_id\": 8}\n", |line| {
//!     if let Content::Whole(bytes) = line.content
//!         && let Err(rejection) = parse(bytes, &rules)
//!     {
//!         refused.push((line.position.line_number, rejection.code.as_str()));
//!     }
//!     ControlFlow::Continue(())
//! });
//! assert!(flow.is_continue());
//! assert_eq!(refused, [(3, "missing_required_parameter")]);
//! ```

mod affinity;
mod answer;
mod detect;
mod endpoint;
mod format;
mod id;
mod json;
mod lines;
mod members;
mod outcome;
mod position;
mod record;
mod record_head;
mod rejection;
mod request;
mod scan;
pub mod skim;
mod splice;
mod well_formed;

pub use affinity::{Affinity, SYSTEM_PROMPT_PREFIX_BYTES};
pub use answer::{Failure, HttpAnswer, LineName, Success, Tokens};
pub use detect::{Detected, Detector, UnknownFormat};
pub use endpoint::{Endpoint, UnknownEndpoint};
pub use format::{Format, UnknownFormatName};
pub use id::{DecodedId, RawId};
pub use json::text_of;
pub use lines::{Content, Line, LineSplitter};
pub use outcome::{Attempt, OutcomeKind, Undone};
pub use position::{Ordinal, Position};
pub use record::RecordWriter;
pub use record_head::{RecordError, RecordHead, read_record, read_written_record};
pub use rejection::{Rejection, RejectionCode};
pub use request::{Body, Request, Rules, parse, parse_validated};
pub use splice::splice_model;
pub use well_formed::Json;
