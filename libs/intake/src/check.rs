//! A check without a job: every fault is told to a callback, and nothing is written.

use crate::{
    IntakeError,
    examine::{Method, examine},
    fault::{Fault, FaultSink},
    reading::Reading,
    rules::LineRules,
    summary::Summary,
};

/// Examines an input and reports every invalid line: first those that are faulty by themselves, in the order of the
/// file, then those whose id an earlier line has, again in the order of the file.
///
/// `report` runs on a blocking thread and may take its time: reading waits for it.
pub async fn check(
    reading: &Reading<'_>,
    rules: LineRules,
    report: impl FnMut(&Fault<'_>) + Send + 'static,
) -> Result<Summary, IntakeError> {
    examine(reading, Method::new(rules, reading), Report(report)).await
}

/// A callback as a sink.
struct Report<F>(F);

impl<F: FnMut(&Fault<'_>) + Send + 'static> FaultSink for Report<F> {
    fn take(&mut self, fault: &Fault<'_>) -> Result<(), IntakeError> {
        (self.0)(fault);
        Ok(())
    }

    fn end_of_series(&mut self) -> Result<(), IntakeError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use penstock_batchfile::Format;
    use penstock_job::spec::OnInvalid;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{
        Progress, Stage,
        fixtures::{Kept, TextInput, with_reading},
    };

    #[tokio::test]
    async fn every_fault_is_reported_and_the_summary_describes_the_exact_bytes() {
        let input =
            TextInput::new("x\n{\"prompt_id\":1,\"prompt\":\"a\"}\n{\"prompt_id\":1,\"prompt\":\"a\"}\n[]");
        let rules = LineRules::from(&input.spec(Format::Prompts, OnInvalid::Skip));
        let kept = Kept::default();
        let summary = with_reading(&input, async |reading, _| {
            let kept = kept.clone();
            check(reading, rules, move |fault| kept.keep(fault)).await.unwrap()
        })
        .await;
        let found: Vec<_> = kept.faults().into_iter().map(|(line, _, code, _)| (line, code)).collect();
        let expected = [(1, "invalid_json_line"), (4, "not_an_object"), (3, "duplicate_id")];
        assert_eq!(found, expected.map(|(line, code)| (line, code.to_owned())));
        assert_eq!((summary.lines, summary.rejected.len()), (4, 3));
        assert_eq!(summary.input.size_bytes, 62);
        // What `sha256sum` says.
        let sha256 = "30b40f6e02cdda9e3b1be7789835b127de1ce92537afaab43a0f237c298cb3a9";
        assert_eq!(summary.input.sha256, sha256);
    }

    #[tokio::test]
    async fn progress_rises_to_the_end_of_each_stage() {
        let line = format!("{{\"prompt_id\":1,\"prompt\":\"{:972}\"}}\n", "a");
        let input = TextInput::new(line.repeat(1400));
        let rules = LineRules::from(&input.spec(Format::Prompts, OnInvalid::Skip));
        let scratch = tempfile::tempdir().unwrap();
        let seen = Mutex::new(Vec::new());
        let progress = |progress: Progress| seen.lock().unwrap().push((progress.stage, progress.percent()));
        let reading = Reading {
            input: &input,
            scratch: scratch.path(),
            progress: &progress,
            stop: &CancellationToken::new(),
        };
        let summary = check(&reading, rules, |_| ()).await.unwrap();
        assert_eq!(summary.rejected.len(), 1399);
        let stages = [Stage::Checking, Stage::ComparingIds];
        let expected: Vec<_> =
            stages.iter().flat_map(|stage| [0, 37, 74, 100].map(|percent| (*stage, percent))).collect();
        assert_eq!(*seen.lock().unwrap(), expected);
    }
}
