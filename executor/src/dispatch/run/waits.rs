//! How long a line, or all lines of a model, wait before they are tried again. Pure but for chance.

use std::time::Duration;

use penstock_job::{Reason, spec::Retry};

use crate::output::jitter;

/// How long a refused model rests before one request tries it again, unless the provider says.
const BLOCKED_PAUSE: Duration = Duration::from_mins(1);
/// The shortest rest, even of a provider that asks for none and refuses all the same.
const SHORTEST_REST: Duration = Duration::from_secs(1);
/// The longest rest, whatever the provider says: quotas are raised and bills paid in between.
const LONGEST_REST: Duration = Duration::from_mins(15);
/// Lines that were told the same time to come back do so spread over this long.
pub(super) const SPREAD: Duration = Duration::from_secs(1);
/// The first wait of a line that was refused for the rate by a provider that says no time; doubles up to
/// [`LONGEST_REFUSAL`].
const REFUSAL_BASE: Duration = Duration::from_secs(1);
/// The longest such wait: a window of a minute is over by then.
const LONGEST_REFUSAL: Duration = Duration::from_mins(1);

/// The wait of a line whose latest of `tries` attempts failed, given what the provider `asked` for.
pub(super) fn after_failure(retry: Retry, asked: Option<Duration>, tries: u32) -> Duration {
    let [base, cap] = [retry.base_ms, retry.cap_ms].map(Duration::from_millis);
    let drawn = |cap| jitter(base.min(cap), cap, tries - 1);
    named(asked).map_or_else(|| drawn(cap), |asked| asked + drawn(cap.min(SPREAD)))
}

/// The wait of a line that was refused for the rate so often in a row, by a provider that says no time.
pub(super) fn after_refusal(refusals: u32) -> Duration {
    jitter(REFUSAL_BASE, LONGEST_REFUSAL, refusals - 1)
}

/// How long a refused model rests, given how long that is expected to last. A day that ends nobody knows when is asked
/// for seldom, since many providers count refused requests too.
pub(super) fn rest(reason: Reason, wait: Option<Duration>) -> Duration {
    let unknown = if reason == Reason::DayQuotaExhausted { LONGEST_REST } else { BLOCKED_PAUSE };
    wait.unwrap_or(unknown).clamp(SHORTEST_REST, LONGEST_REST)
}

/// A wait that a provider names. One of zero tells nothing: whoever is refused all the same would ask without a pause.
pub(super) fn named(after: Option<Duration>) -> Option<Duration> {
    after.filter(|after| !after.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_model_rests_as_long_as_its_provider_says_within_reason() {
        let rest = |wait| rest(Reason::CredentialsRefused, wait);
        assert_eq!(rest(None), BLOCKED_PAUSE);
        assert_eq!(rest(Some(Duration::ZERO)), SHORTEST_REST, "it is not asked without a pause");
        assert_eq!(rest(Some(Duration::from_mins(2))), Duration::from_mins(2));
        assert_eq!(rest(Some(Duration::from_hours(24))), LONGEST_REST);
    }

    #[test]
    fn a_day_that_ends_nobody_knows_when_is_asked_for_seldom() {
        assert_eq!(rest(Reason::DayQuotaExhausted, None), LONGEST_REST);
        let minutes = Duration::from_secs(432);
        assert_eq!(rest(Reason::DayQuotaExhausted, Some(minutes)), minutes);
    }
}
