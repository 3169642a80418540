//! Data on stdout, line by line.

use std::io::{self, BufWriter, Stdout, Write};

use serde::Serialize;
use thiserror::Error;

/// Writes lines to stdout. After a write that failed the rest is dropped.
#[derive(Debug)]
pub(crate) struct Lines<W: Write = BufWriter<Stdout>> {
    /// `None` once a write has failed.
    writer: Option<W>,
    /// Why, until somebody was told.
    failure: Option<io::Error>,
}

/// Lines did not reach stdout.
#[derive(Debug, Error)]
#[error("write to stdout: {0}; let it go where there is space")]
pub(crate) struct LinesLost(io::Error);

impl Lines {
    /// Lines on stdout; they may stay in memory until [`Lines::flush`].
    pub(crate) fn stdout() -> Self {
        Self::new(BufWriter::new(io::stdout()))
    }
}

impl<W: Write> Lines<W> {
    fn new(writer: W) -> Self {
        Self { writer: Some(writer), failure: None }
    }

    /// Writes one line.
    pub(crate) fn text(&mut self, line: &str) {
        self.attempt(|writer| writeln!(writer, "{line}"));
    }

    /// Writes one JSON value as one line.
    pub(crate) fn json(&mut self, value: &impl Serialize) {
        let line = serde_json::to_string(value).expect("invariant: events hold only what JSON can hold");
        self.text(&line);
    }

    /// Hands everything to the reader. Fails once, if lines were lost; a reader who does not want any more
    /// (`penstock validate FILE | head`) loses none.
    pub(crate) fn flush(&mut self) -> Result<(), LinesLost> {
        self.attempt(Write::flush);
        self.failure.take().map_or(Ok(()), |error| Err(LinesLost(error)))
    }

    fn attempt(&mut self, write: impl FnOnce(&mut W) -> io::Result<()>) {
        if let Some(writer) = &mut self.writer
            && let Err(error) = write(writer)
        {
            self.writer = None;
            self.failure = Some(error).filter(|error| error.kind() != io::ErrorKind::BrokenPipe);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes one line, then fails.
    struct Closing(Vec<u8>, io::ErrorKind);

    impl Write for Closing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.contains(&b'\n') {
                return Err(self.1.into());
            }
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_leaves_is_no_failure() {
        let mut lines = Lines::new(Closing(Vec::new(), io::ErrorKind::BrokenPipe));
        lines.text("first");
        assert_eq!(lines.writer.as_ref().unwrap().0, b"first\n");
        lines.text("second");
        lines.json(&3);
        assert!(lines.flush().is_ok());
        assert!(lines.writer.is_none());
    }

    #[test]
    fn lines_that_are_lost_are_told_once() {
        let mut lines = Lines::new(Closing(Vec::new(), io::ErrorKind::StorageFull));
        lines.text("first");
        assert!(lines.flush().is_ok());
        lines.text("second");
        assert!(lines.flush().is_err());
        lines.text("third");
        assert!(lines.flush().is_ok());
    }
}
