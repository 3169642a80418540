//! How far a job is, in the few characters of a column. Rounded so that nothing looks done before it is.

/// Outcomes in percent of all lines.
pub fn percent(done: u64, lines: u64) -> i32 {
    let percent = if lines == 0 { 0 } else { u128::from(done) * 100 / u128::from(lines) };
    i32::try_from(percent.min(100)).expect("at most 100")
}

/// Outcomes and all lines, such as `6.1M/10M`.
pub fn done(done: u64, lines: u64) -> String {
    format!("{}/{}", short(done), short(lines))
}

/// Answers in a minute, such as `9740/min`.
pub fn rate(per_minute: u64) -> String {
    format!("{}/min", short(per_minute))
}

/// A span of time, such as `6h40m`: its two largest units.
pub fn eta(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, minutes) => format!("{minutes}m"),
        (0, hours, minutes) => format!("{hours}h{minutes}m"),
        (days, hours, _) => format!("{days}d{hours}h"),
    }
}

/// At most five characters, cut off rather than rounded.
fn short(number: u64) -> String {
    let (unit, letter) = match number {
        0..10_000 => return number.to_string(),
        10_000..1_000_000 => (1_000, "k"),
        1_000_000..1_000_000_000 => (1_000_000, "M"),
        _ => (1_000_000_000, "G"),
    };
    let (whole, tenth) = (number / unit, number / (unit / 10) % 10);
    if whole >= 10 || tenth == 0 { format!("{whole}{letter}") } else { format!("{whole}.{tenth}{letter}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit_into_a_column_and_are_cut_off() {
        for (number, expected) in [
            (0, "0"),
            (9_999, "9999"),
            (10_000, "10k"),
            (999_999, "999k"),
            (1_000_000, "1M"),
            (6_118_402, "6.1M"),
            (9_999_999, "9.9M"),
            (10_000_000, "10M"),
            (1_250_000_000, "1.2G"),
        ] {
            assert_eq!(short(number), expected);
        }
        assert_eq!(done(6_118_402, 10_000_000), "6.1M/10M");
        assert_eq!(rate(9_740), "9740/min");
    }

    #[test]
    fn only_a_job_that_is_done_is_at_a_hundred_percent() {
        assert_eq!([percent(0, 0), percent(9_999_999, 10_000_000), percent(7, 7)], [0, 99, 100]);
        assert_eq!(percent(u64::MAX, u64::MAX), 100);
    }

    #[test]
    fn a_span_of_time_has_at_most_two_units() {
        for (seconds, expected) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (3_599, "59m"),
            (24_000, "6h40m"),
            (90_000, "1d1h"),
            (864_000, "10d0h"),
        ] {
            assert_eq!(eta(seconds), expected);
        }
    }
}
