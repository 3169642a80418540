//! How fast requests may go out to one provider, model and key.
//!
//! A [`Learner`] is told what was sent and what became of it, and says when the next request may go. It is pure:
//! every call carries a clock reading, nothing here sleeps, reads a clock or touches a network, so a day of
//! traffic is tested in milliseconds. One learner paces one key of one model; sharing a budget among several
//! models, retrying and classifying answers are the caller's.
//!
//! A reading of the clock is a [`Duration`](std::time::Duration) since a moment of the caller's choice, the same
//! for all calls. A reading older than one already given counts as that later one.
//!
//! ```
//! use std::time::Duration;
//!
//! use penstock_rate::{Cost, Learner, Limits, Mode, Profile, RequestId, Verdict, Wait};
//!
//! let mut learner = Learner::new(Mode::Aimd, Profile::Unknown, Limits::default(), Duration::ZERO);
//! let cost = Cost { input_tokens: 200, output_tokens: 512 };
//! assert_eq!(learner.next(Duration::ZERO, cost), Wait::Now);
//!
//! learner.sent(Duration::ZERO, RequestId(0), cost);
//! // Ten requests a minute at first: the second may go six seconds after the first.
//! assert_eq!(learner.next(Duration::ZERO, cost), Wait::Until(Duration::from_secs(6)));
//!
//! let answer = Verdict::Succeeded { output_tokens: 87, input_tokens: 200 };
//! learner.verdict(Duration::from_secs(2), RequestId(0), answer);
//! assert_eq!(learner.gauges().p95_tokens, Some(87));
//! ```

mod adaptive;
mod aimd;
mod document;
mod event;
mod fixed;
mod gauges;
mod hint;
mod in_flight;
mod journal;
mod knee;
mod learner;
mod limits;
mod mode;
mod pacing;
mod percentile;
pub mod pipe;
mod policy;
mod profile;
mod remembered;
mod sharing;
mod snapshot;
mod throughput;

pub use document::DocumentError;
pub use event::{Cost, Dimension, Hint, Hints, Period, RequestId, Verdict, Wait};
pub use gauges::Gauges;
pub use in_flight::MOST_IN_FLIGHT;
pub use journal::Decision;
pub use knee::Saturation;
pub use learner::Learner;
pub use limits::Limits;
pub use mode::{Mode, UnknownMode};
pub use profile::{Profile, UnknownProfile};
pub use remembered::Remembered;
pub use sharing::{Shared, Sharing};
pub use snapshot::{RestoreError, Snapshot};
