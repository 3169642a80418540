//! A limit that counts in a window of time: it refuses everything once it is used up, until the window is over.

/// What a minute is in seconds, the longest window that is known of.
pub(super) const MINUTE: f64 = 60.0;
/// The window that is taken for granted where it reopened within [`SHORT_CLOSURE`].
const SHORT: f64 = 10.0;
const SHORT_CLOSURE: f64 = 11.0;

/// A window opened at its time if it did within this many seconds of it.
const EVEN: f64 = 2.5;

/// The share of what a window holds that it cannot be shut again with.
const HARDLY: f64 = 0.25;

/// A window as it was last seen used up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// In seconds.
    pub(super) length: f64,
    /// Units a second that it held.
    pub(super) held: f64,
    /// When it was first taken for one of this length.
    pub(super) since: f64,
    /// It opens as what was sent a window ago grows too old, not at even intervals.
    pub(super) slides: bool,
    /// When it was last seen to open.
    pub(super) opened_at: f64,
    /// Since when more than it held is being sent.
    pub(super) probing: Option<f64>,
    /// Since when it is known to hold more.
    pub(super) searching: Option<f64>,
}

impl Window {
    /// The length of a window that was closed for this many seconds.
    pub(super) fn length_of(closed_for: f64, known: Option<Self>) -> f64 {
        if closed_for > SHORT_CLOSURE { MINUTE } else { known.map_or(SHORT, |window| window.length) }
    }

    /// Opened, after it had been used up.
    pub(super) fn opened(&mut self, used_up_at: f64, at: f64) {
        let early = self.opens_at(used_up_at) - at;
        if early.abs() < EVEN {
            self.slides = false;
        } else if early > EVEN {
            self.slides = true;
        }
        self.opened_at = at;
    }

    /// Whether it must be a longer one: it was used up before half of its length was over, or shut again with hardly
    /// anything used since it opened.
    pub(super) fn is_doubtful(self, now: f64, used: f64) -> bool {
        let early = now - self.since < self.length / 2.0;
        self.length < MINUTE && (early || used < HARDLY * self.held * self.length)
    }

    /// When it will open next if it opens at even intervals.
    pub(super) fn opens_at(self, now: f64) -> f64 {
        let passed = ((now - self.opened_at) / self.length).floor() + 1.0;
        self.opened_at + passed * self.length
    }
}
