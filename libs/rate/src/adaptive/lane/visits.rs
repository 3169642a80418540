//! How often the edge is met: as often as a share of refused requests allows, oftener after the limit fell, and how
//! regularly.
//!
//! Who is alone at a bucket meets its edge at even intervals, and knows after little more than one of them that the limit
//! has risen. Who shares it does not, and waits longer before searching. The bound is that of TCP's timer: the mean and
//! four mean deviations (RFC 6298).

use super::{Lane, Stage};

/// The share of all requests that may be refused at the edge.
const REFUSED_SHARE: f64 = 0.004;
/// ... at a bucket whose edge is met regularly, where nobody else is who could gain on this job meanwhile.
const REFUSED_WHERE_ALONE: f64 = 0.0025;
/// ... where answers are charged as they are produced. Their lengths scatter, so the edge is less sharp.
const REFUSED_WHILE_PRODUCED: f64 = 0.007;
/// Seconds between two visits at least, and at most so many requests, if that is within these seconds.
const SOONEST: f64 = 10.0;
const RARELY: f64 = 40.0;
const LATEST: (f64, f64) = (75.0, 240.0);
/// What falls below this share of what it was for at least so many seconds has fallen for a reason that may pass ...
const FELL: f64 = 0.6;
const KNOWN: f64 = 300.0;
/// ... so it is visited so many times as often for so many seconds.
const OFTENER: f64 = 2.0;
const FOR: f64 = 3_600.0;
/// ... except where it is one of fewer requests a second, each of which is a large share, or one of a window that is
/// longer than this in seconds: two jobs that share a minute would divide it less evenly.
const RARE: f64 = 0.5;
const SHORT: f64 = 15.0;
/// What is met at so many times what it was has risen.
const RISEN: f64 = 1.5;
/// The weight of a visit in the mean interval and in its deviation.
const WEIGHT: f64 = 0.25;
/// A longer interval than so many planned ones counts as such, since the edge has moved; among strangers it may be theirs,
/// and counts up to this.
const OUTLIER: f64 = 1.5;
const OUTLIER_AMONG_STRANGERS: f64 = 5.0;
const DEVIATIONS: f64 = 4.0;
/// How many planned intervals without a refusal are waited for before a search, at least and at most.
const PATIENCE: (f64, f64) = (1.15, 1.5);
/// Whose visits are regular waits for less than this.
const REGULAR: f64 = 1.4;

/// Intervals between visits, in planned ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visits {
    mean: f64,
    deviation: f64,
}

/// What the limit was before it fell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fall {
    known: Option<f64>,
    seen_at: f64,
}

impl Default for Visits {
    fn default() -> Self {
        Self { mean: 1.0, deviation: OUTLIER }
    }
}

impl Default for Fall {
    fn default() -> Self {
        Self { known: None, seen_at: f64::NEG_INFINITY }
    }
}

impl Fall {
    /// What is known of a former part of the limit is known of one that is so many times as large.
    pub(super) fn scale(&mut self, times: f64) {
        self.known = self.known.map(|known| known * times);
    }
}

impl Visits {
    fn add(&mut self, planned: f64, most: f64) {
        let planned = planned.min(most);
        self.deviation += ((planned - self.mean).abs() - self.deviation) * WEIGHT;
        self.mean += (planned - self.mean) * WEIGHT;
    }

    /// The longest interval to be expected.
    pub(super) fn longest(self) -> f64 {
        self.mean + DEVIATIONS * self.deviation
    }

    fn patience(self) -> f64 {
        self.longest().clamp(PATIENCE.0, PATIENCE.1)
    }

    fn are_regular(self) -> bool {
        self.longest() < REGULAR
    }
}

impl Lane {
    /// Seconds meant to lie between two visits of the edge.
    pub(super) fn period(&self) -> f64 {
        let rate = self.rate / self.unit;
        let share = match self.charged {
            Some(_) => REFUSED_WHILE_PRODUCED,
            None if self.window.is_none() && self.visits.are_regular() => REFUSED_WHERE_ALONE,
            None => REFUSED_SHARE,
        };
        let often = if self.has_fallen() { OFTENER } else { 1.0 };
        let latest = (RARELY / rate).clamp(LATEST.0, LATEST.1);
        (self.per_round / (often * share * rate)).clamp(SOONEST, latest / often)
    }

    /// Seconds without a refusal after which the edge must have moved.
    pub(super) fn patience(&self) -> f64 {
        let planned = if self.is_rare() { PATIENCE.1 } else { self.visits.patience() };
        planned * self.period()
    }

    /// Whether the edge was met so regularly that it is missed at once.
    pub(super) fn misses_the_edge_at_once(&self) -> bool {
        self.visits.are_regular() && !self.is_rare()
    }

    /// So few requests go out that a refused one is a large share of them.
    pub(super) fn is_rare(&self) -> bool {
        self.rate < RARE * self.unit
    }

    /// The edge is met.
    pub(super) fn note_visit(&mut self, now: f64) {
        if self.window.is_none() {
            let (planned, most) = if self.is_among_strangers() {
                (self.period_among_strangers(), OUTLIER_AMONG_STRANGERS)
            } else {
                (self.period(), OUTLIER)
            };
            self.visits.add((now - self.clean_since) / planned, most);
        }
        if matches!(self.stage, Stage::Riding) && now - self.regime_since > KNOWN {
            self.fall.known = self.ceiling;
        }
    }

    /// The limit was met at this rate, or measured.
    pub(super) fn set_ceiling(&mut self, now: f64, ceiling: f64) {
        let fell = |known: f64| ceiling < FELL * known && ceiling > RARE * self.unit;
        if self.fall.known.is_some_and(fell) {
            self.fall = Fall { known: None, seen_at: now };
        }
        self.ceiling = Some(ceiling);
    }

    /// Whether an edge at few requests is met so far beyond where it was that it has risen.
    pub(super) fn has_risen_from_few(&self) -> bool {
        let rode = matches!(self.stage, Stage::Riding) && self.window.is_none();
        let few = self.ceiling.filter(|ceiling| rode && *ceiling < RARE * self.unit);
        few.is_some_and(|ceiling| self.rate > RISEN * ceiling)
    }

    fn has_fallen(&self) -> bool {
        self.sent_at - self.fall.seen_at < FOR && self.window.is_none_or(|window| window.length < SHORT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_visits_are_missed_sooner_than_irregular_ones() {
        let (mut regular, mut irregular) = (Visits::default(), Visits::default());
        for visit in 0..20_u8 {
            regular.add(1.0, OUTLIER);
            irregular.add(if visit % 2 == 0 { 0.3 } else { 1.4 }, OUTLIER);
        }
        assert!(regular.are_regular() && !irregular.are_regular());
        assert!(regular.patience() < irregular.patience());
    }

    #[test]
    fn a_single_late_visit_is_forgotten() {
        let mut visits = Visits::default();
        (0..20).for_each(|_| visits.add(1.0, OUTLIER));
        visits.add(30.0, OUTLIER);
        assert!(!visits.are_regular());
        (0..6).for_each(|_| visits.add(1.0, OUTLIER));
        assert!(visits.are_regular());
    }
}
