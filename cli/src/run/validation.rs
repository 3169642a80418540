//! The first pass of a run: every line checked before anything is sent.

use std::{fs, path::Path, sync::PoisonError};

use penstock_executor::Progress;
use penstock_intake::{IntakeError, Reading, Verdict};
use penstock_job::CanonicalSpec;
use penstock_storage::{Input, Store};

use super::{InputError, OccupiedError};
use crate::{
    attend::{Validating, attend},
    error::CommandError,
    output::Output,
    signals::Signals,
    view::Reporter,
};

/// Validates the input unless that was done before. `false` when it was stopped first.
pub(super) async fn validate(
    input: &dyn Input,
    store: &dyn Store,
    canonical: &CanonicalSpec,
    output: &Output,
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
        // It was over too soon to notice the stop.
        Ok(Verdict::Accepted(..)) if validating.stop.is_cancelled() => Ok(stopped(reporter)),
        Ok(Verdict::Accepted(..)) => Ok(true),
        Ok(Verdict::Refused(refusal)) => {
            Err(InputError::Refused { refusal: Box::new(refusal), output: output.location().to_string() }
                .into())
        }
        Err(IntakeError::Stopped) => Ok(stopped(reporter)),
        Err(IntakeError::OutputOccupied { field, .. }) => Err(OccupiedError::new(output, Some(field)).into()),
        Err(error) => Err(error.into()),
    }
}

/// Says that nothing was sent; the input is not to be run.
fn stopped(reporter: &mut Reporter) -> bool {
    reporter.stopped(&Progress::default());
    false
}

#[cfg(test)]
mod tests {
    use penstock_batchfile::Detected;
    use penstock_job::{
        JobSpec,
        spec::{CanonicalInput, ProviderKind},
    };
    use penstock_storage::{FileInput, FileStore};
    use rustix::process::{Signal, getpid, kill_process};

    use super::*;
    use crate::{arguments::ViewArguments, output::tests::in_folder, view::Screen};

    /// Otherwise Ctrl-C would be forgotten, and the job begin to cost money.
    #[tokio::test]
    async fn a_stop_is_heard_even_where_there_is_nothing_left_to_validate() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("in.jsonl");
        fs::write(&path, "{\"prompt_id\": 1, \"prompt\": \"a\"}\n").unwrap();
        let input = FileInput::open(&path).await.unwrap();
        let output = in_folder(root.path().join("out"));
        let store = FileStore::open(root.path().join("out")).await.unwrap();
        let mut spec = JobSpec::default();
        spec.provider.kind = ProviderKind::Simulated;
        let generation = input.generation().as_str().to_owned();
        let named = CanonicalInput { uri: input.uri().to_owned(), generation };
        let canonical = spec
            .canonical(named, Detected { format: penstock_batchfile::Format::Prompts, endpoint: None })
            .unwrap();
        let view = ViewArguments { quiet: true, ..ViewArguments::default() };
        let mut reporter = Reporter::new(view, &Screen::stderr(), String::new());
        let mut signals = Signals::listen().unwrap();
        let scratch = root.path().join("scratch");
        let mut again = async || {
            validate(&input, &store, &canonical, &output, &scratch, &mut reporter, &mut signals)
                .await
                .unwrap()
        };
        assert!(again().await);
        let mut witness = Signals::listen().unwrap();
        kill_process(getpid(), Signal::INT).unwrap();
        witness.next().await;
        assert!(!again().await, "the run would have gone on");
    }
}
