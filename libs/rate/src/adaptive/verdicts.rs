//! What an answer, a refusal or a loss tells the lanes, and what is said about limits on its way.

use std::time::Duration;

use super::amount::{Amount, Charging};
use super::evidence::{Limited, Told};
use super::lane::{Lane, Refusal};
use super::stated::Said;
use super::turn::{Turn, Why};
use super::window::MINUTE;
use super::words::words;
use super::{Adaptive, HIGHEST_TOKENS, Tokens, Words};
use crate::event::{Cost, Dimension, Hint, Hints, Verdict};
use crate::hint::exhausted;
use crate::in_flight::Flight;
use crate::profile::Profile;

impl Adaptive {
    /// Something became of a request; `in_flight` are those that are left.
    pub(crate) fn verdict(
        &mut self,
        now: Duration,
        flight: Flight,
        verdict: Verdict,
        in_flight: u32,
    ) -> Words {
        match verdict {
            Verdict::Admitted { hints } => self.admitted(now, flight, hints),
            Verdict::Succeeded { output_tokens, .. } => self.succeeded(now, flight, output_tokens, in_flight),
            Verdict::Refused { dimension, retry_after, hints } => {
                let blamed = dimension.or_else(|| exhausted(hints));
                // A server of one's own limits no rate: what it refuses without a reason is too much at once.
                let unexplained = blamed.is_none() && hints == Hints::default();
                if unexplained && self.profile == Profile::Vllm {
                    return self.overloaded(now, flight, in_flight);
                }
                let blamed = blamed.unwrap_or(Dimension::Requests);
                let mut turns = self.refused(now, flight, blamed, retry_after, hints);
                turns.extend(self.believe(now));
                turns
            }
            Verdict::SlowDown { .. } => self.slow_down(now, flight),
            Verdict::Overloaded { .. } => self.overloaded(now, flight, in_flight),
            Verdict::Lost => {
                self.lost(now, flight);
                Words::new()
            }
        }
    }

    /// Nobody knows what such a request has used up. One that fits no limit would keep a lane of tokens busy for long,
    /// and what is more than a minute gives has passed no limit.
    fn lost(&mut self, now: Duration, flight: Flight) {
        let (seconds, sent_at) = (self.seconds(now), self.seconds(flight.sent_at));
        for Tokens { dimension, lane, .. } in &mut self.tokens {
            if let Some(lane) = lane {
                let amount = self.amounts.of(*dimension, flight.cost);
                if self.amounts.charging(*dimension) == Charging::Refunded {
                    lane.returned(seconds, amount.expected - self.amounts.mean(*dimension));
                } else if amount.expected > MINUTE * lane.rate() {
                    lane.undo(seconds, sent_at, amount);
                } else {
                    lane.correct(seconds, sent_at, -self.amounts.beyond(*dimension, flight.cost));
                }
            }
        }
    }

    fn admitted(&mut self, now: Duration, flight: Flight, hints: Hints) -> Words {
        if hints == Hints::default() {
            return Words::new();
        }
        self.listen(now, flight, hints, None);
        self.believe(now)
    }

    fn succeeded(&mut self, now: Duration, flight: Flight, output_tokens: u32, in_flight: u32) -> Words {
        let (seconds, sent_at) = (self.seconds(now), self.seconds(flight.sent_at));
        if let Some(evidence) = &mut self.evidence {
            evidence.answered(seconds, flight.cost, output_tokens);
        }
        let (tokens, expected) = (f64::from(output_tokens), self.amounts.expected_answer(flight.cost));
        for Tokens { dimension, lane, .. } in &mut self.tokens {
            let Some(lane) = lane else { continue };
            match self.amounts.charging(*dimension) {
                Charging::AtOnce => {}
                Charging::Refunded => {
                    lane.returned(seconds, (f64::from(flight.cost.output_tokens) - tokens).max(0.0));
                }
                Charging::AsProduced => lane.produced(seconds, sent_at, tokens, expected),
            }
        }
        self.amounts.succeeded(output_tokens);
        let change = self.knee.succeeded(now, flight.sent_at, output_tokens, in_flight.saturating_add(1));
        change.iter().map(ToString::to_string).collect()
    }

    fn refused(
        &mut self,
        now: Duration,
        flight: Flight,
        blamed: Dimension,
        retry_after: Option<Duration>,
        hints: Hints,
    ) -> Words {
        self.listen(now, flight, hints, Some(blamed));
        let (seconds, sent_at) = (self.seconds(now), self.seconds(flight.sent_at));
        let wait = retry_after.map(|wait| wait.as_secs_f64());
        let mut turns = Words::new();
        let told = self.weigh(sent_at, flight.cost, blamed);
        if blamed == Dimension::Requests {
            let refusal = Refusal { sent_at, amount: Amount::at_once(1.0), wait };
            if let Some(turn) = self.requests.refused(seconds, refusal) {
                self.story.note(seconds, turn, blamed);
                turns.push(words(turn, blamed));
            }
        } else {
            self.requests.undo(seconds, sent_at, Amount::at_once(1.0));
        }
        for Tokens { dimension, lane, .. } in &mut self.tokens {
            let amount = self.amounts.of(*dimension, flight.cost);
            if *dimension == blamed && !is_larger(amount, hints.of(blamed)) {
                let (unit, beyond) = (self.amounts.mean(blamed), self.amounts.beyond(blamed, flight.cost));
                let charging = self.amounts.charging(blamed);
                let lane =
                    lane.get_or_insert_with(|| self.requests.beside(HIGHEST_TOKENS, unit, charging, seconds));
                // What was refused has used up nothing. A large request would keep the lane busy for long.
                lane.correct(seconds, sent_at, -beyond);
                let amount = Amount { expected: amount.expected - beyond, ..amount };
                if let Some(turn) = lane.refused(seconds, Refusal { sent_at, amount, wait }) {
                    self.story.note(seconds, turn, blamed);
                    turns.push(words(turn, blamed));
                }
            } else if let Some(lane) = lane {
                lane.undo(seconds, sent_at, amount);
            }
        }
        turns.extend(told.and_then(|told| self.charge(seconds, told)));
        turns
    }

    /// What a refusal shows of how tokens are charged.
    fn weigh(&mut self, sent_at: f64, cost: Cost, blamed: Dimension) -> Option<Told> {
        let tokens = self.tokens.iter().find(|tokens| tokens.dimension == Dimension::Tokens)?;
        if blamed == Dimension::Tokens {
            self.evidence.get_or_insert_default();
        }
        let evidence = self.evidence.as_mut()?;
        evidence.refused(sent_at, cost);
        let lane = tokens.lane.as_ref();
        if blamed != Dimension::Tokens || lane.is_some_and(|lane| !lane.is_new(sent_at)) {
            return None;
        }
        let limited = Limited {
            in_window: lane.is_some_and(Lane::is_window),
            unit: self.amounts.mean(Dimension::Tokens),
        };
        evidence.exhausted(sent_at, limited, self.amounts.charging(Dimension::Tokens))
    }

    /// Goes on with tokens charged like this.
    fn charge(&mut self, seconds: f64, told: Told) -> Option<String> {
        self.amounts.charge(told.charging);
        let unit = self.amounts.mean(Dimension::Tokens);
        let tokens = self.tokens.iter_mut().find(|tokens| tokens.dimension == Dimension::Tokens)?;
        let lane = tokens.lane.as_mut()?;
        let (before, charging) = (lane.rate(), told.charging);
        lane.charge(seconds, told, unit);
        let turn = Turn { at: before, to: lane.rate(), why: Why::Charged(charging) };
        self.story.note(seconds, turn, Dimension::Tokens);
        Some(words(turn, Dimension::Tokens))
    }

    /// The provider asks for a slower rise.
    fn slow_down(&mut self, now: Duration, flight: Flight) -> Words {
        let (seconds, sent_at) = (self.seconds(now), self.seconds(flight.sent_at));
        let tokens =
            self.tokens.iter_mut().filter_map(|tokens| Some((tokens.lane.as_mut()?, tokens.dimension)));
        let lanes = [(&mut self.requests, Dimension::Requests)].into_iter().chain(tokens);
        lanes
            .filter_map(|(lane, dimension)| Some(words(lane.slow_down(seconds, sent_at)?, dimension)))
            .collect()
    }

    fn overloaded(&mut self, now: Duration, flight: Flight, in_flight: u32) -> Words {
        let change = self.knee.overloaded(now, flight.sent_at, in_flight);
        change.iter().map(ToString::to_string).collect()
    }

    /// Takes in what is said about each limit; `blamed` is the one that refused.
    fn listen(&mut self, now: Duration, flight: Flight, hints: Hints, blamed: Option<Dimension>) {
        let said = Said { now, began: self.began, sent_at: flight.sent_at, jobs: self.jobs };
        let requests = (&mut self.stated, Some(&mut self.requests), Dimension::Requests);
        let tokens =
            self.tokens.iter_mut().map(|tokens| (&mut tokens.stated, tokens.lane.as_mut(), tokens.dimension));
        for (stated, lane, dimension) in tokens.chain([requests]) {
            let hint = hints.of(dimension);
            if blamed == Some(dimension) {
                stated.refused(said, hint, lane);
            } else {
                stated.observe(said, hint, lane);
            }
        }
    }
}

/// Whether a request takes more than a limit allows in its whole period: its refusal says nothing about what is left.
#[expect(clippy::cast_precision_loss, reason = "no limit has 2^53 tokens")]
fn is_larger(amount: Amount, stated: Hint) -> bool {
    stated.period.and(stated.limit).is_some_and(|limit| amount.at_once > limit as f64)
}
