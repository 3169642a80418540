//! A limit that counts in a window of time: it refuses everything once it is used up, until the window is over.

/// What a minute is in seconds, the longest window that is known of.
pub(super) const MINUTE: f64 = 60.0;
/// Lengths that a window may have, in seconds.
pub(super) const LENGTHS: [f64; 8] = [1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, MINUTE];
/// What is known before a closure is worth half after it.
const MEMORY: f64 = 0.5;
/// A guess is given up for one that fits better by this much.
const BETTER: f64 = 0.05;

/// A window as it was last seen used up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// In seconds.
    pub(super) length: f64,
    /// Units a second that it held.
    pub(super) held: f64,
    /// When it was last seen to open.
    pub(super) opened_at: f64,
    /// Since when more than it held is being sent.
    pub(super) probing: Option<f64>,
    /// Since when it is known to hold more.
    pub(super) searching: Option<f64>,
}

impl Window {
    /// When it will open next if it opens at even intervals.
    pub(super) fn opens_at(self, now: f64) -> f64 {
        let passed = ((now - self.opened_at) / self.length).floor() + 1.0;
        self.opened_at + passed * self.length
    }
}

/// How well each length explains the closures so far: a window holds the same each time that it is used up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lengths {
    /// Units a second that a window of each length held last time, and how much that differed from time to time.
    held: Option<[f64; LENGTHS.len()]>,
    differed: [f64; LENGTHS.len()],
}

impl Lengths {
    /// A window was used up after it had held so much, and was closed for so long. Returns how long it seems to be.
    pub(super) fn used_up(&mut self, held: [f64; LENGTHS.len()], closed_for: f64, known: Option<f64>) -> f64 {
        if let Some(before) = self.held.replace(held) {
            for (differed, (now, before)) in self.differed.iter_mut().zip(held.iter().zip(before)) {
                *differed = MEMORY * *differed + (now / before).ln().abs();
            }
        }
        let possible = |length: f64| length * 1.1 >= closed_for;
        let shortest = LENGTHS.into_iter().find(|length| possible(*length)).unwrap_or(MINUTE);
        let guess = known.unwrap_or(shortest.max(10.0));
        let fit = |length: f64| {
            let all = LENGTHS.iter().zip(self.differed);
            all.filter(|(other, _)| other.total_cmp(&length).is_eq())
                .map(|(_, differed)| differed)
                .sum::<f64>()
        };
        let best =
            LENGTHS.into_iter().filter(|length| possible(*length)).min_by(|a, b| fit(*a).total_cmp(&fit(*b)));
        match best {
            Some(best) if !possible(guess) || fit(best) + BETTER < fit(guess) => best,
            _ => guess,
        }
    }
}
