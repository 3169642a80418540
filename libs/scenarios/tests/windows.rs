//! Windows that start anew at even intervals.

mod judged;

use penstock_scenarios::Figure;
use penstock_simulator::Enforcement;

/// A window of ten seconds was taken for one that slides, which others seemed to use as well, or for one that holds a request
/// less than it did.
#[test]
fn a_window_of_ten_seconds_is_used_to_its_last_request() {
    let of = |figure| {
        let values = (9..=12).map(|seed| {
            judged::figure("steady-500", Enforcement::FixedTenSeconds, seed, figure).expect("it is measured")
        });
        values.sum::<f64>() / 4.0
    };
    let [used, refused] = [Figure::Utilisation, Figure::Refused].map(of);
    assert!(used > 0.985 && refused < 0.004, "{used:.4} used, {refused:.5} refused");
}
