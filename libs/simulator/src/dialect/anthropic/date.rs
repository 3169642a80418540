//! Dates as Anthropic writes them.

use std::time::SystemTime;

const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";

/// `2025-08-21T12:41:00Z`, as RFC 3339 writes it.
pub(super) fn rfc3339(time: SystemTime) -> String {
    let (year, month, day, clock) = parts(time);
    format!("{year}-{month:02}-{day}T{clock}Z")
}

/// The first day of the month after `time`, as `2026-04-01`.
pub(super) fn next_month(time: SystemTime) -> String {
    let (year, month, ..) = parts(time);
    let (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    format!("{year}-{month:02}-01")
}

/// Year, month, day and time of day, taken from the one format that needs no calendar of our own:
/// `Thu, 21 Aug 2025 12:41:00 GMT`.
fn parts(time: SystemTime) -> (u32, usize, String, String) {
    let date = httpdate::fmt_http_date(time);
    let words: Vec<&str> = date.split(' ').collect();
    let [_, day, month, year, clock, _] = words[..] else {
        panic!("invariant: an HTTP date has six words");
    };
    let month = MONTHS.find(month).expect("invariant: an HTTP date names its month") / 3 + 1;
    let year = year.parse().expect("invariant: an HTTP date has a year");
    (year, month, day.to_owned(), clock.to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates_are_written_as_the_documents_write_them() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_755_780_061);
        assert_eq!(rfc3339(time), "2025-08-21T12:41:01Z");
        assert_eq!(next_month(time), "2025-09-01");
        let december = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_139_201);
        assert_eq!(
            (rfc3339(december).as_str(), next_month(december).as_str()),
            ("2025-12-31T00:00:01Z", "2026-01-01")
        );
    }
}
