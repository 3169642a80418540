//! Where things stand, in one sentence: what the rate does now, and what made it so.

use std::collections::VecDeque;

use super::turn::{Turn, Why};
use super::words::rate;
use crate::event::Dimension;

/// Seconds that are looked back on.
const RECENT: f64 = 240.0;
/// Refusals that are kept: more of them in that time are told as this many.
const KEPT: usize = 32;
/// A rate counts as being at a limit from this part of it on.
const NEAR: f64 = 0.97;

/// What happened that still matters.
#[derive(Clone, Debug, Default)]
pub(super) struct Story {
    refusals: VecDeque<Refusal>,
    /// The rate at which everything was refused, while nothing is admitted.
    paused: Option<(f64, Dimension)>,
}

/// A round of refusals that lowered a rate.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    at: f64,
    /// The rate before, in units per second.
    rate: f64,
    dimension: Dimension,
}

/// Where a rate stands: in units per second of what decides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    pub(super) rate: f64,
    pub(super) dimension: Dimension,
    /// What the provider states, as far as it is believed.
    pub(super) stated: Option<f64>,
    /// What the user allows.
    pub(super) own: Option<f64>,
}

impl Story {
    /// A rate has changed.
    pub(super) fn note(&mut self, now: f64, turn: Turn, dimension: Dimension) {
        match turn.why {
            Why::Refused => {
                if self.refusals.len() == KEPT {
                    self.refusals.pop_front();
                }
                self.refusals.push_back(Refusal { at: now, rate: turn.at, dimension });
            }
            Why::Closed => self.paused = Some((turn.at, dimension)),
            Why::Reopened { .. } | Why::Charged(_) => self.paused = None,
            Why::Edge | Why::Overrun | Why::Stated | Why::Shared | Why::SlowDown => {}
        }
    }

    /// The sentence.
    pub(super) fn tell(&self, now: f64, position: Position) -> String {
        if let Some((at, dimension)) = self.paused {
            return format!("pausing: everything was refused at {}", rate(at, dimension));
        }
        let Position { rate: present, dimension, stated, own } = position;
        let told = rate(present, dimension);
        let at = |limit: &f64| present >= NEAR * limit;
        if own.as_ref().is_some_and(at) {
            return format!("holding {told}: the limit that is set");
        }
        let of_this = || self.refusals.iter().rev().filter(|refusal| refusal.dimension == dimension);
        let recently = of_this().take_while(|refusal| now - refusal.at <= RECENT).count();
        match (of_this().next(), stated.filter(at)) {
            (_, Some(stated)) => format!("holding {told}: the provider states {}", rate(stated, dimension)),
            (None, None) => format!("rising from {told}: nothing was refused yet"),
            (Some(last), None) if recently == 0 => format!(
                "rising from {told}: last refused at {}, {:.0} min ago",
                rate(last.rate, dimension),
                (now - last.at) / 60.0
            ),
            (Some(last), None) => format!(
                "holding {told}: refused at {} {} in the last {:.0} min",
                rate(last.rate, dimension),
                times(recently),
                RECENT / 60.0
            ),
        }
    }
}

fn times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        KEPT.. => format!("{KEPT} times or more"),
        count => format!("{count} times"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_58: Position = Position { rate: 58.0, dimension: Dimension::Requests, stated: None, own: None };

    fn refused(story: &mut Story, now: f64) {
        let turn = Turn { at: 58.583, to: 58.0, why: Why::Refused };
        story.note(now, turn, Dimension::Requests);
    }

    #[test]
    fn the_sentence_names_the_rate_and_what_made_it() {
        let mut story = Story::default();
        let rising = "rising from 3,480 requests/min: nothing was refused yet";
        assert_eq!(story.tell(0.0, AT_58), rising);
        refused(&mut story, 100.0);
        refused(&mut story, 200.0);
        let holding = "holding 3,480 requests/min: refused at 3,515 requests/min twice in the last 4 min";
        assert_eq!(story.tell(300.0, AT_58), holding);
        let tokens = Position { dimension: Dimension::Tokens, ..AT_58 };
        assert_eq!(story.tell(300.0, tokens), "rising from 3,480 tokens/min: nothing was refused yet");
        assert_eq!(
            story.tell(800.0, AT_58),
            "rising from 3,480 requests/min: last refused at 3,515 requests/min, 10 min ago"
        );
    }

    #[test]
    fn limits_that_are_set_or_stated_are_named_before_what_was_refused() {
        let mut story = Story::default();
        refused(&mut story, 0.0);
        let stated = Position { stated: Some(58.1), ..AT_58 };
        assert_eq!(
            story.tell(1.0, stated),
            "holding 3,480 requests/min: the provider states 3,486 requests/min"
        );
        let own = Position { own: Some(58.0), ..stated };
        assert_eq!(story.tell(1.0, own), "holding 3,480 requests/min: the limit that is set");
    }

    #[test]
    fn a_lane_that_is_shut_says_so_until_something_is_admitted() {
        let mut story = Story::default();
        let note =
            |story: &mut Story, why| story.note(0.0, Turn { at: 10.0, to: 0.0, why }, Dimension::Requests);
        note(&mut story, Why::Closed);
        assert_eq!(story.tell(0.0, AT_58), "pausing: everything was refused at 600 requests/min");
        note(&mut story, Why::Reopened { seconds: 1.0, window: None });
        assert!(story.tell(0.0, AT_58).starts_with("rising"));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut story = Story::default();
        (0..100).for_each(|_| refused(&mut story, 0.0));
        assert_eq!(story.refusals.len(), KEPT);
        assert!(story.tell(0.0, AT_58).contains("32 times or more"), "{}", story.tell(0.0, AT_58));
    }
}
