//! What a run is doing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a run is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Taking the job over and looking at what is there.
    #[default]
    Claiming,
    /// Sending requests.
    Running,
    /// Held on request: nothing is sent, the claim is kept.
    Held,
    /// Asked to stop: storing what is known, awaiting answers.
    Draining,
    /// Recording the lines that an early ending leaves undone.
    Ending,
    /// Reading everything once more.
    Reconciling,
    /// Publishing.
    Publishing,
}
