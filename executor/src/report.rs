//! What the operator is told of a run while it goes on, and the way on which it directs the run.
//!
//! Nothing waits for it: a report that is refused, or that nobody hears, is followed by another one, for ever.

mod compose;
mod pace;
mod post;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use penstock_job::{JobSpec, LastWord, document};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

pub use self::post::ReportingError;
use self::{
    compose::compose,
    pace::Pace,
    post::{Post, PostError},
};
use crate::{board::Board, last_word::Speaker, orders::Orders};

/// How long one report may take.
const DEADLINE: Duration = Duration::from_secs(5);

/// Whom a run tells how far it is.
#[derive(Debug)]
pub struct Reporting {
    post: Post,
    every: Duration,
}

impl Reporting {
    /// Whom the job file names; `None` when it names nobody. Nothing is sent yet.
    pub fn of(spec: &JobSpec) -> Result<Option<Self>, ReportingError> {
        let Some(to) = &spec.report else { return Ok(None) };
        Ok(Some(Self { post: Post::new(to)?, every: Duration::from_secs(to.every_seconds.get()) }))
    }
}

/// The loop that reports.
#[derive(Debug)]
pub(crate) struct Reporter {
    post: Post,
    pace: Pace,
    speaker: Speaker,
    board: Arc<Board>,
    orders: Orders,
    /// Reports posted so far, heard or not.
    posted: u64,
    /// The last report was heard, or none was posted yet.
    is_heard: bool,
}

impl Reporter {
    pub(crate) fn new(reporting: Reporting, speaker: Speaker, board: Arc<Board>, orders: Orders) -> Self {
        let Reporting { post, every } = reporting;
        let pace = Pace::new(Instant::now(), every);
        Self { post, pace, speaker, board, orders, posted: 0, is_heard: true }
    }

    /// Reports until `done`; what is on its way then is given up.
    pub(crate) async fn report_until(mut self, done: CancellationToken) -> Self {
        loop {
            let round = async {
                self.due().await;
                self.report().await;
            };
            tokio::select! {
                () = round => {}
                () = done.cancelled() => return self,
            }
        }
    }

    /// The last report, which says how the process ends; given up at `until`.
    pub(crate) async fn last(mut self, word: LastWord, until: Instant) {
        let body = self.next(Some(word));
        match timeout_at(until, self.post.post(body)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!("failed to {error}; it was the last report"),
            Err(_) => tracing::debug!("the last report was not heard in time"),
        }
    }

    /// Completes when it is time for another report.
    async fn due(&self) {
        let hurried = async {
            self.board.turned().await;
            sleep_until(self.pace.soonest()).await;
        };
        tokio::select! {
            () = sleep_until(self.pace.next()) => {}
            () = hurried => {}
        }
    }

    async fn report(&mut self) {
        let body = self.next(None);
        let answer =
            timeout(DEADLINE, self.post.post(body)).await.unwrap_or(Err(PostError::Silent(DEADLINE)));
        let now = Instant::now();
        match answer {
            Ok(directives) => {
                if !self.is_heard {
                    tracing::info!("reports are heard again");
                }
                self.is_heard = true;
                let after = directives.report_after_seconds.map(|seconds| seconds.get().into());
                self.pace.heard(now, after.map(Duration::from_secs), fastrand::f64());
                self.orders.hear(&directives);
            }
            Err(error) => {
                if self.is_heard {
                    tracing::warn!("failed to {error}; the job goes on without the operator");
                } else {
                    tracing::debug!("failed to {error}");
                }
                self.is_heard = false;
                self.pace.failed(now, fastrand::f64());
            }
        }
    }

    fn next(&mut self, last_word: Option<LastWord>) -> Bytes {
        self.posted += 1;
        document::write(&compose(&self.speaker, self.posted, &self.board.progress(), last_word)).into()
    }
}
