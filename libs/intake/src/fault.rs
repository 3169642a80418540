//! One invalid line, as it is reported, and who takes the report.

use penstock_batchfile::{Json, Position, Rejection};

use crate::IntakeError;

/// An invalid line.
#[derive(Debug, Clone, Copy)]
pub struct Fault<'a> {
    /// Where the line is: its number, byte offset and ordinal.
    pub position: Position,
    /// The id's token as it stands in the input, where it can be read.
    pub id: Option<Json<'a>>,
    /// What is wrong with it.
    pub rejection: &'a Rejection,
}

/// Takes the faults of an input: first those of single lines in the order of the file, then the repeated ids in the
/// order of the file. Works on a blocking thread.
pub(crate) trait FaultSink: Send + 'static {
    /// Takes one fault.
    fn take(&mut self, fault: &Fault<'_>) -> Result<(), IntakeError>;

    /// One of the two series of faults is complete.
    fn end_of_series(&mut self) -> Result<(), IntakeError>;
}
