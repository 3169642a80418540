//! How long after sending a request it is known not to be refused.

/// Seconds until a refusal is taken to come, before the first came.
const UNKNOWN: f64 = 1.0;
/// What timers and scheduling add, in seconds.
const SLACK: f64 = 0.02;
/// No refusal is waited for longer than this.
const LONGEST: f64 = 10.0;

/// The smoothed time in which refusals come back and its mean deviation, as TCP does it for round trips (RFC 6298).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct VerdictDelay(Option<Measured>);

#[derive(Clone, Copy, Debug)]
struct Measured {
    mean: f64,
    deviation: f64,
}

impl VerdictDelay {
    /// A refusal came back after this many seconds.
    pub(super) fn observe(&mut self, seconds: f64) {
        let seconds = seconds.clamp(0.0, LONGEST);
        let measured = match self.0 {
            None => Measured { mean: seconds, deviation: seconds / 2.0 },
            Some(Measured { mean, deviation }) => Measured {
                mean: mean + (seconds - mean) / 16.0,
                deviation: deviation + ((seconds - mean).abs() - deviation) / 16.0,
            },
        };
        self.0 = Some(measured);
    }

    /// Seconds after which what was not refused counts as admitted.
    pub(super) fn until_known(self) -> f64 {
        self.0.map_or(UNKNOWN, |Measured { mean, deviation }| (mean + 4.0 * deviation + SLACK).min(LONGEST))
    }

    /// Seconds in which most refusals are back.
    pub(super) fn mostly(self) -> f64 {
        self.0.map_or(UNKNOWN, |Measured { mean, deviation }| mean + deviation)
    }
}
