//! Response bodies: whole ones, and those that a fault damages on the way.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Interval, MissedTickBehavior, interval};

/// The pieces of a slow body.
const PIECES: usize = 16;

/// White space that JSON allows in front of a value, sent in blocks of this size.
static PADDING: [u8; 64 << 10] = [b' '; 64 << 10];

/// The body of a response.
#[derive(Debug)]
pub(crate) enum AnswerBody {
    /// Sent at once.
    Whole(Bytes),
    /// Sent in part; then the connection breaks or the stream ends early.
    Partial(Partial),
    /// Sent piece by piece.
    Slow { rest: Bytes, piece: usize, ticks: Interval },
    /// Sent behind white space.
    Padded { padding: u64, rest: Bytes },
}

/// Where a partial body stands. Between its bytes and its end it gives way once, so that the bytes are sent.
#[derive(Debug)]
pub(crate) enum Partial {
    Start { sent: Bytes, end: Ending },
    Sent(Ending),
    Flushed(Ending),
}

/// How a partial body ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ending {
    /// With an error, which closes the connection.
    Break,
    /// As if it were complete.
    Stop,
}

/// A connection that is closed because the settings say so.
#[derive(Debug, thiserror::Error)]
#[error("answer: the settings ask for a dropped connection here")]
pub(crate) struct Dropped;

impl AnswerBody {
    /// The first half, then `end`.
    pub(crate) fn half(bytes: &Bytes, end: Ending) -> Self {
        Self::Partial(Partial::Start { sent: bytes.slice(..bytes.len() / 2), end })
    }

    /// All of it, spread over `total`.
    pub(crate) fn slow(bytes: Bytes, total: Duration) -> Self {
        let pauses = u32::try_from(PIECES - 1).expect("invariant: PIECES is small");
        let mut ticks = interval((total / pauses).max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self::Slow { piece: bytes.len().div_ceil(PIECES).max(1), rest: bytes, ticks }
    }

    /// All of it, behind so much white space that the body has `size` bytes.
    pub(crate) fn padded(bytes: Bytes, size: u64) -> Self {
        Self::Padded { padding: size.saturating_sub(bytes.len() as u64), rest: bytes }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Dropped;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Dropped>>> {
        let data = |bytes: Bytes| Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))));
        match self.get_mut() {
            Self::Whole(bytes) => data(std::mem::take(bytes)),
            Self::Partial(partial) => match std::mem::replace(partial, Partial::Flushed(Ending::Stop)) {
                Partial::Start { sent, end } => {
                    *partial = Partial::Sent(end);
                    Poll::Ready(Some(Ok(Frame::data(sent))))
                }
                Partial::Sent(end) => {
                    *partial = Partial::Flushed(end);
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                Partial::Flushed(Ending::Break) => Poll::Ready(Some(Err(Dropped))),
                Partial::Flushed(Ending::Stop) => Poll::Ready(None),
            },
            Self::Slow { rest, piece, ticks } => {
                if rest.is_empty() {
                    return Poll::Ready(None);
                }
                ready!(ticks.poll_tick(context));
                data(rest.split_to((*piece).min(rest.len())))
            }
            Self::Padded { padding: 0, rest } => data(std::mem::take(rest)),
            Self::Padded { padding, .. } => {
                let block = usize::try_from(*padding).map_or(PADDING.len(), |left| left.min(PADDING.len()));
                *padding -= block as u64;
                data(Bytes::from_static(&PADDING[..block]))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Slow { rest, .. } | Self::Padded { padding: 0, rest } => rest.is_empty(),
            Self::Partial(_) | Self::Padded { .. } => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Padded { padding, rest } => SizeHint::with_exact(padding + rest.len() as u64),
            // Unknown, so that nothing is announced but what the response's own headers say.
            Self::Partial(_) | Self::Slow { .. } => SizeHint::default(),
        }
    }
}
