//! Rate limits: how a provider refuses what it is not willing to answer now.
//!
//! Owns the description of the limits, their enforcement and what the answers say about them. Pure: every
//! function takes a clock reading. Each way of enforcing is one file; `limiter` joins requests and tokens.

mod bucket;
mod claim;
mod limiter;
mod meter;
mod sliding;
mod window;

use std::num::NonZeroU16;

pub use claim::Claim;
pub(crate) use claim::{Claims, claim, rounded_up, whole};
pub use limiter::Dimension;
pub(crate) use limiter::{Exceeded, Finished, Limiter, Reading, Readings};
pub(crate) use meter::as_amount;
use serde::{Deserialize, Serialize};

/// The limits of a provider. The default has none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSettings {
    /// Requests. `None`: unlimited.
    pub requests: Option<Quota>,
    /// Tokens. `None`: unlimited.
    pub tokens: Option<Quota>,
    /// Whether a request that was refused counts against `requests` too.
    pub refusals_count: bool,
    /// Which tokens count against `tokens`.
    pub token_charge: TokenCharge,
    /// How a refusal says when to come back.
    pub retry_after: RetryAfter,
    /// What every answer says about the limits.
    pub headers: RateLimitHeaders,
}

/// How much is allowed, and how that is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// Requests or tokens in a minute, at least 1.
    pub per_minute: u64,
    /// How it is enforced.
    pub enforcement: Enforcement,
}

/// How a quota is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// A token bucket one minute deep, full at first.
    MinuteBucket,
    /// A token bucket one second deep: 60,000 a minute is 1,000 a second. Below 60 a minute it holds one.
    SecondBucket,
    /// A counter that is reset each minute, at a phase that the seed decides.
    FixedMinute,
    /// A sixth of the quota in windows of ten seconds, at a phase that the seed decides.
    FixedTenSeconds,
    /// No minute, wherever it starts, holds more than the quota.
    SlidingMinute,
    /// A token bucket that holds what flows in within so many seconds, full at first.
    Bucket {
        /// Its depth.
        seconds: NonZeroU16,
    },
    /// A counter of the quota's part that is reset every so many seconds, at a phase that the seed decides.
    FixedWindow {
        /// The length of a window.
        seconds: NonZeroU16,
    },
    /// No span of so many seconds, wherever it starts, holds more than its part of the quota.
    SlidingWindow {
        /// The length of the span.
        seconds: NonZeroU16,
    },
}

/// Which tokens of a request count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenCharge {
    /// The prompt and the most tokens that the request allows its answer, both when it arrives. A request that
    /// allows any number reserves none for its answer.
    #[default]
    Reserved,
    /// As `Reserved`; what the answer did not use is given back when it is finished.
    Refunded,
    /// The prompt when the request arrives, the answer when it is finished.
    Actual,
}

/// How a rate refusal says when to come back, as far as the dialect has a way to say it so: `docs/simulator.md`
/// lists them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAfter {
    /// It does not.
    #[default]
    None,
    /// `retry-after` in whole seconds, rounded up.
    Seconds,
    /// `retry-after-ms`.
    Milliseconds,
    /// `retry-after` as an HTTP date.
    HttpDate,
}

/// What every answer tells about the limits, in the headers of its dialect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateLimitHeaders {
    /// There are none, and refusals name no numbers.
    #[default]
    None,
    /// Limit, remaining and reset as they are; refusals name the numbers too.
    Honest,
    /// Twice the limit that is enforced.
    Doubled,
    /// A limit of 480 times the minute's quota, for a day; the limit that binds is not mentioned.
    Daily,
}

/// A quota that cannot be enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("enforce a quota of 0 a minute: set it to 1 or more, or leave it out for no limit")]
pub struct InvalidQuota;

impl Quota {
    /// What passes in a minute in the long run. A window admits whole units only, at least one.
    pub(crate) fn sustained_per_minute(self) -> f64 {
        let per_minute = as_amount(self.per_minute);
        match self.enforcement {
            Enforcement::FixedTenSeconds => whole_per_window(per_minute, 10.0),
            Enforcement::FixedWindow { seconds } | Enforcement::SlidingWindow { seconds } => {
                whole_per_window(per_minute, seconds.get().into())
            }
            _ => per_minute,
        }
    }
}

fn whole_per_window(per_minute: f64, seconds: f64) -> f64 {
    let windows = 60.0 / seconds;
    (per_minute / windows).floor().max(1.0) * windows
}

impl LimitSettings {
    pub(crate) fn check(&self) -> Result<(), InvalidQuota> {
        let quotas = [self.requests, self.tokens];
        if quotas.iter().flatten().any(|quota| quota.per_minute == 0) { Err(InvalidQuota) } else { Ok(()) }
    }
}
