//! Validation of a job's input: every line checked before anything is sent.
//!
//! One streaming pass in bounded memory finds every invalid line, the digests of the input and the sum over its ids.
//! Only where ids may repeat is the input read once more, to compare those ids themselves.
//!
//! | function | what it does |
//! |---|---|
//! | [`detect()`] | tells the format of an input, and its endpoint, from its first lines |
//! | [`check()`] | reports every invalid line to a callback and writes nothing |
//! | [`validate()`] | the same, and commits the outcome below a job's output as `validation.json` |
//! | [`accepted`] | the verdict that stands in the output already, so that the pass can be skipped |
//!
//! What makes a line valid is told by `penstock_batchfile`, the schema of `validation.json` by `penstock_job`. The
//! names, order and preconditions of the writes are those of `docs/protocol.md`.

mod attempt;
mod check;
mod commit;
mod detect;
mod digest;
mod error;
mod examine;
mod external_sort;
mod fault;
mod feed;
#[cfg(test)]
mod fixtures;
mod pass;
mod reading;
mod rejected_files;
mod repeated;
mod retry;
mod rules;
mod seen;
mod summary;
mod validate;
mod verdict;

pub use check::check;
pub use commit::accepted;
pub use detect::{DetectError, detect};
pub use error::IntakeError;
pub use fault::Fault;
pub use reading::{Progress, Reading, Stage};
pub use rules::LineRules;
pub use summary::Summary;
pub use validate::validate;
pub use verdict::{Refusal, Verdict};
