//! A change of a lane's rate and its cause.

use super::amount::Charging;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Turn {
    pub(super) at: f64,
    pub(super) to: f64,
    pub(super) why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Why {
    Refused,
    Edge,
    Stated,
    Shared,
    SlowDown,
    Overrun,
    Closed,
    Charged(Charging),
    Reopened { seconds: f64, window: Option<f64> },
}
