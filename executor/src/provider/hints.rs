//! What the headers of an answer say about the provider's limits. Pure.

use http::{HeaderMap, HeaderName, HeaderValue};
use penstock_rate::{Hint, Hints};

use super::duration;

/// The headers of one limit.
struct Names {
    limit: HeaderName,
    remaining: HeaderName,
    reset: HeaderName,
}

const REQUESTS: Names = Names {
    limit: HeaderName::from_static("x-ratelimit-limit-requests"),
    remaining: HeaderName::from_static("x-ratelimit-remaining-requests"),
    reset: HeaderName::from_static("x-ratelimit-reset-requests"),
};

const TOKENS: Names = Names {
    limit: HeaderName::from_static("x-ratelimit-limit-tokens"),
    remaining: HeaderName::from_static("x-ratelimit-remaining-tokens"),
    reset: HeaderName::from_static("x-ratelimit-reset-tokens"),
};

/// The `x-ratelimit-*` headers of OpenAI and of those who follow it; what is missing or no number stays unknown.
pub(super) fn from_headers(headers: &HeaderMap) -> Hints {
    Hints { requests: hint(headers, &REQUESTS), tokens: hint(headers, &TOKENS), ..Hints::default() }
}

fn hint(headers: &HeaderMap, names: &Names) -> Hint {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::trim);
    Hint {
        limit: text(&names.limit).and_then(|limit| limit.parse().ok()),
        remaining: text(&names.remaining).and_then(|remaining| remaining.parse().ok()),
        reset: text(&names.reset).and_then(duration::parse),
        period: None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_fact_is_read_by_itself() {
        let headers: HeaderMap = [
            ("x-ratelimit-limit-requests", "500"),
            ("x-ratelimit-remaining-requests", "499"),
            ("x-ratelimit-reset-requests", "120ms"),
            ("x-ratelimit-limit-tokens", "many"),
            ("x-ratelimit-reset-tokens", "6m0s"),
        ]
        .into_iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect();
        let hints = from_headers(&headers);
        let requests = Hint {
            limit: Some(500),
            remaining: Some(499),
            reset: Some(Duration::from_millis(120)),
            period: None,
        };
        assert_eq!(hints.requests, requests);
        assert_eq!(hints.tokens, Hint { reset: Some(Duration::from_mins(6)), ..Hint::default() });
        assert_eq!(from_headers(&HeaderMap::new()), Hints::default());
    }
}
