//! What a refusal means, whatever the dialect in which it came. Dialects decide it, `classify` draws the consequences.

use penstock_job::Reason;
use penstock_rate::{Dimension, Hints};

use super::resumption::Resumption;

/// What a refusal means.
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
    /// The rate rose too steeply, whatever it is by now.
    SlowDown,
    /// The server has too much to do, of whoever's making.
    Overloaded,
    /// The line is larger than the whole limit, or the limit is too small for any line: others will tell.
    Unfit,
    /// No line would be answered now.
    Blocked {
        /// Why.
        reason: Reason,
        /// When that is over, where the body says so in its own way; a plain wait is read by `classify`.
        resumes: Resumption,
    },
}

impl Meaning {
    /// No line would be answered now, and the body does not say until when.
    pub(super) const fn blocked(reason: Reason) -> Self {
        Self::Blocked { reason, resumes: Resumption::Unknown }
    }
}
