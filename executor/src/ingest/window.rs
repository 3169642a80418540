//! Building one window: which lines are in it, and their bytes on local disk.

use std::{
    fs::File,
    io::{self, Write},
    ops::ControlFlow,
    sync::Arc,
};

use penstock_batchfile::{Affinity, Content, Line, LineSplitter, Ordinal, Position, Rules};
use penstock_job::OrdinalSet;
use tokio::sync::OwnedSemaphorePermit;

use super::{Ingest, Plan, Spool, plan::Planner};

/// Lines in one window at most.
const LINES: u32 = 50_000;
/// Bytes of one window at most.
const BYTES: u64 = 64 << 20;

/// A run of consecutive lines, ready to be dispatched.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) start: Position,
    /// Where the next window begins.
    pub(crate) end: Position,
    pub(crate) plans: Vec<Plan>,
    pub(crate) spool: Arc<Spool>,
}

/// How large a window may become. The longest line that a job may allow fits into `bytes`.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    lines: u32,
    bytes: u64,
}

/// A window that is being read.
#[derive(Debug)]
pub(super) struct WindowBuilder {
    start: Position,
    splitter: LineSplitter,
    spooled: u64,
    file: File,
    contents: Contents,
}

/// What the lines of a window are sorted into.
#[derive(Debug)]
struct Contents {
    start: Position,
    bounds: Bounds,
    full: bool,
    /// The line that did not fit any more, if that is what filled the window.
    next: Option<Position>,
    planner: Planner,
    rules: Rules,
    model: Option<Arc<str>>,
    last: Ordinal,
    done: Arc<OrdinalSet>,
    rejected: Arc<OrdinalSet>,
}

impl WindowBuilder {
    pub(super) fn new(ingest: &Ingest, start: Position) -> io::Result<Self> {
        #[cfg(not(feature = "fault-injection"))]
        let lines = LINES;
        #[cfg(feature = "fault-injection")]
        let lines = crate::injection::window_lines().unwrap_or(LINES);
        Self::within(Bounds { lines, bytes: BYTES }, ingest, start)
    }

    fn within(bounds: Bounds, ingest: &Ingest, start: Position) -> io::Result<Self> {
        Ok(Self {
            start,
            splitter: LineSplitter::new(start, ingest.max_line_bytes),
            spooled: 0,
            file: Spool::file(&ingest.scratch)?,
            contents: Contents {
                start,
                bounds,
                full: false,
                next: None,
                planner: Planner::default(),
                rules: ingest.rules,
                model: ingest.model.clone(),
                last: ingest.lines,
                done: Arc::clone(&ingest.done),
                rejected: Arc::clone(&ingest.rejected),
            },
        })
    }

    pub(super) fn is_full(&self) -> bool {
        self.contents.full
    }

    /// Takes the next bytes of the input; `last` when none follow.
    pub(super) fn feed(&mut self, chunk: &[u8], last: bool) -> io::Result<()> {
        // Bytes behind the bound are blank, of a line that is too long to be planned, or of the next window.
        if self.spooled < self.contents.bounds.bytes {
            self.file.write_all(chunk)?;
            self.spooled += chunk.len() as u64;
        }
        let contents = &mut self.contents;
        let flow = self.splitter.feed(chunk, |line| contents.add(&line));
        if last && flow.is_continue() {
            let _ = self.splitter.finish(|line| contents.add(&line));
        }
        Ok(())
    }

    pub(super) fn finish(self, slot: OwnedSemaphorePermit) -> Window {
        Window {
            start: self.start,
            end: self.contents.next.unwrap_or_else(|| self.splitter.position()),
            plans: self.contents.planner.finish(),
            spool: Arc::new(Spool::new(self.file, self.start.byte_offset, slot)),
        }
    }
}

impl Contents {
    fn add(&mut self, line: &Line<'_>) -> ControlFlow<()> {
        let Line { position, end, content } = *line;
        let beyond = end - self.start.byte_offset > self.bounds.bytes;
        if beyond && position != self.start {
            self.full = true;
            self.next = Some(position);
            return ControlFlow::Break(());
        }
        let number = position.ordinal.get() - self.start.ordinal.get();
        if let Content::Whole(bytes) = content
            && !self.done.contains(position.ordinal)
            && !self.rejected.contains(position.ordinal)
        {
            self.plan(bytes, position.byte_offset - self.start.byte_offset, number);
        }
        self.full = beyond || number + 1 >= self.bounds.lines || position.ordinal.next() >= self.last;
        if self.full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn plan(&mut self, bytes: &[u8], offset: u64, number: u32) {
        let offset = u32::try_from(offset).expect("a line begins within the bound of its window");
        let length = u32::try_from(bytes.len()).expect("a line is shorter than 4 GiB");
        // A line that validation accepted and that cannot be read now is planned all the same: whoever sends it reads
        // it once more and records why that failed.
        let affinity = Affinity::of(bytes, &self.rules);
        self.planner.add(
            affinity.model.as_deref().or(self.model.as_deref()).unwrap_or_default(),
            affinity.system_prompt.as_deref().unwrap_or_default(),
            offset,
            length,
            number,
        );
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};
    use tokio::sync::Semaphore;

    use super::*;
    use crate::ingest::tests::ingest_of;

    /// The planned lines of one window in the order of the input.
    type Planned = Vec<(u32, Vec<u8>)>;

    fn planned(window: &Window) -> Planned {
        let mut lines: Vec<_> = window
            .plans
            .iter()
            .flat_map(|plan| &plan.entries)
            .map(|entry| {
                let offset = window.start.byte_offset + u64::from(entry.offset);
                let bytes = window.spool.read(offset, entry.length).unwrap();
                (window.start.ordinal.get() + entry.ordinal, bytes.to_vec())
            })
            .collect();
        lines.sort_unstable();
        lines
    }

    /// Every window of an input from `start` on, fed in chunks of this size as a reader of the input would.
    fn windows(bounds: Bounds, ingest: &Ingest, input: &[u8], start: Position, chunk: usize) -> Vec<Window> {
        let mut windows = Vec::new();
        let mut position = start;
        while position.byte_offset < input.len() as u64 && position.ordinal < ingest.lines {
            let mut builder = WindowBuilder::within(bounds, ingest, position).unwrap();
            let mut rest = &input[usize::try_from(position.byte_offset).unwrap()..];
            while !rest.is_empty() && !builder.is_full() {
                let (now, later) = rest.split_at(chunk.min(rest.len()));
                builder.feed(now, later.is_empty()).unwrap();
                rest = later;
            }
            let slot = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
            let window = builder.finish(slot);
            assert!(window.end.byte_offset > position.byte_offset, "each window goes on");
            position = window.end;
            windows.push(window);
        }
        windows
    }

    /// The first ordinals of the windows and their lines.
    fn shapes(bounds: Bounds, input: &[u8], max_line_bytes: usize) -> Vec<(u32, Vec<String>)> {
        let ingest = Ingest { max_line_bytes, ..ingest_of(input) };
        windows(bounds, &ingest, input, Position::START, 5)
            .iter()
            .map(|window| {
                let text = |(_, bytes)| String::from_utf8(bytes).unwrap();
                (window.start.ordinal.get(), planned(window).into_iter().map(text).collect())
            })
            .collect()
    }

    fn owned(shapes: &[(u32, &[&str])]) -> Vec<(u32, Vec<String>)> {
        let texts = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        shapes.iter().map(|(start, lines)| (*start, texts(lines))).collect()
    }

    const MANY: Bounds = Bounds { lines: 1_000, bytes: 1 << 20 };

    #[test]
    fn a_window_ends_at_its_bound_of_lines() {
        let bounds = Bounds { lines: 2, ..MANY };
        let expected: [(u32, &[&str]); 3] = [(0, &["a", "b"]), (2, &["c", "d"]), (4, &["e"])];
        assert_eq!(shapes(bounds, b"a\nb\n\nc\nd\ne", 100), owned(&expected));
    }

    #[test]
    fn a_line_that_does_not_fit_begins_the_next_window_and_one_that_fits_exactly_does_not() {
        let bounds = Bounds { bytes: 8, ..MANY };
        let expected: [(u32, &[&str]); 3] = [(0, &["aaa", "bbb"]), (2, &["cc"]), (3, &["ddddd"])];
        assert_eq!(shapes(bounds, b"aaa\nbbb\ncc\nddddd\n", 100), owned(&expected));
    }

    #[test]
    fn the_longest_line_allowed_has_a_window_to_itself_and_short_ones_share_theirs() {
        let bounds = Bounds { bytes: 8, ..MANY };
        let expected: [(u32, &[&str]); 3] = [(0, &["a", "b"]), (2, &["cccccccc"]), (3, &["d", "e"])];
        assert_eq!(shapes(bounds, b"a\nb\ncccccccc\nd\ne\n", 8), owned(&expected));
    }

    #[test]
    fn a_line_that_is_too_long_is_left_out_and_its_neighbours_are_whole() {
        let expected: [(u32, &[&str]); 1] = [(0, &["a", "c"])];
        assert_eq!(shapes(MANY, b"a\nbbbbbbbbbbbbbbb\nc\n", 10), owned(&expected));
        let bounds = Bounds { bytes: 12, ..MANY };
        let expected: [(u32, &[&str]); 3] = [(0, &["a"]), (1, &[]), (2, &["c"])];
        assert_eq!(shapes(bounds, b"a\nbbbbbbbbbbbbbbb\nc\n", 10), owned(&expected));
    }

    #[test]
    fn blank_lines_larger_than_a_window_are_passed_over() {
        let bounds = Bounds { bytes: 6, ..MANY };
        let expected: [(u32, &[&str]); 2] = [(0, &["a"]), (1, &["b", "c"])];
        assert_eq!(shapes(bounds, b"a\n\n\n\r\n  \n\n\n\nb\nc\n", 100), owned(&expected));
    }

    #[test]
    fn byte_order_mark_and_line_ends_are_not_part_of_a_line() {
        let expected: [(u32, &[&str]); 1] = [(0, &["a", "b", "c"])];
        assert_eq!(shapes(MANY, b"\xef\xbb\xbfa\r\n\r\nb\n \t\nc", 100), owned(&expected));
    }

    proptest! {
        #[test]
        fn every_line_that_is_left_is_planned_once_with_its_own_bytes(
            lines in vec("[ab]{0,12}", 0..40),
            crlf in any::<bool>(),
            begin in 0usize..40,
            settled in vec(0u32..40, 0..10),
            (most_lines, most_bytes, chunk) in (1u32..10, 10u64..40, 1usize..30),
        ) {
            let input = lines.join(if crlf { "\r\n" } else { "\n" });
            let max_line_bytes = 10;
            let mut all = Vec::new();
            let mut splitter = LineSplitter::new(Position::START, max_line_bytes);
            let mut visit = |line: Line<'_>| {
                let bytes = match line.content {
                    Content::Whole(bytes) => Some(bytes.to_vec()),
                    Content::TooLong { .. } => None,
                };
                all.push((line.position, bytes));
                ControlFlow::Continue(())
            };
            let _ = splitter.feed(input.as_bytes(), &mut visit);
            let _ = splitter.finish(visit);

            let start = all.get(begin).map_or(Position::START, |(position, _)| *position);
            let (done, rejected) = settled.split_at(settled.len() / 2);
            let set = |ordinals: &[u32]| Arc::new(ordinals.iter().copied().map(Ordinal::new).collect());
            let ingest = Ingest {
                max_line_bytes,
                lines: Ordinal::new(u32::try_from(all.len()).unwrap()),
                done: set(done),
                rejected: set(rejected),
                ..ingest_of(input.as_bytes())
            };
            let bounds = Bounds { lines: most_lines, bytes: most_bytes };
            let windows = windows(bounds, &ingest, input.as_bytes(), start, chunk);
            let found: Planned = windows.iter().flat_map(planned).collect();
            let expected: Planned = all
                .into_iter()
                .filter(|(position, _)| position.ordinal >= start.ordinal)
                .map(|(position, bytes)| (position.ordinal.get(), bytes))
                .filter(|(ordinal, _)| !settled.contains(ordinal))
                .filter_map(|(ordinal, bytes)| Some((ordinal, bytes?)))
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}
