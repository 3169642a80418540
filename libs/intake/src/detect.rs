//! Tells the format of an input from its first lines.

use std::ops::ControlFlow;

use penstock_batchfile::{Detector, Format, LineSplitter, Position, UnknownFormat};
use penstock_storage::{Action, Input, StorageError};
use thiserror::Error;

use crate::{feed::CHUNK_BYTES, retry::retry};

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

/// Tells the format of an input from its first lines, reading no further than needed. Lines longer than
/// `max_line_bytes` show nothing.
pub async fn detect_format(input: &dyn Input, max_line_bytes: usize) -> Result<Format, DetectError> {
    let mut splitter = LineSplitter::new(Position::START, max_line_bytes);
    let mut detector = Detector::default();
    let size = input.size_bytes();
    let mut offset = 0;
    while offset < size {
        let end = size.min(offset + CHUNK_BYTES);
        let chunk = retry(Action::Read, input.uri(), || input.read(offset..end)).await?;
        if splitter.feed(&chunk, |line| detector.look(&line)).is_break() {
            return Ok(detector.format()?);
        }
        offset = end;
    }
    match splitter.finish(|line| detector.look(&line)) {
        ControlFlow::Break(()) | ControlFlow::Continue(()) => Ok(detector.format()?),
    }
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
            let detected = detect_format(&TextInput::new(text), 1 << 20).await;
            assert_eq!(detected.ok(), format);
        }
    }
}
