//! Every scenario that comes with the program, in virtual time: the figures of each rule lie in their ranges.

use penstock_scenarios::{NAMES, Scenario, named};

/// Runs every case under every rule that the scenario has ranges for.
fn holds(name: &str) {
    let scenario = named(name).expect("it comes with the program").expect("it can be read");
    let cases = scenario.cases(1);
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
}

#[test]
fn a_misspelt_field_is_refused() {
    let text = "about: a\nrequests_per_minute: 1\nexpect: {aimd: {utilisation: {lest: 1}}}";
    let message = Scenario::read(text).unwrap_err().to_string();
    assert!(message.contains("lest"), "{message}");
}
