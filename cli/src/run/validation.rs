//! The first pass of a run: every line checked before anything is sent.

use std::{fs, path::Path, sync::PoisonError};

use penstock_intake::{IntakeError, Reading, Verdict};
use penstock_job::CanonicalSpec;
use penstock_storage::{FileInput, FileStore};

use super::{InputError, OccupiedError};
use crate::{
    attend::{Validating, attend},
    error::CommandError,
    folder::Folder,
    signals::Signals,
    view::Reporter,
};

/// Validates the input unless that was done before. `false` when it was stopped first.
pub(super) async fn validate(
    input: &FileInput,
    store: &FileStore,
    canonical: &CanonicalSpec,
    folder: &Folder,
    scratch: &Path,
    reporter: &mut Reporter,
    signals: &mut Signals,
) -> Result<bool, CommandError> {
    fs::create_dir_all(scratch)
        .map_err(|cause| IntakeError::Scratch { folder: scratch.to_owned(), cause })?;
    let validating = Validating::default();
    let note = |progress| {
        *validating.reading.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress);
    };
    let reading = Reading { input, scratch, progress: &note, stop: &validating.stop };
    let work = penstock_intake::validate(&reading, store, canonical);
    match attend(work, &validating, reporter, signals).await? {
        Ok(Verdict::Accepted(..)) => Ok(true),
        Ok(Verdict::Refused(refusal)) => Err(InputError::Refused {
            refusal: Box::new(refusal),
            folder: folder.root().display().to_string(),
        }
        .into()),
        Err(IntakeError::Stopped) => {
            reporter.stopped(&penstock_executor::Progress::default());
            Ok(false)
        }
        Err(IntakeError::OutputOccupied { field, .. }) => Err(OccupiedError::new(folder, Some(field)).into()),
        Err(error) => Err(error.into()),
    }
}
