//! Who runs a job: the epoch that a claim takes and the incarnation (one process) that took it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The number that a claim of a job takes. Epoch 1 is the first claim; 0 means "none yet".
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Epoch(pub u32);

impl Epoch {
    /// The epoch before the first claim.
    pub const NONE: Self = Self(0);

    /// The epoch that the next claim takes; `None` behind the last one that a number can tell.
    pub fn next(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }

    /// The epoch before this one: what a claimant of this epoch seals.
    pub fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// One executor process, drawn at random once; it holds at most one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Incarnation(#[schemars(with = "String")] Uuid);

impl Incarnation {
    /// Draws a new incarnation (UUID version 4).
    pub fn draw() -> Self {
        Self(Uuid::new_v4())
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
