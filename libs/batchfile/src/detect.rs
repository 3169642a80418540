//! Tells an input's format, and the endpoint that its lines name, from its first lines.

use std::ops::ControlFlow;

use thiserror::Error;

use crate::{Content, Endpoint, Format, Json, Line, members::Members};

/// After so many lines that say nothing, reading on would not help.
const LINES: u32 = 100;

/// Looks at lines, in order, until one shows the format: the first with a `prompt_id` or a `custom_id`, or, where an
/// id was forgotten, with a `prompt` or a `body`. Lines that cannot be read are passed over: validation names them.
#[derive(Debug, Default)]
pub struct Detector {
    looked_at: u32,
    detected: Option<Detected>,
}

/// What the first lines show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detected {
    /// How the lines are written.
    pub format: Format,
    /// The endpoint that the line names which showed the format; `None` when it names none.
    pub endpoint: Option<Endpoint>,
}

impl From<Format> for Detected {
    fn from(format: Format) -> Self {
        Self { format, endpoint: None }
    }
}

/// The first lines do not show the format.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnknownFormat {
    /// There is no line.
    #[error("tell the format of the input: it has no lines; write one JSON object on each line")]
    Empty,
    /// No line has a field that tells.
    #[error(
        "tell the format of the input: none of its first {lines} lines has `prompt_id` or `custom_id`; write lines \
         like {{\"prompt_id\": 7, \"prompt\": \"...\"}} or {{\"custom_id\": \"a\", \"body\": {{...}}}}, or name the format"
    )]
    Neither {
        /// How many lines were looked at.
        lines: u32,
    },
}

impl Detector {
    /// Looks at the next line; breaks when no further line is needed.
    pub fn look(&mut self, line: &Line<'_>) -> ControlFlow<()> {
        self.looked_at += 1;
        if let Content::Whole(bytes) = line.content {
            self.detected = detected_in(bytes);
        }
        if self.detected.is_some() || self.looked_at >= LINES {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// What the lines showed.
    pub fn detected(&self) -> Result<Detected, UnknownFormat> {
        match (self.detected, self.looked_at) {
            (Some(detected), _) => Ok(detected),
            (None, 0) => Err(UnknownFormat::Empty),
            (None, lines) => Err(UnknownFormat::Neither { lines }),
        }
    }
}

fn detected_in(line: &[u8]) -> Option<Detected> {
    let text = str::from_utf8(line).ok()?;
    let members = Members::read(text, &["prompt_id", "custom_id", "prompt", "body", "url"]).ok()?;
    let [prompt_id, custom_id, prompt, body, url] = members.values;
    let format = match [prompt_id, custom_id, prompt, body].map(|value| value.is_some()) {
        [true, false, ..] | [false, false, true, false] => Format::Prompts,
        [false, true, ..] | [false, false, false, true] => Format::OpenAi,
        [..] => return None,
    };
    let url = url.filter(|_| format == Format::OpenAi).and_then(Json::text);
    Some(Detected { format, endpoint: url.and_then(|url| url.parse().ok()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LineSplitter, Position};

    fn detect(input: &str) -> Result<Format, UnknownFormat> {
        let mut detector = Detector::default();
        let mut splitter = LineSplitter::new(Position::START, 1000);
        if splitter.feed(input.as_bytes(), |line| detector.look(&line)).is_continue() {
            let _ = splitter.finish(|line| detector.look(&line));
        }
        detector.detected().map(|detected| detected.format)
    }

    #[test]
    fn the_endpoint_is_that_of_the_line_that_shows_the_format() {
        let endpoint = |line: &str| detected_in(line.as_bytes()).unwrap().endpoint;
        assert_eq!(
            endpoint(r#"{"custom_id":"a","url":"/v1/embeddings","body":{}}"#),
            Some(Endpoint::Embeddings)
        );
        assert_eq!(endpoint(r#"{"custom_id":"a","body":{}}"#), None);
        assert_eq!(endpoint(r#"{"custom_id":"a","url":"/v1/files","body":{}}"#), None);
        assert_eq!(endpoint(r#"{"prompt_id":1,"url":"/v1/embeddings"}"#), None);
    }

    #[test]
    fn the_first_line_that_tells_decides() {
        assert_eq!(detect("{\"prompt\":\"a\",\"prompt_id\":1}\n{\"custom_id\":\"a\"}"), Ok(Format::Prompts));
        assert_eq!(detect("not JSON\n{\"else\":1}\n\n{\"custom_id\":\"a\"}"), Ok(Format::OpenAi));
    }

    #[test]
    fn a_forgotten_id_does_not_hide_the_format() {
        assert_eq!(detect("{\"prompt\":\"a\"}"), Ok(Format::Prompts));
        assert_eq!(detect("{\"body\":{}}"), Ok(Format::OpenAi));
        assert_eq!(detect("{\"custom_id\":\"a\",\"prompt\":\"a\"}"), Ok(Format::OpenAi));
    }

    #[test]
    fn a_line_of_both_formats_decides_nothing() {
        assert_eq!(detect("{\"prompt_id\":1,\"custom_id\":\"a\"}\n{\"prompt_id\":2}"), Ok(Format::Prompts));
        assert_eq!(detect("{\"prompt\":1,\"body\":{}}"), Err(UnknownFormat::Neither { lines: 1 }));
    }

    #[test]
    fn an_input_that_does_not_tell_is_an_error_that_says_what_to_write() {
        assert_eq!(detect("\n"), Err(UnknownFormat::Empty));
        let unknown = detect(&"{}\n".repeat(1000)).unwrap_err();
        assert_eq!(unknown, UnknownFormat::Neither { lines: LINES });
        assert!(unknown.to_string().contains("{\"prompt_id\": 7, \"prompt\": \"...\"}"), "{unknown}");
    }
}
