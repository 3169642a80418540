//! How a provider charges tokens, told by when it refuses.
//!
//! Between two moments at which the allowance was used up, it gave as many units a second as the limit has, always the
//! same. So of the ways in which tokens may be charged the true one is that by which these amounts agree.

use std::collections::VecDeque;

use super::amount::Charging;
use super::charged::Charged;
use super::slots::Slots;
use super::window::MINUTE;
use crate::event::Cost;

/// So many stretches of time are compared, at least and at most. It takes the most to leave a way that was told
/// before, and in a window, which gives always the same only from one time to the next that it is used up at its end.
const ENOUGH: usize = 3;
const KEPT: usize = 8;
/// ... and together they take so many seconds: those of a burst agree by chance.
const LONG_ENOUGH: f64 = 20.0;
/// Another way than the present one is the true one if the amounts differ by so many times less,
const CLEARLY: f64 = 3.0;
/// and by no more than this share.
const AGREE: f64 = 0.1;
/// ... where those by the way that is tried out differ by no more than this share.
const ALIKE: f64 = 0.25;
/// After so many seconds of a trial the limit must have given so many times what it gave before, in the last minute.
const TRIAL: f64 = 120.0;
const MORE: f64 = 1.2;
/// Amounts that differ by more than this share, and by more than one request in each stretch, are no fixed limit.
const DOUBTFUL: f64 = 0.05;

/// The ways in which tokens may be charged, and the places of two of them.
const WAYS: [Charging; 3] = [Charging::AtOnce, Charging::Refunded, Charging::AsProduced];
const AT_ONCE: usize = 0;
const REFUNDED: usize = 1;

/// What would have been charged in each way.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    ways: [(Charging, Charged); 3],
    stretches: VecDeque<Stretch>,
    enough: usize,
    refunds: Refunds,
    /// When the first request went out of which anything is known.
    began: Option<f64>,
}

/// What is known of tokens that may come back. Where they do, a shallow bucket is full most of the time, which hides what
/// it gives: only to act on it shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Refunds {
    Untried,
    OnTrial {
        since: f64,
        /// What the limit gave before, in units a second.
        before: f64,
    },
    Tried,
    Refuted,
}

impl Refunds {
    fn end_trial(&mut self) {
        if matches!(self, Self::OnTrial { .. }) {
            *self = Self::Tried;
        }
    }
}

/// A stretch of time between two moments at which the allowance was used up.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    seconds: f64,
    /// What was charged in it, by the ways.
    units: [f64; 3],
}

/// What refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limited {
    pub(super) in_window: bool,
    /// What a request takes on average.
    pub(super) unit: f64,
}

/// How tokens are charged, and what shows it.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) charging: Charging,
    /// What the limit gives, in units a second.
    pub(super) rate: f64,
    pub(super) charged: Charged,
}

impl Default for Evidence {
    fn default() -> Self {
        Self {
            ways: WAYS.map(|way| (way, Charged::new(Slots::new()))),
            stretches: VecDeque::new(),
            enough: ENOUGH,
            refunds: Refunds::Untried,
            began: None,
        }
    }
}

impl Evidence {
    /// A request has gone out.
    pub(super) fn sent(&mut self, now: f64, cost: Cost) {
        self.began.get_or_insert(now);
        for (way, charged) in &mut self.ways {
            charged.add(now, way.at_once(cost));
        }
    }

    /// Its answer is there.
    pub(super) fn answered(&mut self, now: f64, cost: Cost, output_tokens: u32) {
        for (way, charged) in &mut self.ways {
            match way {
                Charging::AtOnce => {}
                Charging::Refunded => {
                    charged.returned(now, cost.output_tokens.saturating_sub(output_tokens).into());
                }
                Charging::AsProduced => charged.add(now, output_tokens.into()),
            }
        }
    }

    /// It was refused.
    pub(super) fn refused(&mut self, sent_at: f64, cost: Cost) {
        for (way, charged) in &mut self.ways {
            charged.add(sent_at, -way.at_once(cost));
        }
    }

    /// The allowance was used up at this time, that of a window or of a bucket. How tokens are charged, if that is not the
    /// `present` way.
    pub(super) fn exhausted(&mut self, at: f64, limited: Limited, present: Charging) -> Option<Told> {
        if present == Charging::Refunded && (limited.in_window || self.trial_failed(at)) {
            // Either way nothing comes back that would count for long: in a window it counts to its end at most.
            self.refunds = Refunds::Refuted;
            self.stretches.clear();
            return Some(self.told(AT_ONCE, self.last_minute(AT_ONCE, at)));
        }
        let measured = self.ways.each_mut().map(|(_, charged)| charged.exhausted(at));
        let seconds = measured[0]?.seconds;
        let units = measured.map(|measured| measured.map_or(0.0, |measured| measured.rate * seconds));
        if self.stretches.len() == KEPT {
            self.stretches.pop_front();
        }
        self.stretches.push_back(Stretch { seconds, units });
        let seconds: f64 = self.stretches.iter().map(|stretch| stretch.seconds).sum();
        let enough = if limited.in_window { KEPT } else { self.enough };
        if self.stretches.len() < enough || seconds < LONG_ENOUGH {
            return None;
        }
        let (told, enough) = match self.clear(limited, present) {
            Some(told) => {
                self.refunds.end_trial();
                (told, KEPT)
            }
            None => (self.trial(at, limited, present)?, ENOUGH),
        };
        self.stretches.clear();
        self.enough = enough;
        Some(told)
    }

    /// The way by which the amounts agree, if they clearly do so better than by the present one.
    fn clear(&self, limited: Limited, present: Charging) -> Option<Told> {
        let doubtful = self.spread(self.ways.iter().position(|(way, _)| *way == present)?);
        let refuted = limited.in_window || self.refunds == Refunds::Refuted;
        let possible = (0..self.ways.len()).filter(|way| self.ways[*way].0 != Charging::Refunded || !refuted);
        let spreads = possible.map(|way| (way, self.spread(way)));
        let (best, least) = spreads.min_by(|one, other| one.1.total_cmp(&other.1))?;
        let clear = self.ways[best].0 != present && least * CLEARLY < doubtful && least < AGREE;
        clear.then(|| self.told(best, self.rate(best)))
    }

    /// Whether that tokens come back was tried for long enough by now, and gives no more than was had before.
    fn trial_failed(&mut self, now: f64) -> bool {
        let Refunds::OnTrial { since, before } = self.refunds else { return false };
        if now < since + TRIAL {
            return false;
        }
        self.refunds.end_trial();
        self.last_minute(REFUNDED, now) < MORE * before
    }

    /// What no way explains may be tokens that come back to a bucket that is full.
    fn trial(&mut self, now: f64, limited: Limited, present: Charging) -> Option<Told> {
        let charged: f64 = self.stretches.iter().map(|stretch| stretch.units[AT_ONCE]).sum();
        let doubtful =
            self.spread(AT_ONCE) > DOUBTFUL + amount(self.stretches.len()) * limited.unit / charged;
        let rates = self.stretches.iter().map(|stretch| stretch.units[REFUNDED] / stretch.seconds);
        let most = rates.fold(0.0, f64::max);
        let possible = present == Charging::AtOnce && self.refunds == Refunds::Untried && !limited.in_window;
        (possible && doubtful && self.spread(REFUNDED) < ALIKE).then(|| {
            self.refunds = Refunds::OnTrial { since: now, before: self.last_minute(REFUNDED, now) };
            self.told(REFUNDED, most)
        })
    }

    /// Units a second in the last minute, or since it is known what went out.
    fn last_minute(&self, way: usize, now: f64) -> f64 {
        let since = self.began.unwrap_or(now).max(now - MINUTE);
        self.ways[way].1.between(since, now) / (now - since).max(LONG_ENOUGH)
    }

    fn told(&self, way: usize, rate: f64) -> Told {
        let (charging, charged) = &self.ways[way];
        Told { charging: *charging, rate, charged: charged.clone() }
    }

    /// Units a second in all stretches.
    fn rate(&self, way: usize) -> f64 {
        let sum = |of: fn(&Stretch, usize) -> f64| {
            self.stretches.iter().map(|stretch| of(stretch, way)).sum::<f64>()
        };
        sum(|stretch, way| stretch.units[way]) / sum(|stretch, _| stretch.seconds)
    }

    /// By which share the amounts differ from what one rate would have given.
    fn spread(&self, way: usize) -> f64 {
        let rate = self.rate(way);
        let off = |stretch: &Stretch| (stretch.units[way] - rate * stretch.seconds).abs();
        let given: f64 = self.stretches.iter().map(|stretch| rate * stretch.seconds).sum();
        if given > 0.0 { self.stretches.iter().map(off).sum::<f64>() / given } else { f64::INFINITY }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a handful")]
fn amount(count: usize) -> f64 {
    count as f64
}

impl Charging {
    /// What is charged when a request arrives.
    fn at_once(self, cost: Cost) -> f64 {
        match self {
            Self::AtOnce | Self::Refunded => f64::from(cost.input_tokens) + f64::from(cost.output_tokens),
            Self::AsProduced => cost.input_tokens.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const COST: Cost = Cost { input_tokens: 200, output_tokens: 1_000 };
    const BUCKET: Limited = Limited { in_window: false, unit: 1_200.0 };

    /// What is told of a bucket of 1,000 tokens a second that charges like `truth`, by sending five requests a second
    /// until one is refused, and none for some seconds. An answer takes three seconds.
    fn told(truth: Charging, present: Charging, limited: Limited) -> Option<Charging> {
        let mut evidence = Evidence::default();
        let (mut level, mut silent_until) = (20_000.0_f64, 0.0);
        let mut answers = VecDeque::new();
        for request in 0_u32..1_500 {
            let now = f64::from(request) / 5.0;
            level = (level + 200.0).min(20_000.0);
            while let Some((_, output_tokens)) = answers.pop_front_if(|(at, _)| *at <= now) {
                evidence.answered(now, COST, output_tokens);
                level += match truth {
                    Charging::AtOnce => 0.0,
                    Charging::Refunded => f64::from(COST.output_tokens - output_tokens),
                    Charging::AsProduced => -f64::from(output_tokens),
                };
            }
            if now < silent_until {
                continue;
            }
            evidence.sent(now, COST);
            if level >= truth.at_once(COST) {
                level -= truth.at_once(COST);
                answers.push_back((now + 3.0, 100 + 37 * (request % 20)));
            } else {
                evidence.refused(now, COST);
                silent_until = now + 2.0 + f64::from(request % 5);
                if let Some(told) = evidence.exhausted(now, limited, present) {
                    assert!((told.rate - 1_000.0).abs() < 100.0, "{} a second", told.rate);
                    return Some(told.charging);
                }
            }
        }
        None
    }

    #[test]
    fn the_true_way_is_the_one_by_which_a_limit_gives_always_the_same() {
        for truth in WAYS {
            for present in WAYS {
                let expected = (truth != present).then_some(truth);
                assert_eq!(told(truth, present, BUCKET), expected, "taken for {present:?}");
            }
        }
    }

    /// What is told when of a limit that no way explains, with so many times the requests once tokens are taken to come back.
    fn told_of_unsteady_limit(more: u32) -> Vec<(u32, Charging)> {
        let (mut evidence, mut present, mut all) = (Evidence::default(), Charging::AtOnce, Vec::new());
        for second in 0_u32..600 {
            let requests = if (second / 10).is_multiple_of(2) { 10 } else { 8 };
            let now = f64::from(second);
            for _ in 0..if present == Charging::Refunded { more * requests } else { requests } {
                evidence.sent(now, COST);
                evidence.answered(now, COST, 500);
            }
            let told = second.is_multiple_of(10).then(|| evidence.exhausted(now, BUCKET, present)).flatten();
            if let Some(told) = told {
                present = told.charging;
                all.push((second, present));
            }
        }
        all
    }

    #[test]
    fn that_tokens_come_back_is_tried_once_and_must_give_more_than_before() {
        let (since, until) = (30, 150);
        assert_eq!(told_of_unsteady_limit(1), [(since, Charging::Refunded), (until, Charging::AtOnce)]);
        assert_eq!(told_of_unsteady_limit(2), [(since, Charging::Refunded)]);
    }

    #[test]
    fn nothing_is_told_to_come_back_in_a_window() {
        let window = Limited { in_window: true, ..BUCKET };
        assert_eq!(told(Charging::Refunded, Charging::AtOnce, window), None);
    }
}
