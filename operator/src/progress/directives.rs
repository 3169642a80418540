//! What an executor is told when it reports: a pure function of its BatchJob and its Provider as they are now.

use std::num::{NonZeroU32, NonZeroU64};

use kube::ResourceExt;
use penstock_crds::{BatchJob, Provider};
use penstock_job::{Directives, directives::RateBounds};

use crate::decide::QUEUE_LABEL;

/// What the executor of a BatchJob is to do.
pub(super) fn directives(batch_job: &BatchJob, provider: Option<&Provider>) -> Directives {
    let spec = &batch_job.spec;
    Directives {
        cancel: spec.cancel,
        // Where others decide when its Job runs, only the executor can be held.
        hold: spec.suspend && batch_job.labels().contains_key(QUEUE_LABEL),
        rate: provider.map(bounds).unwrap_or_default(),
        ..Directives::default()
    }
}

/// The bounds of a Provider hold for jobs that run as well when they are changed.
fn bounds(provider: &Provider) -> RateBounds {
    let bounds = &provider.spec.limits.bounds;
    let positive = |number: i32| u32::try_from(number).ok().and_then(NonZeroU32::new);
    RateBounds {
        rpm: bounds.requests_per_minute.and_then(positive),
        tpm: bounds.tokens_per_minute.and_then(|tokens| NonZeroU64::new(u64::try_from(tokens).ok()?)),
        max_in_flight: bounds.max_in_flight.and_then(positive),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::decide::tests::batch_job;

    #[test]
    fn an_executor_is_held_only_where_others_decide_when_its_job_runs() {
        let mut job = batch_job();
        assert_eq!(directives(&job, None), Directives::default());
        (job.spec.suspend, job.spec.cancel) = (true, true);
        let told = directives(&job, None);
        assert!(told.cancel && !told.hold, "its Job is suspended instead");
        job.metadata.labels = Some([(QUEUE_LABEL.to_owned(), "night".to_owned())].into());
        assert!(directives(&job, None).hold);
    }

    #[test]
    fn the_bounds_are_those_of_the_provider_as_it_is_now() {
        let provider: Provider = serde_json::from_value(json!({
            "metadata": {"name": "openai"},
            "spec": {"kind": "OpenAI", "limits": {"requestsPerMinute": 60, "tokensPerMinute": 9_000}},
        }))
        .unwrap();
        let rate = directives(&batch_job(), Some(&provider)).rate;
        assert_eq!((rate.rpm, rate.tpm), (NonZeroU32::new(60), NonZeroU64::new(9_000)));
        assert_eq!(rate.max_in_flight, None);
    }
}
