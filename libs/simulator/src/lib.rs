//! A double of an inference provider: an OpenAI-compatible HTTP server with hidden limits, latencies and faults.
//!
//! It serves two ends. It stands in for a provider that costs money (`penstock simulate provider`), and it is
//! the independent witness of the tests: its [log](read_log) says what was really asked, whatever the asking
//! program believes about itself.
//!
//! What happens to a request depends on the seed, on the prompt and on how often that prompt was seen before,
//! never on the order of arrival; only the rate limits depend on time.
//!
//! The rooms: [`settings`](ProviderSettings) say what kind of provider it is; `question` reads a request;
//! `limit`, `fault` and `answer` decide, purely; `log` remembers; `server` is the only room that acts.

mod answer;
mod distribution;
mod draw;
mod fault;
mod limit;
mod log;
mod question;
mod refusal;
mod server;
mod settings;

pub use distribution::{Distribution, InvalidDistribution};
pub use fault::{Fault, FaultRule, InvalidFaultRule, Moment, ShareOf};
pub use limit::{Enforcement, InvalidQuota, LimitSettings, Quota, RateLimitHeaders, RetryAfter, TokenCharge};
pub use log::{LogAnswer, LogEntry, ReadLogError, read_log};
pub use server::{Requests, Server, StartError};
pub use settings::{InvalidSettings, Latency, LogSettings, OutputLength, ProviderSettings, Slots, WhenFull};
