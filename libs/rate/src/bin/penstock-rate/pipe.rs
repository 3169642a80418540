//! The conversation over standard input and output: one event per line in, one answer per line out.
//!
//! What the lines mean is written in [`penstock_rate::pipe`]. Every answer is flushed at once, since the other side
//! waits for it.

use std::io::{self, BufRead, Write};

use penstock_rate::pipe::{Event, LineError, Session, parse};
use penstock_rate::{Learner, Limits, Mode, Profile};

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

/// The learner that is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) mode: Mode,
    pub(crate) profile: Profile,
    pub(crate) limits: Limits,
}

/// Answers every event until the input ends.
pub(crate) fn converse(input: impl BufRead, mut output: impl Write, asked: Asked) -> Result<(), PipeError> {
    let Asked { mode, profile, limits } = asked;
    let mut session = None;
    for (index, line) in input.lines().enumerate() {
        let line = line.map_err(PipeError::Read)?;
        let in_line = |source| PipeError::Line { number: index + 1, source };
        let (now, event) = parse(&line).map_err(in_line)?;
        if event == Event::Start {
            session = Some(Session::new(Learner::new(mode, profile, limits, now)));
        }
        let session = session.as_mut().ok_or(LineError::NotStarted).map_err(in_line)?;
        let reply = session.respond(now, event);
        writeln!(output, "{reply}").and_then(|()| output.flush()).map_err(PipeError::Write)?;
    }
    Ok(())
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
        let asked = Asked { mode, profile: Profile::OpenAi, limits };
        converse(input.as_bytes(), &mut output, asked).unwrap();
        output.flushed_lines
    }

    fn complaint(input: &str) -> String {
        let asked = Asked { mode: Mode::Aimd, profile: Profile::OpenAi, limits: Limits::default() };
        converse(input.as_bytes(), io::sink(), asked).unwrap_err().to_string()
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
