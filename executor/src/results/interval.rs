//! How long an outcome may wait in the part under construction (R3 of the job protocol).

use std::time::Duration;

/// At most so many parts of a job are made because time was up rather than because they were full.
const PARTS_BY_TIME: u32 = 10_000;
/// Above so many rows of the manifest the interval doubles, so that the manifest stays within its memory.
const MANY_ROWS: usize = 32_768;

/// The interval after `by_time` parts were made because time was up, with `rows` rows in the manifest: 2 s while half
/// of the budget is there, then 5, 15 and 30 s. At these steps the budget lasts for 36 hours of slow answers.
pub(crate) fn flush_interval(by_time: u32, rows: usize) -> Duration {
    let left = PARTS_BY_TIME.saturating_sub(by_time);
    let seconds = match left {
        5_001.. => 2,
        2_501..=5_000 => 5,
        1_001..=2_500 => 15,
        _ => 30,
    };
    let factor = if rows > MANY_ROWS { 2 } else { 1 };
    Duration::from_secs(seconds * factor).min(Duration::from_secs(30))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_lengthens_from_2_to_30_seconds_as_the_budget_of_parts_is_used_up() {
        let seconds = |by_time, rows| flush_interval(by_time, rows).as_secs();
        assert_eq!(seconds(0, 0), 2);
        assert_eq!(seconds(5_000, 0), 5);
        assert_eq!(seconds(8_000, 0), 15);
        assert_eq!(seconds(9_999, 0), 30);
        assert_eq!(seconds(u32::MAX, 0), 30);
        assert_eq!(seconds(0, 40_000), 4);
        assert_eq!(seconds(u32::MAX, 40_000), 30);
    }
}
