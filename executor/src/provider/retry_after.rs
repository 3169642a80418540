//! How long a provider asks to wait: in its headers, or in the text of its refusal. Pure.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, header};

use super::duration;

const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// The longest wait that is believed; a longer one, which no window of a provider explains, counts as this.
pub(super) const LONGEST: Duration = Duration::from_hours(24);

/// What the headers of an answer ask for: `retry-after-ms`, or `retry-after` in seconds or as an HTTP date. A date is
/// taken relative to the answer's own `date`, since the two clocks may differ, and to `now` where it has none.
pub(super) fn from_headers(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let milliseconds = || duration::from_seconds(text(RETRY_AFTER_MS)?.parse::<f64>().ok()? / 1000.0);
    let after = || {
        let value = text(header::RETRY_AFTER)?;
        if let Ok(seconds) = value.parse() {
            return duration::from_seconds(seconds);
        }
        let until = httpdate::parse_http_date(value).ok()?;
        let from = text(header::DATE).and_then(|date| httpdate::parse_http_date(date).ok()).unwrap_or(now);
        Some(until.duration_since(from).unwrap_or_default())
    };
    milliseconds().or_else(after).map(|wait| wait.min(LONGEST))
}

/// What the text of a refusal asks for, as in `Please try again in 6m0s.` or `Please retry after 9 seconds.`
pub(super) fn from_text(text: &str) -> Option<Duration> {
    const MARKS: [&str; 5] =
        ["try again in ", "retry in ", "retry after ", "try again after ", "please wait "];
    let text = text.to_ascii_lowercase();
    MARKS
        .iter()
        .filter_map(|mark| text.find(mark).map(|start| &text[start + mark.len()..]))
        .find_map(duration::leading)
        .map(|wait| wait.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(pairs: &[(&'static str, &'static str)]) -> Option<Duration> {
        let headers =
            pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        let now = httpdate::parse_http_date("Wed, 21 Oct 2026 07:28:00 GMT").unwrap();
        from_headers(&headers, now)
    }

    #[test]
    fn headers_are_read_in_each_of_their_forms() {
        for (header, milliseconds) in [
            (("retry-after-ms", "250"), 250),
            (("retry-after", "2"), 2_000),
            (("retry-after", " 0.5 "), 500),
            (("retry-after", "0"), 0),
            (("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT"), 30_000),
            (("retry-after", "Wed, 21 Oct 2026 07:27:00 GMT"), 0),
            (("retry-after", "999999999"), 86_400_000),
        ] {
            assert_eq!(asked(&[header]), Some(Duration::from_millis(milliseconds)), "{header:?}");
        }
        assert_eq!(asked(&[("retry-after", "9"), ("retry-after-ms", "80")]), Some(Duration::from_millis(80)));
    }

    #[test]
    fn a_date_is_relative_to_the_clock_of_the_answer() {
        let headers =
            [("retry-after", "Wed, 21 Oct 2026 09:00:05 GMT"), ("date", "Wed, 21 Oct 2026 09:00:00 GMT")];
        assert_eq!(asked(&headers), Some(Duration::from_secs(5)));
    }

    #[test]
    fn nonsense_asks_for_nothing() {
        for value in ["", "soon", "-1", "NaN", "inf"] {
            assert_eq!(asked(&[("retry-after", value)]), None, "{value}");
        }
        assert_eq!(asked(&[]), None);
    }

    #[test]
    fn published_refusals_say_how_long_to_wait() {
        for (text, milliseconds) in [
            ("Limit 10000, Used 8554, Requested 3082. Please try again in 9.816s. Visit https://", 9_816),
            ("Please try again in 174ms.", 174),
            ("Please try again in 6m0s.", 360_000),
            ("Please try again in 7m12s. Visit", 432_000),
            ("Please retry after 9 seconds. Please go here", 9_000),
            ("Try again in 2 minutes", 120_000),
            ("Please retry in 26.5s.", 26_500),
            ("Please wait 32 seconds before retrying.", 32_000),
        ] {
            assert_eq!(from_text(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "try again in", "please try again later", "retry in a while"] {
            assert_eq!(from_text(text), None, "{text}");
        }
    }
}
