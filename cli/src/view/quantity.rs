//! Numbers and durations as people read them. Pure.

use std::time::Duration;

/// A count with separators: `6,118,402`.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count in three digits: `950`, `12.1k`, `1.21M`.
pub(super) fn short(count: u64) -> String {
    const UNITS: [&str; 5] = ["", "k", "M", "G", "T"];
    let mut unit = 0;
    let mut scale = 1u64;
    while unit + 1 < UNITS.len() && count / scale >= 1_000 {
        unit += 1;
        scale *= 1_000;
    }
    let whole = count / scale;
    let hundredths = count % scale * 100 / scale;
    match (unit, whole) {
        (0, _) | (_, 100..) => format!("{whole}{}", UNITS[unit]),
        (_, 10..) => format!("{whole}.{}{}", hundredths / 10, UNITS[unit]),
        _ => format!("{whole}.{hundredths:02}{}", UNITS[unit]),
    }
}

/// A share of a whole: `61.2 %`. Rounded down, so that 100 % means all of it.
pub(crate) fn percent(done: u64, total: u64) -> String {
    let per_mille = per_mille(done, total);
    format!("{}.{} %", per_mille / 10, per_mille % 10)
}

/// A share of a whole in thousandths, rounded down; of nothing, everything is done.
pub(super) fn per_mille(done: u64, total: u64) -> u64 {
    let share = (u128::from(done.min(total)) * 1_000).checked_div(u128::from(total));
    share.map_or(1_000, |share| u64::try_from(share).unwrap_or(1_000))
}

/// A duration: `0.4s`, `12s`, `6m40s`, `2h05m`, `3d4h`.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{seconds}.{}s", duration.subsec_millis() / 100),
        10..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d{}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// A rate per second, per minute where that says more: `312 requests/s`, `4.2 requests/s`, `42 requests/min`;
/// `- requests/s` where none is known yet.
pub(super) fn request_rate(per_second: Option<f64>) -> String {
    let Some(per_second) = per_second else {
        return "- requests/s".to_owned();
    };
    if per_second >= 100.0 {
        format!("{per_second:.0} requests/s")
    } else if per_second >= 1.0 {
        format!("{per_second:.1} requests/s")
    } else {
        format!("{:.0} requests/min", per_second * 60.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_separators_or_three_digits() {
        for (count, long, abbreviated) in [
            (0, "0", "0"),
            (999, "999", "999"),
            (1_000, "1,000", "1.00k"),
            (12_149, "12,149", "12.1k"),
            (999_999, "999,999", "999k"),
            (6_118_402, "6,118,402", "6.11M"),
            (u64::MAX, "18,446,744,073,709,551,615", "18446744T"),
        ] {
            assert_eq!(grouped(count), long);
            assert_eq!(short(count), abbreviated);
        }
    }

    #[test]
    fn a_hundred_percent_means_all() {
        assert_eq!(percent(999_999, 1_000_000), "99.9 %");
        assert_eq!(percent(1_000_000, 1_000_000), "100.0 %");
        assert_eq!(percent(0, 0), "100.0 %");
        assert_eq!(percent(1, 300), "0.3 %");
    }

    #[test]
    fn durations_have_two_units_at_most() {
        for (milliseconds, text) in [
            (0, "0.0s"),
            (1_250, "1.2s"),
            (12_000, "12s"),
            (400_000, "6m40s"),
            (7_500_000, "2h05m"),
            (273_600_000, "3d4h"),
        ] {
            assert_eq!(duration(Duration::from_millis(milliseconds)), text);
        }
    }

    #[test]
    fn slow_rates_are_told_per_minute() {
        assert_eq!(request_rate(Some(312.4)), "312 requests/s");
        assert_eq!(request_rate(Some(4.25)), "4.2 requests/s");
        assert_eq!(request_rate(Some(0.7)), "42 requests/min");
        assert_eq!(request_rate(None), "- requests/s");
    }
}
