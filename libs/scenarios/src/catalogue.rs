//! The scenarios that come with the program.

use crate::{Scenario, ScenarioError};

/// Names and files.
macro_rules! catalogue {
    ($($name:literal),* $(,)?) => {
        /// The names of the scenarios that come with the program.
        pub const NAMES: &[&str] = &[$($name),*];

        /// The scenario of this name, if it comes with the program.
        pub fn named(name: &str) -> Option<Result<Scenario, ScenarioError>> {
            match name {
                $($name => Some(Scenario::read(include_str!(concat!("../scenarios/", $name, ".yaml")))),)*
                _ => None,
            }
        }
    };
}

catalogue![
    "steady-10",
    "steady-60",
    "steady-500",
    "steady-3500",
    "steady-10000",
    "steady-30000",
    "steps-60",
    "steps-500",
    "steps-3500",
    "steps-10000",
    "headers-honest-60",
    "headers-honest-500",
    "headers-honest-3500",
    "headers-honest-10000",
    "headers-honest-30000",
    "headers-honest-steps-500",
    "headers-honest-steps-3500",
    "headers-doubled-500",
    "headers-doubled-3500",
    "headers-daily-3500",
    "retry-after-60",
    "retry-after-500",
    "refusals-count-10",
    "refusals-count-60",
    "refusals-count-500",
    "refusals-count-3500",
    "tokens-reserved",
    "tokens-actual",
    "tokens-actual-untold",
    "tokens-refunded",
    "tokens-refunded-sliding",
    "tokens-unnamed",
    "tokens-headers",
    "saturation-slots",
    "saturation-slots-metrics",
    "saturation-batching",
    "saturation-batching-metrics",
    "saturation-bounded-queue",
    "saturation-bounded-queue-metrics",
    "two-jobs-500",
    "two-jobs-3500",
    "two-jobs-10000",
    "two-jobs-ledger-2s",
    "two-jobs-ledger-10s",
    "two-jobs-ledger-bounded",
    "ten-jobs-ledger",
    "warm-start-500",
    "warm-start-3500",
    "warm-start-10000",
    "warm-start-too-high",
    "warm-start-too-low",
    "warm-start-tokens",
    "small-job",
    "small-job-at-500",
];
