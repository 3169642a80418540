//! What a job says about its lines, and the check of one line against it.

use penstock_batchfile::{Content, Endpoint, Format, Line, RawId, Rejection, Request, Rules, parse};
use penstock_job::CanonicalSpec;

/// What a job says about its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineRules {
    /// How lines are written.
    pub format: Format,
    /// The job's endpoint.
    pub endpoint: Endpoint,
    /// The model of lines that name none; `None` rejects them.
    pub model: Option<String>,
    /// Whether fields that the format does not know reject a line.
    pub strict: bool,
    /// The longest line that is accepted, in bytes.
    pub max_line_bytes: usize,
}

impl From<&CanonicalSpec> for LineRules {
    fn from(spec: &CanonicalSpec) -> Self {
        Self {
            format: spec.format,
            endpoint: spec.endpoint,
            model: spec.model.clone(),
            strict: spec.strict,
            max_line_bytes: spec.max_line_bytes,
        }
    }
}

/// What became of a line that was looked at alone.
#[derive(Debug)]
pub(crate) enum Checked<'a> {
    /// Valid, unless its id repeats.
    Valid(ValidLine<'a>),
    /// Invalid, with its id where it can still be read.
    Invalid(Option<RawId<'a>>, Rejection),
}

/// A line that is valid by itself.
#[derive(Debug)]
pub(crate) struct ValidLine<'a> {
    pub(crate) request: Request<'a>,
    /// Its length without the terminator.
    pub(crate) bytes: u64,
}

impl LineRules {
    /// Checks one line, whatever bytes it holds.
    pub(crate) fn check<'a>(&self, line: &Line<'a>) -> Checked<'a> {
        match line.content {
            Content::TooLong { bytes } => {
                Checked::Invalid(None, Rejection::line_too_long(bytes, self.max_line_bytes))
            }
            Content::Whole(text) => match parse(text, &self.of_one_line()) {
                Ok(request) => Checked::Valid(ValidLine { request, bytes: text.len() as u64 }),
                Err(rejection) => Checked::Invalid(RawId::find(text, self.format), rejection),
            },
        }
    }

    /// The model that a valid line goes to.
    pub(crate) fn model_of<'a>(&'a self, line: &'a ValidLine<'_>) -> &'a str {
        line.request.model.as_deref().or(self.model.as_deref()).unwrap_or_default()
    }

    fn of_one_line(&self) -> Rules {
        Rules {
            format: self.format,
            endpoint: self.endpoint,
            has_model: self.model.is_some(),
            strict: self.strict,
        }
    }
}
