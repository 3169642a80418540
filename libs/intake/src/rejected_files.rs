//! The files of rejected records while they are being built, in scratch. Uploading them is `attempt`.

use std::{
    io::{self, BufWriter, Write},
    path::PathBuf,
};

use penstock_batchfile::RecordWriter;
use penstock_storage::Checksum;
use tempfile::{NamedTempFile, TempPath};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::{
    IntakeError,
    fault::{Fault, FaultSink},
};

/// A file is finished as soon as it has so many bytes.
const FILE_BYTES: u64 = 50_000_000;

/// A file of rejected records that is never written again. It is deleted when this is dropped.
#[derive(Debug)]
pub(crate) struct FinishedFile {
    pub(crate) path: TempPath,
    pub(crate) checksum: Checksum,
    /// How many records it holds.
    pub(crate) lines: u64,
}

/// Writes rejected records and hands over each finished file. It waits while one is handed over and another is being
/// taken care of, so scratch holds three files at most.
#[derive(Debug)]
pub(crate) struct RejectedFiles {
    records: RecordWriter,
    scratch: PathBuf,
    file_bytes: u64,
    finished: Sender<FinishedFile>,
    record: Vec<u8>,
    current: Option<GrowingFile>,
}

#[derive(Debug)]
struct GrowingFile {
    out: BufWriter<NamedTempFile>,
    checksum: Checksum,
    lines: u64,
}

impl RejectedFiles {
    /// Writes to the folder `scratch`; the receiver gets each finished file, in order.
    pub(crate) fn channel(records: RecordWriter, scratch: PathBuf) -> (Self, Receiver<FinishedFile>) {
        let (finished, receiver) = channel(1);
        let files =
            Self { records, scratch, file_bytes: FILE_BYTES, finished, record: Vec::new(), current: None };
        (files, receiver)
    }

    fn append(&mut self) -> io::Result<u64> {
        let current = match &mut self.current {
            Some(current) => current,
            absent => absent.insert(GrowingFile {
                out: BufWriter::new(NamedTempFile::new_in(&self.scratch)?),
                checksum: Checksum::default(),
                lines: 0,
            }),
        };
        current.out.write_all(&self.record)?;
        current.checksum = current.checksum.extended(&self.record);
        current.lines += 1;
        Ok(current.checksum.size_bytes)
    }

    fn failed(&self, cause: io::Error) -> IntakeError {
        IntakeError::Scratch { folder: self.scratch.clone(), cause }
    }
}

impl FaultSink for RejectedFiles {
    fn take(&mut self, fault: &Fault<'_>) -> Result<(), IntakeError> {
        self.record.clear();
        self.records.rejected(fault.position, fault.id, fault.rejection, &mut self.record);
        let size_bytes = self.append().map_err(|cause| self.failed(cause))?;
        if size_bytes < self.file_bytes { Ok(()) } else { self.end_of_series() }
    }

    fn end_of_series(&mut self) -> Result<(), IntakeError> {
        let Some(GrowingFile { out, checksum, lines }) = self.current.take() else {
            return Ok(());
        };
        let file = out.into_inner().map_err(|error| self.failed(error.into_error()))?;
        let finished = FinishedFile { path: file.into_temp_path(), checksum, lines };
        // Nobody takes it: the upload has failed, and says itself why.
        self.finished.blocking_send(finished).map_err(|_| IntakeError::Stopped)
    }
}

#[cfg(test)]
mod tests {
    use penstock_batchfile::{Format, Ordinal, Position, Rejection};

    use super::*;

    #[tokio::test]
    async fn files_are_cut_behind_a_record_and_described_exactly() {
        let scratch = tempfile::tempdir().unwrap();
        let records = RecordWriter::new(Format::Prompts, "0123456789", 0);
        let (mut files, mut finished) = RejectedFiles::channel(records, scratch.path().to_owned());
        files.file_bytes = 500;
        let writing = tokio::task::spawn_blocking(move || {
            for ordinal in 0..20 {
                let position = Position { ordinal: Ordinal::new(ordinal), byte_offset: 0, line_number: 1 };
                let rejection = Rejection::line_too_long(9, 8);
                files.take(&Fault { position, id: None, rejection: &rejection }).unwrap();
            }
            files.end_of_series().unwrap();
            files.end_of_series().unwrap();
        });
        let mut lines = Vec::new();
        while let Some(file) = finished.recv().await {
            let content = std::fs::read_to_string(&file.path).unwrap();
            assert!(content.ends_with('\n') && content.len() < 1000);
            assert_eq!(file.checksum, Checksum::of(content.as_bytes()));
            lines.push(file.lines);
        }
        writing.await.unwrap();
        assert!(lines.len() > 2 && lines.iter().sum::<u64>() == 20, "{lines:?}");
        assert_eq!(scratch.path().read_dir().unwrap().count(), 0);
    }
}
