//! Every scenario that comes with the program, in virtual time: the figures of each rule lie in their ranges.

use penstock_scenarios::{NAMES, Scenario, named};

/// How often a scenario is drawn. How several jobs come to divide a limit is more a matter of chance than the rest.
fn seeds(scenario: &Scenario) -> u64 {
    if scenario.jobs.len() > 1 { 4 } else { 1 }
}

/// Runs every case under every rule that the scenario has ranges for.
fn holds(name: &str) {
    let scenario = named(name).expect("it comes with the program").expect("it can be read");
    let cases = scenario.cases(seeds(&scenario));
    for rule in scenario.expect.keys() {
        let judged: Vec<_> = cases.iter().map(|case| scenario.judge(*rule, *case)).collect();
        for held in scenario.held(*rule, &judged) {
            assert!(
                held.holds,
                "{name}: {} of {rule} is {:?}, not in {:?}",
                held.figure, held.values, held.bounds
            );
        }
    }
}

/// One test for each scenario, so that they run side by side, and one that none is forgotten.
macro_rules! scenarios {
    ($($test:ident: $name:literal,)*) => {
        $(#[test] fn $test() { holds($name); })*

        #[test]
        fn every_scenario_is_tested() {
            assert_eq!(NAMES, [$($name),*]);
        }
    };
}

scenarios! {
    steady_10: "steady-10",
    steady_60: "steady-60",
    steady_500: "steady-500",
    steady_3500: "steady-3500",
    steady_10000: "steady-10000",
    steady_30000: "steady-30000",
    steps_60: "steps-60",
    steps_500: "steps-500",
    steps_3500: "steps-3500",
    steps_10000: "steps-10000",
    headers_honest_60: "headers-honest-60",
    headers_honest_500: "headers-honest-500",
    headers_honest_3500: "headers-honest-3500",
    headers_honest_10000: "headers-honest-10000",
    headers_honest_30000: "headers-honest-30000",
    headers_honest_steps_500: "headers-honest-steps-500",
    headers_honest_steps_3500: "headers-honest-steps-3500",
    headers_doubled_500: "headers-doubled-500",
    headers_doubled_3500: "headers-doubled-3500",
    headers_daily_3500: "headers-daily-3500",
    retry_after_60: "retry-after-60",
    retry_after_500: "retry-after-500",
    refusals_count_10: "refusals-count-10",
    refusals_count_60: "refusals-count-60",
    refusals_count_500: "refusals-count-500",
    refusals_count_3500: "refusals-count-3500",
    tokens_reserved: "tokens-reserved",
    tokens_actual: "tokens-actual",
    tokens_actual_untold: "tokens-actual-untold",
    tokens_refunded: "tokens-refunded",
    tokens_refunded_sliding: "tokens-refunded-sliding",
    tokens_unnamed: "tokens-unnamed",
    tokens_headers: "tokens-headers",
    saturation_slots: "saturation-slots",
    saturation_slots_metrics: "saturation-slots-metrics",
    saturation_batching: "saturation-batching",
    saturation_batching_metrics: "saturation-batching-metrics",
    saturation_bounded_queue: "saturation-bounded-queue",
    saturation_bounded_queue_metrics: "saturation-bounded-queue-metrics",
    two_jobs_500: "two-jobs-500",
    two_jobs_3500: "two-jobs-3500",
    two_jobs_10000: "two-jobs-10000",
    two_jobs_ledger_2s: "two-jobs-ledger-2s",
    two_jobs_ledger_10s: "two-jobs-ledger-10s",
    two_jobs_ledger_bounded: "two-jobs-ledger-bounded",
    ten_jobs_ledger: "ten-jobs-ledger",
    warm_start_500: "warm-start-500",
    warm_start_3500: "warm-start-3500",
    warm_start_10000: "warm-start-10000",
    warm_start_too_high: "warm-start-too-high",
    warm_start_too_low: "warm-start-too-low",
    warm_start_tokens: "warm-start-tokens",
    small_job: "small-job",
    small_job_at_500: "small-job-at-500",
}

#[test]
fn a_misspelt_field_is_refused() {
    let text = "about: a\nrequests_per_minute: 1\nexpect: {aimd: {utilisation: {lest: 1}}}";
    let message = Scenario::read(text).unwrap_err().to_string();
    assert!(message.contains("lest"), "{message}");
}
