//! One line of the pipe: what stands in it, and what is wrong with it.

use std::str::{FromStr, SplitAsciiWhitespace};
use std::time::Duration;

use super::{Answer, Event};
use crate::event::{Cost, Dimension, Hint, Hints, Verdict};

/// What is wrong with a line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// Its first field names no event.
    #[error("it starts with none of `S`, `D`, `R` and `T`")]
    UnknownEvent,
    /// A field is not there, or is not what it should be.
    #[error("the field `{0}` is missing or malformed")]
    Field(&'static str),
    /// Something follows its last field.
    #[error("it has more fields than its event")]
    TooLong,
    /// Something happened before the start.
    #[error("the first event must be `S`")]
    NotStarted,
}

/// Reads one line: the clock reading and the event.
pub fn parse(line: &str) -> Result<(Duration, Event), LineError> {
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
        Answer::Failure(Verdict::Refused { dimension, retry_after, hints })
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(event, Event::Answer { id: 7, answer: Answer::Failure(refusal) });
    }
}
