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

catalogue!["steady-10", "steady-60", "steady-500", "steady-3500", "steady-10000", "steady-30000",];
