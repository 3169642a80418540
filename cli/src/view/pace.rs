//! Rates over the last seconds, and the time that is left. Pure: takes the time with each sample.
//!
//! What was adopted from earlier runs counts as done but not as speed.

use std::{collections::VecDeque, time::Duration};

use penstock_executor::Progress;

use super::done;

/// Time between two samples.
const SPACING: Duration = Duration::from_secs(1);
/// How many samples are kept: two minutes, so that a provider's minute shows whole.
const KEPT: usize = 121;
/// Rates are told over so many of the newest samples.
const RECENT: usize = 10;
/// Fewer intervals say nothing about what is left.
const FEWEST: usize = 5;

/// The counters at one moment.
#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Duration,
    done: u64,
    sent: u64,
    tokens: u64,
}

/// The newest samples of a run.
#[derive(Debug, Default)]
pub(super) struct Pace {
    samples: VecDeque<Sample>,
}

/// How long it takes until every line is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Remaining {
    pub(super) expected: Duration,
    pub(super) low: Duration,
    pub(super) high: Duration,
}

impl Pace {
    /// Takes note of the counters `at` some time after the start.
    pub(super) fn record(&mut self, at: Duration, progress: &Progress) {
        if self.samples.back().is_some_and(|last| at < last.at + SPACING) {
            return;
        }
        if self.samples.len() == KEPT {
            self.samples.pop_front();
        }
        let adopted = progress.adopted + progress.rejected;
        self.samples.push_back(Sample {
            at,
            done: done(progress).saturating_sub(adopted),
            sent: progress.sent,
            tokens: progress.spent.tokens.total().saturating_sub(progress.spent.before),
        });
    }

    /// Requests per second, lately.
    pub(super) fn requests_per_second(&self) -> Option<f64> {
        self.recent(|sample| sample.sent)
    }

    /// Tokens per minute, lately.
    pub(super) fn tokens_per_minute(&self) -> Option<f64> {
        self.recent(|sample| sample.tokens).map(|per_second| per_second * 60.0)
    }

    fn recent(&self, counter: impl Fn(&Sample) -> u64) -> Option<f64> {
        let newest = self.samples.back()?;
        let oldest = self.samples.get(self.samples.len().saturating_sub(RECENT + 1))?;
        per_second(oldest, newest, counter)
    }

    /// The time until `left` more lines are done: the mean rate, and two standard errors of it to either side. `None`
    /// until there is enough to tell, and while the error is as large as the rate.
    pub(super) fn remaining(&self, left: u64) -> Option<Remaining> {
        let intervals = self.samples.iter().zip(self.samples.iter().skip(1));
        let rates: Vec<f64> =
            intervals.filter_map(|(from, to)| per_second(from, to, |sample| sample.done)).collect();
        if rates.len() < FEWEST {
            return None;
        }
        let count = precise(rates.len() as u64);
        let mean = rates.iter().sum::<f64>() / count;
        let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let error = 2.0 * (variance / count).sqrt();
        if mean <= error {
            return None;
        }
        let time = |rate: f64| Duration::try_from_secs_f64(precise(left) / rate).ok();
        Some(Remaining { expected: time(mean)?, low: time(mean + error)?, high: time(mean - error)? })
    }
}

fn per_second(from: &Sample, to: &Sample, counter: impl Fn(&Sample) -> u64) -> Option<f64> {
    let seconds = to.at.saturating_sub(from.at).as_secs_f64();
    (seconds > 0.0).then(|| precise(counter(to).saturating_sub(counter(from))) / seconds)
}

/// Counts stay far below the 2^53 that an `f64` holds exactly.
#[expect(clippy::cast_precision_loss, reason = "see above")]
fn precise(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use penstock_job::state::PartOutcomes;

    use super::*;

    fn progress(succeeded: u64, adopted: u64) -> Progress {
        Progress {
            lines: 1_000,
            adopted,
            sent: succeeded - adopted,
            outcomes: PartOutcomes { succeeded, ..PartOutcomes::default() },
            ..Progress::default()
        }
    }

    fn paced(done_by_second: impl Fn(u64) -> u64, seconds: u64, adopted: u64) -> Pace {
        let mut pace = Pace::default();
        for second in 0..=seconds {
            let moment = Duration::from_secs(second);
            pace.record(moment, &progress(adopted + done_by_second(second), adopted));
            pace.record(
                moment + Duration::from_millis(200),
                &progress(adopted + done_by_second(second), adopted),
            );
        }
        pace
    }

    #[test]
    fn a_steady_rate_leaves_no_doubt() {
        let remaining = paced(|second| second * 10, 20, 0).remaining(600).unwrap();
        let minute = Duration::from_mins(1);
        assert_eq!(remaining, Remaining { expected: minute, low: minute, high: minute });
    }

    #[test]
    fn what_was_adopted_is_no_speed() {
        let pace = paced(|second| second * 10, 20, 500);
        assert_eq!(pace.remaining(600).unwrap().expected, Duration::from_mins(1));
        assert_eq!(pace.requests_per_second(), Some(10.0));
    }

    #[test]
    fn an_uneven_rate_widens_the_interval() {
        let remaining = paced(|second| second * 10 + (second % 2) * 5, 60, 0).remaining(600).unwrap();
        assert!(remaining.low < remaining.expected && remaining.expected < remaining.high, "{remaining:?}");
    }

    #[test]
    fn nothing_is_told_before_it_means_something() {
        assert_eq!(paced(|second| second * 10, 4, 0).remaining(600), None);
        assert_eq!(paced(|_| 0, 60, 0).remaining(600), None);
        assert_eq!(paced(|second| u64::from(second > 59), 60, 0).remaining(600), None);
        assert_eq!(Pace::default().requests_per_second(), None);
    }

    #[test]
    fn memory_is_bounded() {
        assert_eq!(paced(|second| second, 1_000, 0).samples.len(), KEPT);
    }
}
