//! Tells the format of an input, and the endpoint that its lines name, from its first lines.

use penstock_batchfile::{Detected, Detector, Format, LineSplitter, Position, UnknownFormat};
use penstock_storage::{Input, StorageError};
use thiserror::Error;

use crate::retry::Resumed;

/// Why the format of an input is not known.
#[derive(Debug, Error)]
pub enum DetectError {
    /// The first lines do not show it.
    #[error(transparent)]
    Unknown(#[from] UnknownFormat),
    /// The first lines cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Tells what the first lines of an input show, reading no further than needed. Lines longer than `max_line_bytes` show
/// nothing. A format that the user has `named` is taken as it is, and only its endpoint is looked for.
pub async fn detect(
    input: &dyn Input,
    max_line_bytes: usize,
    named: Option<Format>,
) -> Result<Detected, DetectError> {
    let shown = look(input, max_line_bytes).await?.detected();
    match named {
        None => Ok(shown?),
        Some(format) => Ok(shown.ok().filter(|shown| shown.format == format).unwrap_or(format.into())),
    }
}

async fn look(input: &dyn Input, max_line_bytes: usize) -> Result<Detector, StorageError> {
    let mut splitter = LineSplitter::new(Position::START, max_line_bytes);
    let mut detector = Detector::default();
    let mut chunks = Resumed::new(input);
    while let Some(chunk) = chunks.next().await? {
        if splitter.feed(&chunk, |line| detector.look(&line)).is_break() {
            return Ok(detector);
        }
    }
    let _ = splitter.finish(|line| detector.look(&line));
    Ok(detector)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::TextInput;

    #[tokio::test]
    async fn the_format_is_that_of_the_first_line_that_shows_one() {
        let long = " ".repeat(3 << 20);
        let table = [
            ("{\"prompt_id\":1}".to_owned(), Some(Format::Prompts)),
            ("\n\nx\n{\"custom_id\":\"a\"}\n{\"prompt_id\":1}".to_owned(), Some(Format::OpenAi)),
            (format!("{long}\n{{\"custom_id\":\"a\"}}"), Some(Format::OpenAi)),
            (format!("{{{long}\"custom_id\":\"a\"}}\n{{\"prompt_id\":1}}"), Some(Format::Prompts)),
            ("x".to_owned(), None),
            (String::new(), None),
        ];
        for (text, format) in table {
            let detected = detect(&TextInput::new(text), 1 << 20, None).await.map(|detected| detected.format);
            assert_eq!(detected.ok(), format);
        }
    }

    #[tokio::test]
    async fn a_named_format_holds_whatever_the_lines_show_and_takes_their_endpoint_if_they_agree() {
        let line = "{\"custom_id\":\"a\",\"url\":\"/v1/embeddings\",\"body\":{}}";
        let named = |format| async move {
            detect(&TextInput::new(line.to_owned()), 1024, Some(format)).await.unwrap()
        };
        assert_eq!(named(Format::OpenAi).await.endpoint, Some(penstock_batchfile::Endpoint::Embeddings));
        assert_eq!(named(Format::Prompts).await, Format::Prompts.into());
        assert!(detect(&TextInput::new(String::new()), 1024, Some(Format::OpenAi)).await.is_ok());
    }
}
