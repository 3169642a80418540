//! What was decided and where things stand, in words for people.

use super::amount::Charging;
use super::turn::{Turn, Why};
use crate::event::Dimension;

/// The decisions that one event led to. Most lead to none.
pub(crate) type Words = Vec<String>;

/// A change of a rate and its cause.
pub(super) fn words(turn: Turn, dimension: Dimension) -> String {
    let (at, to) = (rate(turn.at, dimension), rate(turn.to, dimension));
    match turn.why {
        Why::Refused => format!("{to}: refused at {at}"),
        Why::Edge => format!("{to}: that refusal was the edge, not far below {at}"),
        Why::Overrun => format!("{to}: as much as was admitted while the rest was refused"),
        Why::Closed => format!("pausing: everything was refused at {at}"),
        Why::Reopened { seconds, window: None } => format!("{to}: admitted again after {seconds:.1} s"),
        Why::Reopened { seconds, window: Some(window) } => {
            format!("{to}: admitted again after {seconds:.1} s, as much as a window of {window:.0} s holds")
        }
        Why::Stated => format!("{to}: the limit that the provider states"),
        Why::Shared => format!("{to}, from {at}: nearer to what the other jobs on this key send"),
        Why::Charged(Charging::AtOnce) => {
            format!("{to}: refusals fit tokens that are charged when a request arrives")
        }
        Why::Charged(Charging::Refunded) => {
            format!("{to}: refusals fit tokens of which those come back that an answer did not use")
        }
        Why::Charged(Charging::AsProduced) => {
            format!("{to}: refusals fit tokens that are charged as they are produced")
        }
        Why::SlowDown => format!("{to}, from {at}: the provider asks to slow down"),
    }
}

/// A rate in units per second, per minute.
pub(super) fn rate(per_second: f64, dimension: Dimension) -> String {
    let unit = match dimension {
        Dimension::Requests => "requests",
        Dimension::Tokens => "tokens",
        Dimension::InputTokens => "input tokens",
        Dimension::OutputTokens => "output tokens",
    };
    let per_minute = per_second * 60.0;
    if per_minute < 100.0 {
        return format!("{per_minute:.1} {unit}/min");
    }
    format!("{} {unit}/min", grouped(rounded(per_minute)))
}

/// A count with commas between its thousands.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
fn rounded(rate: f64) -> u64 {
    rate.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_told_per_minute_in_readable_numbers() {
        assert_eq!(rate(0.1667, Dimension::Requests), "10.0 requests/min");
        assert_eq!(rate(58.0, Dimension::Requests), "3,480 requests/min");
        assert_eq!(rate(20_000.0, Dimension::OutputTokens), "1,200,000 output tokens/min");
    }

    #[test]
    fn a_change_is_told_with_its_cause() {
        let told = |why| words(Turn { at: 60.0, to: 58.0, why }, Dimension::Requests);
        assert_eq!(told(Why::Refused), "3,480 requests/min: refused at 3,600 requests/min");
        assert_eq!(
            told(Why::Reopened { seconds: 21.24, window: Some(60.0) }),
            "3,480 requests/min: admitted again after 21.2 s, as much as a window of 60 s holds"
        );
    }
}
