//! What the answers say about the limits, which need not be true.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue};

use super::{
    LimitSettings, RateLimitHeaders, RetryAfter,
    limiter::{Dimension, Exceeded, Reading, Readings},
    meter::as_amount,
};
use crate::refusal::Refusal;

/// A daily limit as a multiple of the minute's quota. One provider shows 14,400 a day beside 30 a minute.
const DAILY_FACTOR: u64 = 480;

const DAY_SECONDS: f64 = 86_400.0;

const REQUEST_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("x-ratelimit-limit-requests"),
    HeaderName::from_static("x-ratelimit-remaining-requests"),
    HeaderName::from_static("x-ratelimit-reset-requests"),
];

const TOKEN_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("x-ratelimit-limit-tokens"),
    HeaderName::from_static("x-ratelimit-remaining-tokens"),
    HeaderName::from_static("x-ratelimit-reset-tokens"),
];

/// A quota as the headers claim it to be.
struct Claim {
    limit: u64,
    remaining: u64,
    reset: Duration,
}

/// Writes the `x-ratelimit-*` headers of an answer.
pub(crate) fn write_headers(headers: &mut HeaderMap, style: RateLimitHeaders, readings: &Readings) {
    for (names, reading) in [(REQUEST_HEADERS, readings.requests), (TOKEN_HEADERS, readings.tokens)] {
        let Some(claim) = reading.and_then(|reading| claim(style, reading)) else {
            continue;
        };
        let [limit, remaining, reset] = names;
        headers.insert(limit, HeaderValue::from(claim.limit));
        headers.insert(remaining, HeaderValue::from(claim.remaining));
        headers.insert(reset, text(&go_duration(claim.reset)));
    }
}

/// The refusal of a request that exceeded a limit, with the header that says when to come back. `date` is the
/// time of day.
pub(crate) fn refusal(
    settings: &LimitSettings,
    exceeded: &Exceeded,
    model: &str,
    date: SystemTime,
) -> (Refusal, HeaderMap) {
    let mut headers = HeaderMap::new();
    if let Some(wait) = exceeded.wait {
        let (seconds, milliseconds) = (rounded_up(wait, 1_000), rounded_up(wait, 1));
        let after = HeaderName::from_static("retry-after");
        match settings.retry_after {
            RetryAfter::None => None,
            RetryAfter::Seconds => headers.insert(after, HeaderValue::from(seconds)),
            RetryAfter::Milliseconds => {
                headers.insert(HeaderName::from_static("retry-after-ms"), HeaderValue::from(milliseconds))
            }
            // An HTTP date has whole seconds: one more makes up for what is cut off.
            RetryAfter::HttpDate => {
                headers.insert(after, text(&httpdate::fmt_http_date(date + Duration::from_secs(seconds + 1))))
            }
        };
    }
    (Refusal::rate_limited(kind(exceeded.dimension), message(settings.headers, exceeded, model)), headers)
}

fn kind(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Requests => "requests",
        Dimension::Tokens => "tokens",
    }
}

fn message(style: RateLimitHeaders, exceeded: &Exceeded, model: &str) -> String {
    let per_minute = match exceeded.dimension {
        Dimension::Requests => "requests per min (RPM)",
        Dimension::Tokens => "tokens per min (TPM)",
    };
    let Exceeded { reading, requested, wait, .. } = exceeded;
    match wait {
        None => format!(
            "Request too large for {model} on {per_minute}: Limit {}, Requested {requested}.",
            reading.per_minute
        ),
        Some(wait) if style == RateLimitHeaders::Honest => format!(
            "Rate limit reached for {model} on {per_minute}: Limit {}, Used {}, Requested {requested}. \
             Please try again in {}.",
            reading.per_minute,
            whole(reading.used),
            go_duration(*wait)
        ),
        Some(_) => format!("Rate limit reached for {model}. Please try again later."),
    }
}

fn claim(style: RateLimitHeaders, reading: Reading) -> Option<Claim> {
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
fn whole(amount: f64) -> u64 {
    amount.max(0.0).ceil() as u64
}

fn rounded_up(wait: Duration, unit_ms: u64) -> u64 {
    let nanoseconds = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
    nanoseconds.div_ceil(unit_ms * 1_000_000)
}

/// A duration as OpenAI writes it: `120ms`, `9.816s`, `6m0s`.
fn go_duration(duration: Duration) -> String {
    let milliseconds = rounded_up(duration, 1);
    let (minutes, rest) = (milliseconds / 60_000, milliseconds % 60_000);
    #[expect(clippy::cast_precision_loss, reason = "below 60,000")]
    let seconds = rest as f64 / 1_000.0;
    match milliseconds {
        0..1_000 => format!("{milliseconds}ms"),
        1_000..60_000 => format!("{seconds}s"),
        60_000.. => format!("{minutes}m{seconds}s"),
    }
}

fn text(value: &str) -> HeaderValue {
    HeaderValue::from_str(value).expect("invariant: durations and dates are visible ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    const READING: Reading = Reading { per_minute: 500, used: 1.0, reset: Duration::from_millis(120) };

    fn exceeded(wait: Duration) -> Exceeded {
        Exceeded { dimension: Dimension::Requests, reading: READING, requested: 1, wait: Some(wait) }
    }

    fn claimed(style: RateLimitHeaders, reading: Reading) -> Vec<String> {
        let mut headers = HeaderMap::new();
        write_headers(&mut headers, style, &Readings { requests: Some(reading), tokens: None });
        headers.values().map(|value| value.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn honest_headers_are_those_a_provider_was_seen_to_send() {
        assert_eq!(claimed(RateLimitHeaders::Honest, READING), ["500", "499", "120ms"]);
    }

    #[test]
    fn other_styles_claim_another_limit_or_none() {
        assert_eq!(claimed(RateLimitHeaders::None, READING), [""; 0]);
        assert_eq!(claimed(RateLimitHeaders::Doubled, READING), ["1000", "999", "120ms"]);
        let thirty = Reading { per_minute: 30, used: 30.0, reset: Duration::from_mins(1) };
        assert_eq!(claimed(RateLimitHeaders::Daily, thirty), ["14400", "14370", "3m0s"]);
    }

    #[test]
    fn each_style_says_when_to_come_back_and_never_too_early() {
        let come_back = |retry_after, name: &str| {
            let settings = LimitSettings { retry_after, ..Default::default() };
            let wait = exceeded(Duration::from_micros(1_200_300));
            let (_, headers) = refusal(&settings, &wait, "m", SystemTime::UNIX_EPOCH);
            headers.get(name).map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(come_back(RetryAfter::None, "retry-after"), None);
        assert_eq!(come_back(RetryAfter::Seconds, "retry-after").as_deref(), Some("2"));
        assert_eq!(come_back(RetryAfter::Milliseconds, "retry-after-ms").as_deref(), Some("1201"));
        let date = come_back(RetryAfter::HttpDate, "retry-after");
        assert_eq!(date.as_deref(), Some("Thu, 01 Jan 1970 00:00:03 GMT"));
    }

    #[test]
    fn a_hidden_limit_is_not_given_away_by_the_message() {
        let says = |headers| {
            let settings = LimitSettings { headers, ..Default::default() };
            let (refusal, _) =
                refusal(&settings, &exceeded(Duration::from_millis(120)), "m", SystemTime::UNIX_EPOCH);
            String::from_utf8(refusal.body().to_vec()).unwrap()
        };
        assert!(!says(RateLimitHeaders::None).contains("500"));
        assert!(
            says(RateLimitHeaders::Honest)
                .contains("Limit 500, Used 1, Requested 1. Please try again in 120ms.")
        );
    }
}
