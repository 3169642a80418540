//! The rows, one module for each subject, and which of them are measured.

mod bucket;
mod decision;
mod finalise;
mod kill;
mod memory;
pub(crate) mod operator;
mod rate;
mod requests;
mod resume;
mod script;
mod telemetry;
mod validation;

use clap::ValueEnum;

use crate::{arguments::RowsArguments, error::BenchError, report::Report, row::Row, workplace::Workplace};

/// Requests in flight wherever a row does not say otherwise.
const IN_FLIGHT: u32 = 100;

/// What can be measured by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Subject {
    /// Requests a second against a bare loop
    Requests,
    /// Requests a second against a Python script
    Script,
    /// Lines that are sent again after `kill -9`
    Kill,
    /// Peak memory of a large job, and against a small one
    Memory,
    /// Megabytes a second of validation
    Validation,
    /// From the start of a resumed job to its first request
    Resume,
    /// Publishing, and how many objects a job takes
    Finalise,
    /// What counters and log cost a request
    Telemetry,
    /// What the learner costs a request
    Decision,
    /// How much of a hidden limit is used, and how many requests are refused
    Rate,
    /// Reading an input from a bucket, and publishing there
    Bucket,
    /// The operator among many jobs
    Operator,
}

/// Measures what is asked for and shows it.
pub(crate) fn measure(arguments: &RowsArguments) -> Result<(), BenchError> {
    let place = Workplace::new(arguments)?;
    let mut report = Report::begin(arguments.json)?;
    let subjects: Vec<_> = Subject::value_variants()
        .iter()
        .filter(|subject| arguments.only.is_empty() || arguments.only.contains(subject))
        .collect();
    let mut failed = Vec::new();
    for subject in subjects {
        match subject.measure(&place) {
            Ok(rows) => rows.into_iter().try_for_each(|row| report.add(row))?,
            // The others may take an hour, and need not what this one lacks.
            Err(error) => {
                eprintln!("penstock-bench: failed to {error}");
                failed.extend(subject.to_possible_value().map(|subject| subject.get_name().to_owned()));
            }
        }
    }
    report.end()?;
    if failed.is_empty() { Ok(()) } else { Err(BenchError::Subjects(failed.join(","))) }
}

impl Subject {
    fn measure(self, place: &Workplace) -> Result<Vec<Row>, BenchError> {
        match self {
            Self::Requests => requests::measure(place),
            Self::Script => script::measure(place),
            Self::Kill => kill::measure(place),
            Self::Memory => memory::measure(place),
            Self::Validation => validation::measure(place),
            Self::Resume => resume::measure(place),
            Self::Finalise => finalise::measure(place),
            Self::Telemetry => telemetry::measure(place),
            Self::Decision => Ok(vec![decision::measure(place)]),
            Self::Rate => rate::measure(place),
            Self::Bucket => bucket::measure(place),
            Self::Operator => operator::measure(place),
        }
    }
}
