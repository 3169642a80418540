//! What a run shows of itself. The renderers are pure functions of a [`Moment`]; [`Reporter`] decides when to show one,
//! and [`Screen`] is the only one that touches the terminal.
//!
//! | module | owns |
//! |---|---|
//! | `live` | the panel on a terminal |
//! | `plain` | a line every few seconds where nobody watches |
//! | `event` | one JSON object a line, for programs |
//! | `pace` | rates, and the time that is left with its uncertainty |
//! | `outcomes` | what became of the lines, in words |
//! | `quantity` | numbers and durations as people read them |
//! | `summary` | the last lines |

mod event;
mod live;
pub(crate) mod outcomes;
mod pace;
mod plain;
mod quantity;
mod reporter;
mod screen;
mod summary;

use std::time::Duration;

use penstock_executor::{Progress, Stage};

use self::pace::{Pace, Remaining};
pub(crate) use self::{
    event::Event,
    quantity::{duration, grouped, percent},
    reporter::Reporter,
    screen::Screen,
    summary::{Summary, ending_exit_code, used},
};

/// Everything that one picture of a run is drawn from.
#[derive(Debug, Clone, Copy)]
struct Moment<'a> {
    /// What the job is, for headings.
    heading: &'a str,
    progress: &'a Progress,
    pace: &'a Pace,
    /// Since the run began.
    elapsed: Duration,
    /// How long answers are awaited, once the run was asked to stop.
    stopping: Option<Duration>,
}

impl Moment<'_> {
    /// The time until every line is done; a run that was asked to stop will not see that.
    fn remaining(&self) -> Option<Remaining> {
        let left = self.progress.lines.saturating_sub(done(self.progress));
        if self.stopping.is_none() { self.pace.remaining(left) } else { None }
    }
}

/// Lines with an outcome, the rejected ones among them.
fn done(progress: &Progress) -> u64 {
    progress.rejected + progress.outcomes.total()
}

/// What a run is doing, as a word.
const fn stage_word(stage: Stage) -> &'static str {
    match stage {
        Stage::Claiming => "starting",
        Stage::Running => "running",
        Stage::Held => "held",
        Stage::Draining => "stopping",
        Stage::Ending => "ending",
        Stage::Reconciling => "checking",
        Stage::Publishing => "publishing",
    }
}

/// The share of requests that were refused for the rate, such as `0.4 %`.
fn throttled_share(throttled: u64, sent: u64) -> String {
    if sent == 0 {
        return "0.0 %".to_owned();
    }
    let per_mille = (u128::from(throttled) * 1_000).div_ceil(u128::from(sent));
    format!("{}.{} %", per_mille / 10, per_mille % 10)
}

#[cfg(test)]
mod tests {
    use penstock_job::state::PartOutcomes;

    use super::*;

    #[test]
    fn a_run_that_is_stopping_has_no_time_left_to_tell() {
        let mut pace = Pace::default();
        for second in 0..60 {
            let outcomes = PartOutcomes { succeeded: second, ..PartOutcomes::default() };
            pace.record(
                Duration::from_secs(second),
                &Progress { lines: 300, outcomes, ..Progress::default() },
            );
        }
        let progress = Progress { lines: 300, ..Progress::default() };
        let moment = Moment {
            heading: "in",
            progress: &progress,
            pace: &pace,
            elapsed: Duration::ZERO,
            stopping: None,
        };
        assert!(moment.remaining().is_some());
        assert_eq!(Moment { stopping: Some(Duration::ZERO), ..moment }.remaining(), None);
    }

    #[test]
    fn a_single_refusal_shows_in_the_share() {
        assert_eq!(throttled_share(0, 0), "0.0 %");
        assert_eq!(throttled_share(0, 9), "0.0 %");
        assert_eq!(throttled_share(1, 1_000_000), "0.1 %");
        assert_eq!(throttled_share(4, 1_000), "0.4 %");
        assert_eq!(throttled_share(9, 9), "100.0 %");
    }
}
