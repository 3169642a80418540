//! Log lines: on stderr, above the live view. `PENSTOCK_LOG` says which, as in `info` or `penstock_executor=debug`.

use std::io::{self, Write};

use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

use crate::view::Screen;

/// The variable that says how much is logged.
const VARIABLE: &str = "PENSTOCK_LOG";

/// Warnings, but for what holds a job back: the view tells that itself, and only while it lasts.
const USUAL: &str = "warn,penstock_executor::board=off";

/// Shows log lines on `screen` from now on.
pub(crate) fn install(screen: Screen) {
    let filter = EnvFilter::try_from_env(VARIABLE).unwrap_or_else(|_| EnvFilter::new(USUAL));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(screen.has_colour())
        .with_target(false)
        .with_writer(Above(screen))
        .finish();
    tracing::subscriber::set_global_default(subscriber).expect("invariant: the first and only subscriber");
}

/// Writes above the live view.
struct Above(Screen);

impl<'a> MakeWriter<'a> for Above {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        Line { screen: &self.0, text: Vec::new() }
    }
}

/// One log line; it is shown whole when it is complete.
struct Line<'a> {
    screen: &'a Screen,
    text: Vec<u8>,
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        self.screen.say(String::from_utf8_lossy(&self.text).trim_end_matches('\n'));
    }
}
