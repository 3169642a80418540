//! The pipe of `penstock-rate --stdio`: a learner that is told events and answers each with what it wants next.
//!
//! ```text
//! in   S <now>                                                   start
//!      D <now> <index> <tokens_in> <max_tokens>                  request <index> has gone out
//!      R <now> <index> <t_sent> <ok 0|1> <label|-> <tokens_out> <retry_after|-> <limit|-> <remaining|-> <reset|->
//!                                                                its answer is here
//!      T <now>                                                   the wake-up that was asked for
//! out  <time at which it wants to send the next request | inf> [<time at which it wants a T>]
//! ```
//!
//! Times are decimal seconds of a virtual clock. `label` is `req`, `tok` or `-`: the limit that a refusal names;
//! limit, remaining and reset are those of the request limit.
//!
//! Owns the conversation, not the reading and writing of it, so that a simulation drives the learner by the very code
//! that is judged from outside.

mod line;

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

pub use line::{LineError, parse};

use crate::event::{Cost, Hints, RequestId, Verdict, Wait};
use crate::learner::Learner;

/// Something that happened.
#[expect(clippy::large_enum_variant, reason = "an event lives for one call")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The work begins.
    Start,
    /// A request has gone out.
    Sent {
        /// Names the request.
        id: u64,
        /// What it is expected to use up.
        cost: Cost,
    },
    /// What became of a request is known.
    Answer {
        /// Which request.
        id: u64,
        /// What came back.
        answer: Answer,
    },
    /// The wake-up that was asked for.
    Timer,
}

/// What came back for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A complete answer.
    Success {
        /// Its length.
        output_tokens: u32,
        /// What its headers say about the limits.
        hints: Hints,
    },
    /// Anything else, as a final verdict.
    Failure(Verdict),
}

/// What the learner wants next, until it is told the next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// When the next request is to go. `None`: not before something happens.
    pub send_at: Option<Duration>,
    /// When to send [`Event::Timer`].
    pub wake_at: Option<Duration>,
}

impl fmt::Display for Reply {
    /// Exact to the nanosecond, so that a time that comes back is not before the one that was asked for.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.send_at {
            Some(at) => write!(formatter, "{}.{:09}", at.as_secs(), at.subsec_nanos())?,
            None => formatter.write_str("inf")?,
        }
        self.wake_at.map_or(Ok(()), |at| write!(formatter, " {}.{:09}", at.as_secs(), at.subsec_nanos()))
    }
}

/// A learner, and what is told at dispatch but the learner wants to hear at the end.
#[derive(Clone, Debug)]
pub struct Session {
    learner: Learner,
    input_tokens: HashMap<u64, u32>,
    /// The cost of the newest request stands for that of the next, which nobody tells.
    latest: Cost,
}

impl Session {
    /// A conversation with a learner that has just begun.
    pub fn new(learner: Learner) -> Self {
        Self { learner, input_tokens: HashMap::new(), latest: Cost::default() }
    }

    /// Tells the learner what happened, and what it wants now.
    pub fn respond(&mut self, now: Duration, event: Event) -> Reply {
        match event {
            Event::Start | Event::Timer => {}
            Event::Sent { id, cost } => {
                self.latest = cost;
                self.input_tokens.insert(id, cost.input_tokens);
                self.learner.sent(now, RequestId(id), cost);
            }
            Event::Answer { id, answer } => {
                let input_tokens = self.input_tokens.remove(&id).unwrap_or_default();
                let verdict = match answer {
                    Answer::Failure(verdict) => verdict,
                    Answer::Success { output_tokens, hints } => {
                        self.learner.verdict(now, RequestId(id), Verdict::Admitted { hints });
                        Verdict::Succeeded { output_tokens, input_tokens }
                    }
                };
                self.learner.verdict(now, RequestId(id), verdict);
            }
        }
        self.wants(now)
    }

    /// What the learner wants as of now.
    pub fn wants(&mut self, now: Duration) -> Reply {
        let send_at = match self.learner.next(now, self.latest) {
            Wait::Now => Some(now),
            Wait::Until(at) => Some(at),
            Wait::ForVerdict => None,
        };
        Reply { send_at, wake_at: self.learner.changes_at() }
    }

    /// The learner that is told.
    pub fn learner(&self) -> &Learner {
        &self.learner
    }

    /// The learner, to be told what the pipe has no event for; ask [`wants`](Self::wants) afterwards.
    pub fn learner_mut(&mut self) -> &mut Learner {
        &mut self.learner
    }
}
