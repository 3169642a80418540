//! The 95th percentile of how long recent answers were.

use std::collections::VecDeque;

/// How many successes the percentile looks back on.
const WINDOW: usize = 512;

/// Output tokens of the last [`WINDOW`] successes, in order of arrival and in order of size.
///
/// Keeping both costs a move of at most 2 kB per success, and of nothing where answers are alike: less than any tree over
/// so few numbers would.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentOutputs {
    arrival: VecDeque<u32>,
    sorted: Vec<u32>,
}

impl RecentOutputs {
    /// Adds one answer and forgets the oldest beyond the window.
    pub(crate) fn record(&mut self, tokens: u32) {
        let to = self.sorted.partition_point(|&other| other < tokens);
        let oldest = if self.arrival.len() == WINDOW { self.arrival.pop_front() } else { None };
        self.arrival.push_back(tokens);
        let Some(oldest) = oldest else {
            self.sorted.insert(to, tokens);
            return;
        };
        // The new one takes the oldest one's room: only what stands between them moves.
        let from = self.sorted.partition_point(|&other| other < oldest);
        if from < to {
            self.sorted.copy_within(from + 1..to, from);
            self.sorted[to - 1] = tokens;
        } else {
            self.sorted.copy_within(to..from, to + 1);
            self.sorted[to] = tokens;
        }
    }

    /// The smallest recorded length that at least 95 % of the answers do not exceed; nothing before the first.
    pub(crate) fn p95(&self) -> Option<u32> {
        let rank = (self.sorted.len() * 95).div_ceil(100);
        self.sorted.get(rank.checked_sub(1)?).copied()
    }

    /// The lengths, oldest first.
    pub(crate) fn arrivals(&self) -> impl Iterator<Item = u32> {
        self.arrival.iter().copied()
    }
}

impl FromIterator<u32> for RecentOutputs {
    fn from_iter<I: IntoIterator<Item = u32>>(lengths: I) -> Self {
        let mut recent = Self::default();
        lengths.into_iter().for_each(|tokens| recent.record(tokens));
        recent
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_percentile_is_the_nearest_rank() {
        assert_eq!(RecentOutputs::default().p95(), None);
        assert_eq!(RecentOutputs::from_iter([7]).p95(), Some(7));
        assert_eq!((1..=19).collect::<RecentOutputs>().p95(), Some(19));
        assert_eq!((1..=20).collect::<RecentOutputs>().p95(), Some(19));
        assert_eq!((1..=100).rev().collect::<RecentOutputs>().p95(), Some(95));
        assert_eq!((1..=512).collect::<RecentOutputs>().p95(), Some(487));
    }

    #[test]
    fn answers_beyond_the_window_are_forgotten() {
        let mut recent: RecentOutputs = std::iter::repeat_n(4_000, WINDOW).collect();
        for _ in 0..WINDOW {
            recent.record(10);
        }
        assert_eq!(recent.p95(), Some(10));
        assert_eq!(recent.arrivals().count(), WINDOW);
    }

    proptest! {
        #[test]
        fn it_agrees_with_sorting_the_window(lengths in prop::collection::vec(0_u32..50, 1..1_500)) {
            let recent: RecentOutputs = lengths.iter().copied().collect();
            let mut window = lengths[lengths.len().saturating_sub(WINDOW)..].to_vec();
            window.sort_unstable();
            let rank = (window.len() * 95).div_ceil(100);
            prop_assert_eq!(recent.p95(), Some(window[rank - 1]));
        }
    }
}
