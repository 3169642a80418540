//! What the headers of an answer say about the provider's limits. Pure.
//!
//! | headers | whose | what they are about |
//! |---|---|---|
//! | `x-ratelimit-*-requests`, `-tokens`, `-project-tokens` | OpenAI and who follows it | [guide](https://platform.openai.com/docs/guides/rate-limits) |
//! | the same | Azure, Groq | another period than the minute for requests: 1 or 10 s, a day; to be inferred |
//! | `anthropic-ratelimit-requests-*`, `-tokens-*`, `-input-tokens-*`, `-output-tokens-*` | Anthropic | [rate limits](https://platform.claude.com/docs/en/api/rate-limits) |
//!
//! None of them names its period. Gemini has no such headers; what it says stands in the bodies of its refusals.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, header};
use penstock_rate::{Hint, Hints};

use super::{duration, retry_after::LONGEST};

/// The headers of one limit: how much it allows, what is left, and when nothing of it is used.
struct Names {
    limit: HeaderName,
    remaining: HeaderName,
    reset: HeaderName,
}

const fn names(limit: &'static str, remaining: &'static str, reset: &'static str) -> Names {
    Names {
        limit: HeaderName::from_static(limit),
        remaining: HeaderName::from_static(remaining),
        reset: HeaderName::from_static(reset),
    }
}

static REQUESTS: Names =
    names("x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests");

static TOKENS: Names =
    names("x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens");

static PROJECT_TOKENS: Names = names(
    "x-ratelimit-limit-project-tokens",
    "x-ratelimit-remaining-project-tokens",
    "x-ratelimit-reset-project-tokens",
);

static ANTHROPIC_REQUESTS: Names = names(
    "anthropic-ratelimit-requests-limit",
    "anthropic-ratelimit-requests-remaining",
    "anthropic-ratelimit-requests-reset",
);

/// Of the several limits on tokens these describe the one that binds most.
static ANTHROPIC_TOKENS: Names = names(
    "anthropic-ratelimit-tokens-limit",
    "anthropic-ratelimit-tokens-remaining",
    "anthropic-ratelimit-tokens-reset",
);

static ANTHROPIC_INPUT_TOKENS: Names = names(
    "anthropic-ratelimit-input-tokens-limit",
    "anthropic-ratelimit-input-tokens-remaining",
    "anthropic-ratelimit-input-tokens-reset",
);

static ANTHROPIC_OUTPUT_TOKENS: Names = names(
    "anthropic-ratelimit-output-tokens-limit",
    "anthropic-ratelimit-output-tokens-remaining",
    "anthropic-ratelimit-output-tokens-reset",
);

/// The headers of OpenAI and of those who follow it, on an answer that came at `now`.
pub(super) fn openai(headers: &HeaderMap, now: SystemTime) -> Hints {
    Hints {
        requests: hint(headers, &REQUESTS, now),
        tokens: tighter(hint(headers, &TOKENS, now), hint(headers, &PROJECT_TOKENS, now)),
        ..Hints::default()
    }
}

/// The headers of Anthropic's own API.
pub(super) fn anthropic(headers: &HeaderMap, now: SystemTime) -> Hints {
    Hints {
        requests: hint(headers, &ANTHROPIC_REQUESTS, now),
        tokens: hint(headers, &ANTHROPIC_TOKENS, now),
        input_tokens: hint(headers, &ANTHROPIC_INPUT_TOKENS, now),
        output_tokens: hint(headers, &ANTHROPIC_OUTPUT_TOKENS, now),
    }
}

/// What is missing or no number stays unknown; without the header of the limit nothing is looked for.
fn hint(headers: &HeaderMap, names: &Names, now: SystemTime) -> Hint {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let Some(limit) = text(&names.limit) else {
        return Hint::default();
    };
    let reset =
        text(&names.reset).and_then(|reset| duration::parse(reset).or_else(|| until(reset, headers, now)));
    Hint {
        limit: limit.parse().ok(),
        remaining: text(&names.remaining).and_then(|remaining| remaining.parse().ok()),
        reset: reset.map(|reset| reset.min(LONGEST)),
        period: None,
    }
}

/// A reset that is a moment is taken relative to the answer's own `date`, since the two clocks may differ, and to `now`
/// where it has none.
fn until(reset: &str, headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let until = humantime::parse_rfc3339(reset).ok()?;
    let date = headers.get(header::DATE).and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
    Some(until.duration_since(date.unwrap_or(now)).unwrap_or_default())
}

/// Of two limits on the same the smaller one, which is the first to be exceeded.
fn tighter(one: Hint, other: Hint) -> Hint {
    match (one.limit, other.limit) {
        (Some(limit), Some(rival)) if rival < limit => other,
        (None, Some(_)) => other,
        _ => one,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    fn of(limit: u64, remaining: u64, reset: Duration) -> Hint {
        Hint { limit: Some(limit), remaining: Some(remaining), reset: Some(reset), period: None }
    }

    #[test]
    fn each_fact_is_read_by_itself() {
        let hints = openai(
            &headers(&[
                ("x-ratelimit-limit-requests", "500"),
                ("x-ratelimit-remaining-requests", "499"),
                ("x-ratelimit-reset-requests", "120ms"),
                ("x-ratelimit-limit-tokens", "many"),
                ("x-ratelimit-reset-tokens", "6m0s"),
            ]),
            SystemTime::UNIX_EPOCH,
        );
        assert_eq!(hints.requests, of(500, 499, Duration::from_millis(120)));
        assert_eq!(hints.tokens, Hint { reset: Some(Duration::from_mins(6)), ..Hint::default() });
        assert_eq!(openai(&HeaderMap::new(), SystemTime::UNIX_EPOCH), Hints::default());
    }

    #[test]
    fn of_a_projects_and_an_organisations_tokens_the_smaller_limit_counts() {
        for (organisation, project, expected) in
            [("300000", "50000", 50_000), ("50000", "300000", 50_000), ("none", "7", 7), ("7", "none", 7)]
        {
            let hints = openai(
                &headers(&[
                    ("x-ratelimit-limit-tokens", organisation),
                    ("x-ratelimit-limit-project-tokens", project),
                    ("x-ratelimit-remaining-project-tokens", "3"),
                    ("x-ratelimit-reset-project-tokens", "1s"),
                ]),
                SystemTime::UNIX_EPOCH,
            );
            assert_eq!(hints.tokens.limit, Some(expected));
            assert_eq!(hints.tokens.remaining.is_some(), project == expected.to_string());
        }
    }

    #[test]
    fn bare_seconds_are_a_reset_as_azure_writes_it() {
        let hints = openai(
            &headers(&[("x-ratelimit-limit-requests", "10"), ("x-ratelimit-reset-requests", "7")]),
            SystemTime::UNIX_EPOCH,
        );
        assert_eq!(hints.requests.reset, Some(Duration::from_secs(7)));
    }

    #[test]
    fn the_four_limits_of_anthropic_are_read_relative_to_the_clock_of_the_answer() {
        let hints = anthropic(
            &headers(&[
                ("date", "Sat, 21 Nov 2026 13:00:00 GMT"),
                ("anthropic-ratelimit-requests-limit", "50"),
                ("anthropic-ratelimit-requests-remaining", "49"),
                ("anthropic-ratelimit-requests-reset", "2026-11-21T13:00:01Z"),
                ("anthropic-ratelimit-tokens-limit", "40000"),
                ("anthropic-ratelimit-tokens-remaining", "0"),
                ("anthropic-ratelimit-tokens-reset", "soon"),
                ("anthropic-ratelimit-input-tokens-limit", "30000"),
                ("anthropic-ratelimit-input-tokens-remaining", "15000"),
                ("anthropic-ratelimit-input-tokens-reset", "2026-11-21T13:00:30Z"),
                ("anthropic-ratelimit-output-tokens-limit", "8000"),
                ("anthropic-ratelimit-output-tokens-remaining", "8000"),
                ("anthropic-ratelimit-output-tokens-reset", "2026-11-21T12:59:59Z"),
            ]),
            SystemTime::UNIX_EPOCH,
        );
        assert_eq!(hints.requests, of(50, 49, Duration::from_secs(1)));
        assert_eq!(hints.tokens, Hint { limit: Some(40_000), remaining: Some(0), ..Hint::default() });
        assert_eq!(hints.input_tokens, of(30_000, 15_000, Duration::from_secs(30)));
        assert_eq!(hints.output_tokens, of(8_000, 8_000, Duration::ZERO), "what is past is no wait");
    }

    #[test]
    fn no_header_is_believed_beyond_a_day_or_read_as_what_it_is_not() {
        for (value, reset) in [
            ("9999-12-31T23:59:59Z", Some(LONGEST)),
            ("1e300", None),
            ("99999999999", Some(LONGEST)),
            ("-1", None),
            ("NaN", None),
            ("", None),
        ] {
            let headers = headers(&[("x-ratelimit-limit-tokens", "1"), ("x-ratelimit-reset-tokens", value)]);
            assert_eq!(openai(&headers, SystemTime::UNIX_EPOCH).tokens.reset, reset, "{value}");
        }
        for value in ["-5", "1e9", "18446744073709551616", "5.0", ""] {
            let hints = openai(&headers(&[("x-ratelimit-limit-tokens", value)]), SystemTime::UNIX_EPOCH);
            assert_eq!(hints, Hints::default(), "{value}");
        }
    }
}
