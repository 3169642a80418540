//! What is told of the rate: to gauges, to other and later jobs, and to people.

use std::collections::BTreeMap;
use std::time::Duration;

use super::lane::Lane;
use super::stated::Stated;
use super::story::Position;
use super::{Adaptive, Tokens};
use crate::event::Dimension;
use crate::gauges::Gauges;

/// Who sends this share of what the user allows sends as much as that: a refusal now and then takes a little of it.
const NEARLY: f64 = 0.9;

impl Adaptive {
    /// Requests per minute that may go, as far as the provider's limits allow.
    pub(crate) fn rate_rpm(&self) -> f64 {
        let (dimension, unit) = self.deciding();
        self.lane(dimension).map_or(0.0, |lane| lane.rate() / unit * 60.0)
    }

    /// The same for the other jobs on the key. One that has not heard of them yet counts as if it sent nothing: it has no
    /// part of the limit yet, and how fast it starts says nothing about how much there is to divide. One whose user allows
    /// less than its part leaves the rest to the others: it repeats what it heard, which pulls nobody down.
    pub(crate) fn told_rpm(&self) -> f64 {
        if !self.has_heard {
            return 0.0;
        }
        let held_back = self.held_back_rpm().zip(self.heard_rpm);
        held_back.map_or(self.rate_rpm(), |(own, heard)| own.max(heard))
    }

    /// What the user allows, if that is what is sent.
    fn held_back_rpm(&self) -> Option<f64> {
        let rate = self.rate_rpm();
        self.bounds.effective_rpm().filter(|own| NEARLY * own <= rate)
    }

    /// The same as far as it was found out from refusals.
    pub(crate) fn learned_rpm(&self) -> Option<f64> {
        let (dimension, unit) = self.deciding();
        Some(self.lane(dimension)?.found()? / unit * 60.0)
    }

    /// What was found out of each quantity that was limited, per minute, for all jobs on the key together. Where tokens
    /// were, as many requests as they let through went well. One of several that its user holds back has no equal part, and
    /// leaves it to the others to say what all are allowed.
    pub(crate) fn found(&self) -> BTreeMap<Dimension, f64> {
        let tokens = self.tokens.iter().filter_map(|tokens| Some((tokens.dimension, tokens.lane.as_ref()?)));
        let found = tokens.filter_map(|(dimension, lane)| Some((dimension, lane.found()? * 60.0)));
        let requests = self.requests.found().map(|rate| rate * 60.0).or_else(|| self.learned_rpm());
        let requests = requests.filter(|_| self.jobs < 2.0 || self.held_back_rpm().is_none());
        let found = found.chain(requests.map(|rpm| (Dimension::Requests, rpm)));
        found.map(|(dimension, part)| (dimension, part * self.jobs)).collect()
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
    pub(super) fn deciding(&self) -> (Dimension, f64) {
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
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
fn rounded(rate: f64) -> u32 {
    rate.round() as u32
}
