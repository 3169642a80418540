//! What the search decided, in words.

use std::fmt;

/// A change of the number, for people.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum KneeChange {
    /// The server saturates, though none was expected to.
    Saturated { in_flight: u32, slower: f64 },
    /// Twice as many, since the last doubling was worth it.
    Doubled { in_flight: u32 },
    /// The end of the doubling.
    Found { in_flight: u32, tried: u32 },
    /// A trial was worth it.
    Moved { from: u32, in_flight: u32, gain: f64 },
    /// The server said that it is overloaded.
    Overloaded { with: u32, in_flight: u32 },
    /// The server's queue is too long.
    Queued { waiting: u32, in_flight: u32 },
}

impl fmt::Display for KneeChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Saturated { in_flight, slower } => {
                write!(formatter, "{in_flight} at once: answers take {slower:.1} times as long as with fewer")
            }
            Self::Doubled { in_flight } => {
                write!(formatter, "up to {in_flight} at once: more in flight yielded more tokens")
            }
            Self::Found { in_flight, tried } => {
                write!(formatter, "{in_flight} at once: {tried} yielded hardly more tokens")
            }
            Self::Moved { from, in_flight, gain } => {
                let percent = gain * 100.0;
                write!(formatter, "{in_flight} at once: {percent:+.1} % tokens against {from} at once")
            }
            Self::Overloaded { with, in_flight } => {
                write!(formatter, "at most {in_flight} at once: the server was overloaded with {with}")
            }
            Self::Queued { waiting, in_flight } => {
                write!(formatter, "{in_flight} at once: {waiting} waited in the server's queue")
            }
        }
    }
}
