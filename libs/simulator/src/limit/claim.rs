//! What the answers say about the limits, which need not be true. How they say it is up to the dialect.

use std::time::Duration;

use super::{
    RateLimitHeaders,
    limiter::{Reading, Readings},
    meter::as_amount,
};

/// A daily limit as a multiple of the minute's quota. One provider shows 14,400 a day beside 30 a minute.
const DAILY_FACTOR: u64 = 480;

const DAY_SECONDS: f64 = 86_400.0;

/// A quota as the answers claim it to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Requests or tokens in a window.
    pub limit: u64,
    /// How many of them are left.
    pub remaining: u64,
    /// Time until all of it is there again.
    pub reset: Duration,
}

/// Both quotas as the answers claim them to be; `None` where they say nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    pub(crate) requests: Option<Claim>,
    pub(crate) tokens: Option<Claim>,
}

impl Claims {
    pub(crate) fn new(style: RateLimitHeaders, readings: &Readings) -> Self {
        let claim = |reading: Option<Reading>| reading.and_then(|reading| claim(style, reading));
        Self { requests: claim(readings.requests), tokens: claim(readings.tokens) }
    }
}

pub(crate) fn claim(style: RateLimitHeaders, reading: Reading) -> Option<Claim> {
    let used = whole(reading.used);
    let (limit, reset) = match style {
        RateLimitHeaders::None => return None,
        RateLimitHeaders::Honest => (reading.per_minute, reading.reset),
        RateLimitHeaders::Doubled => (reading.per_minute.saturating_mul(2), reading.reset),
        RateLimitHeaders::Daily => {
            let limit = reading.per_minute.saturating_mul(DAILY_FACTOR);
            (limit, Duration::from_secs_f64(as_amount(used) / as_amount(limit) * DAY_SECONDS))
        }
    };
    Some(Claim { limit, remaining: limit.saturating_sub(used), reset })
}

/// A used amount in whole units, rounded up.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped at 0; no quota nears 2^53"
)]
pub(crate) fn whole(amount: f64) -> u64 {
    amount.max(0.0).ceil() as u64
}

/// A wait in whole units of so many milliseconds, rounded up, so that nobody is told to come back too early.
pub(crate) fn rounded_up(wait: Duration, unit_ms: u64) -> u64 {
    let nanoseconds = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
    nanoseconds.div_ceil(unit_ms * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_styles_claim_another_limit_or_none() {
        let reading = Reading { per_minute: 500, used: 1.0, reset: Duration::from_millis(120) };
        let thirty = Reading { per_minute: 30, used: 30.0, reset: Duration::from_mins(1) };
        let claimed = |style, reading| {
            claim(style, reading).map(|claim| (claim.limit, claim.remaining, claim.reset.as_millis()))
        };
        assert_eq!(claimed(RateLimitHeaders::None, reading), None);
        assert_eq!(claimed(RateLimitHeaders::Honest, reading), Some((500, 499, 120)));
        assert_eq!(claimed(RateLimitHeaders::Doubled, reading), Some((1_000, 999, 120)));
        assert_eq!(claimed(RateLimitHeaders::Daily, thirty), Some((14_400, 14_370, 180_000)));
    }

    #[test]
    fn nobody_is_told_to_come_back_too_early() {
        let wait = Duration::from_micros(1_200_300);
        assert_eq!((rounded_up(wait, 1_000), rounded_up(wait, 1)), (2, 1_201));
    }
}
