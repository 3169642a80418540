//! How large the checked world is, which faults may happen in it, and which rule of the protocol is left out.

use std::fmt;

/// A rule of the protocol that a run of the checker leaves out, to show that it is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Omission {
    /// C7: what was adopted is not stored before the first request, and earlier epochs stay open.
    Seal,
    /// F3: a finaliser publishes what it has reconciled without storing the decision.
    Freeze,
    /// S2: a read back compares what was written, without who wrote it.
    Writer,
    /// E2: undone lines are recorded without an ending in the state.
    Ending,
}

impl Omission {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Seal, Self::Freeze, Self::Writer, Self::Ending];
}

/// Faults that may still happen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    /// A process ends at any moment.
    pub crashes: u8,
    /// A crash takes the scratch folder with it.
    pub lost_scratch: u8,
    /// A process is told to stop (R7).
    pub stops: u8,
    /// A write is reported as failed: it is applied, or lands at any later time, or never.
    pub ambiguous: u8,
}

/// One world to be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Configuration {
    /// Lines of the input, at most 8.
    pub lines: u8,
    /// Processes that may be started at any time, beside one another or one after another. When all have ended without
    /// a receipt, there is always a replacement.
    pub incarnations: u8,
    /// Faults that may happen.
    pub faults: Faults,
    /// Whether the job may be asked to end early, at any moment.
    pub endings: bool,
    /// What is left out.
    pub omission: Option<Omission>,
}

impl Configuration {
    /// Two lines, two incarnations, one fault of each sort: checked by the tests.
    pub const SMALL: Self = Self {
        lines: 2,
        incarnations: 2,
        faults: Faults { crashes: 1, lost_scratch: 1, stops: 0, ambiguous: 1 },
        endings: true,
        omission: None,
    };

    /// One line, two processes of which one may be told to stop: checked by the tests.
    pub const STOPPED: Self = Self {
        lines: 1,
        faults: Faults { crashes: 1, lost_scratch: 0, stops: 1, ambiguous: 1 },
        ..Self::SMALL
    };

    /// What `make model` checks: these two, and each with more of one thing.
    pub const LARGER: [Self; 9] = [
        Self::SMALL,
        Self::STOPPED,
        Self { lines: 1, incarnations: 3, ..Self::SMALL },
        Self { faults: Faults { crashes: 2, ..Self::SMALL.faults }, ..Self::SMALL },
        Self { faults: Faults { ambiguous: 2, ..Self::SMALL.faults }, ..Self::SMALL },
        Self { faults: Faults { stops: 1, ..Self::SMALL.faults }, ..Self::SMALL },
        Self { lines: 3, endings: false, ..Self::SMALL },
        Self { incarnations: 3, faults: Faults { ambiguous: 0, ..Self::SMALL.faults }, ..Self::SMALL },
        Self { incarnations: 3, endings: false, ..Self::SMALL },
    ];

    /// The same without a rule.
    pub const fn without(self, omission: Omission) -> Self {
        Self { omission: Some(omission), ..self }
    }

    /// Whether a rule holds.
    pub(crate) fn keeps(self, rule: Omission) -> bool {
        self.omission != Some(rule)
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lines, incarnations, faults, endings, omission } = self;
        let Faults { crashes, lost_scratch, stops, ambiguous } = faults;
        write!(formatter, "lines {lines}, incarnations {incarnations}")?;
        let faults = [
            ("crashes", crashes),
            ("scratch lost", lost_scratch),
            ("stops", stops),
            ("ambiguous", ambiguous),
        ];
        for (name, count) in faults.into_iter().filter(|(_, count)| **count > 0) {
            write!(formatter, ", {name} {count}")?;
        }
        if *endings {
            write!(formatter, ", ending")?;
        }
        omission.map_or(Ok(()), |omission| write!(formatter, ", without {omission:?}"))
    }
}
