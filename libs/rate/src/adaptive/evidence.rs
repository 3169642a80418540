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
/// ... where those by the way that is tried out are all more than this part of the largest.
const ALIKE: f64 = 0.5;
/// Amounts that differ by more than this share, and by more than one request in each stretch, are no fixed limit.
const DOUBTFUL: f64 = 0.05;

/// What would have been charged in each way.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    ways: [(Charging, Charged); 3],
    stretches: VecDeque<Stretch>,
    enough: usize,
    refunds: Refunds,
}

/// What is known of tokens that may come back. Where they do, a shallow bucket is full most of the time, which hides what
/// it gives: only to act on it shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refunds {
    Untried,
    Tried,
    Refuted,
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
        let ways = [Charging::AtOnce, Charging::Refunded, Charging::AsProduced];
        Self {
            ways: ways.map(|way| (way, Charged::new(Slots::new()))),
            stretches: VecDeque::new(),
            enough: ENOUGH,
            refunds: Refunds::Untried,
        }
    }
}

impl Evidence {
    /// A request has gone out.
    pub(super) fn sent(&mut self, now: f64, cost: Cost) {
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
        if limited.in_window && present == Charging::Refunded {
            // In a window what comes back does not count for long.
            self.refunds = Refunds::Refuted;
            self.stretches.clear();
            let rate = self.ways[0].1.between(at - MINUTE, at) / MINUTE;
            return Some(self.told(0, rate));
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
            Some(told) => (told, KEPT),
            None => (self.trial(limited, present)?, ENOUGH),
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

    /// What no way explains may be tokens that come back to a bucket that is full.
    fn trial(&mut self, limited: Limited, present: Charging) -> Option<Told> {
        let way = self.ways.iter().position(|(way, _)| *way == Charging::Refunded)?;
        let charged: f64 = self.stretches.iter().map(|stretch| stretch.units[0]).sum();
        let doubtful = self.spread(0) > DOUBTFUL + amount(self.stretches.len()) * limited.unit / charged;
        let rates = self.stretches.iter().map(|stretch| stretch.units[way] / stretch.seconds);
        let (least, most) =
            rates.fold((f64::INFINITY, 0.0), |(least, most), rate| (rate.min(least), rate.max(most)));
        let possible = present == Charging::AtOnce && self.refunds == Refunds::Untried && !limited.in_window;
        (possible && doubtful && least > ALIKE * most).then(|| {
            self.refunds = Refunds::Tried;
            self.told(way, most)
        })
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
        let ways = [Charging::AtOnce, Charging::Refunded, Charging::AsProduced];
        for truth in ways {
            for present in ways {
                let expected = (truth != present).then_some(truth);
                assert_eq!(told(truth, present, BUCKET), expected, "taken for {present:?}");
            }
        }
    }

    #[test]
    fn nothing_is_told_to_come_back_in_a_window() {
        let window = Limited { in_window: true, ..BUCKET };
        assert_eq!(told(Charging::Refunded, Charging::AtOnce, window), None);
    }
}
