//! Limits that the provider states.

use penstock_scenarios::{Case, Figure, Rule, named};
use penstock_simulator::Enforcement;

/// Before the first answer a job has asked for more than a bucket of one second holds. Those refusals, which state a limit of
/// which much is left, were taken for a contradiction: nothing that was stated was believed for ten minutes.
#[test]
fn what_is_stated_is_believed_though_the_first_requests_were_refused() {
    let scenario = named("tokens-headers").expect("it comes with the program").expect("it can be read");
    for seed in [4, 28] {
        let judged = scenario.judge(Rule::Adaptive, Case { enforcement: Enforcement::SecondBucket, seed });
        let of = |figure: Figure| figure.of(&judged.measures).expect("it is measured");
        let [used, refused] = [Figure::Utilisation, Figure::Refused].map(of);
        assert!(used > 0.985 && refused < 0.0005, "seed {seed}: {used:.3} used, {refused:.5} refused");
    }
}
