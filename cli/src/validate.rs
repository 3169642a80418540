//! `penstock validate`: names every invalid line, sends nothing and writes nothing.

use std::sync::{Arc, Mutex, PoisonError};

use penstock_batchfile::{Detected, Endpoint, Format};
use penstock_intake::{LineRules, Reading, Summary, check, detect};
use penstock_job::{ExitCode, JobSpec};
use penstock_storage::{Location, open_input};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::{
    arguments::ValidateArguments,
    error::CommandError,
    lines::Lines,
    run::InputError,
    signals::Signals,
    view::{Screen, grouped},
};

/// One invalid line, with `--json`.
#[derive(Debug, Serialize)]
struct InvalidLine<'a> {
    /// Physical line number, from 1.
    line_number: u64,
    /// Bytes before the line.
    byte_offset: u64,
    /// Non-blank lines before it.
    ordinal: u32,
    /// The kind of fault.
    code: &'a str,
    /// What is wrong and what to write instead.
    message: &'a str,
}

/// Checks a file: the invalid lines on stdout, the figures on stderr.
pub(crate) async fn validate(
    arguments: &ValidateArguments,
    screen: &Screen,
) -> Result<ExitCode, CommandError> {
    let location = Location::parse(&arguments.input).map_err(InputError::from)?;
    let input = open_input(&location).await.map_err(InputError::Storage)?;
    let max_line_bytes = JobSpec::default().max_line_bytes;
    let named = arguments.format.named();
    let Detected { format, endpoint } =
        detect(&*input, max_line_bytes, named).await.map_err(InputError::from)?;
    let rules = LineRules {
        format,
        endpoint: arguments.endpoint.or(endpoint).unwrap_or(Endpoint::ChatCompletions),
        model: model(arguments, format),
        strict: arguments.strict,
        max_line_bytes,
    };
    let scratch = tempfile::tempdir().map_err(CommandError::Temporary)?;
    let stop = CancellationToken::new();
    let reading = Reading { input: &*input, scratch: scratch.path(), progress: &|_| (), stop: &stop };
    let stdout = Arc::new(Mutex::new(Lines::stdout()));
    let lines = Arc::clone(&stdout);
    let (path, json) = (location.to_string(), arguments.json);
    let report = move |fault: &penstock_intake::Fault<'_>| {
        // Nothing panics while it holds the lock.
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        let invalid = InvalidLine {
            line_number: fault.position.line_number,
            byte_offset: fault.position.byte_offset,
            ordinal: fault.position.ordinal.get(),
            code: fault.rejection.code.as_str(),
            message: &fault.rejection.message,
        };
        if json {
            lines.json(&invalid);
        } else {
            lines.text(&told(&path, &invalid));
        }
    };
    let mut signals = Signals::listen()?;
    let work = check(&reading, rules, report);
    tokio::pin!(work);
    let summary = tokio::select! {
        summary = &mut work => summary?,
        _ = signals.next() => {
            stop.cancel();
            work.await?
        }
    };
    stdout.lock().unwrap_or_else(PoisonError::into_inner).flush()?;
    let rejected = summary.rejected.len();
    screen.say(&figures(&location.to_string(), format, &summary));
    Ok(if rejected > 0 || summary.lines == 0 { ExitCode::Failed } else { ExitCode::Completed })
}

/// Prompts never name a model; whether the job does is seen when it is run.
fn model(arguments: &ValidateArguments, format: Format) -> Option<String> {
    arguments.model.clone().or_else(|| (format == Format::Prompts).then(|| "any".to_owned()))
}

/// `FILE:LINE: byte OFFSET: code: message`, which editors can jump to.
fn told(path: &str, invalid: &InvalidLine<'_>) -> String {
    let InvalidLine { line_number, byte_offset, code, message, .. } = invalid;
    format!("{path}:{line_number}: byte {byte_offset}: {code}: {message}")
}

fn figures(path: &str, format: Format, summary: &Summary) -> String {
    let Summary { lines, rejected, rejected_codes, token_estimate, .. } = summary;
    if *lines == 0 {
        return format!("{path}: no lines; write one JSON object on each line");
    }
    if rejected.is_empty() {
        let tokens = grouped(*token_estimate);
        return format!("{path}: all {} lines are valid ({format}), about {tokens} tokens", grouped(*lines));
    }
    let codes: Vec<_> =
        rejected_codes.iter().map(|(code, count)| format!("{code} {}", grouped(*count))).collect();
    format!(
        "{path}: {} of {} lines are invalid ({format}): {}",
        grouped(rejected.len()),
        grouped(*lines),
        codes.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_fields_are_those_of_the_program() {
        let invalid = InvalidLine { line_number: 1, byte_offset: 0, ordinal: 0, code: "", message: "" };
        let written = serde_json::to_value(&invalid).unwrap();
        crate::documented::check_fields("validate --json", &[written]);
    }

    #[test]
    fn a_line_is_told_so_that_an_editor_can_jump_to_it() {
        let invalid = InvalidLine {
            line_number: 3,
            byte_offset: 47,
            ordinal: 1,
            code: "invalid_id",
            message: "'prompt_id' is a word.",
        };
        assert_eq!(told("in.jsonl", &invalid), "in.jsonl:3: byte 47: invalid_id: 'prompt_id' is a word.");
    }
}
