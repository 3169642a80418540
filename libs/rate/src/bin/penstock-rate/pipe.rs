//! The pipe: one event per line in, one answer per line out.
//!
//! ```text
//! in   S <now>                                                   start
//!      D <now> <index> <tokens_in> <max_tokens>                  request <index> has gone out
//!      R <now> <index> <t_sent> <ok 0|1> <label|-> <tokens_out> <retry_after|-> <limit|-> <remaining|-> <reset|->
//!                                                                its answer is here
//!      T <now>                                                   the wake-up that was asked for
//! out  <time at which it wants to send the next request | inf> [<time at which it wants a T>]
//! ```
//!
//! Times are decimal seconds of a virtual clock. `label` is `req`, `tok` or `-`: the limit that a refusal names;
//! limit, remaining and reset are those of the request limit. Every answer is flushed at once, since the other side
//! waits for it.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::str::{FromStr, SplitAsciiWhitespace};
use std::time::Duration;

use penstock_rate::{Cost, Dimension, Hint, Hints, Learner, Limits, Mode, Profile, RequestId, Verdict, Wait};

/// Why the conversation ended before its input did.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PipeError {
    #[error("read the events: {0}")]
    Read(#[source] io::Error),
    #[error("write an answer: {0}")]
    Write(#[source] io::Error),
    #[error("read line {number}: {source}; correct the line and start again")]
    Line { number: usize, source: LineError },
}

/// What is wrong with a line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LineError {
    #[error("it starts with none of `S`, `D`, `R` and `T`")]
    UnknownEvent,
    #[error("the field `{0}` is missing or malformed")]
    Field(&'static str),
    #[error("it has more fields than its event")]
    TooLong,
    #[error("the first event must be `S`")]
    NotStarted,
}

/// One line of input.
#[expect(clippy::large_enum_variant, reason = "one lives at a time")]
#[derive(Debug, PartialEq, Eq)]
enum Event {
    Start,
    Sent { id: u64, cost: Cost },
    Answer { id: u64, answer: Answer },
    Timer,
}

/// What came back for a request.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Success { output_tokens: u32, hints: Hints },
    Refusal(Verdict),
}

/// Answers every event until the input ends.
pub(crate) fn converse(
    input: impl BufRead,
    mut output: impl Write,
    mode: Mode,
    limits: Limits,
) -> Result<(), PipeError> {
    let mut session = None;
    for (index, line) in input.lines().enumerate() {
        let line = line.map_err(PipeError::Read)?;
        let in_line = |source| PipeError::Line { number: index + 1, source };
        let (now, event) = parse(&line).map_err(in_line)?;
        if event == Event::Start {
            session = Some(Session::new(Learner::new(mode, Profile::Unknown, limits, now)));
        }
        let session = session.as_mut().ok_or(LineError::NotStarted).map_err(in_line)?;
        let answer = session.respond(now, event);
        writeln!(output, "{answer}").and_then(|()| output.flush()).map_err(PipeError::Write)?;
    }
    Ok(())
}

/// A learner, and what the pipe tells at dispatch but the learner wants to hear at the end.
struct Session {
    learner: Learner,
    input_tokens: HashMap<u64, u32>,
    /// The cost of the newest request stands for that of the next, which the pipe does not tell.
    latest: Cost,
}

impl Session {
    fn new(learner: Learner) -> Self {
        Self { learner, input_tokens: HashMap::new(), latest: Cost::default() }
    }

    fn respond(&mut self, now: Duration, event: Event) -> String {
        match event {
            Event::Start | Event::Timer => {}
            Event::Sent { id, cost } => {
                self.latest = cost;
                self.input_tokens.insert(id, cost.input_tokens);
                self.learner.sent(now, RequestId(id), cost);
            }
            Event::Answer { id, answer } => {
                let input_tokens = self.input_tokens.remove(&id).unwrap_or_default();
                let verdict = match answer {
                    Answer::Refusal(refusal) => refusal,
                    Answer::Success { output_tokens, hints } => {
                        self.learner.verdict(now, RequestId(id), Verdict::Admitted { hints });
                        Verdict::Succeeded { output_tokens, input_tokens }
                    }
                };
                self.learner.verdict(now, RequestId(id), verdict);
            }
        }
        let send = match self.learner.next(now, self.latest) {
            Wait::Now => seconds(now),
            Wait::Until(at) => seconds(at),
            Wait::ForVerdict => "inf".to_owned(),
        };
        match self.learner.changes_at() {
            Some(at) => format!("{send} {}", seconds(at)),
            None => send,
        }
    }
}

fn parse(line: &str) -> Result<(Duration, Event), LineError> {
    let mut fields = Fields(line.split_ascii_whitespace());
    let kind = fields.0.next();
    let now = |fields: &mut Fields<'_>| fields.required("time").map(|Seconds(now)| now);
    let parsed = match kind {
        Some("S") => (now(&mut fields)?, Event::Start),
        Some("T") => (now(&mut fields)?, Event::Timer),
        Some("D") => (now(&mut fields)?, sent(&mut fields)?),
        Some("R") => (now(&mut fields)?, answer(&mut fields)?),
        _ => return Err(LineError::UnknownEvent),
    };
    if fields.0.next().is_some() { Err(LineError::TooLong) } else { Ok(parsed) }
}

fn sent(fields: &mut Fields<'_>) -> Result<Event, LineError> {
    let id = fields.required("index")?;
    let input_tokens = fields.required("input tokens")?;
    let output_tokens = fields.required("output tokens")?;
    Ok(Event::Sent { id, cost: Cost { input_tokens, output_tokens } })
}

fn answer(fields: &mut Fields<'_>) -> Result<Event, LineError> {
    let id = fields.required("index")?;
    let Seconds(_sent_at) = fields.required("time of sending")?;
    let Flag(is_success) = fields.required("success flag")?;
    let label: Option<Label> = fields.optional("label")?;
    let output_tokens = fields.required("output tokens")?;
    let retry_after = fields.optional("retry-after")?.map(|Seconds(wait)| wait);
    let limit = fields.optional("limit")?;
    let remaining = fields.optional("remaining")?;
    let reset = fields.optional("reset")?.map(|Seconds(reset)| reset);

    let requests = Hint { limit, remaining, reset, period: None };
    let hints = Hints { requests, ..Hints::default() };
    let dimension = label.map(|Label(dimension)| dimension);
    let answer = if is_success {
        Answer::Success { output_tokens, hints }
    } else {
        Answer::Refusal(Verdict::Refused { dimension, retry_after, hints })
    };
    Ok(Event::Answer { id, answer })
}

/// The fields of a line that are still to be read.
struct Fields<'a>(SplitAsciiWhitespace<'a>);

impl Fields<'_> {
    fn required<T: FromStr>(&mut self, name: &'static str) -> Result<T, LineError> {
        self.0.next().and_then(|text| text.parse().ok()).ok_or(LineError::Field(name))
    }

    /// A field in which `-` stands for nothing.
    fn optional<T: FromStr>(&mut self, name: &'static str) -> Result<Option<T>, LineError> {
        match self.0.next() {
            Some("-") => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| LineError::Field(name)),
            None => Err(LineError::Field(name)),
        }
    }
}

/// A time in decimal seconds.
struct Seconds(Duration);

impl FromStr for Seconds {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let seconds = text.parse().map_err(|_| ())?;
        Duration::try_from_secs_f64(seconds).map(Self).map_err(|_| ())
    }
}

struct Flag(bool);

impl FromStr for Flag {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "0" => Ok(Self(false)),
            "1" => Ok(Self(true)),
            _ => Err(()),
        }
    }
}

struct Label(Dimension);

impl FromStr for Label {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "req" => Ok(Self(Dimension::Requests)),
            "tok" => Ok(Self(Dimension::Tokens)),
            _ => Err(()),
        }
    }
}

/// Exact to the nanosecond, so that a time that comes back is not before the one that was asked for.
fn seconds(time: Duration) -> String {
    format!("{}.{:09}", time.as_secs(), time.subsec_nanos())
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    /// Keeps what was written, and what of it had been flushed.
    #[derive(Default)]
    struct Flushed {
        written: Vec<u8>,
        flushed_lines: Vec<String>,
    }

    impl Write for Flushed {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.written.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            let text = String::from_utf8(std::mem::take(&mut self.written)).unwrap();
            self.flushed_lines.push(text);
            Ok(())
        }
    }

    fn talk(mode: Mode, limits: Limits, input: &str) -> Vec<String> {
        let mut output = Flushed::default();
        converse(input.as_bytes(), &mut output, mode, limits).unwrap();
        output.flushed_lines
    }

    fn complaint(input: &str) -> String {
        converse(input.as_bytes(), io::sink(), Mode::Aimd, Limits::default()).unwrap_err().to_string()
    }

    #[test]
    fn every_event_is_answered_by_one_flushed_line() {
        let answers = talk(
            Mode::Aimd,
            Limits::default(),
            "S 0\nD 0.0 0 200 512\nR 1.5 0 0.0 1 - 87 - 500 499 0.12\nT 30\n\
             D 30.0 1 200 512\nR 30.1 1 30.0 0 req 0 1 - - -\n",
        );
        let expected = [
            "0.000000000 30.000000000\n",
            "6.000000000 30.000000000\n",
            "6.000000000 30.000000000\n",
            "30.000000000 60.000000000\n",
            "33.995000000 60.000000000\n",
            "35.411363637 90.100000000\n",
        ];
        assert_eq!(answers, expected);
    }

    #[test]
    fn without_limits_mode_fixed_sends_at_once_and_at_the_cap_it_waits_for_an_answer() {
        let limits = Limits { max_in_flight: NonZeroU32::new(1), ..Limits::default() };
        let answers = talk(Mode::Fixed, limits, "S 5\nD 5 0 1 1\nR 6.25 0 5 0 - 0 - - - -\n");
        assert_eq!(answers, ["5.000000000\n", "inf\n", "6.250000000\n"]);
    }

    #[test]
    fn what_an_answer_says_reaches_the_learner() {
        let (now, event) = parse("R 2 7 1.5 0 tok 0 0.5 500 0 59.9").unwrap();
        let requests = Hint {
            limit: Some(500),
            remaining: Some(0),
            reset: Some(Duration::from_millis(59_900)),
            period: None,
        };
        let refusal = Verdict::Refused {
            dimension: Some(Dimension::Tokens),
            retry_after: Some(Duration::from_millis(500)),
            hints: Hints { requests, ..Hints::default() },
        };
        assert_eq!(now, Duration::from_secs(2));
        assert_eq!(event, Event::Answer { id: 7, answer: Answer::Refusal(refusal) });
    }

    #[test]
    fn a_line_that_is_no_event_is_named_with_its_fault() {
        let cases = [
            ("T 1", "read line 1: the first event must be `S`; correct the line and start again"),
            (
                "S 0\nX 1",
                "read line 2: it starts with none of `S`, `D`, `R` and `T`; correct the line and start again",
            ),
            (
                "S -1",
                "read line 1: the field `time` is missing or malformed; correct the line and start again",
            ),
            (
                "S nan",
                "read line 1: the field `time` is missing or malformed; correct the line and start again",
            ),
            (
                "S 0\nD 1 0 5",
                "read line 2: the field `output tokens` is missing or malformed; correct the line and start again",
            ),
            ("S 0 0", "read line 1: it has more fields than its event; correct the line and start again"),
        ];
        for (input, message) in cases {
            assert_eq!(complaint(input), message);
        }
    }
}
