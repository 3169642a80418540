//! The published files: that they are those of the receipt, and that their records account for each line exactly once.

use std::ops::ControlFlow;

use penstock_batchfile::{
    Content, Format, Line, LineSplitter, Ordinal, OutcomeKind, Position, RecordHead, read_record,
};
use penstock_executor::longest_record;
use penstock_job::{
    CanonicalSpec, OrdinalSet, Receipt, checksum::Crc32c, document::Document, identity::hex,
    identity_sum::IdentitySum, layout::Kind, receipt::Output, state::PartOutcomes,
};
use penstock_storage::{ErrorKind, InputReader, open_object};
use sha2::{Digest, Sha256};

use super::{Contradiction, VerifyError};
use crate::{output, view::outcomes};

/// What the records say together.
#[derive(Debug, Default)]
pub(super) struct Tally {
    seen: OrdinalSet,
    outcomes: PartOutcomes,
    rejected: u64,
    /// Over the ids of all records.
    pub(super) identity_sum: IdentitySum,
}

/// Reads every published file and compares it, and all of them together, with the receipt.
pub(super) async fn tally(published: &output::Output, receipt: &Receipt) -> Result<Tally, VerifyError> {
    let mut tally = Tally::default();
    for output in &receipt.outputs {
        let mut count = 0;
        each_record(published, output, &receipt.job.spec, |line, head| {
            count += 1;
            tally.add(receipt.lines, output, line, head)
        })
        .await?;
        if count != output.lines {
            let problem = format!("it has {count} records, but the receipt has {}", output.lines);
            return Err(Contradiction::of(&output.name, problem).into());
        }
    }
    check_no_other(published, receipt).await?;
    tally.check(receipt)?;
    Ok(tally)
}

impl Tally {
    fn add(
        &mut self,
        lines: u64,
        output: &Output,
        line: u64,
        head: RecordHead<'_>,
    ) -> Result<(), Contradiction> {
        let contradiction =
            |problem: String| Err(Contradiction::of(&output.name, problem).at_line(line).about(head.ordinal));
        if u64::from(head.ordinal.get()) >= lines {
            return contradiction(format!("the input has only {lines} lines"));
        }
        if !self.seen.insert(head.ordinal) {
            return contradiction(
                "this ordinal has a record already, further up or in a file before".to_owned(),
            );
        }
        if (output.kind == Kind::Results) != (head.outcome == OutcomeKind::Succeeded) {
            return contradiction(format!("its outcome, {}, does not belong into this file", head.outcome));
        }
        if !self.outcomes.count(head.outcome) {
            self.rejected += 1;
        }
        self.identity_sum.add(head.ordinal, head.id);
        Ok(())
    }

    fn check(&self, receipt: &Receipt) -> Result<(), Contradiction> {
        let end = Ordinal::new(u32::try_from(receipt.lines).unwrap_or(u32::MAX));
        if let Some(missing) = self.seen.missing_from(&OrdinalSet::new(), end).next() {
            return Err(Contradiction::of(Receipt::NAME, "no published file has a record of this line")
                .about(missing));
        }
        let found = self.outcomes.with_rejected(self.rejected);
        if found == receipt.outcomes {
            return Ok(());
        }
        let (told, found) = (outcomes::counts(&receipt.outcomes), outcomes::counts(&found));
        Err(Contradiction::of(
            Receipt::NAME,
            format!("its outcomes are {told}, but those of the records {found}"),
        ))
    }
}

/// Visits each record of a published file with its line number, then compares the file's digests with the receipt.
pub(super) async fn each_record(
    published: &output::Output,
    output: &Output,
    spec: &CanonicalSpec,
    mut visit: impl FnMut(u64, RecordHead<'_>) -> Result<(), Contradiction>,
) -> Result<(), VerifyError> {
    let opened = match open_object(&published.location().join(&output.name)).await {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(Contradiction::of(&output.name, "the file is gone").into());
        }
        Err(error) => return Err(error.into()),
    };
    let mut digests = Digests::default();
    let mut found = Ok(());
    let mut look = |line: Line<'_>| {
        found = record(&line, spec.format, output).and_then(|head| visit(line.position.line_number, head));
        if found.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let mut splitter = LineSplitter::new(Position::START, longest_record(spec.max_line_bytes));
    let mut reader = InputReader::whole(opened);
    loop {
        let chunk = reader.next().await?;
        let flow = match &chunk {
            Some(bytes) => {
                digests.add(bytes);
                splitter.feed(bytes, &mut look)
            }
            None => splitter.finish(&mut look),
        };
        if chunk.is_none() || flow.is_break() {
            break;
        }
    }
    found?;
    digests.check(output)?;
    Ok(())
}

fn record<'a>(line: &Line<'a>, format: Format, output: &Output) -> Result<RecordHead<'a>, Contradiction> {
    let read = match line.content {
        Content::Whole(bytes) => read_record(bytes, format).map_err(|error| format!("failed to {error}")),
        Content::TooLong { bytes } => Err(format!("it is {bytes} bytes long, so it is no record")),
    };
    read.map_err(|problem| Contradiction::of(&output.name, problem).at_line(line.position.line_number))
}

/// Size and checksums of a file.
#[derive(Debug, Default)]
struct Digests {
    size_bytes: u64,
    crc32c: u32,
    sha256: Sha256,
}

impl Digests {
    fn add(&mut self, bytes: &[u8]) {
        self.size_bytes += bytes.len() as u64;
        self.crc32c = crc32c::crc32c_append(self.crc32c, bytes);
        self.sha256.update(bytes);
    }

    fn check(self, output: &Output) -> Result<(), Contradiction> {
        let is = [self.size_bytes.to_string(), Crc32c(self.crc32c).to_string(), hex(&self.sha256.finalize())];
        let told = [output.size_bytes.to_string(), output.crc32c.to_string(), output.sha256.clone()];
        let differing = ["size in bytes", "CRC32C", "SHA-256"].iter().zip(is.iter().zip(&told));
        match differing.into_iter().find(|(_, (is, told))| is != told) {
            None => Ok(()),
            Some((what, (is, told))) => {
                let problem = format!("its {what} is {is}, but the receipt has {told}");
                Err(Contradiction::of(&output.name, problem))
            }
        }
    }
}

/// A published file that the receipt does not know.
async fn check_no_other(published: &output::Output, receipt: &Receipt) -> Result<(), VerifyError> {
    let names = published.published().await?;
    match names.into_iter().find(|name| !receipt.outputs.iter().any(|output| output.name == *name)) {
        None => Ok(()),
        Some(name) => Err(Contradiction::of(name, "the receipt names no such file").into()),
    }
}
