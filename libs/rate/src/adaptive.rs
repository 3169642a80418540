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
mod evidence;
mod figures;
mod lane;
mod outside;
mod phase;
mod recent;
mod shape;
mod shut;
mod slots;
mod stated;
mod story;
mod tuning;
mod turn;
mod verdicts;
mod window;
mod words;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::amount::{Amount, Amounts, Charging, Means};
use self::evidence::Evidence;
use self::lane::{Lane, LaneRecord};
use self::stated::Stated;
use self::story::Story;
use self::tuning::Tuning;
pub(crate) use self::words::Words;
use self::words::words;
use crate::document::HIGHEST_RPM;
use crate::event::{Cost, Dimension};
use crate::fixed::Fixed;
use crate::in_flight;
use crate::knee::Knee;
use crate::limits::Limits;
use crate::profile::Profile;

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
    /// How tokens of prompts and answers together are charged; none as long as nothing says that they are limited.
    evidence: Option<Evidence>,
    knee: Knee,
    /// How many jobs share the key, this one among them.
    jobs: f64,
    /// Whether it was said yet what they send, and what each of several sends on average, in requests per minute.
    has_heard: bool,
    heard_rpm: Option<f64>,
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
    /// How tokens of prompts and answers together were charged.
    charging: Option<Charging>,
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
            amounts: Amounts::new(Charging::usual(profile)),
            evidence: None,
            knee: if searches { Knee::searching(most) } else { Knee::unbounded(most) },
            jobs: 1.0,
            has_heard: false,
            heard_rpm: None,
            sent_at: 0.0,
            story: Story::default(),
        }
    }

    pub(crate) fn restore(record: &AdaptiveRecord, profile: Profile, limits: Limits, now: Duration) -> Self {
        let fresh = Self::new(profile, limits, now);
        let tuning = Tuning::of(profile);
        let AdaptiveRecord { requests, tokens, input_tokens, output_tokens, means, charging, in_flight } =
            record;
        let bound = bound(limits);
        let requests = Lane::restore(*requests, tuning, bound, Charging::AtOnce, 0.0);
        let amounts = Amounts::restore(charging.unwrap_or(Charging::usual(profile)), *means);
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
        let (requests, charging) = (self.requests.record(), Some(self.amounts.charging(Dimension::Tokens)));
        AdaptiveRecord { requests, tokens, input_tokens, output_tokens, means, charging, in_flight }
    }

    /// Other limits of the user hold from now on. What was learned of the provider stays: a lane that is kept idle learns
    /// nothing new.
    pub(crate) fn limit(&mut self, now: Duration, limits: Limits) {
        self.bounds.limit(now, limits);
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
        if let Some(evidence) = &mut self.evidence {
            evidence.sent(seconds, cost);
        }
        for Tokens { dimension, lane, .. } in &mut self.tokens {
            if let Some(lane) = lane {
                lane.measure_in(self.amounts.mean(*dimension));
                lane.sent(seconds, self.amounts.of(*dimension, cost));
            }
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
