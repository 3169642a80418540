//! The terminal: a panel that is redrawn in place, and lines above it. The only module that writes to stderr.

use std::{
    env,
    fmt::Write as _,
    io::{self, IsTerminal, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anstream::ColorChoice;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::live::Line;

/// Where nobody says how wide it is.
const USUAL_COLUMNS: usize = 80;
/// Columns of the labels.
const LABEL: usize = 7;

/// Stderr, shared by the view and the log. Clones draw on the same screen.
#[derive(Debug, Clone)]
pub(crate) struct Screen {
    panel: Arc<Mutex<Vec<String>>>,
    has_colour: bool,
    is_live: bool,
}

impl Screen {
    /// Stderr as it is.
    pub(crate) fn stderr() -> Self {
        let stderr = io::stderr();
        Self {
            panel: Arc::default(),
            // Honours NO_COLOR and its relatives.
            has_colour: anstream::AutoStream::choice(&stderr) != ColorChoice::Never,
            is_live: stderr.is_terminal() && env::var_os("TERM").is_none_or(|term| term != "dumb"),
        }
    }

    /// Whether colours may be used.
    pub(crate) fn has_colour(&self) -> bool {
        self.has_colour
    }

    /// Whether a panel can be redrawn in place.
    pub(super) fn is_live(&self) -> bool {
        self.is_live
    }

    /// How many columns there are.
    pub(super) fn columns() -> usize {
        let size = rustix::termios::tcgetwinsize(io::stderr());
        size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(USUAL_COLUMNS)
    }

    /// Draws the panel, over the one before.
    pub(super) fn draw(&self, lines: &[Line]) {
        let columns = Self::columns();
        let lines: Vec<_> = lines.iter().map(|line| compose(line, columns, self.has_colour)).collect();
        let mut panel = self.panel();
        write(&frame(panel.len(), "", &lines));
        *panel = lines;
    }

    /// Writes lines of text above the panel.
    pub(crate) fn say(&self, text: &str) {
        let panel = self.panel();
        write(&frame(panel.len(), text, &panel));
    }

    /// Takes the panel away.
    pub(crate) fn clear(&self) {
        let mut panel = self.panel();
        if !panel.is_empty() {
            write(&frame(panel.len(), "", &[]));
            panel.clear();
        }
    }

    fn panel(&self) -> MutexGuard<'_, Vec<String>> {
        // The worst that a panic can leave behind is a panel that is drawn once too often.
        self.panel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write(text: &str) {
    // Nobody is left to be told that the terminal is gone.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Replaces `drawn` lines at the end of the screen by `text` and `panel`, in one piece so that nothing flickers.
fn frame(drawn: usize, text: &str, panel: &[String]) -> String {
    let mut frame = String::new();
    if drawn > 0 {
        let _ = write!(frame, "\x1b[{drawn}A\r");
    }
    let clear_line = if drawn > 0 { "\x1b[K" } else { "" };
    for line in text.lines().chain(panel.iter().map(String::as_str)) {
        let _ = writeln!(frame, "{line}{clear_line}");
    }
    if drawn > 0 {
        frame.push_str("\x1b[J");
    }
    frame
}

/// A line of the panel as it stands on the screen: never longer than that, or it would wrap and the panel climb.
fn compose(line: &Line, columns: usize, has_colour: bool) -> String {
    let room = columns.saturating_sub(1);
    if line.label.is_empty() {
        return cut(&line.text, room);
    }
    let text = cut(&line.text, room.saturating_sub(LABEL));
    let label = line.label;
    if has_colour {
        let dimmed = anstyle::Style::new().dimmed();
        format!("{dimmed}{label:LABEL$}{dimmed:#}{text}")
    } else {
        format!("{label:LABEL$}{text}")
    }
}

/// The beginning of `text` that fits into `columns`, in one line whatever it holds.
fn cut(text: &str, columns: usize) -> String {
    let visible = |letter: char| if letter.is_control() { ' ' } else { letter };
    let text: String = text.chars().map(visible).collect();
    if text.width() <= columns {
        return text;
    }
    let mut used = 1;
    let mut short: String = text
        .chars()
        .take_while(|letter| {
            used += letter.width().unwrap_or(0);
            used <= columns
        })
        .collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_never_wraps() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("longer", 5), "long…");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("two\nlines\x1b[2J", 20), "two lines [2J");
    }

    #[test]
    fn text_is_written_above_the_panel_and_the_panel_below_it() {
        let panel = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(frame(0, "", &panel), "a\nb\n");
        assert_eq!(frame(2, "log", &panel), "\x1b[2A\rlog\x1b[K\na\x1b[K\nb\x1b[K\n\x1b[J");
        assert_eq!(frame(2, "", &[]), "\x1b[2A\r\x1b[J");
        assert_eq!(frame(0, "log", &[]), "log\n");
    }

    #[test]
    fn labels_stand_in_a_column_and_are_styled_only_where_colours_may_be_used() {
        let line = Line { label: "rate", text: "x".repeat(100) };
        assert_eq!(compose(&line, 20, false), format!("rate   {}…", "x".repeat(11)));
        assert!(compose(&line, 20, true).contains("\x1b[2m"));
    }
}
