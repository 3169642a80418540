//! Limits that the provider states.

mod judged;

use penstock_scenarios::Figure;
use penstock_simulator::Enforcement;

/// Before the first answer a job has asked for more than a bucket of one second holds. Those refusals, which state a limit of
/// which much is left, were taken for a contradiction: nothing that was stated was believed for ten minutes.
#[test]
fn what_is_stated_is_believed_though_the_first_requests_were_refused() {
    for seed in [4, 28] {
        let of = |figure| judged::figure("tokens-headers", Enforcement::SecondBucket, seed, figure);
        let [used, refused] =
            [Figure::Utilisation, Figure::Refused].map(|figure| of(figure).expect("it is measured"));
        assert!(used > 0.985 && refused < 0.0005, "seed {seed}: {used:.3} used, {refused:.5} refused");
    }
}
