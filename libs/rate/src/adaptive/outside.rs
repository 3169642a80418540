//! What is heard from outside of the own requests: what the provider states, other jobs on the key, earlier ones, and
//! the server's word on its load.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use super::lane::Lane;
use super::stated::Stated;
use super::tuning::Tuning;
use super::words::{rate, words};
use super::{Adaptive, HIGHEST_TOKENS, Tokens, Words};
use crate::document::{is_limit, is_rate};
use crate::event::Dimension;
use crate::knee::Saturation;
use crate::sharing::Shared;

impl Adaptive {
    /// The server told its queue.
    pub(crate) fn saturation(&mut self, now: Duration, told: Saturation, in_flight: u32) -> Words {
        let change = self.knee.saturation(now, told, in_flight);
        change.iter().map(ToString::to_string).collect()
    }

    /// What the jobs on this key send together. Only the lane that decides follows them.
    pub(crate) fn shared(&mut self, now: Duration, shared: Shared) -> Words {
        let seconds = self.seconds(now);
        let jobs = f64::from(shared.jobs.get());
        let kept = self.has_heard.then_some(self.jobs / jobs);
        let is_divided_anew = jobs > self.jobs;
        self.jobs = jobs;
        let tokens = self.tokens.iter_mut().filter_map(|tokens| tokens.lane.as_mut());
        tokens.chain([&mut self.requests]).for_each(|lane| lane.hear_of(jobs));
        self.has_heard = true;
        let mut turns = self.believe(now);
        let mean = shared.mean_rpm.filter(|mean| shared.jobs > NonZeroU32::MIN && is_rate(*mean));
        self.heard_rpm = mean;
        if let Some(mean) = mean {
            let (dimension, unit) = self.deciding();
            let part = mean / 60.0 * unit;
            let turn = self.lane_of(dimension).and_then(|lane| {
                if is_divided_anew { lane.divide(seconds, part, kept) } else { lane.share(seconds, part) }
            });
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
    pub(super) fn begin_remembered(&mut self, seconds: f64) {
        let tuning = Tuning::of(self.profile);
        for Tokens { dimension, lane, remembered, .. } in &mut self.tokens {
            let is_known = self.amounts.is_known(*dimension);
            let Some(found) = remembered.take_if(|_| is_known) else { continue };
            let (unit, charging) = (self.amounts.mean(*dimension), self.amounts.charging(*dimension));
            let fresh = || Lane::new(tuning, HIGHEST_TOKENS, unit, charging, seconds);
            lane.get_or_insert_with(fresh).remember(seconds, found);
        }
    }

    /// Holds each lane within its part of what is believed. A limit of tokens that is believed makes a lane.
    pub(super) fn believe(&mut self, now: Duration) -> Words {
        let seconds = self.seconds(now);
        let part = |stated: &Stated| stated.part(now, self.jobs);
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

    fn lane_of(&mut self, dimension: Dimension) -> Option<&mut Lane> {
        match dimension {
            Dimension::Requests => Some(&mut self.requests),
            _ => self.tokens.iter_mut().find(|tokens| tokens.dimension == dimension)?.lane.as_mut(),
        }
    }
}
