//! One attempt of one line: read it, send it, and turn the answer into an outcome or into a reason to try again.

use std::{sync::Arc, sync::atomic::Ordering::Relaxed, time::Duration};

use bytes::Bytes;
use penstock_batchfile::{
    Attempt, Failure, Format, HttpAnswer, LineName, OutcomeKind, RawId, RecordWriter, Success, Tokens,
};
use penstock_job::{Reason, Step};
use penstock_rate::{Hints, Verdict};
use penstock_storage::{Input, StorageError};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::task::Task;
use crate::{
    board::Board,
    budget::{Budget, Reservation},
    clock::now_ms,
    input,
    meter::Paid,
    provider::{
        self, Answer, Cause, Disposition, PrepareError, PreparedRequest, Provider, Resumption, classify,
        never_fits,
    },
    records::counted,
    results::{Answered, Entry, Hold},
    steps::Steps,
};

/// Bytes of an answer that make one token, as a rule of thumb.
const BYTES_PER_TOKEN: u64 = 4;

/// What every attempt of a job needs.
#[derive(Debug)]
pub(super) struct Attempter {
    pub(super) provider: Provider,
    pub(super) input: Arc<dyn Input>,
    pub(super) budget: Budget,
    pub(super) writer: RecordWriter,
    pub(super) format: Format,
    pub(super) max_attempts: u32,
    pub(super) board: Arc<Board>,
    pub(super) entries: mpsc::Sender<Entry>,
    pub(super) steps: Steps,
}

/// What an attempt came to.
#[derive(Debug)]
pub(super) enum Attempted {
    /// The line has its outcome, which is on its way to the collect loop.
    Settled {
        /// What a success says about the limits.
        hints: Hints,
        /// What it says about the rate.
        verdict: Verdict,
        /// Whether the provider answered as it should, be it with a refusal of this one line.
        answered: bool,
        /// Tokens that the request allowed its answer, where it was sent and sets a bound.
        output_bound: Option<u32>,
    },
    /// To be tried again; the attempt counts.
    Again { task: Task, after: Option<Duration>, verdict: Verdict, evidence: String },
    /// Turned away for the load; the attempt does not count.
    Throttled { task: Task, after: Option<Duration>, verdict: Verdict, evidence: String },
    /// No line would be answered now; the attempt does not count.
    Blocked {
        task: Task,
        reason: Reason,
        resumes: Resumption,
        /// Whether it may be this line alone.
        perhaps_alone: bool,
        message: String,
    },
    /// The line cannot be read at the moment, or no request is to be sent any more; nothing was sent.
    Unsent { task: Task },
    /// The input is not what it was; nothing was sent.
    InputModified,
}

impl Attempted {
    /// The line has failed.
    fn failed(verdict: Verdict, answered: bool) -> Self {
        Self::Settled { hints: Hints::default(), verdict, answered, output_bound: None }
    }
}

impl Attempter {
    /// Makes one attempt; `others_pass` tells whether lines of the same model are answered. On `silence` nothing is sent any
    /// more.
    pub(super) async fn attempt(
        &self,
        mut task: Task,
        others_pass: bool,
        silence: &CancellationToken,
    ) -> Attempted {
        let prepared = async {
            let reservation = self.budget.reserve(task.length as usize).await;
            (reservation, self.read(&task).await)
        };
        // Waiting for memory may take as long as the requests that hold it.
        let (mut reservation, line) = tokio::select! {
            biased;
            () = silence.cancelled() => return Attempted::Unsent { task },
            prepared = prepared => prepared,
        };
        let line = match line {
            Ok(line) => line,
            Err(error) if input::is_lost(&error) => return Attempted::InputModified,
            Err(_) => return Attempted::Unsent { task },
        };
        let request = match self.provider.prepare(&line) {
            Ok(request) => request,
            Err(error) => {
                let id = RawId::find(&line, self.format);
                let name = LineName { ordinal: task.ordinal, id: id.as_ref().map(RawId::token) };
                return self.unsendable(&task, name, &error, reservation).await;
            }
        };
        let name = LineName { ordinal: task.ordinal, id: Some((&*request.id).into()) };
        // A body made of the line is a copy of it: one of the two is enough to hold.
        drop(line);
        self.board.sent.fetch_add(1, Relaxed);
        let at_ms = now_ms();
        self.steps.before(Step::Send).await;
        let outcome = self.provider.send(&request, &mut reservation).await;
        self.steps.after(Step::Send).await;
        let answer = outcome.as_ref().ok();
        match classify(&outcome, self.provider.dialect()) {
            Disposition::Succeeded(reply) => {
                let answer = answer.expect("only an answer succeeds");
                let record = self.success(&task, name, answer, &reply);
                let verdict = verdict(reply.tokens, &request);
                let paid = paid(&task, reply.tokens).or_else(|| estimated(&task, &reply, &request));
                self.settle(&task, OutcomeKind::Succeeded, record, paid, reservation).await;
                Attempted::Settled {
                    hints: answer.hints,
                    verdict,
                    answered: true,
                    output_bound: request.output_bound,
                }
            }
            Disposition::Failed(cause) => {
                task.remember(attempt(at_ms, &outcome, &cause.code));
                self.fail(&task, name, &cause, answer, reservation).await;
                Attempted::failed(Verdict::Lost, true)
            }
            Disposition::Retry { cause, after, verdict } => {
                task.remember(attempt(at_ms, &outcome, &cause.code));
                task.tries += 1;
                task.refusals = 0;
                if task.tries < self.max_attempts {
                    return Attempted::Again { task, after, verdict, evidence: cause.message };
                }
                self.fail(&task, name, &cause, answer, reservation).await;
                Attempted::failed(verdict, false)
            }
            Disposition::Throttled { cause, after, verdict } => {
                if !matches!(verdict, Verdict::Overloaded { .. }) {
                    self.board.throttled.fetch_add(1, Relaxed);
                }
                task.remember(attempt(at_ms, &outcome, &cause.code));
                task.refusals += 1;
                if let Some(cause) = never_fits(&request.body, &verdict, task.refusals) {
                    self.fail(&task, name, &cause, answer, reservation).await;
                    return Attempted::failed(Verdict::Lost, true);
                }
                Attempted::Throttled { task, after, verdict, evidence: cause.message }
            }
            Disposition::Blocked { perhaps_alone: true, cause, .. } if others_pass => {
                task.remember(attempt(at_ms, &outcome, &cause.code));
                self.fail(&task, name, &cause, answer, reservation).await;
                Attempted::failed(Verdict::Lost, true)
            }
            Disposition::Blocked { reason, resumes, perhaps_alone, cause } => {
                Attempted::Blocked { task, reason, resumes, perhaps_alone, message: cause.message }
            }
        }
    }

    async fn read(&self, task: &Task) -> Result<Bytes, StorageError> {
        if let Some(spool) = task.spool.upgrade() {
            match spool.read(task.input_offset, task.length) {
                Ok(line) => return Ok(line),
                Err(error) => tracing::warn!(%error, "a window cannot be read; the input is read instead"),
            }
        }
        let range = task.input_offset..task.input_offset + u64::from(task.length);
        input::read(&*self.input, range)
            .await
            .inspect_err(|error| tracing::warn!(%error, "a line cannot be read"))
    }

    fn success(
        &self,
        task: &Task,
        name: LineName<'_>,
        answer: &Answer,
        reply: &provider::Reply<'_>,
    ) -> Vec<u8> {
        let response = reply.response.json();
        let mut record = Vec::with_capacity(response.get().len() + 256);
        let success = Success {
            response,
            status_code: answer.status.as_u16(),
            request_id: answer.request_id.as_deref(),
            tokens: reply.tokens,
            latency_ms: milliseconds(answer.latency),
            attempt: task.tries + 1,
        };
        self.writer.succeeded(name, &success, &mut record);
        record
    }

    async fn fail(
        &self,
        task: &Task,
        name: LineName<'_>,
        cause: &Cause,
        answer: Option<&Answer>,
        reservation: Reservation,
    ) {
        // What a filter withheld, or what ended before its text began, was paid for.
        let answered = answer.filter(|answer| answer.status.is_success());
        let paid = answered.and_then(|answer| paid(task, self.provider.dialect().used(&answer.body)));
        let answer = answer.map(|answer| HttpAnswer {
            status_code: answer.status.as_u16(),
            request_id: answer.request_id.as_deref(),
            body: &answer.body,
        });
        let failure = Failure { code: &cause.code, message: &cause.message, answer, attempts: &task.history };
        let record = self.failure(name, &failure);
        self.settle(task, OutcomeKind::Failed, record, paid, reservation).await;
    }

    /// A line that cannot be sent at all fails by itself; others go on.
    async fn unsendable(
        &self,
        task: &Task,
        name: LineName<'_>,
        error: &PrepareError,
        reservation: Reservation,
    ) -> Attempted {
        let message = format!("failed to {error}");
        let failure =
            Failure { code: error.code(), message: &message, answer: None, attempts: &task.history };
        let record = self.failure(name, &failure);
        self.settle(task, OutcomeKind::Failed, record, None, reservation).await;
        Attempted::failed(Verdict::Lost, false)
    }

    fn failure(&self, name: LineName<'_>, failure: &Failure<'_>) -> Vec<u8> {
        let mut record = Vec::with_capacity(512);
        self.writer.failed(name, failure, &mut record);
        record
    }

    /// Hands an outcome over and waits until it is appended. Until then the slot stays taken, which is how a slow output
    /// slows dispatch down.
    async fn settle(
        &self,
        task: &Task,
        outcome: OutcomeKind,
        record: Vec<u8>,
        paid: Option<Paid>,
        reservation: Reservation,
    ) {
        let (appended, done) = oneshot::channel();
        let hold = Some(Hold { reservation, appended });
        let answered = Answered { ordinal: task.ordinal, outcome, record, paid, hold };
        // A collect loop that has ended has halted the run or was told to quit.
        if self.entries.send(Entry::Outcome(answered)).await.is_ok() {
            let _ = done.await;
        }
    }
}

/// What a success says about the rate.
fn verdict(tokens: Tokens, request: &PreparedRequest) -> Verdict {
    Verdict::Succeeded {
        input_tokens: tokens.input.map_or(request.input_tokens, saturating),
        output_tokens: tokens.output.map_or(0, saturating),
    }
}

/// What was paid for an answer, where the provider counted it.
fn paid(task: &Task, tokens: Tokens) -> Option<Paid> {
    let tokens = counted([tokens.input, tokens.cached_input, tokens.output])?;
    Some(Paid { model: Arc::clone(&task.model), tokens })
}

/// What was paid, by its length, for an answer of which the provider counted nothing: a budget must end some time.
fn estimated(task: &Task, reply: &provider::Reply<'_>, request: &PreparedRequest) -> Option<Paid> {
    let output = reply.response.json().get().len() as u64 / BYTES_PER_TOKEN;
    let tokens = counted([Some(request.input_tokens.into()), None, Some(output)])?;
    Some(Paid { model: Arc::clone(&task.model), tokens })
}

/// What stands in the record of a line that fails.
fn attempt(at_ms: u64, outcome: &Result<Answer, provider::Failure>, code: &str) -> Attempt {
    let (status, latency) = match outcome {
        Ok(answer) => (Some(answer.status.as_u16()), answer.latency),
        Err(failure) => (None, failure.latency),
    };
    Attempt { at_ms, status, code: code.to_owned(), latency_ms: milliseconds(latency) }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn saturating(tokens: u64) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}
