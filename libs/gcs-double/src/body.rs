//! Bodies of answers: text, the bytes of a content, a message of gRPC.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use tokio::time::sleep;

use crate::{
    content::{Content, ContentReader},
    faults::Fault,
    visit::{Dropped, Visit},
};

/// The body of an answer.
pub(crate) type Body = UnsyncBoxBody<Bytes, BodyError>;

/// Why a body ends before its end.
pub(crate) type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// How many bytes a slow content sends at once.
const SLOW_CHUNK: u64 = 16 << 10;

/// A body that is there as a whole.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// A content, sent as the visit's fault says.
pub(crate) fn content(content: &Content, visit: Arc<Visit>) -> Body {
    let budget = match visit.fault {
        Some(Fault::BreakResponse { after_bytes }) => Some(after_bytes),
        _ => None,
    };
    let sending = Sending { reader: content.reader(), visit, budget, slow: Bytes::new() };
    let frames = stream::try_unfold(sending, async |mut sending| {
        let chunk = sending.next().await?;
        Ok::<_, BodyError>(chunk.map(|chunk| (Frame::data(chunk), sending)))
    });
    BodyExt::boxed_unsync(StreamBody::new(frames))
}

/// A content on its way.
struct Sending {
    reader: ContentReader,
    visit: Arc<Visit>,
    /// How many bytes may still be sent before the connection breaks.
    budget: Option<u64>,
    /// What is read and not yet sent.
    slow: Bytes,
}

impl Sending {
    async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        if self.budget == Some(0) {
            // A connection writes out what it holds only when a body makes it wait; an error makes it drop all of it, the
            // head of the answer as well.
            tokio::task::yield_now().await;
            return Err(Dropped.into());
        }
        let Some(mut chunk) = self.read().await? else { return Ok(None) };
        if let Some(budget) = &mut self.budget {
            chunk.truncate(usize::try_from(*budget).unwrap_or(usize::MAX));
            *budget -= chunk.len() as u64;
        }
        self.visit.sent(chunk.len() as u64);
        Ok(Some(chunk))
    }

    async fn read(&mut self) -> Result<Option<Bytes>, BodyError> {
        let Some(Fault::Slow { bytes_per_second }) = self.visit.fault else {
            return Ok(self.reader.next().await?);
        };
        if self.slow.is_empty() {
            self.slow = self.reader.next().await?.unwrap_or_default();
        }
        let length = SLOW_CHUNK.min(bytes_per_second).min(self.slow.len() as u64);
        if length == 0 {
            return Ok(None);
        }
        sleep(Duration::from_micros(length * 1_000_000 / bytes_per_second)).await;
        Ok(Some(self.slow.split_to(usize::try_from(length)?)))
    }
}
