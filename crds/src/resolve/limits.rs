//! How fast, how often and how long: the lower of what a job asks for and what its Provider allows.

use std::{
    collections::BTreeMap,
    num::{NonZeroU32, NonZeroU64},
};

use penstock_job::spec;

use super::ResolveError;
use crate::{
    batch_job::BatchJobSpec,
    bounds::{ModelBounds, RateBounds, Retries},
    provider::ProviderSpec,
};

/// The section `limits` of the job file.
pub(super) fn resolve(job: &BatchJobSpec, provider: &ProviderSpec) -> Result<spec::Limits, ResolveError> {
    let usual = spec::Limits::default();
    let of_job = job.retries.unwrap_or_default();
    let retries = Retries {
        max_attempts: of_job.max_attempts.or(provider.retries.max_attempts),
        first_wait_seconds: of_job.first_wait_seconds.or(provider.retries.first_wait_seconds),
        longest_wait_seconds: of_job.longest_wait_seconds.or(provider.retries.longest_wait_seconds),
    };
    let whole = bounds("spec.rate", lower(job.rate.bounds, provider.limits.bounds))?;
    Ok(spec::Limits {
        rate: job.rate.mode.map(Into::into),
        rpm: whole.rpm,
        tpm: whole.tpm,
        max_in_flight: whole.max_in_flight,
        per_model: per_model(&job.rate.per_model, &provider.limits.per_model)?,
        max_attempts: positive("retries.maxAttempts", retries.max_attempts)?.unwrap_or(usual.max_attempts),
        retry: spec::Retry {
            base_ms: milliseconds(
                "retries.firstWaitSeconds",
                retries.first_wait_seconds,
                usual.retry.base_ms,
            )?,
            cap_ms: milliseconds(
                "retries.longestWaitSeconds",
                retries.longest_wait_seconds,
                usual.retry.cap_ms,
            )?,
        },
        deadline_seconds: positive_long("spec.completionWindowSeconds", job.completion_window_seconds)?,
        request_timeout_seconds: positive_long(
            "timeouts.requestSeconds",
            provider.timeouts.request_seconds.map(i64::from),
        )?
        .unwrap_or(usual.request_timeout_seconds),
        ..usual
    })
}

fn per_model(
    job: &[ModelBounds],
    provider: &[ModelBounds],
) -> Result<BTreeMap<String, spec::ModelLimits>, ResolveError> {
    let mut both: BTreeMap<String, RateBounds> = BTreeMap::new();
    for ModelBounds { model, bounds } in job.iter().chain(provider) {
        let known = both.entry(model.clone()).or_default();
        *known = lower(*known, *bounds);
    }
    both.into_iter().map(|(model, both)| Ok((model, bounds("perModel", both)?))).collect()
}

/// The lower of each bound; what one of the two does not bound, the other does.
fn lower(one: RateBounds, other: RateBounds) -> RateBounds {
    fn of<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
        one.into_iter().chain(other).min()
    }
    RateBounds {
        requests_per_minute: of(one.requests_per_minute, other.requests_per_minute),
        tokens_per_minute: of(one.tokens_per_minute, other.tokens_per_minute),
        max_in_flight: of(one.max_in_flight, other.max_in_flight),
    }
}

fn bounds(field: &'static str, bounds: RateBounds) -> Result<spec::ModelLimits, ResolveError> {
    Ok(spec::ModelLimits {
        rpm: positive(field, bounds.requests_per_minute)?,
        tpm: positive_long(field, bounds.tokens_per_minute)?,
        max_in_flight: positive(field, bounds.max_in_flight)?,
    })
}

/// A number of a job file, where one is given; it is at least 1.
pub(super) fn positive(field: &'static str, value: Option<i32>) -> Result<Option<NonZeroU32>, ResolveError> {
    let refuse = |value| ResolveError::OutOfBounds { field, value, most: i32::MAX.into() };
    value
        .map(|value| u32::try_from(value).ok().and_then(NonZeroU32::new).ok_or_else(|| refuse(value.into())))
        .transpose()
}

/// The same for larger numbers.
pub(super) fn positive_long(
    field: &'static str,
    value: Option<i64>,
) -> Result<Option<NonZeroU64>, ResolveError> {
    let refuse = |value| ResolveError::OutOfBounds { field, value, most: i64::MAX };
    value
        .map(|value| u64::try_from(value).ok().and_then(NonZeroU64::new).ok_or_else(|| refuse(value)))
        .transpose()
}

/// A size from 1 to `most`.
pub(super) fn within(field: &'static str, value: i64, most: i64) -> Result<usize, ResolveError> {
    let refuse = || ResolveError::OutOfBounds { field, value, most };
    if (1..=most).contains(&value) { usize::try_from(value).map_err(|_| refuse()) } else { Err(refuse()) }
}

fn milliseconds(field: &'static str, seconds: Option<i32>, usual: u64) -> Result<u64, ResolveError> {
    Ok(positive(field, seconds)?.map_or(usual, |seconds| u64::from(seconds.get()) * 1000))
}
