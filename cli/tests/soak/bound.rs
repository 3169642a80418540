//! How many requests may have been sent again (section "Lines sent again" of the job protocol), summed over what was done
//! in a round. Pure.

use penstock_simulator::LogEntry;

use crate::plan::REQUEST_SECONDS;

/// Lines that may be answered without being listed: of a part under way, of one that waits and of one that grows.
const UNLISTED: u64 = 3 * (500 + 256);

/// What the disturbances of a round allow.
#[derive(Debug, Default)]
pub(crate) struct Bound {
    lines: u64,
    /// From when to when a run drained, in milliseconds since the epoch.
    drains: Vec<(u64, u64)>,
}

impl Bound {
    /// A process died with so many requests in flight, or gave them up.
    pub(crate) fn died(&mut self, in_flight: usize) {
        self.lines += in_flight as u64;
    }

    /// The scratch folder was lost.
    pub(crate) fn scratch_lost(&mut self) {
        self.lines += UNLISTED;
    }

    /// A part with so many lines was lost.
    pub(crate) fn part_lost(&mut self, lines: u64) {
        self.lines += lines;
    }

    /// A run that was overtaken lived on while so many requests were sent; what it has flushed late is lost.
    pub(crate) fn overtaken(&mut self, requests: u64) {
        self.lines += requests + UNLISTED;
    }

    /// A run drained: only what was not answered in time may be asked again.
    pub(crate) fn drained(&mut self, from_ms: u64, to_ms: u64) {
        self.drains.push((from_ms, to_ms));
    }

    /// The bound, once every request has ended. A request that took too long was given up, and is sent again by right.
    pub(crate) fn lines(&self, log: &[LogEntry]) -> u64 {
        let late_ms = REQUEST_SECONDS * 1_000 * 9 / 10;
        let given_up = log.iter().filter(|entry| {
            entry.answer.is_some_and(|answer| {
                answer.client_closed
                    && (answer.at_ms.saturating_sub(entry.at_ms) >= late_ms
                        || self.drains.iter().any(|(from, to)| (*from..=*to).contains(&answer.at_ms)))
            })
        });
        self.lines + given_up.count() as u64
    }
}
