//! Mode `adaptive`: finds an undocumented limit in about a minute and rides it, with few requests refused.
//!
//! Puts together what each of these finds out: a [lane] for each quantity that the provider limits, how fast it
//! may be used, from refusals alone; what the provider [says](crate::hint) of its limits; how many requests may be in
//! [flight](crate::knee); and what other jobs on the same key do. The slowest of them decides. The user's limits are
//! kept by a pacing of their own, whatever else is learned.
//!
//! There is always a lane of requests. One of tokens comes to be once something says that they are limited: a hint
//! that is believed, or a refusal that names them. A refusal that names nothing counts for the one limit of which its
//! hints say that nothing is left, else for requests.

mod amount;
mod charged;
mod delay;
mod lane;
mod phase;
mod recent;
mod shape;
mod shut;
mod slots;
mod stated;
mod story;
mod tuning;
mod turn;
mod window;
mod words;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::amount::{Amount, Amounts, Charging, Means};
use self::lane::{Lane, LaneRecord, Refusal};
use self::stated::{Said, Stated};
use self::story::{Position, Story};
use self::tuning::Tuning;
pub(crate) use self::words::Words;
use self::words::{rate, words};
use crate::document::{HIGHEST_RPM, is_limit, is_rate};
use crate::event::{Cost, Dimension, Hint, Hints, Verdict};
use crate::fixed::Fixed;
use crate::gauges::Gauges;
use crate::hint::exhausted;
use crate::in_flight::{self, Flight};
use crate::knee::{Knee, Saturation};
use crate::limits::Limits;
use crate::profile::Profile;
use crate::sharing::Shared;

/// When a decision that was due could not be made, it is tried again after so long.
const RETRY: Duration = Duration::from_millis(50);
/// Whatever a provider states or refuses, a request goes after so many seconds, to see whether it is still true.
const LONGEST_WAIT: f64 = 600.0;

/// No key is allowed more tokens a second.
const HIGHEST_TOKENS: f64 = 1e12;

/// What was learned, and what it was learned from. Times within count from the first clock reading.
#[derive(Clone, Debug)]
pub(crate) struct Adaptive {
    profile: Profile,
    began: Duration,
    bounds: Fixed,
    requests: Lane,
    stated: Stated,
    tokens: [Tokens; 3],
    amounts: Amounts,
    knee: Knee,
    /// How many jobs share the key, this one among them.
    jobs: f64,
    sent_at: f64,
    story: Story,
}

/// One way in which tokens may be limited.
#[derive(Clone, Debug)]
struct Tokens {
    dimension: Dimension,
    /// None as long as nothing says that they are.
    lane: Option<Lane>,
    /// What an earlier job found, in tokens a second, as long as no request has shown what one takes.
    remembered: Option<f64>,
    stated: Stated,
}

/// What a later run needs to go on.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AdaptiveRecord {
    requests: LaneRecord,
    tokens: Option<LaneRecord>,
    input_tokens: Option<LaneRecord>,
    output_tokens: Option<LaneRecord>,
    means: Means,
    /// How many at once a saturating server turned out to be worth.
    in_flight: Option<u32>,
}

impl Adaptive {
    pub(crate) fn new(profile: Profile, limits: Limits, now: Duration) -> Self {
        let most = in_flight::cap(limits);
        let searches = matches!(profile, Profile::Vllm | Profile::Unknown);
        let bound = bound(limits);
        let tokens =
            |dimension| Tokens { dimension, lane: None, remembered: None, stated: Stated::default() };
        Self {
            profile,
            began: now,
            bounds: Fixed::new(limits, now),
            requests: Lane::new(Tuning::of(profile), bound, 1.0, Charging::AtOnce, 0.0),
            stated: Stated::default(),
            tokens: [Dimension::Tokens, Dimension::InputTokens, Dimension::OutputTokens].map(tokens),
            amounts: Amounts::new(profile),
            knee: if searches { Knee::searching(most) } else { Knee::unbounded(most) },
            jobs: 1.0,
            sent_at: 0.0,
            story: Story::default(),
        }
    }

    pub(crate) fn restore(record: &AdaptiveRecord, profile: Profile, limits: Limits, now: Duration) -> Self {
        let fresh = Self::new(profile, limits, now);
        let tuning = Tuning::of(profile);
        let AdaptiveRecord { requests, tokens, input_tokens, output_tokens, means, in_flight } = record;
        let bound = bound(limits);
        let requests = Lane::restore(*requests, tuning, bound, Charging::AtOnce, 0.0);
        let amounts = Amounts::restore(profile, *means);
        let mut restored = Self { requests, amounts, ..fresh };
        for (tokens, record) in restored.tokens.iter_mut().zip([tokens, input_tokens, output_tokens]) {
            let charging = restored.amounts.charging(tokens.dimension);
            tokens.lane = record.map(|record| Lane::restore(record, tuning, HIGHEST_TOKENS, charging, 0.0));
        }
        if let Some(found) = in_flight.filter(|_| restored.knee.found().is_some()) {
            restored.knee = Knee::resumed(now, found, in_flight::cap(limits));
        }
        restored
    }

    pub(crate) fn record(&self) -> AdaptiveRecord {
        let [tokens, input_tokens, output_tokens] =
            self.tokens.each_ref().map(|tokens| tokens.lane.as_ref().map(Lane::record));
        let (means, in_flight) = (self.amounts.means(), self.knee.found());
        let requests = self.requests.record();
        AdaptiveRecord { requests, tokens, input_tokens, output_tokens, means, in_flight }
    }

    /// Makes a change that is due by `now`, if any.
    pub(crate) fn step(&mut self, now: Duration) -> Option<String> {
        let seconds = self.seconds(now);
        if let Some(turn) = self.requests.step(seconds) {
            self.story.note(seconds, turn, Dimension::Requests);
            return Some(words(turn, Dimension::Requests));
        }
        for Tokens { dimension, lane, .. } in &mut self.tokens {
            if let Some(turn) = lane.as_mut().and_then(|lane| lane.step(seconds)) {
                self.story.note(seconds, turn, *dimension);
                return Some(words(turn, *dimension));
            }
        }
        self.believe(now).pop()
    }

    pub(crate) fn changes_at(&self, now: Duration) -> Option<Duration> {
        let tokens = self.tokens.iter().flat_map(|tokens| {
            let lane = tokens.lane.as_ref().and_then(Lane::wakes_at).map(|at| self.clock(at));
            [lane, tokens.stated.changes_at(now)]
        });
        let requests = [self.requests.wakes_at().map(|at| self.clock(at)), self.stated.changes_at(now)];
        // A lane that could not decide yet, though it meant to by now, tries again in a while.
        tokens.chain(requests).flatten().min().map(|at| if at > now { at } else { now.saturating_add(RETRY) })
    }

    pub(crate) fn sent(&mut self, now: Duration, cost: Cost) {
        let seconds = self.seconds(now);
        self.sent_at = seconds;
        self.amounts.sent(cost);
        self.begin_remembered(seconds);
        self.bounds.sent(now, cost);
        self.requests.sent(seconds, Amount::at_once(1.0));
        for Tokens { dimension, lane, .. } in &mut self.tokens {
            if let Some(lane) = lane {
                lane.sent(seconds, self.amounts.of(*dimension, cost));
            }
        }
    }

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

    /// Nobody knows what such a request has used up. One that fits no limit would keep a lane of tokens busy for long.
    fn lost(&mut self, now: Duration, flight: Flight) {
        let (seconds, sent_at) = (self.seconds(now), self.seconds(flight.sent_at));
        for Tokens { dimension, lane, .. } in &mut self.tokens {
            if let Some(lane) = lane {
                let beyond = self.amounts.beyond(*dimension, flight.cost);
                lane.correct(seconds, sent_at, -beyond);
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
        for Tokens { dimension, lane, .. } in &mut self.tokens {
            if let (Some(lane), Some(expected)) = (lane, self.amounts.outstanding(*dimension, flight.cost)) {
                lane.produced(seconds, sent_at, f64::from(output_tokens), expected);
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
        turns
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

    /// The server told its queue.
    pub(crate) fn saturation(&mut self, now: Duration, told: Saturation, in_flight: u32) -> Words {
        let change = self.knee.saturation(now, told, in_flight);
        change.iter().map(ToString::to_string).collect()
    }

    /// What the jobs on this key send together. Only the lane that decides follows them.
    pub(crate) fn shared(&mut self, now: Duration, shared: Shared) -> Words {
        let seconds = self.seconds(now);
        self.jobs = f64::from(shared.jobs.get());
        let mut turns = self.believe(now);
        let mean = shared.mean_rpm.filter(|mean| shared.jobs > NonZeroU32::MIN && is_rate(*mean));
        if let Some(mean) = mean {
            let (dimension, unit) = self.deciding();
            let turn = self.lane_of(dimension).and_then(|lane| lane.share(seconds, mean / 60.0 * unit));
            turns.extend(turn.map(|turn| words(turn, dimension)));
        }
        turns
    }

    /// Earlier jobs ran well with so much a minute.
    pub(crate) fn remembered(&mut self, now: Duration, found: &BTreeMap<Dimension, f64>) -> Words {
        let seconds = self.seconds(now);
        let mut said = Words::new();
        for (&dimension, &per_minute) in found.iter().filter(|(of, rate)| is_limit(**of, **rate)) {
            let per_second = per_minute / 60.0;
            match self.tokens.iter_mut().find(|tokens| tokens.dimension == dimension) {
                Some(tokens) => tokens.remembered = Some(per_second),
                None => self.requests.remember(seconds, per_second),
            }
            said.push(format!("an earlier job ran well with {}", rate(per_second, dimension)));
        }
        self.begin_remembered(seconds);
        said
    }

    /// Begins below what earlier jobs found of tokens, once it is known what a request takes of them.
    fn begin_remembered(&mut self, seconds: f64) {
        let tuning = Tuning::of(self.profile);
        for Tokens { dimension, lane, remembered, .. } in &mut self.tokens {
            let is_known = self.amounts.is_known(*dimension);
            let Some(found) = remembered.take_if(|_| is_known) else { continue };
            let (unit, charging) = (self.amounts.mean(*dimension), self.amounts.charging(*dimension));
            let fresh = || Lane::new(tuning, HIGHEST_TOKENS, unit, charging, seconds);
            lane.get_or_insert_with(fresh).remember(seconds, found);
        }
    }

    /// When the next request may go, for all lanes and the user's limits.
    pub(crate) fn free_at(&mut self, now: Duration) -> Duration {
        let seconds = self.seconds(now);
        let tokens = self.tokens.iter_mut().filter_map(|tokens| tokens.lane.as_mut());
        let free_at = tokens.fold(self.requests.free_at(seconds), |at, lane| at.max(lane.free_at(seconds)));
        self.clock(free_at.min(self.sent_at + LONGEST_WAIT)).max(self.bounds.free_at())
    }

    /// Requests that may be in flight at once.
    pub(crate) fn most_in_flight(&self) -> u32 {
        self.knee.limit()
    }

    /// Requests per minute that may go, as far as the provider's limits allow.
    pub(crate) fn rate_rpm(&self) -> f64 {
        let (dimension, unit) = self.deciding();
        self.lane(dimension).map_or(0.0, |lane| lane.rate() / unit * 60.0)
    }

    /// The same as far as it was found out from refusals.
    pub(crate) fn learned_rpm(&self) -> Option<f64> {
        let (dimension, unit) = self.deciding();
        Some(self.lane(dimension)?.found()? / unit * 60.0)
    }

    /// What was found out of each quantity that was limited, per minute. Where tokens were, as many requests as they let
    /// through went well.
    pub(crate) fn found(&self) -> BTreeMap<Dimension, f64> {
        let tokens = self.tokens.iter().filter_map(|tokens| Some((tokens.dimension, tokens.lane.as_ref()?)));
        let found = tokens.filter_map(|(dimension, lane)| Some((dimension, lane.found()? * 60.0)));
        let requests = self.requests.found().map(|rate| rate * 60.0).or_else(|| self.learned_rpm());
        found.chain(requests.map(|rpm| (Dimension::Requests, rpm))).collect()
    }

    /// The least limit that the provider states and that is believed, in requests per minute.
    fn stated_rpm(&self, now: Duration) -> Option<f64> {
        let tokens = self.tokens.iter().map(|tokens| (&tokens.stated, self.amounts.mean(tokens.dimension)));
        let all = tokens.chain([(&self.stated, 1.0)]);
        all.filter_map(|(stated, unit)| Some(stated.believed(now)? / unit * 60.0)).min_by(f64::total_cmp)
    }

    pub(crate) fn gauges(&self, now: Duration) -> Gauges {
        let rate = self.rate_rpm();
        Gauges {
            rpm_target: Some(rounded(self.requests.rate() * 60.0)),
            effective_rpm: Some(self.bounds.effective_rpm().map_or(rate, |bound| rate.min(bound))),
            learned_rpm: self.learned_rpm(),
            stated_rpm: self.stated_rpm(now),
            ..Gauges::default()
        }
    }

    pub(crate) fn explain(&self) -> String {
        let (dimension, unit) = self.deciding();
        let now = self.clock(self.sent_at);
        let position = Position {
            rate: self.lane(dimension).map_or(0.0, Lane::rate),
            dimension,
            stated: self.stated_of(dimension).believed(now).map(|stated| stated / self.jobs),
            own: self.bounds.effective_rpm().map(|own| own / 60.0 * unit),
        };
        let told = self.story.tell(self.sent_at, position);
        match self.knee.found() {
            Some(_) => format!("{told}, at most {} at once", self.knee.limit()),
            None => told,
        }
    }

    fn stated_of(&self, dimension: Dimension) -> &Stated {
        let tokens = self.tokens.iter().find(|tokens| tokens.dimension == dimension);
        tokens.map_or(&self.stated, |tokens| &tokens.stated)
    }

    /// The quantity whose lane lets the fewest requests through, and what a request takes of it.
    fn deciding(&self) -> (Dimension, f64) {
        let requests = (self.requests.rate(), Dimension::Requests, 1.0);
        let tokens = self.tokens.iter().filter_map(|Tokens { dimension, lane, .. }| {
            let unit = self.amounts.mean(*dimension);
            Some((lane.as_ref()?.rate() / unit, *dimension, unit))
        });
        let slowest = tokens.fold(requests, |least, other| if other.0 < least.0 { other } else { least });
        (slowest.1, slowest.2)
    }

    fn lane(&self, dimension: Dimension) -> Option<&Lane> {
        match dimension {
            Dimension::Requests => Some(&self.requests),
            _ => self.tokens.iter().find(|tokens| tokens.dimension == dimension)?.lane.as_ref(),
        }
    }

    fn lane_of(&mut self, dimension: Dimension) -> Option<&mut Lane> {
        match dimension {
            Dimension::Requests => Some(&mut self.requests),
            _ => self.tokens.iter_mut().find(|tokens| tokens.dimension == dimension)?.lane.as_mut(),
        }
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

    /// Holds each lane within its part of what is believed. A limit of tokens that is believed makes a lane.
    fn believe(&mut self, now: Duration) -> Words {
        let seconds = self.seconds(now);
        let part = |stated: &Stated| stated.believed(now).map(|per_second| per_second / self.jobs);
        let turn = self.requests.believe(seconds, part(&self.stated));
        let mut turns: Words = turn.map(|turn| words(turn, Dimension::Requests)).into_iter().collect();
        for Tokens { dimension, lane, stated, .. } in &mut self.tokens {
            let believed = part(stated);
            if believed.is_some() && lane.is_none() {
                let (unit, charging) = (self.amounts.mean(*dimension), self.amounts.charging(*dimension));
                *lane = Some(self.requests.beside(HIGHEST_TOKENS, unit, charging, seconds));
            }
            let turn = lane.as_mut().and_then(|lane| lane.believe(seconds, believed));
            turns.extend(turn.map(|turn| words(turn, *dimension)));
        }
        turns
    }

    fn seconds(&self, now: Duration) -> f64 {
        now.saturating_sub(self.began).as_secs_f64()
    }

    fn clock(&self, seconds: f64) -> Duration {
        let since = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
        self.began.saturating_add(since)
    }
}

/// Requests a second that the user allows, or that any key is allowed.
fn bound(limits: Limits) -> f64 {
    limits.rpm.map_or(HIGHEST_RPM, |rpm| f64::from(rpm.get())) / 60.0
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
fn rounded(rate: f64) -> u32 {
    rate.round() as u32
}

/// Whether a request takes more than a limit allows in its whole period: its refusal says nothing about what is left.
#[expect(clippy::cast_precision_loss, reason = "no limit has 2^53 tokens")]
fn is_larger(amount: Amount, stated: Hint) -> bool {
    stated.period.and(stated.limit).is_some_and(|limit| amount.at_once > limit as f64)
}
