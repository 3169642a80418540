//! A client that knows the limits, when they change, and how long an answer is on average, but of no answer how long it will
//! be: what the others are measured against.

use std::{collections::HashMap, time::Duration};

use penstock_simulator::{
    TokenCharge,
    rate::{Answer, Controller, Outcome, Trial, Wish},
};

/// The share of the limits that it uses, so that the smallest disturbance does not get it refused.
const SHARE: f64 = 0.997;

/// How long it rests when it is refused all the same.
const REST: Duration = Duration::from_secs(1);

/// Where answers are shorter than expected, requests go faster to make up for what was left in so many seconds.
const MADE_UP: f64 = 0.25;

/// Sends evenly, at a share of limits that change at known times.
#[derive(Debug)]
pub(crate) struct Oracle {
    /// From when on, how many requests and tokens a minute.
    requests: Vec<(Duration, f64)>,
    tokens: Vec<(Duration, f64)>,
    charge: TokenCharge,
    /// Tokens of an answer, on average.
    answer: f64,
    /// What each request in flight is taken to take.
    in_flight: HashMap<u64, Taken>,
    /// When the next request may go by the limit of requests and of tokens, in seconds.
    requests_free_at: f64,
    tokens_free_at: f64,
    rests_until: f64,
}

/// Tokens that a request takes as long as its answer is not there, in all and of the answer.
#[derive(Debug, Clone, Copy)]
struct Taken {
    all: f64,
    answer: f64,
}

impl Oracle {
    /// Knows what will be.
    pub(crate) fn new(trial: &Trial) -> Self {
        let most_tokens = trial.jobs.first().map_or(0, |job| job.max_tokens);
        Self {
            requests: trial.requests_per_minute(),
            tokens: trial.tokens_per_minute(),
            charge: trial.provider.limits.token_charge,
            answer: trial.provider.mean_answer(most_tokens),
            in_flight: HashMap::new(),
            requests_free_at: 0.0,
            tokens_free_at: 0.0,
            rests_until: 0.0,
        }
    }

    fn free_at(&self) -> Duration {
        Duration::from_secs_f64(self.requests_free_at.max(self.tokens_free_at).max(self.rests_until).max(0.0))
    }

    fn wish(&self) -> Wish {
        Wish { send_at: Some(self.free_at()), wake_at: None }
    }

    /// So many tokens more, or less, are taken than was thought.
    fn take(&mut self, now: Duration, tokens: f64) {
        if let Some(per_second) = limit(&self.tokens, now) {
            self.tokens_free_at += tokens / (SHARE * per_second);
        }
    }
}

/// Units a second at this time, if there is a limit.
fn limit(limits: &[(Duration, f64)], now: Duration) -> Option<f64> {
    limits.iter().rev().find(|(from, _)| *from <= now).map(|(_, limit)| *limit / 60.0)
}

impl Controller for Oracle {
    fn start(&mut self, now: Duration) -> Wish {
        self.rests_until = now.as_secs_f64();
        self.wish()
    }

    fn departed(&mut self, now: Duration, index: u64, input_tokens: u32, max_tokens: u32) -> Wish {
        let seconds = now.as_secs_f64();
        if let Some(per_second) = limit(&self.requests, now) {
            self.requests_free_at = self.requests_free_at.max(seconds) + 1.0 / (SHARE * per_second);
        }
        let answer = match self.charge {
            TokenCharge::Reserved | TokenCharge::Refunded => f64::from(max_tokens),
            TokenCharge::Actual => self.answer,
        };
        let taken = Taken { all: f64::from(input_tokens) + answer, answer };
        self.in_flight.insert(index, taken);
        self.tokens_free_at = self.tokens_free_at.max(seconds - MADE_UP);
        self.take(now, taken.all);
        self.wish()
    }

    fn answered(&mut self, now: Duration, answer: &Answer) -> Wish {
        let Some(taken) = self.in_flight.remove(&answer.index) else { return self.wish() };
        match answer.outcome {
            Outcome::Succeeded { output_tokens } if self.charge != TokenCharge::Reserved => {
                self.take(now, f64::from(output_tokens) - taken.answer);
            }
            Outcome::Refused { .. } => {
                self.take(now, -taken.all);
                self.rests_until = (now + REST).as_secs_f64();
            }
            _ => {}
        }
        self.wish()
    }

    fn woken(&mut self, _now: Duration) -> Wish {
        self.wish()
    }

    fn per_minute(&self) -> Option<f64> {
        limit(&self.requests, self.free_at()).map(|per_second| 60.0 * SHARE * per_second)
    }
}
