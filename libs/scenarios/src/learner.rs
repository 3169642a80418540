//! The learner of `penstock-rate` as a controller of the simulation, by way of its pipe.

use std::{collections::BTreeMap, num::NonZeroU32, time::Duration};

use penstock_rate::pipe::{self, Event, Reply, Session};
use penstock_rate::{Cost, Hint, Hints, Learner, Limits, Mode, Profile, Saturation, Shared, Verdict};
use penstock_simulator::rate::{Answer, Claim, Controller, Dimension, Outcome, Wish};

/// A learner that begins when its job does.
#[derive(Debug)]
pub(crate) struct Learning {
    mode: Mode,
    profile: Profile,
    limits: Limits,
    remembered: BTreeMap<penstock_rate::Dimension, f64>,
    session: Option<Session>,
}

impl Learning {
    pub(crate) fn new(
        mode: Mode,
        profile: Profile,
        limits: Limits,
        remembered: BTreeMap<penstock_rate::Dimension, f64>,
    ) -> Self {
        Self { mode, profile, limits, remembered, session: None }
    }

    fn begin(&self, now: Duration) -> Session {
        let mut learner = Learner::new(self.mode, self.profile, self.limits, now);
        learner.remembered(now, &self.remembered);
        Session::new(learner)
    }

    fn tell(&mut self, now: Duration, event: Event) -> Wish {
        let session = match self.session.take() {
            Some(session) => session,
            None => self.begin(now),
        };
        wish(self.session.insert(session).respond(now, event))
    }
}

fn wish(reply: Reply) -> Wish {
    Wish { send_at: reply.send_at, wake_at: reply.wake_at }
}

fn hint(claim: Option<Claim>) -> Hint {
    claim.map_or_else(Hint::default, |Claim { limit, remaining, reset }| Hint {
        limit: Some(limit),
        remaining: Some(remaining),
        reset: Some(reset),
        period: None,
    })
}

fn told(answer: &Answer) -> pipe::Answer {
    let hints = Hints { requests: hint(answer.requests), tokens: hint(answer.tokens), ..Hints::default() };
    match answer.outcome {
        Outcome::Succeeded { output_tokens } => pipe::Answer::Success { output_tokens, hints },
        Outcome::Refused { dimension, retry_after } => {
            let dimension = dimension.map(|dimension| match dimension {
                Dimension::Requests => penstock_rate::Dimension::Requests,
                Dimension::Tokens => penstock_rate::Dimension::Tokens,
            });
            pipe::Answer::Failure(Verdict::Refused { dimension, retry_after, hints })
        }
        Outcome::Overloaded => pipe::Answer::Failure(Verdict::Overloaded { retry_after: None }),
        Outcome::Failed => pipe::Answer::Failure(Verdict::Lost),
    }
}

impl Controller for Learning {
    fn start(&mut self, now: Duration) -> Wish {
        self.tell(now, Event::Start)
    }

    fn departed(&mut self, now: Duration, index: u64, input_tokens: u32, max_tokens: u32) -> Wish {
        let cost = Cost { input_tokens, output_tokens: max_tokens };
        self.tell(now, Event::Sent { id: index, cost })
    }

    fn answered(&mut self, now: Duration, answer: &Answer) -> Wish {
        self.tell(now, Event::Answer { id: answer.index, answer: told(answer) })
    }

    fn woken(&mut self, now: Duration) -> Wish {
        self.tell(now, Event::Timer)
    }

    fn shared(&mut self, now: Duration, jobs: NonZeroU32, mean_rpm: Option<f64>) -> Option<Wish> {
        let session = self.session.as_mut()?;
        session.learner_mut().shared(now, Shared { jobs, mean_rpm });
        Some(wish(session.wants(now)))
    }

    fn saturation(&mut self, now: Duration, running: u32, waiting: u32) -> Option<Wish> {
        let session = self.session.as_mut()?;
        session.learner_mut().saturation(now, Saturation { running, waiting });
        Some(wish(session.wants(now)))
    }

    fn per_minute(&self) -> Option<f64> {
        self.session.as_ref()?.learner().gauges().effective_rpm
    }

    fn shared_per_minute(&self) -> Option<f64> {
        self.session.as_ref()?.learner().rate_rpm()
    }
}
