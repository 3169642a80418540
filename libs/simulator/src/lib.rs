//! A double of inference providers: an HTTP server with hidden limits, latencies and faults that speaks the
//! dialects of OpenAI, Gemini, Anthropic and Azure OpenAI side by side, told apart by the path.
//!
//! It serves two ends. It stands in for a provider that costs money (`penstock simulate provider`), and it is
//! the independent witness of the tests: its [log](read_log) says what was really asked, whatever the asking
//! program believes about itself.
//!
//! What happens to a request depends on the seed, on the prompt and on how often that prompt was seen before,
//! never on the order of arrival; only the rate limits depend on time.
//!
//! The rooms: [`settings`](ProviderSettings) say what kind of provider it is; `dialect` reads a request into a
//! `question` and words the answer; `limit`, `fault` and `answer` decide, purely; `log` remembers; `server` is the
//! only room that acts. How to reach each dialect is written in `docs/simulator.md`.

mod answer;
mod dialect;
mod distribution;
mod draw;
mod fault;
mod limit;
mod log;
mod question;
pub mod rate;
mod refusal;
mod server;
mod settings;

pub use distribution::{Distribution, InvalidDistribution};
pub use fault::{Fault, FaultRule, InvalidFaultRule, Moment, ShareOf};
pub use limit::{Enforcement, InvalidQuota, LimitSettings, Quota, RateLimitHeaders, RetryAfter, TokenCharge};
pub use log::{LogAnswer, LogEntry, ReadLogError, read_log};
pub use server::{Requests, Server, StartError};
pub use settings::{InvalidSettings, Latency, LogSettings, OutputLength, ProviderSettings, Slots, WhenFull};
