//! Decides what is shown when, by the kind of view that was asked for.

use std::time::{Duration, Instant};

use penstock_executor::{Progress, Stage};
use penstock_intake::{Progress as Reading, Stage as ReadingStage};
use penstock_job::ExitCode;

use super::{
    Moment, Screen, Summary, done,
    event::{Event, Picture},
    live,
    pace::Pace,
    plain,
    quantity::{grouped, percent},
};
use crate::{arguments::ViewArguments, lines::Lines};

/// Time between two lines where nobody watches.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);
/// Time between two progress events.
const EVENT_INTERVAL: Duration = Duration::from_secs(1);

/// The kind of view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// A panel, redrawn in place.
    Live,
    /// A line now and then.
    Plain,
    /// One JSON event a line.
    Json,
    /// Nothing before the end.
    Quiet,
}

impl Mode {
    fn of(arguments: ViewArguments, screen_is_live: bool) -> Self {
        match (arguments.json, arguments.quiet, screen_is_live) {
            (true, _, _) => Self::Json,
            (_, true, _) => Self::Quiet,
            (_, _, true) => Self::Live,
            (_, _, false) => Self::Plain,
        }
    }
}

/// What was shown last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Validating,
    Running(Stage),
}

/// Shows a run.
#[derive(Debug)]
pub(crate) struct Reporter {
    mode: Mode,
    screen: Screen,
    stdout: Lines,
    heading: String,
    started: Instant,
    pace: Pace,
    stopping: Option<Duration>,
    shown: Option<(Shown, Duration)>,
}

impl Reporter {
    /// A view of the job that is called `heading`; its clock starts.
    pub(crate) fn new(arguments: ViewArguments, screen: &Screen, heading: String) -> Self {
        Self {
            mode: Mode::of(arguments, screen.is_live()),
            screen: screen.clone(),
            stdout: Lines::stdout(),
            heading,
            started: Instant::now(),
            pace: Pace::default(),
            stopping: None,
            shown: None,
        }
    }

    /// Since the view's clock started.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Something that only programs want to know.
    pub(crate) fn event(&mut self, event: &Event<'_>) {
        if self.mode == Mode::Json {
            write(&mut self.stdout, &self.screen, event);
        }
    }

    /// Something that only people want to know.
    pub(crate) fn note(&self, text: &str) {
        if matches!(self.mode, Mode::Live | Mode::Plain) {
            self.screen.say(text);
        }
    }

    /// The input is being validated.
    pub(crate) fn validating(&mut self, reading: Reading) {
        let percent = reading.percent();
        let comparing_ids = reading.stage == ReadingStage::ComparingIds;
        if !self.due(Shown::Validating) {
            return;
        }
        let line = live::validating(&self.heading, percent, comparing_ids);
        match self.mode {
            Mode::Live => self.screen.draw(&[line]),
            Mode::Plain => self.screen.say(&line.text),
            Mode::Json => self.event(&Event::Validating { percent, comparing_ids }),
            Mode::Quiet => {}
        }
    }

    /// The job goes on.
    pub(crate) fn running(&mut self, progress: &Progress) {
        let elapsed = self.elapsed();
        self.pace.record(elapsed, progress);
        if !self.due(Shown::Running(progress.stage)) {
            return;
        }
        let moment =
            Moment { heading: &self.heading, progress, pace: &self.pace, elapsed, stopping: self.stopping };
        match self.mode {
            Mode::Live => self.screen.draw(&live::panel(&moment, Screen::columns())),
            Mode::Plain => self.screen.say(&plain::line(&moment)),
            Mode::Json => {
                write(&mut self.stdout, &self.screen, &Event::Progress(Box::new(Picture::of(&moment))));
            }
            Mode::Quiet => {}
        }
    }

    /// The run was asked to stop; answers are awaited for `wait` at most.
    pub(crate) fn stopping(&mut self, wait: Duration) {
        if self.stopping.is_some() {
            return;
        }
        self.stopping = Some(wait);
        match self.mode {
            Mode::Plain => self.note("stopping: what is known is stored; Ctrl-C again stops at once"),
            Mode::Json => self.event(&Event::Stopping { wait_seconds: wait.as_secs() }),
            Mode::Live | Mode::Quiet => {}
        }
    }

    /// The job is over.
    pub(crate) fn finished(&mut self, summary: &Summary<'_>) {
        self.screen.clear();
        match self.mode {
            Mode::Json => self.event(&summary.event()),
            Mode::Live | Mode::Plain | Mode::Quiet => self.screen.say(&summary.text()),
        }
    }

    /// The run stopped as asked.
    pub(crate) fn stopped(&mut self, progress: &Progress) {
        self.screen.clear();
        let (done, lines) = (done(progress), progress.lines);
        match self.mode {
            Mode::Json => {
                self.event(&Event::Stopped { done, lines, exit_code: ExitCode::Stopped.code() });
            }
            Mode::Live | Mode::Plain | Mode::Quiet if lines == 0 => {
                self.screen.say("stopped before anything was sent; the same command begins again");
            }
            Mode::Live | Mode::Plain | Mode::Quiet => self.screen.say(&format!(
                "stopped: {} of {} lines are done ({}); the same command goes on from here",
                grouped(done),
                grouped(lines),
                percent(done, lines)
            )),
        }
    }

    /// Whether it is time to show `shown`.
    fn due(&mut self, shown: Shown) -> bool {
        let interval = match self.mode {
            Mode::Live => return true,
            Mode::Plain => PLAIN_INTERVAL,
            Mode::Json => EVENT_INTERVAL,
            Mode::Quiet => return false,
        };
        let now = self.elapsed();
        let due = is_due(self.shown, shown, now, interval);
        if due {
            self.shown = Some((shown, now));
        }
        due
    }
}

/// Writes an event; a job is worth more than the account of it.
fn write(stdout: &mut Lines, screen: &Screen, event: &Event<'_>) {
    stdout.json(event);
    if let Err(error) = stdout.flush() {
        screen.say(&format!("failed to {error}; the job goes on without events"));
    }
}

/// It is something else than before, or `interval` has passed.
fn is_due(last: Option<(Shown, Duration)>, next: Shown, now: Duration, interval: Duration) -> bool {
    last.is_none_or(|(shown, at)| shown != next || now >= at + interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_view_follows_the_flags_and_then_the_terminal() {
        let arguments = |json, quiet| ViewArguments { json, quiet };
        for (json, quiet, live, mode) in [
            (true, false, true, Mode::Json),
            (false, true, true, Mode::Quiet),
            (false, false, true, Mode::Live),
            (false, false, false, Mode::Plain),
        ] {
            assert_eq!(Mode::of(arguments(json, quiet), live), mode);
        }
    }

    #[test]
    fn a_line_is_due_when_the_stage_changes_or_time_has_passed() {
        let running = Shown::Running(Stage::Running);
        let second = Duration::from_secs;
        assert!(is_due(None, running, second(0), PLAIN_INTERVAL));
        assert!(is_due(Some((Shown::Validating, second(1))), running, second(1), PLAIN_INTERVAL));
        assert!(!is_due(Some((running, second(1))), running, second(5), PLAIN_INTERVAL));
        assert!(is_due(Some((running, second(1))), running, second(6), PLAIN_INTERVAL));
        assert!(is_due(
            Some((running, second(5))),
            Shown::Running(Stage::Draining),
            second(5),
            PLAIN_INTERVAL
        ));
    }
}
