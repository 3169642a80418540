//! The first pass over an input: every line is checked by itself, and what needs all lines is gathered.

use penstock_batchfile::{Json, Line, RawId};

use crate::{
    IntakeError,
    examine::Method,
    fault::{Fault, FaultSink},
    feed::Chunks,
    rules::{Checked, LineRules},
    seen::{Seen, Suspects},
    summary::Tally,
};

/// What the first pass found, besides the faults.
#[derive(Debug)]
pub(crate) struct FirstPass {
    /// The figures, with suspects still counted as valid.
    pub(crate) tally: Tally,
    /// The ids that may repeat.
    pub(crate) suspects: Suspects,
}

/// Checks every line. The faults go to `sink`.
pub(crate) fn first_pass(
    chunks: Chunks,
    method: &Method,
    sink: &mut impl FaultSink,
) -> Result<FirstPass, IntakeError> {
    let rules = &method.rules;
    let mut tally = Tally::default();
    let mut seen = Seen::new(method.key_of, method.sort());
    chunks.each_line(rules.max_line_bytes, |line| look(line, rules, &mut tally, &mut seen, sink))?;
    sink.end_of_series()?;
    Ok(FirstPass { tally, suspects: seen.finish()? })
}

fn look(
    line: &Line<'_>,
    rules: &LineRules,
    tally: &mut Tally,
    seen: &mut Seen,
    sink: &mut impl FaultSink,
) -> Result<(), IntakeError> {
    let position = line.position;
    match rules.check(line) {
        Checked::Valid(valid) => {
            let id = &valid.request.id;
            tally.line(position.ordinal, Some(id.raw()));
            tally.valid(rules.model_of(&valid), valid.bytes);
            seen.insert(id.decoded())
        }
        Checked::Invalid(id, rejection) => {
            let id = id.as_ref().map(RawId::token);
            tally.line(position.ordinal, id.map(Json::get));
            tally.invalid(position.ordinal, rejection.code);
            sink.take(&Fault { position, id, rejection: &rejection })
        }
    }
}
