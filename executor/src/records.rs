//! Reading stored records back: parts, files of rejected records, published files.
//!
//! Objects are read in ranges of at most [`CHUNK`], at most [`AHEAD`] of them at a time and in order, so memory does not
//! depend on their size, and many small parts are read as fast as one large file.

mod used;

use std::ops::ControlFlow;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use penstock_batchfile::{
    Content, Format, LineSplitter, Position, RecordError, RecordHead, read_record, read_written_record,
};
use penstock_job::CanonicalSpec;
use penstock_storage::{Checksum, Generation, ObjectName, StorageError};

pub(crate) use self::used::{PaidRecords, counted};
use crate::{output::Output, provider::LONGEST_ANSWER};

/// Bytes read at once.
const CHUNK: u64 = 1 << 20;
/// Reads under way at once where nothing else is done meanwhile; with [`CHUNK`] at most 16 MiB.
pub(crate) const AHEAD: usize = 16;

/// No record of a job is longer, in bytes: it holds the id of one line, one answer, and what stands around them, for which
/// there is as much room again.
pub fn longest_record(max_line_bytes: usize) -> usize {
    max_line_bytes.saturating_add(2 * LONGEST_ANSWER)
}

/// How the records of a job look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordForm {
    format: Format,
    longest: usize,
}

impl RecordForm {
    pub(crate) fn of(spec: &CanonicalSpec) -> Self {
        Self { format: spec.format, longest: longest_record(spec.max_line_bytes) }
    }
}

/// One object to read.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) name: ObjectName,
    pub(crate) generation: Generation,
    pub(crate) size_bytes: u64,
}

impl AsRef<Self> for Stored {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// A range of one of several objects.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// Which object, by its index.
    pub(crate) object: usize,
    /// Its bytes.
    pub(crate) bytes: Bytes,
    /// Whether this is the object's last range.
    pub(crate) last: bool,
}

/// Every chunk of every object, in order, `ahead` reads at once; an error ends with the index of its object. Empty objects
/// have no chunk.
pub(crate) fn chunks<'a>(
    output: &'a Output,
    objects: &'a [impl AsRef<Stored>],
    ahead: usize,
) -> impl futures_util::Stream<Item = Result<Chunk, (usize, StorageError)>> + 'a {
    stream::iter(objects.iter().enumerate())
        .flat_map(|(index, object)| {
            let object = object.as_ref();
            let starts = (0..object.size_bytes).step_by(usize::try_from(CHUNK).expect("a chunk is small"));
            stream::iter(starts.map(move |start| (index, object, start)))
        })
        .map(move |(index, object, start)| async move {
            let end = (start + CHUNK).min(object.size_bytes);
            match output.read_range(&object.name, &object.generation, start..end).await {
                Ok(bytes) => Ok(Chunk { object: index, bytes, last: end == object.size_bytes }),
                Err(error) => Err((index, error)),
            }
        })
        .buffered(ahead)
}

/// How one record is read.
type ReadRecord = for<'a> fn(&'a [u8], Format) -> Result<RecordHead<'a>, RecordError>;

/// Cuts the bytes of one object into records and sums them up.
#[derive(Debug)]
pub(crate) struct RecordReader {
    format: Format,
    read: ReadRecord,
    splitter: LineSplitter,
    checksum: Checksum,
    records: u64,
}

/// Why the bytes of an object are not records.
pub(crate) type Problem = String;

impl RecordReader {
    /// For bytes that may be anything: every record is looked at to its end.
    pub(crate) fn new(form: RecordForm) -> Self {
        Self::reading(form, read_record)
    }

    /// For bytes whose checksum, as [`finish`](Self::finish) gives it, is compared with the one of what was written;
    /// until then nothing that is shown may be relied on.
    pub(crate) fn of_written(form: RecordForm) -> Self {
        Self::reading(form, read_written_record)
    }

    fn reading(RecordForm { format, longest }: RecordForm, read: ReadRecord) -> Self {
        let splitter = LineSplitter::new(Position::START, longest);
        Self { format, read, splitter, checksum: Checksum::default(), records: 0 }
    }

    /// Takes the next bytes and shows each whole record.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        mut visit: impl FnMut(&[u8], RecordHead<'_>) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        self.checksum = self.checksum.extended(bytes);
        let mut result = Ok(());
        let _ = self.splitter.feed(bytes, |line| {
            let Content::Whole(record) = line.content else {
                result = Err(format!("the record at byte {} is too long", line.position.byte_offset));
                return ControlFlow::Break(());
            };
            self.records += 1;
            result = (self.read)(record, self.format)
                .map_err(|error| format!("the record at byte {}: {error}", line.position.byte_offset))
                .and_then(|head| visit(record, head));
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        result
    }

    /// What was read; bytes behind the last newline are a torn record.
    pub(crate) fn finish(self) -> Result<(Checksum, u64), Problem> {
        if self.splitter.position().byte_offset == self.checksum.size_bytes {
            Ok((self.checksum, self.records))
        } else {
            Err("the last record is torn".to_owned())
        }
    }
}

/// Reads one object whole, showing each record.
pub(crate) async fn read_object(
    output: &Output,
    object: &Stored,
    form: RecordForm,
    mut visit: impl FnMut(&[u8], RecordHead<'_>) -> Result<(), Problem>,
) -> Result<Result<(Checksum, u64), Problem>, StorageError> {
    let mut reader = RecordReader::new(form);
    let mut chunks =
        std::pin::pin!(chunks(output, std::slice::from_ref(object), AHEAD).map_err(|(_, error)| error));
    while let Some(chunk) = chunks.try_next().await? {
        if let Err(problem) = reader.feed(&chunk.bytes, &mut visit) {
            return Ok(Err(problem));
        }
    }
    Ok(reader.finish())
}

#[cfg(test)]
mod tests {
    use penstock_batchfile::{Attempt, Failure, HttpAnswer, LineName, Ordinal, RecordWriter};
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn the_record_of_the_longest_line_and_answer_is_not_too_long() {
        const LINE: usize = 1 << 20;
        let id = RawValue::from_string(format!("\"{}\"", "x".repeat(LINE - 2))).unwrap();
        let name = LineName { ordinal: Ordinal::MAX, id: Some((&*id).into()) };
        let body = format!("\"{}\"", "y".repeat(LONGEST_ANSWER - 2));
        let attempt =
            Attempt { at_ms: u64::MAX, status: Some(500), code: "z".repeat(100), latency_ms: u64::MAX };
        let failure = Failure {
            code: "server_error",
            message: &"\u{1}".repeat(256 << 10),
            answer: Some(HttpAnswer { status_code: 500, request_id: Some("id"), body: body.as_bytes() }),
            attempts: &vec![attempt; 10],
        };
        for format in [Format::OpenAi, Format::Prompts] {
            let mut record = Vec::new();
            RecordWriter::new(format, "0123456789abcdef", u32::MAX).failed(name, &failure, &mut record);
            assert!(record.len() > LINE && record.len() <= longest_record(LINE), "{}", record.len());
        }
    }
}
