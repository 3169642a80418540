//! What Prometheus asks at `/metrics`: how passes go, what is written, and how many jobs are in each state.
//!
//! No label names a job, a namespace or a tenant: the number of series does not grow with the work. What concerns one job
//! stands in its status.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use penstock_crds::State;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, text},
    metrics::{
        MetricType,
        counter::{ConstCounter, Counter},
        family::Family,
        gauge::ConstGauge,
        histogram::Histogram,
    },
    registry::{Registry, Unit},
};

use crate::{caches::Caches, progress::Reports};

/// The form of the answer.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// What a job is said to be in before its first status.
const NEW: &str = "New";

/// Upper bounds of the seconds of a pass: most need no call, and a call takes ten at the most.
const SECONDS: [f64; 9] = [0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0];

/// What a process has counted since it began.
#[derive(Debug)]
pub struct Metrics {
    registry: Mutex<Registry>,
    passes: Family<[(&'static str, &'static str); 1], Counter>,
    seconds: Histogram,
    writes: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("penstock");
        let (passes, seconds, writes) = (Family::default(), Histogram::new(SECONDS), Counter::default());
        registry.register("reconciles", "Passes over a BatchJob, by outcome", passes.clone());
        let reconcile = "What a pass over a BatchJob took";
        registry.register_with_unit("reconcile", reconcile, Unit::Seconds, seconds.clone());
        registry.register("status_writes", "Statuses that were written", writes.clone());
        Self { registry: Mutex::new(registry), passes, seconds, writes }
    }
}

impl Metrics {
    /// A pass has ended.
    pub fn passed(&self, took: Duration, well: bool) {
        self.passes.get_or_create(&[("outcome", if well { "done" } else { "failed" })]).inc();
        self.seconds.observe(took.as_secs_f64());
    }

    /// A status was written.
    pub fn wrote_status(&self) {
        self.writes.inc();
    }

    /// This replica leads: from now on it knows of jobs and hears their executors.
    pub fn leads(&self, caches: Arc<Caches>, reports: Arc<Reports>) {
        self.registry().register_collector(Box::new(Led { caches, reports }));
    }

    /// Everything that was counted, in the text format of `OpenMetrics`.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut told = String::new();
        text::encode(&mut told, &self.registry())?;
        Ok(told)
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        // Nothing panics while it holds this lock.
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What only the replica that leads knows, counted when it is asked for.
#[derive(Debug)]
struct Led {
    caches: Arc<Caches>,
    reports: Arc<Reports>,
}

impl Collector for Led {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let mut jobs = encoder.encode_descriptor("jobs", "BatchJobs, by state", None, MetricType::Gauge)?;
        for (state, count) in by_state(self.caches.states()) {
            ConstGauge::new(count).encode(jobs.encode_family(&[("state", state)])?)?;
        }
        let help = "Reports of executors that were taken in";
        let reports = encoder.encode_descriptor("reports", help, None, MetricType::Counter)?;
        ConstCounter::new(self.reports.taken()).encode(reports)
    }
}

/// How many jobs are in each state. A state without one is told too: a series that comes and goes cannot be watched.
fn by_state(states: impl IntoIterator<Item = Option<State>>) -> BTreeMap<String, i64> {
    let name = |state: Option<State>| state.map_or_else(|| NEW.to_owned(), |state| state.to_string());
    let every = State::ALL.map(Some).into_iter().chain([None]);
    let mut counts: BTreeMap<_, _> = every.map(|state| (name(state), 0)).collect();
    for state in states {
        *counts.entry(name(state)).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use kube::runtime::reflector;

    use super::*;

    #[test]
    fn a_replica_that_waits_counts_nothing_of_jobs() {
        let told = Metrics::default().text().unwrap();
        assert!(told.contains("penstock_status_writes_total 0\n"), "{told}");
        assert!(!told.contains("penstock_jobs"), "{told}");
        assert!(told.ends_with("# EOF\n"), "{told}");
    }

    #[test]
    fn passes_are_counted_by_outcome_and_timed() {
        let metrics = Metrics::default();
        metrics.passed(Duration::from_millis(3), true);
        metrics.passed(Duration::from_millis(300), false);
        metrics.wrote_status();
        let told = metrics.text().unwrap();
        for line in [
            "penstock_reconciles_total{outcome=\"done\"} 1\n",
            "penstock_reconciles_total{outcome=\"failed\"} 1\n",
            "penstock_reconcile_seconds_bucket{le=\"0.005\"} 1\n",
            "penstock_reconcile_seconds_bucket{le=\"0.5\"} 2\n",
            "penstock_reconcile_seconds_count 2\n",
            "penstock_status_writes_total 1\n",
        ] {
            assert!(told.contains(line), "{line} in\n{told}");
        }
    }

    #[test]
    fn the_leader_tells_of_every_state_and_of_the_reports() {
        let metrics = Metrics::default();
        let caches = Caches::new(
            reflector::store().0,
            reflector::store().0,
            reflector::store().0,
            reflector::store().0,
        );
        metrics.leads(Arc::new(caches), Arc::default());
        let told = metrics.text().unwrap();
        for state in State::ALL.map(|state| state.to_string()).iter().map(String::as_str).chain([NEW]) {
            assert!(told.contains(&format!("penstock_jobs{{state=\"{state}\"}} 0\n")), "{state} in\n{told}");
        }
        assert!(told.contains("penstock_reports_total 0\n"), "{told}");
    }

    #[test]
    fn each_job_is_counted_once() {
        let counts = by_state([Some(State::Running), None, Some(State::Running)]);
        assert_eq!((counts["Running"], counts[NEW], counts["Queued"]), (2, 1, 0));
        assert_eq!(counts.values().sum::<i64>(), 3);
    }
}
