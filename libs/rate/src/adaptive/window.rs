//! A limit that counts in a window of time: it refuses everything once it is used up, until the window is over.

use super::phase;
use super::shape::{Kind, Shape};

/// What a minute is in seconds, the longest window that is known of.
pub(super) const MINUTE: f64 = 60.0;
/// It is well known when a window opens if it is to this many seconds.
const EXACT: f64 = 0.1;
/// For so many seconds after what it holds has changed, with this chance, a probe comes one window later.
const LATELY: f64 = 1_200.0;
const CHANCE: f64 = 0.3;
/// What a window held is the same to this share and a request.
const SAME: f64 = 0.02;
/// Of more requests than this, one makes less of a difference than chance does.
const FEW: f64 = 100.0;

/// A window as it was last seen used up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// In seconds.
    pub(super) length: f64,
    /// Units a second that it held.
    pub(super) held: f64,
    /// Since when it has been one of this length that holds as much.
    pub(super) since: f64,
    /// Units a second that it held then.
    pub(super) at_first: f64,
    /// One of this length held something else before.
    pub(super) changed: bool,
    /// Its length is a guess: it is used up as fast as possible, to see how long it is.
    pub(super) guessed: bool,
    pub(super) kind: Kind,
    /// When it was last seen to open, if it does at even intervals.
    pub(super) opening: Option<Opening>,
    /// Since when more than it held is being sent.
    pub(super) probing: Option<f64>,
    /// Since when it is known to hold more.
    pub(super) searching: Option<f64>,
    /// The opening until which it was judged whether it holds more.
    pub(super) judged_until: f64,
}

/// The moment of an opening: after the last refusal and by the first admission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening {
    pub(super) after: f64,
    pub(super) by: f64,
}

impl Window {
    pub(super) fn shape(self) -> Shape {
        Shape::of(self.length, self.kind)
    }

    /// It holds so few requests, of `unit` each, that a single one makes a difference.
    pub(super) fn holds_few(self, unit: f64) -> bool {
        self.held * self.length < FEW * unit
    }

    /// Whether it holds as much as it did, if it holds so many units a second, of which a request takes `unit`.
    pub(super) fn holds_the_same(self, held: f64, unit: f64) -> bool {
        (self.held - held).abs() <= SAME * held + unit / self.length
    }

    /// Whether the probe after the one that ended at `probed_at` comes one window later than it would.
    ///
    /// Two jobs that probe the same windows find just what each held before, however unevenly that is divided, for as long
    /// as they keep their pace: the phase effect (see [`phase`]), with the same remedy.
    pub(super) fn is_probed_later(self, now: f64, probed_at: f64) -> bool {
        self.changed && now - self.since < LATELY && phase::drawn(probed_at) < CHANCE
    }

    /// When it will open next, as far as that is known: in the middle of what is possible, to know it better.
    pub(super) fn opens_at(self, now: f64) -> Option<f64> {
        let Opening { after, by } = self.opening?;
        let at = if by - after > EXACT { f64::midpoint(after, by) } else { by };
        Some(self.next(at, now))
    }

    /// When it will have opened at the latest, as far as that is known.
    pub(super) fn opens_by(self, now: f64) -> Option<f64> {
        Some(self.next(self.opening?.by, now))
    }

    /// The first moment after this one that is a whole number of lengths from an opening.
    fn next(self, opening: f64, now: f64) -> f64 {
        let passed = ((now - opening) / self.length).floor() + 1.0;
        opening + passed * self.length
    }

    /// When it opened last, as far as that is known.
    pub(super) fn opened_at(self, now: f64) -> Option<f64> {
        Some(self.opens_at(now)? - self.length)
    }
}

impl Opening {
    /// This opening, a whole number of lengths after another one, if that can be.
    pub(super) fn also(self, known: Self, length: f64) -> Self {
        let passed =
            ((f64::midpoint(self.after, self.by) - f64::midpoint(known.after, known.by)) / length).round();
        let after = self.after.max(known.after + passed * length);
        let by = self.by.min(known.by + passed * length);
        if after < by { Self { after, by } } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_changed_lately_is_probed_later_at_times() {
        let window = Window {
            length: 10.0,
            held: 5.0,
            since: 0.0,
            at_first: 5.0,
            changed: true,
            guessed: false,
            kind: Kind::Even,
            opening: None,
            probing: None,
            searching: None,
            judged_until: f64::NEG_INFINITY,
        };
        let later = |window: Window, from: f64| {
            let probes = (0..1_000).map(|probe| from + f64::from(probe));
            probes.filter(|at| window.is_probed_later(*at, *at)).count()
        };
        assert!((250..350).contains(&later(window, 0.0)), "{}", later(window, 0.0));
        assert_eq!(later(window, LATELY), 0);
        assert_eq!(later(Window { changed: false, ..window }, 0.0), 0);
    }
}
