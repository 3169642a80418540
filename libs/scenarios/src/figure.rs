//! The figures that a scenario can ask for, and the ranges in which they must lie.

use std::fmt;

use penstock_simulator::rate::{Measures, Settled};
use serde::{Deserialize, Serialize};

/// One figure of a course. Shares are from 0 to 1, times in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// What was admitted, of what the limit admits in the long run.
    Utilisation,
    /// Requests refused for the rate, of all that were sent.
    Refused,
    /// Requests that found no room, of all that were sent.
    Overloaded,
    /// Time until the limit was used to 90 %.
    #[serde(rename = "time_to_90_percent")]
    TimeTo90Percent,
    /// Time until that was so again after the limit fell: the longest.
    SettledAfterCut,
    /// Time until that was so again after the limit rose: the longest.
    SettledAfterRaise,
    /// Jain's index over the last ten minutes.
    Fairness,
    /// What the worst job got of its even part of the limit in the last ten minutes.
    LeastPart,
    /// Time from the beginning of the last job until a minute began whose Jain's index was 0.99 or more.
    TimeToFairness,
    /// The part of a saturating server's capacity that was used.
    Work,
    /// Requests that waited at a saturating server on average, in parts of its slots.
    Waiting,
    /// Time that an answer took on average.
    Latency,
    /// Time until the last job had all its answers.
    FinishedAfter,
    /// The most that one job had in flight.
    MostInFlight,
}

impl Figure {
    /// Its value; `None` where the course did not get so far.
    pub fn of(self, measures: &Measures) -> Option<f64> {
        match self {
            Self::Utilisation => measures.utilisation,
            Self::Refused => Some(measures.refused),
            Self::Overloaded => Some(measures.overloaded),
            Self::TimeTo90Percent => measures.seconds_to_90_percent,
            Self::SettledAfterCut => longest(&measures.settled, false),
            Self::SettledAfterRaise => longest(&measures.settled, true),
            Self::Fairness => Some(measures.fairness),
            Self::LeastPart => Some(measures.least_part),
            Self::TimeToFairness => measures.seconds_to_fairness,
            Self::Work => measures.work,
            Self::Waiting => measures.waiting,
            Self::Latency => Some(measures.latency_seconds),
            Self::FinishedAfter => measures.finished_after_seconds,
            Self::MostInFlight => Some(measures.most_in_flight.into()),
        }
    }

    /// A value of this figure for people.
    pub fn worded(self, value: f64) -> String {
        match self {
            Self::Utilisation | Self::Work => format!("{:.1} %", 100.0 * value),
            Self::Refused | Self::Overloaded => format!("{:.2} %", 100.0 * value),
            Self::Fairness | Self::LeastPart | Self::Waiting => format!("{value:.3}"),
            Self::MostInFlight => format!("{value:.0}"),
            _ => format!("{value:.0} s"),
        }
    }
}

/// The longest of these changes; `None` if there was none, or if one did not settle.
fn longest(settled: &[Settled], raised: bool) -> Option<f64> {
    let times: Option<Vec<f64>> =
        settled.iter().filter(|settled| settled.raised == raised).map(|settled| settled.seconds).collect();
    times?.into_iter().max_by(f64::total_cmp)
}

impl fmt::Display for Figure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Utilisation => "utilisation",
            Self::Refused => "refused",
            Self::Overloaded => "found no room",
            Self::TimeTo90Percent => "90 % reached after",
            Self::SettledAfterCut => "settled after a cut",
            Self::SettledAfterRaise => "settled after a raise",
            Self::Fairness => "fairness",
            Self::LeastPart => "least part of a job",
            Self::TimeToFairness => "fair after",
            Self::Work => "work",
            Self::Waiting => "waiting, in slots",
            Self::Latency => "latency",
            Self::FinishedAfter => "finished after",
            Self::MostInFlight => "most in flight",
        })
    }
}

/// A value of a figure for people, whether or not it was reached.
pub(crate) fn worded(figure: Figure, value: Option<f64>) -> String {
    value.map_or_else(|| "never".to_owned(), |value| figure.worded(value))
}

/// The range of one figure: of each course, and of the mean over all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bounds {
    /// No course is below it.
    pub least: Option<f64>,
    /// No course is above it.
    pub most: Option<f64>,
    /// The mean is not below it.
    pub mean_least: Option<f64>,
    /// The mean is not above it.
    pub mean_most: Option<f64>,
}

impl Bounds {
    /// The range of this figure for people.
    pub fn worded(self, figure: Figure) -> String {
        let sides = [
            ("at least", self.least),
            ("at most", self.most),
            ("on average at least", self.mean_least),
            ("on average at most", self.mean_most),
        ];
        let sides = sides.into_iter().filter_map(|(side, bound)| Some((side, bound?)));
        let sides: Vec<_> = sides.map(|(side, bound)| format!("{side} {}", figure.worded(bound))).collect();
        sides.join(", ")
    }

    /// Whether the figure of one course lies in the range. What was never reached does not.
    pub fn admit(self, value: Option<f64>) -> bool {
        within(self.least, self.most, value)
    }

    /// Whether the mean over all courses lies in the range.
    pub fn admit_mean(self, values: &[Option<f64>]) -> bool {
        if self.mean_least.is_none() && self.mean_most.is_none() {
            return true;
        }
        within(self.mean_least, self.mean_most, mean(values))
    }
}

/// The mean; `None` if a value is missing.
pub(crate) fn mean(values: &[Option<f64>]) -> Option<f64> {
    let known: Option<Vec<f64>> = values.iter().copied().collect();
    let count = u32::try_from(values.len()).ok().filter(|count| *count > 0)?;
    Some(known?.into_iter().sum::<f64>() / f64::from(count))
}

fn within(least: Option<f64>, most: Option<f64>, value: Option<f64>) -> bool {
    if least.is_none() && most.is_none() {
        return true;
    }
    value.is_some_and(|value| {
        least.is_none_or(|least| value >= least) && most.is_none_or(|most| value <= most)
    })
}
