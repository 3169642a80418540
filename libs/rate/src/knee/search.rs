//! What follows from the answers that were measured at a number in flight.

use std::time::Duration;

use super::change::KneeChange;
use super::trials::Trials;
use super::{Knee, Level, Stage};
use crate::throughput::{Answers, Throughput};

/// Twice as many in flight must yield this much more for another doubling.
const WORTH_DOUBLING: f64 = 0.25;
/// And this much more to stay there.
const WORTH_STAYING: f64 = 0.1;
/// More in flight must yield this share of the step more. Below the knee of a server whose batches gain from every
/// request it is a quarter and more, of one with fixed slots the whole.
const WORTH_MORE: f64 = 0.15;
/// Fewer in flight may cost this share of the step.
const WORTH_LESS: f64 = 0.08;
/// Where it stays unsure, a trial upwards must yield this share, and one downwards surely not cost that one.
const LIKELY: f64 = 0.25;
const CLEARLY: f64 = 0.4;
/// A trial that yields this share of its step shows that the knee is far above.
const FAR: f64 = 0.6;
/// A change of throughput at the same number that calls for trials at once.
const DRIFT: f64 = 0.05;

impl Knee {
    pub(super) fn consider(&mut self, now: Duration) -> Option<KneeChange> {
        let here = self.level.answers.throughput(self.level.in_flight);
        match self.stage {
            Stage::Unbounded(_) | Stage::Reading { .. } => None,
            Stage::Starting(before) => self.start(now, here, before),
            Stage::Holding(before, trials) => {
                self.hold(now, here, before, trials);
                None
            }
            Stage::Trying(base, trials) => self.judge(now, here, base, trials),
        }
    }

    /// Doubles the number as long as that is worth it.
    fn start(
        &mut self,
        now: Duration,
        here: Option<Throughput>,
        before: Option<Throughput>,
    ) -> Option<KneeChange> {
        let Level { in_flight, answers, .. } = self.level;
        if answers.count() < (in_flight / 4).max(16) {
            return None;
        }
        // Answers that take no time tell nothing, and call for no limit.
        let Some(here) = here else { return self.double(before) };
        let gain = before.map(|before| here.gain_over(&before));
        let unsure = gain.is_some_and(|gain| gain.least < WORTH_DOUBLING && gain.most > WORTH_DOUBLING);
        if unsure && answers.count() < in_flight.saturating_mul(2).max(64) {
            return None;
        }
        if gain.is_none_or(|gain| gain.likely >= WORTH_DOUBLING) && in_flight < self.highest() {
            return self.double(Some(here));
        }
        let enough = before.filter(|_| gain.is_some_and(|gain| gain.likely < WORTH_STAYING)).unwrap_or(here);
        self.go_to(enough.in_flight);
        self.stage = Stage::Holding(None, Trials::new(now));
        Some(KneeChange::Found { in_flight: self.level.in_flight, tried: in_flight })
    }

    fn double(&mut self, here: Option<Throughput>) -> Option<KneeChange> {
        self.stage = Stage::Starting(here);
        let before = self.level.in_flight;
        self.go_to(before.saturating_mul(2));
        (self.level.in_flight > before).then_some(KneeChange::Doubled { in_flight: self.level.in_flight })
    }

    /// Measures at the knee until the next trial is due.
    fn hold(
        &mut self,
        now: Duration,
        here: Option<Throughput>,
        before: Option<Throughput>,
        mut trials: Trials,
    ) {
        let Level { in_flight, answers, .. } = self.level;
        let count = answers.count();
        let Some(here) = here.filter(|_| count >= in_flight.saturating_mul(2).max(100)) else { return };
        if trials.are_due(now) {
            let other = trials.next(in_flight, self.highest());
            self.stage = match other {
                Some(_) => Stage::Trying(here, trials),
                None => Stage::Holding(Some(here), trials.after_failure(now)),
            };
            self.go_to(other.unwrap_or(in_flight));
        } else if count >= in_flight.saturating_mul(4).max(200) {
            let former = before.filter(|before| before.in_flight == in_flight);
            let gain = former.map(|former| here.gain_over(&former));
            if gain.is_some_and(|gain| gain.least > DRIFT || gain.most < -DRIFT) {
                trials = Trials::new(now);
            }
            self.level.answers = Answers::default();
            self.stage = Stage::Holding(Some(here), trials);
        }
    }

    /// Ends a trial once its outcome is sure, or as sure as it gets.
    fn judge(
        &mut self,
        now: Duration,
        here: Option<Throughput>,
        base: Throughput,
        trials: Trials,
    ) -> Option<KneeChange> {
        let Level { in_flight, answers, .. } = self.level;
        let measured = answers.count() >= (in_flight / 2).max(30);
        let here = here.filter(|_| measured)?;
        let gain = here.gain_over(&base);
        let step = f64::from(in_flight) / f64::from(base.in_flight) - 1.0;
        let upwards = step > 0.0;
        let threshold = step * if upwards { WORTH_MORE } else { WORTH_LESS };
        let unsure = gain.least < threshold && gain.most > threshold;
        if unsure && answers.count() < in_flight.saturating_mul(4).max(200) {
            return None;
        }
        // What stays unsure is mostly so because requests wait, where the lesser number will do.
        let worth_it = if upwards {
            gain.least > threshold || gain.likely > step * LIKELY
        } else {
            gain.likely > threshold || (gain.most > threshold && gain.least > step * CLEARLY)
        };
        if !worth_it {
            self.go_to(base.in_flight);
            self.stage = Stage::Holding(Some(base), trials.after_failure(now));
            return None;
        }
        if upwards && gain.likely > step * FAR {
            return self.double(Some(here));
        }
        self.stage = Stage::Holding(Some(here), trials.after_success(now));
        Some(KneeChange::Moved { from: base.in_flight, in_flight, gain: gain.likely })
    }
}
