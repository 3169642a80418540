//! Building one window: which lines are in it, and their bytes on local disk.

use std::{
    fs::File,
    io::{self, Write},
    ops::ControlFlow,
    sync::Arc,
};

use penstock_batchfile::{
    Body, Content, Line, LineSplitter, Ordinal, Position, Rules, parse, system_prompt_prefix,
};
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
    full: bool,
    planner: Planner,
    rules: Rules,
    model: Option<Arc<str>>,
    last: Ordinal,
    longest: u64,
    done: Arc<OrdinalSet>,
    rejected: Arc<OrdinalSet>,
}

impl WindowBuilder {
    pub(super) fn new(ingest: &Ingest, start: Position) -> io::Result<Self> {
        Ok(Self {
            start,
            splitter: LineSplitter::new(start, ingest.max_line_bytes),
            spooled: 0,
            file: Spool::file(&ingest.scratch)?,
            contents: Contents {
                start,
                full: false,
                planner: Planner::default(),
                rules: ingest.rules,
                model: ingest.model.clone(),
                last: ingest.lines,
                longest: ingest.max_line_bytes as u64,
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
        // Bytes behind the bound belong to a line that is too long to be planned, or to the next window.
        if self.spooled < BYTES {
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
            end: self.splitter.position(),
            plans: self.contents.planner.finish(),
            spool: Arc::new(Spool::new(self.file, self.start.byte_offset, slot)),
        }
    }
}

impl Contents {
    fn add(&mut self, line: &Line<'_>) -> ControlFlow<()> {
        let ordinal = line.position.ordinal;
        let offset = line.position.byte_offset - self.start.byte_offset;
        let number = ordinal.get() - self.start.ordinal.get();
        match line.content {
            // The run of bytes ends here, since those of this line were perhaps not kept.
            Content::TooLong { .. } => self.full = true,
            Content::Whole(bytes) => {
                if !self.done.contains(ordinal) && !self.rejected.contains(ordinal) {
                    self.plan(bytes, offset, number);
                }
            }
        }
        let room = BYTES.saturating_sub(self.longest);
        self.full |=
            number + 1 >= LINES || line.end - self.start.byte_offset > room || ordinal.next() >= self.last;
        if self.full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn plan(&mut self, bytes: &[u8], offset: u64, number: u32) {
        let offset = u32::try_from(offset).expect("a window is shorter than 4 GiB");
        let length = u32::try_from(bytes.len()).expect("a line is shorter than 4 GiB");
        // A line that validation accepted and that cannot be read now is planned all the same: whoever sends it reads
        // it once more and records why that failed.
        let request = parse(bytes, &self.rules).ok();
        let model = request.as_ref().and_then(|request| request.model.as_deref()).or(self.model.as_deref());
        let prefix = request.as_ref().and_then(|request| match request.body {
            Body::OpenAi(body) => system_prompt_prefix(body, request.endpoint),
            Body::Prompt(_) => None,
        });
        self.planner.add(
            model.unwrap_or_default(),
            prefix.as_deref().unwrap_or_default(),
            offset,
            length,
            number,
        );
    }
}
