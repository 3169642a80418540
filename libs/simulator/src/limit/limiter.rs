//! Requests and tokens together: a request passes when both have room, and only then are both charged.

use std::time::Duration;

use super::{
    LimitSettings, Quota, TokenCharge,
    meter::{Meter, allowance, as_amount, meter},
};

/// What a quota counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimension {
    /// The number of requests.
    Requests,
    /// Their tokens, as the provider charges them.
    Tokens,
}

/// A quota as it stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Reading {
    pub(crate) per_minute: u64,
    pub(crate) used: f64,
    /// Time until nothing counts as used.
    pub(crate) reset: Duration,
}

/// Both quotas as they stand; `None` where there is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Readings {
    pub(super) requests: Option<Reading>,
    pub(super) tokens: Option<Reading>,
}

/// A request that did not pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Exceeded {
    pub(crate) dimension: Dimension,
    pub(crate) reading: Reading,
    pub(crate) requested: u64,
    /// Time until it would fit. `None`: it is larger than the quota of a minute and never fits.
    pub(crate) wait: Option<Duration>,
}

impl Exceeded {
    /// A request that finds a minute's quota of requests used up, with this wait.
    pub(crate) fn requests(per_minute: u64, wait: Duration) -> Self {
        let reading = Reading { per_minute, used: as_amount(per_minute), reset: wait };
        Self { dimension: Dimension::Requests, reading, requested: 1, wait: Some(wait) }
    }
}

/// An answer that is complete, as far as its tokens are charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Finished {
    pub(crate) admitted_at: Duration,
    /// The most tokens that the answer was allowed, as they were reserved for it.
    pub(crate) reserved_tokens: u64,
    pub(crate) output_tokens: u64,
}

/// The state of the limits of one provider.
#[derive(Debug, Default)]
pub(crate) struct Limiter {
    requests: Option<Limited>,
    tokens: Option<Limited>,
}

#[derive(Debug)]
struct Limited {
    quota: Quota,
    meter: Box<dyn Meter>,
}

impl Limited {
    fn reading(&mut self, now: Duration) -> Reading {
        Reading {
            per_minute: self.quota.per_minute,
            used: self.meter.used(now),
            reset: self.meter.reset(now),
        }
    }

    fn excess(&mut self, now: Duration, dimension: Dimension, requested: u64) -> Option<Exceeded> {
        let wait = self.meter.wait(now, as_amount(requested));
        let never = requested > self.quota.per_minute;
        (never || !wait.is_zero()).then(|| Exceeded {
            dimension,
            reading: self.reading(now),
            requested,
            wait: (!never).then_some(wait),
        })
    }
}

impl Limiter {
    /// Puts `settings` into force. What was used under a changed quota counts under the new one.
    pub(crate) fn change(&mut self, settings: &LimitSettings, phase: f64, now: Duration) {
        for (current, wanted) in
            [(&mut self.requests, settings.requests), (&mut self.tokens, settings.tokens)]
        {
            if current.as_ref().map(|limited| limited.quota) == wanted {
                continue;
            }
            if let (Some(limited), Some(quota)) = (current.as_mut(), wanted)
                && limited.quota.enforcement == quota.enforcement
            {
                limited.meter.allow(now, allowance(quota));
                limited.quota = quota;
                continue;
            }
            let used = current.as_mut().map_or(0.0, |limited| limited.meter.used(now));
            *current = wanted.map(|quota| {
                let mut meter = meter(quota, phase, now);
                meter.charge(now, used.min(as_amount(quota.per_minute)));
                Limited { quota, meter }
            });
        }
    }

    /// Lets a request pass and charges it, or says why not.
    pub(crate) fn admit(
        &mut self,
        settings: &LimitSettings,
        now: Duration,
        input_tokens: u64,
        reserved_tokens: u64,
    ) -> Result<(), Exceeded> {
        let tokens = match settings.token_charge {
            TokenCharge::Reserved | TokenCharge::Refunded => input_tokens + reserved_tokens,
            TokenCharge::Actual => input_tokens,
        };
        let excesses = [
            self.requests.as_mut().and_then(|limited| limited.excess(now, Dimension::Requests, 1)),
            self.tokens.as_mut().and_then(|limited| limited.excess(now, Dimension::Tokens, tokens)),
        ];
        // Where both have no room, the longer wait is the true one; "never" is the longest.
        let worst =
            excesses.into_iter().flatten().max_by_key(|exceeded| exceeded.wait.unwrap_or(Duration::MAX));
        if let Some(exceeded) = worst {
            if settings.refusals_count
                && let Some(limited) = &mut self.requests
            {
                limited.meter.charge_refused(now, 1.0);
            }
            return Err(exceeded);
        }
        if let Some(limited) = &mut self.requests {
            limited.meter.charge(now, 1.0);
        }
        if let Some(limited) = &mut self.tokens {
            limited.meter.charge(now, as_amount(tokens));
        }
        Ok(())
    }

    /// An answer is finished: charges its tokens, or gives back what it did not use, where that is the rule.
    pub(crate) fn settle(&mut self, settings: &LimitSettings, now: Duration, answer: Finished) {
        let Some(limited) = &mut self.tokens else { return };
        let Finished { admitted_at, reserved_tokens, output_tokens } = answer;
        match settings.token_charge {
            TokenCharge::Reserved => {}
            TokenCharge::Refunded => {
                let unused = reserved_tokens.saturating_sub(output_tokens);
                limited.meter.refund(now, admitted_at, as_amount(unused));
            }
            TokenCharge::Actual => limited.meter.charge(now, as_amount(output_tokens)),
        }
    }

    /// Both quotas as they stand.
    pub(crate) fn readings(&mut self, now: Duration) -> Readings {
        Readings {
            requests: self.requests.as_mut().map(|limited| limited.reading(now)),
            tokens: self.tokens.as_mut().map(|limited| limited.reading(now)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Enforcement, *};

    const START: Duration = Duration::ZERO;

    fn quota(per_minute: u64) -> Quota {
        Quota { per_minute, enforcement: Enforcement::MinuteBucket }
    }

    fn limiter(settings: &LimitSettings) -> Limiter {
        let mut limiter = Limiter::default();
        limiter.change(settings, 0.0, START);
        limiter
    }

    #[test]
    fn a_request_refused_for_its_tokens_leaves_the_request_quota_alone() {
        let settings =
            LimitSettings { requests: Some(quota(60)), tokens: Some(quota(100)), ..Default::default() };
        let mut limiter = limiter(&settings);
        assert_eq!(limiter.admit(&settings, START, 10, 80), Ok(()));
        let exceeded = limiter.admit(&settings, START, 10, 80).unwrap_err();
        assert_eq!((exceeded.dimension, exceeded.wait), (Dimension::Tokens, Some(Duration::from_secs(48))));
        assert_eq!(limiter.readings(START).requests.map(|reading| reading.used), Some(1.0));
    }

    #[test]
    fn a_request_larger_than_a_minute_allows_never_fits() {
        let settings = LimitSettings { tokens: Some(quota(100)), ..Default::default() };
        let exceeded = limiter(&settings).admit(&settings, START, 1, 100).unwrap_err();
        assert_eq!((exceeded.wait, exceeded.requested), (None, 101));
    }

    #[test]
    fn actual_charging_takes_the_answer_when_it_is_finished() {
        let settings = LimitSettings {
            tokens: Some(quota(100)),
            token_charge: TokenCharge::Actual,
            ..Default::default()
        };
        let mut limiter = limiter(&settings);
        assert_eq!(limiter.admit(&settings, START, 10, 5_000), Ok(()));
        let answer = Finished { admitted_at: START, reserved_tokens: 5_000, output_tokens: 85 };
        limiter.settle(&settings, START, answer);
        assert_eq!(limiter.readings(START).tokens.map(|reading| reading.used), Some(95.0));
        assert!(limiter.admit(&settings, START, 10, 0).is_err());
    }

    #[test]
    fn what_an_answer_did_not_use_of_its_reserve_is_given_back_while_it_still_counts() {
        let every = [Enforcement::MinuteBucket, Enforcement::FixedMinute, Enforcement::SlidingMinute];
        for enforcement in every {
            let settings = LimitSettings {
                tokens: Some(Quota { per_minute: 100, enforcement }),
                token_charge: TokenCharge::Refunded,
                ..Default::default()
            };
            let mut limiter = limiter(&settings);
            assert_eq!(limiter.admit(&settings, START, 10, 80), Ok(()));
            let answer = Finished { admitted_at: START, reserved_tokens: 80, output_tokens: 20 };
            limiter.settle(&settings, START, answer);
            assert_eq!(
                limiter.readings(START).tokens.map(|reading| reading.used),
                Some(30.0),
                "{enforcement:?}"
            );
            limiter.settle(&settings, Duration::from_mins(2), answer);
            let used = limiter.readings(Duration::from_mins(2)).tokens.map(|reading| reading.used);
            assert_eq!(used, Some(0.0), "{enforcement:?}");
        }
    }

    #[test]
    fn a_refusal_counts_only_where_the_provider_counts_it() {
        for (refusals_count, wait) in [(false, Duration::from_millis(500)), (true, Duration::from_secs(1))] {
            let settings = LimitSettings { requests: Some(quota(60)), refusals_count, ..Default::default() };
            let mut limiter = limiter(&settings);
            for _ in 0..60 {
                assert_eq!(limiter.admit(&settings, START, 0, 0), Ok(()));
            }
            let now = Duration::from_millis(500);
            limiter.admit(&settings, now, 0, 0).unwrap_err();
            assert_eq!(limiter.admit(&settings, now, 0, 0).unwrap_err().wait, Some(wait));
        }
    }

    #[test]
    fn a_changed_quota_remembers_what_was_used() {
        let before = LimitSettings { requests: Some(quota(60)), ..Default::default() };
        let mut limiter = limiter(&before);
        for _ in 0..40 {
            limiter.admit(&before, START, 0, 0).unwrap();
        }
        let after = LimitSettings { requests: Some(quota(30)), ..Default::default() };
        limiter.change(&after, 0.0, START);
        assert_eq!(limiter.admit(&after, START, 0, 0).unwrap_err().wait, Some(Duration::from_secs(2)));
    }

    #[test]
    fn under_a_changed_quota_each_use_grows_old_at_its_own_time() {
        let sliding = |per_minute| LimitSettings {
            requests: Some(Quota { per_minute, enforcement: Enforcement::SlidingMinute }),
            ..Default::default()
        };
        let mut limiter = limiter(&sliding(2));
        let at = Duration::from_secs;
        limiter.admit(&sliding(2), at(0), 0, 0).unwrap();
        limiter.admit(&sliding(2), at(30), 0, 0).unwrap();
        limiter.change(&sliding(1), 0.0, at(40));
        assert_eq!(limiter.admit(&sliding(1), at(40), 0, 0).unwrap_err().wait, Some(at(50)));
        limiter.change(&sliding(3), 0.0, at(50));
        assert_eq!(limiter.admit(&sliding(3), at(50), 0, 0), Ok(()));
        assert_eq!(limiter.admit(&sliding(3), at(50), 0, 0).unwrap_err().wait, Some(at(10)));
    }
}
