//! The line reader against a plain way to find lines: the same lines and positions whatever the chunks, and from every
//! place where an input may be read on.

use std::ops::ControlFlow;

use penstock_batchfile::{Content, Line, LineSplitter, Position};

use crate::bounded;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A line that outlives its visit: its bytes, or the length of one that is too long.
#[derive(Debug, PartialEq)]
struct Seen {
    position: Position,
    end: u64,
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

/// The first byte bounds the length of a line, the second that of a chunk; the rest is the input.
pub fn line_reader(data: &[u8]) {
    let Some((&[longest, chunk], input)) = bounded(data, 4096).split_first_chunk() else { return };
    let (longest, chunk) = (usize::from(longest) + 1, usize::from(chunk) + 1);
    let expected = lines(input, longest);
    assert_eq!(read(input, Position::START, longest, usize::MAX, usize::MAX), expected, "in one piece");
    assert_eq!(read(input, Position::START, longest, chunk, usize::MAX), expected, "in chunks of {chunk}");

    let (all, end) = &expected;
    let middle = all.len() / 2;
    if let Some(line) = all.get(middle) {
        let (rest, rest_end) = read(input, line.position, longest, chunk, usize::MAX);
        assert_eq!((&rest[..], rest_end), (&all[middle..], *end), "read on at line {middle}");
    }
    let (first, stop) = read(input, Position::START, longest, chunk, middle + 1);
    let (rest, rest_end) = read(input, stop, longest, chunk, usize::MAX);
    assert_eq!(
        first.iter().chain(&rest).collect::<Vec<_>>(),
        all.iter().collect::<Vec<_>>(),
        "stopped and read on"
    );
    assert_eq!(rest_end, *end);
}

/// What the reader visits from `start` on, at most `most` lines, and where it is then.
fn read(input: &[u8], start: Position, longest: usize, chunk: usize, most: usize) -> (Vec<Seen>, Position) {
    let mut splitter = LineSplitter::new(start, longest);
    let mut seen = Vec::new();
    let mut visit = |line: Line<'_>| {
        seen.push(line.into());
        if seen.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let offset = usize::try_from(start.byte_offset).expect("a position lies in the input");
    let flow = input[offset..].chunks(chunk).try_for_each(|chunk| splitter.feed(chunk, &mut visit));
    if flow.is_continue() {
        let _ = splitter.finish(visit);
    }
    let end = splitter.position();
    (seen, end)
}

/// The lines of an input, found without any state between them, and the position behind the last.
fn lines(input: &[u8], longest: usize) -> (Vec<Seen>, Position) {
    let mut found = Vec::new();
    let mut position = Position::START;
    for physical in input.split_inclusive(|byte| *byte == b'\n') {
        let whole = physical.strip_suffix(b"\n").unwrap_or(physical);
        let end = position.byte_offset + physical.len() as u64;
        let mut start = position;
        let content = if whole.len() > longest {
            Err(whole.len() as u64)
        } else {
            let marked = whole.strip_prefix(BYTE_ORDER_MARK).filter(|_| position.byte_offset == 0);
            start.byte_offset += if marked.is_some() { BYTE_ORDER_MARK.len() as u64 } else { 0 };
            let line = marked.unwrap_or(whole);
            Ok(line.strip_suffix(b"\r").unwrap_or(line).to_vec())
        };
        let is_blank = content.as_deref().unwrap_or(whole).iter().all(|byte| b" \t\r".contains(byte));
        if !is_blank {
            found.push(Seen { position: start, end, content });
            position.ordinal = position.ordinal.next();
        }
        position.byte_offset = end;
        position.line_number += 1;
    }
    (found, position)
}
