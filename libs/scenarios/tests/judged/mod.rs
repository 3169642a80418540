//! One figure of one draw of a named scenario.

use penstock_scenarios::{Case, Figure, Rule, named};
use penstock_simulator::Enforcement;

/// What `adaptive` reaches in it; `None` where the draw does not show it.
pub(crate) fn figure(name: &str, enforcement: Enforcement, seed: u64, figure: Figure) -> Option<f64> {
    let scenario = named(name).expect("it comes with the program").expect("it can be read");
    figure.of(&scenario.judge(Rule::Adaptive, Case { enforcement, seed }).measures)
}
