//! When a provider that answers no line now is expected to answer again, and how that is said to people. Pure.

use std::time::{Duration, SystemTime};

/// What a day has.
const DAY: Duration = Duration::from_hours(24);

/// A moment further away than this is no renewal of a quota, and is not believed.
const FURTHEST: Duration = Duration::from_hours(24 * 62);

/// When lines are expected to be answered again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumption {
    /// Nobody says.
    Unknown,
    /// So long after the answer, as the provider asks.
    After(Duration),
    /// At a moment that the provider names.
    At(SystemTime),
    /// At the next midnight in California, when Google renews the quotas for a day
    /// (<https://ai.google.dev/gemini-api/docs/rate-limits>).
    PacificMidnight,
}

impl Resumption {
    /// The moment, for an answer that came at `now`; `None` where nobody says, or names one that cannot be.
    pub fn moment(self, now: SystemTime) -> Option<SystemTime> {
        let at = match self {
            Self::Unknown => return None,
            Self::After(wait) => now.checked_add(wait)?,
            Self::At(at) => at,
            Self::PacificMidnight => next_pacific_midnight(now)?,
        };
        (now..=now.checked_add(FURTHEST)?).contains(&at).then_some(at)
    }
}

/// A moment for people: `at 07:00 UTC`, and with its date where it is more than a day after `now`.
pub fn in_words(at: SystemTime, now: SystemTime) -> String {
    let written = humantime::format_rfc3339_seconds(at).to_string();
    let (date, time) = written.split_once('T').unwrap_or((&written, ""));
    let minutes = time.rsplit_once(':').map_or(time, |(minutes, _)| minutes);
    if at.duration_since(now).is_ok_and(|wait| wait <= DAY) {
        format!("at {minutes} UTC")
    } else {
        format!("on {date} at {minutes} UTC")
    }
}

fn next_pacific_midnight(now: SystemTime) -> Option<SystemTime> {
    let begun = now.checked_sub(behind_utc(now)?)?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let days = begun.as_secs() / DAY.as_secs() + 1;
    let midnight = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(days * DAY.as_secs()))?;
    // Clocks change in the night, so the coming midnight may be another time behind UTC than now.
    midnight.checked_add(behind_utc(midnight.checked_add(behind_utc(now)?)?)?)
}

/// How far California is behind UTC: an hour less from the second Sunday of March to the first of November, each time
/// from two in the morning.
fn behind_utc(at: SystemTime) -> Option<Duration> {
    let written = humantime::format_rfc3339_seconds(at).to_string();
    let year = written.get(..4)?;
    let summer =
        first_sunday(&format!("{year}-03-08T10:00:00Z"))?..first_sunday(&format!("{year}-11-01T09:00:00Z"))?;
    Some(Duration::from_hours(if summer.contains(&at) { 7 } else { 8 }))
}

/// The first Sunday from this moment on, at the same time of the day.
fn first_sunday(from: &str) -> Option<SystemTime> {
    /// The epoch began on the fourth day after a Sunday.
    const EPOCH: u64 = 4;
    let from = humantime::parse_rfc3339(from).ok()?;
    let days = from.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs() / DAY.as_secs();
    let after_sunday = (days + EPOCH) % 7;
    from.checked_add(Duration::from_hours(24 * ((7 - after_sunday) % 7)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> SystemTime {
        humantime::parse_rfc3339(text).unwrap()
    }

    #[test]
    fn the_day_of_google_ends_at_midnight_in_california() {
        for (now, midnight) in [
            // In winter, and in summer.
            ("2026-11-21T16:20:00Z", "2026-11-22T08:00:00Z"),
            ("2026-11-22T07:59:59Z", "2026-11-22T08:00:00Z"),
            ("2026-11-22T08:00:00Z", "2026-11-23T08:00:00Z"),
            ("2026-07-01T03:00:00Z", "2026-07-01T07:00:00Z"),
            ("2026-07-01T23:00:00Z", "2026-07-02T07:00:00Z"),
            // Around the nights in which clocks change: 8 March and 1 November 2026.
            ("2026-03-08T07:30:00Z", "2026-03-08T08:00:00Z"),
            ("2026-03-08T08:30:00Z", "2026-03-09T07:00:00Z"),
            ("2026-03-08T12:00:00Z", "2026-03-09T07:00:00Z"),
            ("2026-11-01T06:30:00Z", "2026-11-01T07:00:00Z"),
            ("2026-11-01T07:30:00Z", "2026-11-02T08:00:00Z"),
            // Where the Sundays are the earliest and the latest that they can be.
            ("2020-03-08T11:00:00Z", "2020-03-09T07:00:00Z"),
            ("2021-03-14T09:00:00Z", "2021-03-15T07:00:00Z"),
            ("2021-11-07T12:00:00Z", "2021-11-08T08:00:00Z"),
        ] {
            assert_eq!(Resumption::PacificMidnight.moment(time(now)), Some(time(midnight)), "{now}");
        }
    }

    #[test]
    fn a_moment_that_cannot_be_is_not_believed() {
        let now = time("2026-11-21T16:20:00Z");
        for at in ["2026-11-21T16:19:59Z", "2027-11-21T00:00:00Z", "9999-12-31T23:59:59Z"] {
            assert_eq!(Resumption::At(time(at)).moment(now), None, "{at}");
        }
        assert_eq!(Resumption::After(Duration::MAX).moment(now), None);
        assert_eq!(Resumption::Unknown.moment(now), None);
        let next_month = time("2026-12-01T00:00:00Z");
        assert_eq!(Resumption::At(next_month).moment(now), Some(next_month));
    }

    #[test]
    fn a_moment_is_told_with_its_date_where_the_time_alone_would_mislead() {
        let now = time("2026-11-21T16:20:30Z");
        let told = |resumption: Resumption| in_words(resumption.moment(now).unwrap(), now);
        assert_eq!(told(Resumption::PacificMidnight), "at 08:00 UTC");
        assert_eq!(told(Resumption::After(Duration::from_secs(432))), "at 16:27 UTC");
        assert_eq!(told(Resumption::At(time("2026-12-01T00:00:00Z"))), "on 2026-12-01 at 00:00 UTC");
    }
}
