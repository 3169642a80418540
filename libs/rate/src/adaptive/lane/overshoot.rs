//! A search that went beyond an edge that is met one request at a time.
//!
//! A bucket that holds a single request admits every second one of those that come a little too fast, so the usual small
//! steps back would meet it again and again before they are below it. Each that meets it sooner than it is meant to be met
//! is followed by one of twice the share, but never to below where the edge was before the search: a second job that uses
//! up the same limit also brings refusals too soon, and who gives way to those is left with nothing.

use super::{Lane, Stage};

/// An edge is met too soon after less than this share of the time that is meant to lie between two visits.
const TOO_SOON: f64 = 0.25;
/// The longest step.
const MOST: f64 = 0.1;

/// Lasts until the edge is as far away as it is meant to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overshoot {
    /// The rate at which the edge was met before the search.
    known: f64,
    /// The share of the last step back.
    step: f64,
}

impl Lane {
    /// The share of a step back from an edge that is met one request at a time, where `usual` would be the share of any other.
    pub(super) fn step_from_overshoot(&mut self, now: f64, usual: f64) -> f64 {
        let before = self.overshoot.take().filter(|_| now - self.clean_since < TOO_SOON * self.period());
        if !self.is_rare() || !matches!(self.stage, Stage::Riding) {
            return usual;
        }
        if self.is_searching(now) {
            self.overshoot = self.ceiling.map(|known| Overshoot { known, step: usual });
            return usual;
        }
        let Some(Overshoot { known, step }) = before else { return usual };
        let step = (2.0 * step).min(MOST);
        self.overshoot = Some(Overshoot { known, step });
        let back = 1.0 - (1.0 - self.step_back(now)) * known / self.rate;
        usual.max(step.min(back))
    }
}
