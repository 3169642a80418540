//! The `anthropic-ratelimit-*` headers.
//!
//! Source: <https://docs.claude.com/en/api/rate-limits#response-headers>. The server has one limit of tokens, so the
//! headers of input, of output and of both tell the same.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName};

use super::date::rfc3339;
use crate::{
    dialect::value,
    limit::{Claim, Claims},
};

const REQUESTS: [HeaderName; 3] = [
    HeaderName::from_static("anthropic-ratelimit-requests-limit"),
    HeaderName::from_static("anthropic-ratelimit-requests-remaining"),
    HeaderName::from_static("anthropic-ratelimit-requests-reset"),
];

const TOKENS: [HeaderName; 3] = [
    HeaderName::from_static("anthropic-ratelimit-tokens-limit"),
    HeaderName::from_static("anthropic-ratelimit-tokens-remaining"),
    HeaderName::from_static("anthropic-ratelimit-tokens-reset"),
];

const INPUT_TOKENS: [HeaderName; 3] = [
    HeaderName::from_static("anthropic-ratelimit-input-tokens-limit"),
    HeaderName::from_static("anthropic-ratelimit-input-tokens-remaining"),
    HeaderName::from_static("anthropic-ratelimit-input-tokens-reset"),
];

const OUTPUT_TOKENS: [HeaderName; 3] = [
    HeaderName::from_static("anthropic-ratelimit-output-tokens-limit"),
    HeaderName::from_static("anthropic-ratelimit-output-tokens-remaining"),
    HeaderName::from_static("anthropic-ratelimit-output-tokens-reset"),
];

/// Rounds a reset up to the next whole second.
const ALMOST_A_SECOND: Duration = Duration::from_nanos(999_999_999);

pub(super) fn write(headers: &mut HeaderMap, claims: &Claims, now: SystemTime) {
    for (names, claim) in [
        (REQUESTS, claims.requests),
        (TOKENS, claims.tokens),
        (INPUT_TOKENS, claims.tokens),
        (OUTPUT_TOKENS, claims.tokens),
    ] {
        let Some(Claim { limit: most, remaining: left, reset: until }) = claim else {
            continue;
        };
        let [limit, remaining, reset] = names;
        headers.insert(limit, most.into());
        headers.insert(remaining, left.into());
        headers.insert(reset, value(&rfc3339(now + until + ALMOST_A_SECOND)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_is_a_time_and_never_too_early() {
        let claim = Some(Claim { limit: 50, remaining: 49, reset: Duration::from_millis(1_200) });
        let mut headers = HeaderMap::new();
        write(&mut headers, &Claims { requests: claim, tokens: None }, SystemTime::UNIX_EPOCH);
        let written: Vec<_> = headers.values().map(|value| value.to_str().unwrap()).collect();
        assert_eq!(written, ["50", "49", "1970-01-01T00:00:02Z"]);
    }
}
