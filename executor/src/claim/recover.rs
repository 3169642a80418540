//! Recover (R3 of the job protocol): take over the answers that an earlier incarnation on this machine had received,
//! but not yet made durable. They stand in files below the scratch folder, each the beginning of a part.
//!
//! Safe because it is only one more way to receive an answer: each line has one slot, whoever fills it.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use penstock_batchfile::{Format, Ordinal, OutcomeKind};
use penstock_job::{Epoch, layout::PartName};

use crate::records::RecordReader;

/// Bytes read at once.
const CHUNK: usize = 256 << 10;

/// Shows every whole record in the files of epochs before `own`, oldest first; a torn last record is ignored. Returns
/// the files, to be deleted once their records are stored anew. Blocks.
pub(crate) fn recover(
    folder: &Path,
    own: Epoch,
    format: Format,
    mut visit: impl FnMut(Ordinal, OutcomeKind, &[u8]),
) -> io::Result<Vec<PathBuf>> {
    let mut files: Vec<(PartName, PathBuf)> = fs::read_dir(folder)?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter_map(|path| Some((path.file_name()?.to_str()?.parse().ok()?, path)))
        .filter(|(name, _): &(PartName, PathBuf)| name.epoch < own)
        .collect();
    files.sort_unstable();
    for (_, path) in &files {
        read(path, format, &mut visit)?;
    }
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

/// The highest epoch that has left a file in the scratch folder.
pub(super) async fn highest_epoch(folder: &Path) -> Epoch {
    let mut highest = Epoch::NONE;
    // A folder that is not there yet holds nothing; one that cannot be read is told of before anything is sent.
    let Ok(mut entries) = tokio::fs::read_dir(folder).await else {
        return highest;
    };
    while let Ok(Some(entry)) = entries.next_entry().await {
        if let Some(part) = entry.file_name().to_str().and_then(|name| name.parse::<PartName>().ok()) {
            highest = highest.max(part.epoch);
        }
    }
    highest
}

fn read(path: &Path, format: Format, visit: &mut impl FnMut(Ordinal, OutcomeKind, &[u8])) -> io::Result<()> {
    let mut file = match fs::File::open(path) {
        // Its owner may still be alive and have published it since the folder was listed.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let mut reader = RecordReader::new(format);
    let mut chunk = vec![0; CHUNK];
    loop {
        let length = file.read(&mut chunk)?;
        let fed = reader.feed(&chunk[..length], |record, head| {
            visit(head.ordinal, head.outcome, record);
            Ok(())
        });
        if let Err(problem) = fed {
            tracing::warn!(file = %path.display(), problem, "the rest of a file in scratch is ignored");
            return Ok(());
        }
        if length == 0 {
            return Ok(());
        }
    }
}
