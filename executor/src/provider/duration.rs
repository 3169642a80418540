//! Durations as providers write them: `6m0s`, `120ms`, `9 seconds`, `0.5`. Pure.

use std::time::Duration;

/// Seconds, unless they are negative, no number or too many to count.
pub(super) fn from_seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

/// A whole text in the style of Go, such as `6m0s` or `120ms`; a bare number counts as seconds.
pub(super) fn parse(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse() {
        return from_seconds(seconds);
    }
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let (number, behind) = split_number(rest)?;
        let end = behind.find(|character: char| !character.is_alphabetic()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        seconds += number * seconds_in(unit)?;
        rest = behind;
    }
    (!text.is_empty()).then(|| from_seconds(seconds))?
}

/// The duration that a sentence goes on with, such as `9.816s. Visit ...` or `9 seconds.`, in lower case.
pub(super) fn leading(text: &str) -> Option<Duration> {
    let mut words = text.split_whitespace().map(|word| word.trim_end_matches(['.', ',', ';', '!', ')']));
    let first = words.next()?;
    match first.parse::<f64>() {
        Ok(number) => from_seconds(number * words.next().and_then(seconds_in).unwrap_or(1.0)),
        Err(_) => parse(first),
    }
}

fn split_number(text: &str) -> Option<(f64, &str)> {
    let end =
        text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    Some((number.parse().ok()?, rest))
}

fn seconds_in(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" | "µs" | "μs" => 1e-6,
        "ms" | "millisecond" | "milliseconds" => 1e-3,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_way_to_write_a_duration_is_read() {
        for (text, milliseconds) in [
            ("120ms", 120),
            ("6m0s", 360_000),
            ("1h2m3.5s", 3_723_500),
            ("4m12.172s", 252_172),
            ("86400", 86_400_000),
            ("0.25", 250),
            ("0s", 0),
            ("1d", 86_400_000),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_not_guessed() {
        for text in ["", "s", "5x", "1m-2s", "--", ".", "..s", "2026-10-21T07:28:00Z", "1e400", "-3"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_a_reason_to_panic(text in "\\PC*", number in "[0-9.]{0,400}[a-zµ]{0,3}") {
            for text in [text, number] {
                let _ = (parse(&text), leading(&text));
            }
        }

        #[test]
        fn minutes_and_milliseconds_add_up(minutes in 0_u64..10_000, milliseconds in 0_u64..60_000) {
            let expected = Duration::from_mins(minutes) + Duration::from_millis(milliseconds);
            let found = parse(&format!("{minutes}m{milliseconds}ms")).unwrap();
            prop_assert!(found.abs_diff(expected) < Duration::from_micros(1));
        }
    }
}
