//! What was done in a round, or in several, and what came of it.

use std::fmt;

/// What was done, and what came of it.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) lines: u64,
    pub(crate) requests: u64,
    pub(crate) provider_faults: u64,
    /// Processes with storage faults.
    pub(crate) misled: u64,
    pub(crate) killed: u64,
    pub(crate) stopped: u64,
    pub(crate) paused: u64,
    pub(crate) overtaken: u64,
    pub(crate) cancels: u64,
    pub(crate) parts_lost: u64,
    pub(crate) scratch_lost: u64,
    pub(crate) clock_steps: u64,
    pub(crate) repeats: u64,
    pub(crate) allowed: u64,
}

impl Report {
    pub(crate) fn add(&mut self, other: &Self) {
        self.lines += other.lines;
        self.requests += other.requests;
        self.provider_faults += other.provider_faults;
        self.misled += other.misled;
        self.killed += other.killed;
        self.stopped += other.stopped;
        self.paused += other.paused;
        self.overtaken += other.overtaken;
        self.cancels += other.cancels;
        self.parts_lost += other.parts_lost;
        self.scratch_lost += other.scratch_lost;
        self.clock_steps += other.clock_steps;
        self.repeats += other.repeats;
        self.allowed += other.allowed;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} lines, {} requests", self.lines, self.requests)?;
        for (count, what) in [
            (self.provider_faults, "provider faults"),
            (self.misled, "processes with storage faults"),
            (self.clock_steps, "clock steps"),
            (self.killed, "killed"),
            (self.stopped, "stopped"),
            (self.paused, "paused"),
            (self.overtaken, "overtaken"),
            (self.cancels, "cancelled"),
            (self.parts_lost, "parts lost"),
            (self.scratch_lost, "times scratch lost"),
        ] {
            if count > 0 {
                write!(formatter, ", {count} {what}")?;
            }
        }
        write!(formatter, ", {} repeats of {} allowed", self.repeats, self.allowed)
    }
}
