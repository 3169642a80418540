//! What a healthy provider answers.
//!
//! Owns the response bodies of all endpoints. Pure: an answer follows from the seed, the settings and the
//! question, so the same prompt gets the same answer; only `created` is a time.

mod content;
mod text;

use bytes::Bytes;
use serde::Serialize;

pub(crate) use content::{answer, models};

/// A value of our own as JSON.
pub(crate) fn json(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).expect("invariant: our own structs have string keys and finite numbers").into()
}
