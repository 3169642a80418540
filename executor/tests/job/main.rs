//! Whole jobs in one process, against the provider double, over a backend in memory and over a folder. What is checked
//! is checked from outside: the published files, the receipt, and the log of the double.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod adaptive;
mod budget;
mod endings;
mod faults;
mod launch;
mod outcomes;
mod providers;
mod reading_ahead;
mod refusals;
mod repairs;
mod scenario;
mod stopping;
mod succession;
mod trouble;
