//! Data on stdout, line by line.

use std::io::{self, BufWriter, Stdout, Write};

use serde::Serialize;

/// Writes lines to stdout. When nobody reads them any more (`penstock validate FILE | head`) the rest is dropped.
#[derive(Debug)]
pub(crate) struct Lines<W: Write = BufWriter<Stdout>> {
    /// `None` once a write has failed.
    writer: Option<W>,
}

impl Lines {
    /// Lines on stdout; they may stay in memory until [`Lines::flush`].
    pub(crate) fn stdout() -> Self {
        Self::new(BufWriter::new(io::stdout()))
    }
}

impl<W: Write> Lines<W> {
    fn new(writer: W) -> Self {
        Self { writer: Some(writer) }
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

    /// Hands everything to the reader.
    pub(crate) fn flush(&mut self) {
        self.attempt(Write::flush);
    }

    fn attempt(&mut self, write: impl FnOnce(&mut W) -> io::Result<()>) {
        if let Some(writer) = &mut self.writer
            && write(writer).is_err()
        {
            self.writer = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes one write, then is closed.
    struct Closing(Vec<u8>);

    impl Write for Closing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.contains(&b'\n') {
                return Err(io::ErrorKind::BrokenPipe.into());
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
        let mut lines = Lines::new(Closing(Vec::new()));
        lines.text("first");
        assert_eq!(lines.writer.as_ref().unwrap().0, b"first\n");
        lines.text("second");
        lines.json(&3);
        lines.flush();
        assert!(lines.writer.is_none());
    }
}
