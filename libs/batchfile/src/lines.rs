//! Splits a stream of bytes into lines, whatever the chunks in which it comes.
//!
//! Owns byte order mark, line endings, blank lines, ordinals and the bound on a line's length. A line is copied only
//! when it spans chunks. What a line says is not looked at.

use std::ops::ControlFlow;

use memchr::memchr_iter;

use crate::Position;

/// U+FEFF in UTF-8. Skipped at the very start of an input.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One line that is not blank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// Where it starts (behind the byte order mark, if there is one).
    pub position: Position,
    /// Offset of the byte behind its terminator.
    pub end: u64,
    /// What it holds, without `\n` or `\r\n`.
    pub content: Content<'a>,
}

/// What a line holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content<'a> {
    /// All of the line.
    Whole(&'a [u8]),
    /// The line was dropped because it is longer than allowed.
    TooLong {
        /// Its length without the `\n`.
        bytes: u64,
    },
}

/// Finds the lines of an input that is fed to it in chunks.
///
/// A line is blank when it holds nothing but spaces, tabs and carriage returns; it counts as a physical line and has
/// no ordinal. Holds at most `max_line_bytes` bytes, and only of a line whose end has not come yet.
#[derive(Debug)]
pub struct LineSplitter {
    /// Start of the line that is being read.
    position: Position,
    max_line_bytes: usize,
    /// The line's bytes from earlier chunks, unless it is too long already.
    held: Vec<u8>,
    /// How many bytes of the line came in earlier chunks.
    length: u64,
    /// Whether all of them are blank.
    blank: bool,
}

impl LineSplitter {
    /// A splitter for the bytes of an input from `start` on, which must be the start of a line: [`Position::START`],
    /// a line's position, or what [`LineSplitter::position`] returned. `max_line_bytes` bounds a line without its
    /// `\n`.
    pub fn new(start: Position, max_line_bytes: usize) -> Self {
        Self { position: start, max_line_bytes, held: Vec::new(), length: 0, blank: true }
    }

    /// Start of the next line to visit: behind the line visited last and the blank lines seen since.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Takes the next bytes and visits each line that ends in them.
    ///
    /// When `visit` breaks, the rest of the chunk has not been taken. The input can be read on from
    /// [`LineSplitter::position`], exactly behind the visited line, by this splitter or a new one.
    pub fn feed(
        &mut self,
        chunk: &[u8],
        mut visit: impl FnMut(Line<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut start = 0;
        for newline in memchr_iter(b'\n', chunk) {
            let end = &chunk[start..newline];
            start = newline + 1;
            self.end_line(end, 1, &mut visit)?;
        }
        self.hold(&chunk[start..]);
        ControlFlow::Continue(())
    }

    /// Visits the last line if no newline ended it. Call it when the input is at its end.
    pub fn finish(&mut self, mut visit: impl FnMut(Line<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        if self.length == 0 { ControlFlow::Continue(()) } else { self.end_line(&[], 0, &mut visit) }
    }

    /// Keeps the beginning of a line whose end has not come.
    fn hold(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        self.blank = self.blank && is_blank(bytes);
        if self.fits(self.length) {
            append(&mut self.held, bytes, self.max_line_bytes);
        } else {
            self.held = Vec::new();
        }
    }

    fn fits(&self, length: u64) -> bool {
        length <= self.max_line_bytes as u64
    }

    /// Visits the line that `rest` completes, unless it is blank, and moves on behind it.
    fn end_line(
        &mut self,
        rest: &[u8],
        terminator: u64,
        visit: &mut impl FnMut(Line<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut start = self.position;
        let bytes = self.length + rest.len() as u64;
        let end = start.byte_offset + bytes + terminator;
        let mut held = std::mem::take(&mut self.held);
        let content = if self.fits(bytes) {
            let mut whole = rest;
            if self.length > 0 {
                append(&mut held, rest, self.max_line_bytes);
                whole = &held;
            }
            if start.byte_offset == 0
                && let Some(behind_mark) = whole.strip_prefix(BYTE_ORDER_MARK)
            {
                whole = behind_mark;
                start.byte_offset = BYTE_ORDER_MARK.len() as u64;
            }
            let whole = whole.strip_suffix(b"\r").unwrap_or(whole);
            (!is_blank(whole)).then_some(Content::Whole(whole))
        } else {
            let blank = self.blank && is_blank(rest);
            (!blank).then_some(Content::TooLong { bytes })
        };
        self.length = 0;
        self.blank = true;
        self.position = Position {
            ordinal: if content.is_some() { start.ordinal.next() } else { start.ordinal },
            byte_offset: end,
            line_number: start.line_number + 1,
        };
        match content {
            Some(content) => visit(Line { position: start, end, content }),
            None => ControlFlow::Continue(()),
        }
    }
}

/// Adds `bytes`, which must fit into `most` together with what is held, without reserving more than `most`.
fn append(held: &mut Vec<u8>, bytes: &[u8], most: usize) {
    let length = held.len() + bytes.len();
    if length > held.capacity() {
        let capacity = (2 * held.capacity()).clamp(length, most);
        held.reserve_exact(capacity - held.len());
    }
    held.extend_from_slice(bytes);
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Ordinal;

    /// A line that outlives its visit.
    #[derive(Debug, Clone, PartialEq)]
    struct Seen {
        position: Position,
        end: u64,
        /// The line, or the length of one that is too long.
        content: Result<Vec<u8>, u64>,
    }

    impl From<Line<'_>> for Seen {
        fn from(line: Line<'_>) -> Self {
            let content = match line.content {
                Content::Whole(bytes) => Ok(bytes.to_vec()),
                Content::TooLong { bytes } => Err(bytes),
            };
            Self { position: line.position, end: line.end, content }
        }
    }

    fn split(input: &[u8], start: Position, max_line_bytes: usize, chunk: usize) -> (Vec<Seen>, Position) {
        let mut splitter = LineSplitter::new(start, max_line_bytes);
        let mut seen = Vec::new();
        let mut visit = |line: Line<'_>| {
            seen.push(line.into());
            ControlFlow::Continue(())
        };
        for chunk in input[usize::try_from(start.byte_offset).unwrap()..].chunks(chunk) {
            assert!(splitter.feed(chunk, &mut visit).is_continue());
            assert!(splitter.held.capacity() <= max_line_bytes);
        }
        assert!(splitter.finish(&mut visit).is_continue());
        (seen, splitter.position())
    }

    fn at(ordinal: u32, byte_offset: u64, line_number: u64) -> Position {
        Position { ordinal: Ordinal::new(ordinal), byte_offset, line_number }
    }

    #[test]
    fn byte_order_mark_line_endings_and_blank_lines_are_no_content() {
        let (seen, end) = split(b"\xef\xbb\xbf\r\na\r\n\n \t\r\nb\n\r\nc", Position::START, 100, 1);
        let expected = [
            Seen { position: at(0, 5, 2), end: 8, content: Ok(b"a".to_vec()) },
            Seen { position: at(1, 13, 5), end: 15, content: Ok(b"b".to_vec()) },
            Seen { position: at(2, 17, 7), end: 18, content: Ok(b"c".to_vec()) },
        ];
        assert_eq!(seen, expected);
        assert_eq!(end, at(3, 18, 8));
    }

    #[test]
    fn the_first_line_starts_behind_the_byte_order_mark() {
        let (seen, _) = split(b"\xef\xbb\xbfa\n\xef\xbb\xbfb", Position::START, 100, 2);
        assert_eq!(seen[0], Seen { position: at(0, 3, 1), end: 5, content: Ok(b"a".to_vec()) });
        assert_eq!(seen[1].content, Ok(b"\xef\xbb\xbfb".to_vec()));
    }

    #[test]
    fn an_input_without_lines_visits_nothing() {
        for input in [&b""[..], b"\n", b"\r\n \n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"] {
            assert_eq!(split(input, Position::START, 100, 1).0, [], "{input:?}");
        }
    }

    #[test]
    fn a_line_over_the_bound_is_named_by_its_length_and_the_next_is_whole() {
        let (seen, _) = split(b"abc\nabcd\n     \nabc", Position::START, 3, 2);
        let contents: Vec<_> = seen.into_iter().map(|line| line.content).collect();
        assert_eq!(contents, [Ok(b"abc".to_vec()), Err(4), Ok(b"abc".to_vec())]);
    }

    /// Visits at most `most` lines, from the start.
    fn interrupted(input: &[u8], max_line_bytes: usize, chunk: usize, most: usize) -> Position {
        let mut splitter = LineSplitter::new(Position::START, max_line_bytes);
        let mut visited = 0;
        let mut visit = |_: Line<'_>| {
            visited += 1;
            if visited == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let flow = input.chunks(chunk).try_for_each(|chunk| splitter.feed(chunk, &mut visit));
        if flow.is_continue() {
            let _ = splitter.finish(visit);
        }
        splitter.position()
    }

    fn input() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => Just(&b"\n"[..]),
            2 => Just(&b"\r\n"[..]),
            1 => Just(&b"\r"[..]),
            1 => Just(&b" \t"[..]),
            1 => Just(BYTE_ORDER_MARK),
            2 => Just(&b"a"[..]),
            4 => Just(&br#"{"prompt_id":7}"#[..]),
        ];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_chunks(input in input(), most in 1_usize..40, chunk in 1_usize..20) {
            let whole = split(&input, Position::START, most, usize::MAX);
            prop_assert_eq!(split(&input, Position::START, most, chunk), whole);
        }

        #[test]
        fn reading_on_from_any_line_finds_the_same_lines(input in input(), most in 1_usize..40, chunk in 1_usize..20) {
            let (lines, end) = split(&input, Position::START, most, chunk);
            for (index, line) in lines.iter().enumerate() {
                prop_assert_eq!(split(&input, line.position, most, chunk), (lines[index..].to_vec(), end));
            }
        }

        #[test]
        fn reading_on_after_a_break_finds_the_rest(
            input in input(), most in 1_usize..40, chunk in 1_usize..20, lines in 1_usize..10,
        ) {
            let (all, end) = split(&input, Position::START, most, chunk);
            let stopped = interrupted(&input, most, chunk, lines);
            if let Some(last) = all.get(lines - 1) {
                prop_assert_eq!(stopped.byte_offset, last.end);
            }
            let rest = all.get(lines..).unwrap_or_default().to_vec();
            prop_assert_eq!(split(&input, stopped, most, chunk), (rest, end));
        }
    }
}
