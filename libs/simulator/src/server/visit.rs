//! A request between its arrival and its end: what is counted and logged of it.
//!
//! Owns the promise that each arrival has exactly one end, even when the client leaves and the future that
//! answers it is dropped.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use http::{Response, StatusCode, request::Parts};

use super::{
    body::{AnswerBody, Dropped},
    exchange::Reply,
    provider::{Arrival, InForce, Provider, now_ms},
};
use crate::{
    dialect::{Dialect, RequestId},
    draw::{PromptHash, fingerprint},
    fault::Fault,
    log::{LogAnswer, LogEntry},
    question::Question,
};

/// The most bytes of a prompt that the log shows.
const PROMPT_IN_LOG: usize = 200;

/// One request being answered. Dropped before its end, it was left by its client.
#[derive(Debug)]
pub(super) struct Visit {
    pub(super) provider: Arc<Provider>,
    pub(super) dialect: &'static dyn Dialect,
    pub(super) id: RequestId,
    pub(super) arrival: Arrival,
    pub(super) prompt: Option<PromptHash>,
    /// The fault that it met.
    pub(super) fault: Option<Fault>,
    input_tokens: u32,
    ended: bool,
}

impl Visit {
    /// Counts and logs the arrival.
    pub(super) fn start(
        provider: Arc<Provider>,
        in_force: &InForce,
        dialect: &'static dyn Dialect,
        head: &Parts,
        question: Option<&Question>,
    ) -> Result<Self, Dropped> {
        let prompt = question.map(|question| question.prompt_hash);
        let arrival = provider.arrive(in_force, prompt, |arrival| LogEntry {
            sequence: arrival.sequence,
            at_ms: now_ms(),
            path: head.uri.path().to_owned(),
            model: question.map(|question| question.model.clone()),
            prompt: question.map(|question| start_of(&question.prompt).to_owned()).unwrap_or_default(),
            prompt_hash: prompt.map(|prompt| prompt.to_string()),
            times_seen: arrival.times_seen,
            authorization_fingerprint: dialect.key(head).map(fingerprint),
            answer: None,
        });
        let input_tokens = question.map_or(0, |question| question.input_tokens);
        match arrival {
            Ok(arrival) => {
                let id = RequestId { seed: in_force.settings.seed, sequence: arrival.sequence };
                Ok(Self { provider, dialect, id, arrival, prompt, fault: None, input_tokens, ended: false })
            }
            // A witness that cannot write serves nothing: better a failing test than a wrong one.
            Err(error) => {
                tracing::error!(%error, "the simulator's log cannot be written; the request is dropped");
                Err(Dropped)
            }
        }
    }

    /// Ends with an answer.
    pub(super) fn answered(mut self, reply: Reply) -> Response<AnswerBody> {
        self.end(End::Answered { status: reply.status, output_tokens: reply.output_tokens });
        let mut response = Response::new(reply.body);
        *response.status_mut() = reply.status;
        *response.headers_mut() = reply.headers;
        self.dialect.write_name(response.headers_mut(), self.id);
        response
    }

    /// Ends with a connection that this server closes.
    pub(super) fn dropped(mut self) -> Dropped {
        self.end(End::Dropped);
        Dropped
    }

    fn end(&mut self, end: End) {
        self.ended = true;
        let counters = &self.provider.counters;
        let counter = match end {
            End::Answered { status: StatusCode::OK, .. } => &counters.succeeded,
            End::Answered { status: StatusCode::TOO_MANY_REQUESTS, .. } => &counters.throttled,
            End::Answered { .. } => &counters.failed,
            End::Dropped | End::ClientClosed => &counters.unanswered,
        };
        counter.fetch_add(1, Relaxed);
        if !self.provider.log.is_on() {
            return;
        }
        let (status, output_tokens) = match end {
            End::Answered { status, output_tokens } => (Some(status.as_u16()), output_tokens),
            End::Dropped | End::ClientClosed => (None, 0),
        };
        let answer = LogAnswer {
            at_ms: now_ms(),
            status,
            fault: self.fault,
            input_tokens: self.input_tokens,
            output_tokens,
            client_closed: matches!(end, End::ClientClosed),
        };
        if let Err(error) = self.provider.log.answered(self.arrival.sequence, answer) {
            tracing::error!(%error, "the simulator's log cannot be written; an answer is missing in it");
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if !self.ended {
            self.end(End::ClientClosed);
        }
    }
}

/// How a request ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Answered { status: StatusCode, output_tokens: u32 },
    Dropped,
    ClientClosed,
}

fn start_of(prompt: &str) -> &str {
    &prompt[..prompt.floor_char_boundary(PROMPT_IN_LOG)]
}
