//! The tally of reconciliation (F2 of the job protocol): what was read of the published files' sources, and what that
//! adds up to. Pure.
//!
//! Sources are read in the order in which they are published, those of each kind by themselves, so that each future file
//! has one SHA-256 that is fed as the sources come. Where one reader stops, another can go on.

use std::collections::BTreeSet;

use penstock_batchfile::OutcomeKind;
use penstock_job::{
    OrdinalSet,
    checksum::Crc32c,
    finals::{FINAL_SIZE_LIMIT, begins_file},
    identity::hex,
    identity_sum::IdentitySum,
    layout::{Kind, PartName},
    state::{Part, PartOutcomes},
    validation::RejectedFile,
};
use penstock_storage::{Checksum, Generation, ObjectName};
use sha2::{Digest, Sha256};

use crate::{
    error::RunError,
    output::object_name,
    records::{Problem, RecordForm, RecordReader, Stored},
};

/// What the sources that were read add up to.
#[derive(Debug)]
pub(crate) struct Tally {
    form: RecordForm,
    lines: u64,
    pub(super) found: Found,
    results: Progress,
    errors: Progress,
}

/// What is known of the lines.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) seen: OrdinalSet,
    pub(super) seen_rejected: OrdinalSet,
    pub(super) repeated: OrdinalSet,
    pub(super) outcomes: PartOutcomes,
    pub(super) identity: IdentitySum,
    pub(super) ids_lost: bool,
    pub(super) dropped: BTreeSet<PartName>,
}

/// How far the sources of one kind were read.
#[derive(Debug, Default)]
struct Progress {
    rejected_files: usize,
    parts: Vec<Part>,
    files: Vec<File>,
}

/// A future file, as far as its sources were read.
#[derive(Debug)]
struct File {
    first: ObjectName,
    size_bytes: u64,
    digest: Sha256,
}

/// A source that is to be read.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) stored: Stored,
    kind: Kind,
    /// Its row of the manifest; `None` for a file of rejected records.
    part: Option<Part>,
    crc32c: u32,
    lines: u64,
}

/// A source that is being read.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) digest: Sha256,
    pub(super) records: Records,
    /// Whether a published file begins with it.
    pub(super) begins_file: bool,
}

/// The records of a source that is being read.
#[derive(Debug)]
pub(super) struct Records {
    reader: RecordReader,
    rejected: bool,
    lines: u64,
    /// What they add, taken over when the source turns out to be whole.
    added: Found,
}

impl AsRef<Stored> for Source {
    fn as_ref(&self) -> &Stored {
        &self.stored
    }
}

impl Source {
    fn rejected(file: &RejectedFile) -> Self {
        let stored = Stored {
            name: object_name(&file.name),
            generation: Generation::new(&*file.generation),
            size_bytes: file.size_bytes,
        };
        Self { stored, kind: Kind::Errors, part: None, crc32c: file.crc32c.0, lines: file.lines }
    }

    fn part(part: &Part) -> Self {
        let stored = Stored {
            name: object_name(&part.name),
            generation: Generation::new(&*part.generation),
            size_bytes: part.size_bytes,
        };
        let lines = u64::from(part.lines);
        Self { stored, kind: part.name.kind, part: Some(part.clone()), crc32c: part.crc32c.0, lines }
    }

    /// Why what was read is not what was stored; `None` if it is.
    fn differs(&self, checksum: Checksum, records: u64) -> Option<Problem> {
        let expected = Checksum { size_bytes: self.stored.size_bytes, crc32c: self.crc32c };
        (checksum != expected || records != self.lines).then(|| {
            format!(
                "{records} records, {} bytes, CRC32C {} instead of {} records, {} bytes, CRC32C {}",
                checksum.size_bytes,
                Crc32c(checksum.crc32c),
                self.lines,
                expected.size_bytes,
                Crc32c(expected.crc32c)
            )
        })
    }
}

impl Tally {
    /// Nothing was read yet of a job with so many lines.
    pub(super) fn new(form: RecordForm, lines: u64) -> Self {
        let (results, errors) = (Progress::default(), Progress::default());
        Self { form, lines, found: Found::default(), results, errors }
    }

    /// What is to be read next, in order. Every part that was read must still be listed.
    pub(super) fn unread(&self, rejected: &[RejectedFile], parts: &[Part]) -> Vec<Source> {
        // Parts enter the manifest near its end, and nobody else may look at it meanwhile.
        let count = parts.len().saturating_sub(self.results.parts.len() + self.errors.parts.len());
        let unread = parts.iter().rev().filter(|part| self.of(part.name.kind).ends_before(part.name));
        let mut unread: Vec<_> = unread.take(count).map(Source::part).collect();
        unread.reverse();
        rejected.iter().skip(self.errors.rejected_files).map(Source::rejected).chain(unread).collect()
    }

    /// Whether what was read is how `parts` begins, kind by kind.
    pub(super) fn begins(&self, parts: &[Part]) -> bool {
        Kind::ALL.into_iter().all(|kind| {
            let read = &self.of(kind).parts;
            parts.iter().filter(|part| part.name.kind == kind).take(read.len()).eq(read)
        })
    }

    /// The parts that were read.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Part> {
        Kind::ALL.into_iter().flat_map(|kind| &self.of(kind).parts)
    }

    /// Before the first byte of a source.
    pub(super) fn open(&self, source: &Source) -> Open {
        let file = self.of(source.kind).files.last();
        let size_bytes = source.stored.size_bytes;
        let begins_file = begins_file(file.map(|file| file.size_bytes), size_bytes, FINAL_SIZE_LIMIT);
        let digest = file.filter(|_| !begins_file).map(|file| file.digest.clone()).unwrap_or_default();
        let records = Records {
            reader: RecordReader::of_written(self.form),
            rejected: source.part.is_none(),
            lines: self.lines,
            added: Found::default(),
        };
        Open { digest, records, begins_file }
    }

    /// Behind the last byte of a source: takes over what it adds, or says why it is not whole. Returns the first source
    /// of the published file that it goes into.
    pub(super) fn close(&mut self, source: &Source, open: Open) -> Result<&ObjectName, Problem> {
        let Open { digest, records: Records { reader, rejected, added, .. }, begins_file } = open;
        let (checksum, records) = reader.finish()?;
        if let Some(problem) = source.differs(checksum, records) {
            return Err(problem);
        }
        if rejected && !added.repeated.is_empty() {
            return Err("a rejected line is recorded twice".to_owned());
        }
        self.found.add(&added);
        let progress = match source.kind {
            Kind::Results => &mut self.results,
            Kind::Errors => &mut self.errors,
        };
        match &source.part {
            Some(part) => progress.parts.push(part.clone()),
            None => progress.rejected_files += 1,
        }
        if begins_file {
            let first = source.stored.name.clone();
            progress.files.push(File { first, size_bytes: 0, digest: Sha256::new() });
        }
        let file = progress.files.last_mut().expect("the first source of a kind begins a file");
        file.digest = digest;
        file.size_bytes += source.stored.size_bytes;
        Ok(&file.first)
    }

    /// A part that does not hold is dropped; without the rejected records nothing can be published.
    pub(super) fn drop_source(&mut self, source: &Source, problem: Problem) -> Result<(), RunError> {
        match &source.part {
            Some(part) => {
                tracing::error!(part = %part.name, problem, "a listed part is dropped");
                self.found.dropped.insert(part.name);
                Ok(())
            }
            None => Err(RunError::Damaged { name: source.stored.name.to_string(), problem }),
        }
    }

    /// The hex SHA-256 of each published file of one kind.
    pub(super) fn digests(&self, kind: Kind) -> impl Iterator<Item = String> {
        self.of(kind).files.iter().map(|file| hex(&file.digest.clone().finalize()))
    }

    fn of(&self, kind: Kind) -> &Progress {
        match kind {
            Kind::Results => &self.results,
            Kind::Errors => &self.errors,
        }
    }
}

impl Progress {
    /// Whether a part of its kind comes after what was read.
    fn ends_before(&self, part: PartName) -> bool {
        self.parts.last().is_none_or(|last| last.name < part)
    }
}

impl Records {
    /// Takes the source's next bytes.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<(), Problem> {
        let Self { reader, rejected, lines, added } = self;
        reader.feed(bytes, |_, head| {
            let ordinal = head.ordinal;
            if u64::from(ordinal.get()) >= *lines {
                return Err(format!("ordinal {ordinal} is not in the input"));
            }
            if *rejected != (head.outcome == OutcomeKind::Rejected) {
                return Err(format!("a record of the outcome `{}` does not belong there", head.outcome));
            }
            let own = if *rejected { &mut added.seen_rejected } else { &mut added.seen };
            if !own.insert(ordinal) {
                added.repeated.insert(ordinal);
                return Ok(());
            }
            if !*rejected {
                added.outcomes.count(head.outcome);
                added.ids_lost |= head.id.is_none();
            }
            added.identity.add(ordinal, head.id);
            Ok(())
        })
    }
}

impl Found {
    fn add(&mut self, added: &Self) {
        // Sets are compared as a whole, which takes less than looking each line up in what was seen before.
        for before in [&self.seen, &self.seen_rejected] {
            for own in [&added.seen, &added.seen_rejected] {
                if !own.is_disjoint(before) {
                    let both: OrdinalSet = own.iter().filter(|ordinal| before.contains(*ordinal)).collect();
                    self.repeated.unite(&both);
                }
            }
        }
        self.seen.unite(&added.seen);
        self.seen_rejected.unite(&added.seen_rejected);
        self.repeated.unite(&added.repeated);
        self.outcomes.add(added.outcomes);
        self.identity.merge(added.identity);
        self.ids_lost |= added.ids_lost;
    }
}
