//! What a provider decides about one request, in virtual time.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{Answer, Batch, Outcome};
use crate::{
    distribution::Distribution,
    limit::{
        Claims, Exceeded, Finished, LimitSettings, Limiter, Quota, RateLimitHeaders, RetryAfter, TokenCharge,
        as_amount, rounded_up,
    },
    settings::{Latency, OutputLength},
};

/// So many answers tell how long they are on average, to less than a hundredth.
const SAMPLES: u32 = 100_000;

/// A provider without HTTP. The default has no limits, answers like a large model and refuses within a tenth of a
/// second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Provider {
    /// Its limits at first, and what its answers say about them.
    pub limits: LimitSettings,
    /// Whether a refusal names the limit that was exceeded.
    pub names_limit: bool,
    /// How its limits change.
    pub steps: Vec<Step>,
    /// How long answers and refusals take. An admission shows only in the complete answer.
    pub latency: Latency,
    /// How long answers are.
    pub output_length: OutputLength,
    /// The share of admitted requests, from 0 to 1, that fail for another reason, after their whole latency.
    pub failing: f64,
    /// How it saturates. `None`: it has room for any number of requests.
    pub batch: Option<Batch>,
}

/// All limits change at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// When.
    pub after_minutes: f64,
    /// To so many times what they are at first.
    pub times: f64,
}

impl Default for Provider {
    fn default() -> Self {
        Self {
            limits: LimitSettings::default(),
            names_limit: false,
            steps: Vec::new(),
            latency: Latency {
                start_ms: Distribution::Uniform { low: 500.0, high: 1_500.0 },
                per_output_token_ms: 10.5,
                refusal_ms: Distribution::Exponential { least: 80.0, mean: 60.0 },
            },
            output_length: OutputLength {
                tokens: Distribution::LogNormal { median: 200.0, sigma: 1.0 },
                most_tokens: 2_048,
                thought_tokens: 0,
            },
            failing: 0.0,
            batch: None,
        }
    }
}

impl Provider {
    /// Tokens of an answer on average, where so many are allowed at most.
    pub fn mean_answer(&self, most_tokens: u32) -> f64 {
        let mut random = ChaCha8Rng::seed_from_u64(0);
        let sum: f64 = (0..SAMPLES).map(|_| f64::from(self.output_tokens(&mut random, most_tokens))).sum();
        sum / f64::from(SAMPLES)
    }

    fn output_tokens(&self, random: &mut ChaCha8Rng, most_tokens: u32) -> u32 {
        let length = self.output_length;
        let tokens = whole(length.tokens.sample(random)).saturating_add(length.thought_tokens);
        tokens.clamp(1, length.most_tokens.min(most_tokens).max(1))
    }

    /// The limits that are in force this long after the start.
    pub(super) fn limits_at(&self, now: Duration) -> LimitSettings {
        let minutes = now.as_secs_f64() / 60.0;
        let mut passed = self.steps.iter().filter(|step| step.after_minutes <= minutes);
        let times = passed.next_back().map_or(1.0, |step| step.times);
        let mut limits = self.limits.clone();
        for quota in [&mut limits.requests, &mut limits.tokens].into_iter().flatten() {
            quota.per_minute = scaled(quota.per_minute, times);
        }
        limits
    }
}

/// A quota times a factor, at least 1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped at 1; no quota nears 2^53"
)]
fn scaled(per_minute: u64, times: f64) -> u64 {
    (as_amount(per_minute) * times).round().max(1.0) as u64
}

/// A request as it reaches the provider.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) index: u64,
    pub(super) input_tokens: u32,
    pub(super) max_tokens: u32,
}

/// A request that was let in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Admitted {
    /// What it will be told when it is finished.
    pub(super) answer: Answer,
    /// How long that takes where nothing slows it down.
    pub(super) work: Duration,
    finished: Finished,
}

/// A provider at work.
#[derive(Debug)]
pub(super) struct Service {
    provider: Provider,
    limits: LimitSettings,
    limiter: Limiter,
    phase: f64,
    random: ChaCha8Rng,
    /// Tokens that were charged and not given back.
    charged_tokens: f64,
}

impl Service {
    pub(super) fn new(provider: &Provider, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut service = Self {
            provider: provider.clone(),
            limits: LimitSettings::default(),
            limiter: Limiter::default(),
            phase: random.random(),
            random,
            charged_tokens: 0.0,
        };
        service.adjust(Duration::ZERO);
        service
    }

    /// Puts the limits of this moment into force.
    pub(super) fn adjust(&mut self, now: Duration) {
        self.limits = self.provider.limits_at(now);
        self.limiter.change(&self.limits, self.phase, now);
    }

    /// Requests and tokens that pass in a minute in the long run, as the limits are now.
    pub(super) fn sustained(&self) -> (Option<f64>, Option<f64>) {
        let sustained = |quota: Option<Quota>| quota.map(Quota::sustained_per_minute);
        (sustained(self.limits.requests), sustained(self.limits.tokens))
    }

    pub(super) fn charged_tokens(&self) -> f64 {
        self.charged_tokens
    }

    /// Lets a request in, or says what it is told instead.
    pub(super) fn receive(&mut self, now: Duration, request: Request) -> Result<Admitted, Answer> {
        let (input, reserved) = (u64::from(request.input_tokens), u64::from(request.max_tokens));
        let admitted = self.limiter.admit(&self.limits, now, input, reserved);
        let claims = self.claims(now);
        let answer = |outcome| Answer {
            index: request.index,
            sent_at: now,
            outcome,
            requests: claims.requests,
            tokens: claims.tokens,
        };
        if let Err(exceeded) = admitted {
            return Err(answer(self.refusal(&exceeded)));
        }
        let output_tokens = self.provider.output_tokens(&mut self.random, request.max_tokens);
        let fails = self.provider.failing > 0.0 && self.random.random::<f64>() < self.provider.failing;
        let start = self.provider.latency.start_ms.sample(&mut self.random);
        let work = start + f64::from(output_tokens) * self.provider.latency.per_output_token_ms;
        let outcome = if fails { Outcome::Failed } else { Outcome::Succeeded { output_tokens } };
        self.charged_tokens += as_amount(match self.limits.token_charge {
            TokenCharge::Actual => input,
            TokenCharge::Reserved | TokenCharge::Refunded => input + reserved,
        });
        Ok(Admitted {
            answer: answer(outcome),
            work: Duration::from_secs_f64(work / 1_000.0),
            finished: Finished {
                admitted_at: now,
                reserved_tokens: reserved,
                output_tokens: output_tokens.into(),
            },
        })
    }

    /// The answer to an admitted request is complete.
    pub(super) fn complete(&mut self, now: Duration, admitted: &Admitted) {
        let Finished { reserved_tokens, output_tokens, .. } = admitted.finished;
        self.charged_tokens += match self.limits.token_charge {
            TokenCharge::Reserved => 0.0,
            TokenCharge::Refunded => as_amount(output_tokens) - as_amount(reserved_tokens),
            TokenCharge::Actual => as_amount(output_tokens),
        };
        self.limiter.settle(&self.limits, now, admitted.finished);
    }

    /// What the server says to a request that it has no room for.
    pub(super) fn turn_away(admitted: &Admitted) -> Answer {
        Answer { outcome: Outcome::Overloaded, ..admitted.answer }
    }

    /// How long a refusal takes.
    pub(super) fn refusal_delay(&mut self) -> Duration {
        let milliseconds = self.provider.latency.refusal_ms.sample(&mut self.random);
        Duration::from_secs_f64(milliseconds / 1_000.0)
    }

    /// One value of a job's own distribution, in whole tokens.
    pub(super) fn draw_tokens(&mut self, tokens: Distribution) -> u32 {
        whole(tokens.sample(&mut self.random))
    }

    fn claims(&mut self, now: Duration) -> Claims {
        match self.limits.headers {
            RateLimitHeaders::None => Claims::default(),
            style => Claims::new(style, &self.limiter.readings(now)),
        }
    }

    fn refusal(&self, exceeded: &Exceeded) -> Outcome {
        let retry_after = exceeded.wait.and_then(|wait| match self.limits.retry_after {
            RetryAfter::None => None,
            RetryAfter::Milliseconds => Some(Duration::from_millis(rounded_up(wait, 1))),
            RetryAfter::Seconds | RetryAfter::HttpDate => Some(Duration::from_secs(rounded_up(wait, 1_000))),
        });
        let dimension = self.provider.names_limit.then_some(exceeded.dimension);
        Outcome::Refused { dimension, retry_after }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a saturating cast is what is meant"
)]
fn whole(tokens: f64) -> u32 {
    tokens.round() as u32
}
