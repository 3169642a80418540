//! One line for logs and pipes. Pure.

use super::{
    Moment, done, live, outcomes,
    quantity::{grouped, percent, request_rate},
    stage_word, throttled_share,
};

/// A moment in one line.
pub(super) fn line(moment: &Moment<'_>) -> String {
    let progress = moment.progress;
    if progress.lines == 0 {
        return stage_word(progress.stage).to_owned();
    }
    let done = done(progress);
    let requests = request_rate(moment.pace.requests_per_second());
    let eta = live::eta(moment.remaining());
    let mut text = format!(
        "{}  {}  {} / {}  {} · in flight {} · {requests} · 429s {} · ETA {eta}",
        stage_word(progress.stage),
        percent(done, progress.lines),
        grouped(done),
        grouped(progress.lines),
        outcomes::counts(&progress.outcomes.with_rejected(progress.rejected)),
        grouped(progress.in_flight),
        throttled_share(progress.throttled, progress.sent),
    );
    if let Some(cost) = &progress.spent.cost {
        text = format!("{text} · {cost}");
    }
    if let Some((reason, evidence)) = &progress.reason {
        text = format!("{text} · {reason}: {evidence}");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use penstock_executor::{Progress, Stage};
    use penstock_job::Reason;

    use super::*;
    use crate::view::pace::Pace;

    #[test]
    fn one_line_holds_state_progress_and_reason() {
        let progress = Progress {
            stage: Stage::Running,
            lines: 300,
            rejected: 3,
            in_flight: 9,
            reason: Some((Reason::AtOwnLimit, "60 a minute".to_owned())),
            ..Progress::default()
        };
        let pace = Pace::default();
        let moment = Moment {
            heading: "in",
            progress: &progress,
            pace: &pace,
            elapsed: Duration::ZERO,
            stopping: None,
        };
        assert_eq!(
            line(&moment),
            "running  1.0 %  3 / 300  succeeded 0 · failed 0 · rejected 3 · in flight 9 · - requests/s · 429s 0.0 % · ETA - · \
             AtOwnLimit: 60 a minute"
        );
    }
}
