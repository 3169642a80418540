//! What a refusal means, whatever the dialect in which it came. Dialects decide it, `classify` draws the consequences.

use penstock_job::Reason;
use penstock_rate::{Dimension, Hints};

/// What a refusal means.
#[expect(clippy::large_enum_variant, reason = "one at a time is made, for an answer that took a round trip")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The line will never be answered.
    Permanent,
    /// The line may be answered when it is sent again.
    Transient,
    /// It came too fast, and will be answered when it is sent again.
    Rate {
        /// The limit that was exceeded, where the refusal names it.
        dimension: Option<Dimension>,
        /// The limits as the refusal's body states them.
        stated: Hints,
    },
    /// No line would be answered now.
    Blocked(Reason),
}
