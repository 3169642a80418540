//! The validation of a job's input, from the first byte to the committed `validation.json`.

use std::time::{SystemTime, UNIX_EPOCH};

use penstock_batchfile::RecordWriter;
use penstock_job::{CanonicalSpec, Identity, Validation, validation::ValidationFormat};
use penstock_storage::Store;

use crate::{
    IntakeError, Verdict,
    attempt::Attempt,
    commit::{CommitError, Committed, Standing, commit, look},
    examine::{Method, examine},
    reading::Reading,
    rejected_files::RejectedFiles,
    rules::LineRules,
};

/// Validates the input of the job `spec` and commits what was found below its output.
///
/// Where the output already holds a verdict on the same job, that one is returned and the input is not read. An attempt
/// that comes to no verdict, or after another one, deletes what it wrote.
pub async fn validate(
    reading: &Reading<'_>,
    store: &dyn Store,
    spec: &CanonicalSpec,
) -> Result<Verdict, IntakeError> {
    if let Standing::Validated(validation, generation) = look(store, spec).await? {
        return Ok(Verdict::of(*validation, generation));
    }
    let attempt = Attempt::new(store);
    let validation = match write(&attempt, reading, spec).await {
        Ok(validation) => validation,
        Err(error) => {
            attempt.delete().await;
            return Err(error);
        }
    };
    match commit(store, &validation).await {
        Ok(Committed::Own(generation)) => Ok(Verdict::of(validation, generation)),
        Ok(Committed::Other(validation, generation)) => {
            attempt.delete().await;
            Ok(Verdict::of(*validation, generation))
        }
        Err(CommitError::Refused(error)) => {
            attempt.delete().await;
            Err(error)
        }
        Err(CommitError::Unknown(error)) => Err(error),
    }
}

/// Examines the input and writes everything but `validation.json`.
async fn write(
    attempt: &Attempt<'_>,
    reading: &Reading<'_>,
    spec: &CanonicalSpec,
) -> Result<Validation, IntakeError> {
    let input = reading.input;
    if spec.input.generation != input.generation().as_str() {
        return Err(IntakeError::InputModified { uri: input.uri().to_owned() });
    }
    let identity = Identity::of(spec);
    let records = RecordWriter::new(spec.format, identity.as_str(), 0);
    let method = Method::new(LineRules::from(spec), reading);
    let (sink, finished) = RejectedFiles::channel(records, reading.scratch.to_owned());
    let (examined, uploaded) =
        tokio::join!(examine(reading, method, sink), attempt.upload_rejected(finished));
    let rejected_files = uploaded.map_err(IntakeError::Storage)?;
    let summary = examined?;
    let rejected_set = attempt.write_rejected_set(&summary.rejected).await.map_err(IntakeError::Storage)?;
    if reading.stop.is_cancelled() {
        return Err(IntakeError::Stopped);
    }
    Ok(Validation {
        format: ValidationFormat,
        identity,
        spec: spec.clone(),
        attempt: attempt.id,
        validated_at_ms: now_ms(),
        input: summary.input,
        lines: summary.lines,
        rejected: summary.rejected.len(),
        rejected_codes: summary.rejected_codes,
        models: summary.models,
        token_estimate: summary.token_estimate,
        identity_sum: summary.identity_sum,
        rejected_files,
        rejected_set,
    })
}

/// Milliseconds since the epoch; informs only.
fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use penstock_batchfile::{Format, Ordinal, read_record};
    use penstock_job::{OrdinalSet, Reason, identity_sum::IdentitySum, layout, spec::OnInvalid};
    use penstock_storage::{FileStore, MemoryStore};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{
        Progress, Stage,
        fixtures::{TextInput, content, names, validate_for},
    };

    /// One line of each kind, with its code; `None` is valid.
    const TABLE: &[(&[u8], Option<&str>)] = &[
        (br#"{"prompt_id":1,"prompt":"a"}"#, None),
        (br#"{"prompt_id":2,"prompt":"a"}"#, None),
        (b"not json", Some("invalid_json_line")),
        (b"[1]", Some("not_an_object")),
        (b"{\"prompt_id\":3,\"prompt\":\"\xff\"}", Some("invalid_utf8")),
        (br#"{"prompt":"a"}"#, Some("missing_required_parameter")),
        (br#"{"prompt_id":4}"#, Some("missing_required_parameter")),
        (br#"{"prompt_id":"5","prompt":"a"}"#, Some("invalid_type")),
        (br#"{"prompt_id":6,"prompt":7}"#, Some("invalid_type")),
        (br#"{"prompt_id":99999999999999999999,"prompt":"a"}"#, Some("invalid_id")),
        (br#"{"prompt_id":7,"prompt_id":7,"prompt":"a"}"#, Some("duplicate_key")),
        (&[b'x'; 2000], Some("line_too_long")),
        (b"\0\0", Some("invalid_json_line")),
        (br#" {"prompt_id":8,"prompt":"a"} "#, None),
        (br#"{"prompt_id":1,"prompt":"again"}"#, Some("duplicate_id")),
    ];

    fn input() -> TextInput {
        let mut bytes = b"\xef\xbb\xbf".to_vec();
        for (index, (line, _)) in TABLE.iter().enumerate() {
            bytes.extend_from_slice(line);
            bytes.extend_from_slice(if index % 2 == 0 { b"\r\n" } else { b"\n \t\n" });
        }
        TextInput::new(bytes)
    }

    async fn rejected_records(store: &dyn Store, validation: &Validation) -> String {
        let mut records = Vec::new();
        for file in &validation.rejected_files {
            let bytes = content(store, &file.name).await;
            assert_eq!(file.size_bytes, bytes.len() as u64);
            assert_eq!(file.lines, bytes.split_inclusive(|byte| *byte == b'\n').count() as u64);
            records.extend_from_slice(&bytes);
        }
        String::from_utf8(records).unwrap()
    }

    async fn table_is_recorded(store: &dyn Store) {
        let input = input();
        let spec = input.spec(Format::Prompts, OnInvalid::Skip);
        let verdict = validate_for(&input, store, &spec).await.unwrap();
        let Verdict::Accepted(validation, generation) = verdict else { panic!("{verdict:?}") };
        let (_, codes): (Vec<_>, Vec<_>) = TABLE.iter().copied().unzip();
        let expected: OrdinalSet =
            (0..).zip(&codes).filter_map(|(ordinal, code)| code.map(|_| Ordinal::new(ordinal))).collect();
        assert_eq!((validation.lines, validation.rejected), (15, 12));

        let records = rejected_records(store, &validation).await;
        let mut found = OrdinalSet::new();
        let mut sum = IdentitySum::default();
        for record in records.lines() {
            let head = read_record(record.as_bytes(), Format::Prompts).unwrap();
            let code = codes[head.ordinal.get() as usize].unwrap();
            assert!(record.contains(&format!("\"code\":\"{code}\"")), "{record}");
            assert!(found.insert(head.ordinal));
            sum.add(head.ordinal, head.id);
        }
        assert_eq!(found, expected);
        assert_eq!(validation.rejected_files.len(), 2, "repeated ids have a file of their own, the last");
        assert!(records.lines().last().unwrap().contains("already used by line 1."));

        let set = validation.rejected_set.as_ref().unwrap();
        assert_eq!(OrdinalSet::from_bytes(&content(store, &set.name).await).unwrap(), expected);
        for (ordinal, id) in [(0, "1"), (1, "2"), (13, "8")] {
            sum.add(Ordinal::new(ordinal), Some(id));
        }
        assert_eq!(validation.identity_sum, sum, "the records do not carry the ids that the sum counted");

        let again = validate_for(&input, store, &spec).await.unwrap();
        assert_eq!(again, Verdict::Accepted(validation, generation));
        assert_eq!(names(store, layout::INTAKE).await.len(), 3);
    }

    #[tokio::test]
    async fn every_fault_is_recorded_with_its_line_in_memory() {
        table_is_recorded(&MemoryStore::new()).await;
    }

    #[tokio::test]
    async fn every_fault_is_recorded_with_its_line_in_a_folder() {
        let output = tempfile::tempdir().unwrap();
        table_is_recorded(&FileStore::open(output.path()).await.unwrap()).await;
    }

    #[tokio::test]
    async fn the_same_input_has_the_same_rejected_records_wherever_it_is_validated() {
        let (first, second) = (MemoryStore::new(), MemoryStore::new());
        let input = input();
        let spec = input.spec(Format::Prompts, OnInvalid::Skip);
        let verdicts = (
            validate_for(&input, &first, &spec).await.unwrap(),
            validate_for(&input, &second, &spec).await.unwrap(),
        );
        assert_eq!(
            rejected_records(&first, verdicts.0.validation()).await,
            rejected_records(&second, verdicts.1.validation()).await
        );
    }

    #[tokio::test]
    async fn an_input_that_cannot_be_run_is_refused_and_refused_again_without_being_read() {
        let valid = "{\"prompt_id\":1,\"prompt\":\"a\"}\n";
        let table = [
            (String::new(), OnInvalid::Skip, Some(Reason::EmptyInput)),
            ("\n \r\n".to_owned(), OnInvalid::Skip, Some(Reason::EmptyInput)),
            ("x\ny\n".to_owned(), OnInvalid::Skip, Some(Reason::InvalidInput)),
            (format!("{valid}x"), OnInvalid::Fail, Some(Reason::InvalidInput)),
            (format!("{valid}x"), OnInvalid::Skip, None),
            (valid.to_owned(), OnInvalid::Fail, None),
        ];
        for (text, on_invalid, reason) in table {
            let store = MemoryStore::new();
            let mut input = TextInput::new(text.clone());
            let spec = input.spec(Format::Prompts, on_invalid);
            let verdict = validate_for(&input, &store, &spec).await.unwrap();
            match (&verdict, reason) {
                (Verdict::Accepted(..), None) => {}
                (Verdict::Refused(refusal), Some(reason)) => {
                    assert_eq!(refusal.reason, reason, "{text:?}");
                    let files = &refusal.validation.rejected_files;
                    assert!(files.iter().all(|file| refusal.message.contains(&file.name)));
                }
                _ => panic!("{text:?}: {verdict:?}"),
            }
            input.changed = true;
            assert_eq!(validate_for(&input, &store, &spec).await.unwrap(), verdict, "{text:?}");
        }
    }

    #[tokio::test]
    async fn an_input_that_changes_leaves_nothing_behind() {
        let store = MemoryStore::new();
        let mut input = input();
        let spec = input.spec(Format::Prompts, OnInvalid::Skip);
        input.changed = true;
        let error = validate_for(&input, &store, &spec).await.unwrap_err();
        assert!(matches!(error, IntakeError::InputModified { .. }), "{error:?}");
        let other = TextInput::new("x");
        let error = validate_for(&other, &store, &spec).await.unwrap_err();
        assert!(matches!(error, IntakeError::InputModified { .. }), "{error:?}");
        assert_eq!(names(&store, "").await, [""; 0]);
    }

    #[tokio::test]
    async fn a_stop_on_the_way_leaves_nothing_behind() {
        let line = format!("{{\"prompt_id\":1,\"prompt\":\"{}\"}}\nx\n", "a".repeat(900));
        let input = TextInput::new(line.repeat(3000));
        let spec = input.spec(Format::Prompts, OnInvalid::Skip);
        for stage in [Stage::Checking, Stage::ComparingIds] {
            let store = MemoryStore::new();
            let scratch = tempfile::tempdir().unwrap();
            let stop = CancellationToken::new();
            let progress = |progress: Progress| {
                if progress.stage == stage && progress.percent() > 30 {
                    stop.cancel();
                }
            };
            let reading =
                Reading { input: &input, scratch: scratch.path(), progress: &progress, stop: &stop };
            let error = validate(&reading, &store, &spec).await.unwrap_err();
            assert!(matches!(error, IntakeError::Stopped), "{error:?}");
            assert_eq!(names(&store, "").await, [""; 0]);
            assert_eq!(scratch.path().read_dir().unwrap().count(), 0);
        }
    }

    #[tokio::test]
    async fn a_scratch_folder_that_is_gone_is_named() {
        let (store, input) = (MemoryStore::new(), input());
        let spec = input.spec(Format::Prompts, OnInvalid::Skip);
        let reading = Reading {
            input: &input,
            scratch: std::path::Path::new("/nowhere/at/all"),
            progress: &|_| (),
            stop: &CancellationToken::new(),
        };
        let error = validate(&reading, &store, &spec).await.unwrap_err().to_string();
        assert!(error.contains("/nowhere/at/all"), "{error}");
        assert_eq!(names(&store, "").await, [""; 0]);
    }
}
