//! The dispatch order of one window: per model, like system prompts back to back, so that a provider's prefix cache
//! serves the second and every further one.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

/// Bytes of distinct prefixes that are ranked; further ones come in the order of their hashes.
const RANKED_BYTES: usize = 4 << 20;
/// Ranks from here on are hashes.
const HASHED: u32 = 1 << 31;

/// One planned line: 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlanEntry {
    /// Where the line begins, from the window's first byte.
    pub(crate) offset: u32,
    /// Its length without the line break.
    pub(crate) length: u32,
    /// The place of its system prompt among the window's.
    rank: u32,
    /// Its ordinal, from the window's first.
    pub(crate) ordinal: u32,
}

#[cfg(test)]
impl PlanEntry {
    pub(crate) fn new(offset: u32, length: u32, ordinal: u32) -> Self {
        Self { offset, length, rank: 0, ordinal }
    }
}

/// The lines of one model in the order in which they are to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) model: Arc<str>,
    pub(crate) entries: Vec<PlanEntry>,
}

/// Collects the lines of one window.
#[derive(Debug, Default)]
pub(super) struct Planner {
    models: HashMap<Arc<str>, Vec<PlanEntry>>,
    /// Each distinct prefix with a number in the order of appearance.
    prefixes: HashMap<Box<[u8]>, u32>,
    prefix_bytes: usize,
    hashes: RandomState,
}

impl Planner {
    /// Adds one line; `prefix` is the beginning of its system prompt, empty when it has none.
    pub(super) fn add(&mut self, model: &str, prefix: &[u8], offset: u32, length: u32, ordinal: u32) {
        let rank = self.number(prefix);
        let entry = PlanEntry { offset, length, rank, ordinal };
        match self.models.get_mut(model) {
            Some(entries) => entries.push(entry),
            None => {
                self.models.insert(model.into(), vec![entry]);
            }
        }
    }

    fn number(&mut self, prefix: &[u8]) -> u32 {
        if let Some(number) = self.prefixes.get(prefix) {
            return *number;
        }
        if self.prefix_bytes + prefix.len() > RANKED_BYTES {
            let hash = self.hashes.hash_one(prefix);
            return HASHED | u32::try_from(hash >> 33).expect("31 bits are left");
        }
        self.prefix_bytes += prefix.len();
        let number = u32::try_from(self.prefixes.len()).expect("a window has at most 50,000 lines");
        self.prefixes.insert(prefix.into(), number);
        number
    }

    /// The plans, by model.
    pub(super) fn finish(self) -> Vec<Plan> {
        let mut sorted: Vec<(&[u8], u32)> =
            self.prefixes.iter().map(|(prefix, number)| (&**prefix, *number)).collect();
        sorted.sort_unstable();
        let mut ranks = vec![0; sorted.len()];
        for (rank, (_, number)) in (0..).zip(&sorted) {
            ranks[*number as usize] = rank;
        }
        let mut plans: Vec<Plan> = self
            .models
            .into_iter()
            .map(|(model, mut entries)| {
                for entry in &mut entries {
                    entry.rank = ranks.get(entry.rank as usize).copied().unwrap_or(entry.rank);
                }
                entries.sort_unstable_by_key(|entry| (entry.rank, entry.ordinal));
                entries.shrink_to_fit();
                Plan { model, entries }
            })
            .collect();
        plans.sort_unstable_by(|left, right| left.model.cmp(&right.model));
        plans
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(lines: &[(&str, &str)]) -> Vec<(String, Vec<u32>)> {
        let mut planner = Planner::default();
        for (ordinal, (model, prefix)) in (0..).zip(lines) {
            planner.add(model, prefix.as_bytes(), ordinal * 100, 100, ordinal);
        }
        let plans = planner.finish();
        plans
            .into_iter()
            .map(|plan| (plan.model.to_string(), plan.entries.iter().map(|entry| entry.ordinal).collect()))
            .collect()
    }

    #[test]
    fn like_system_prompts_stand_together_in_lexicographic_order_and_lines_of_one_prompt_in_file_order() {
        let lines = [
            ("m", "translate"),
            ("m", "classify"),
            ("m", "translate"),
            ("m", ""),
            ("m", "classify b"),
            ("m", "classify"),
        ];
        assert_eq!(order(&lines), [("m".to_owned(), vec![3, 1, 5, 4, 0, 2])]);
    }

    #[test]
    fn each_model_has_its_own_plan() {
        let lines = [("b", "x"), ("a", "x"), ("b", "w")];
        assert_eq!(order(&lines), [("a".to_owned(), vec![1]), ("b".to_owned(), vec![2, 0])]);
    }

    #[test]
    fn beyond_the_bound_on_prefixes_like_prompts_still_stand_together() {
        let long = |letter: char, index: usize| format!("{letter}{index:08}{}", "x".repeat(300));
        let mut planner = Planner::default();
        let count = u32::try_from(RANKED_BYTES / long('a', 0).len()).unwrap();
        for ordinal in 0..count {
            planner.add("m", long('a', ordinal as usize).as_bytes(), 0, 1, ordinal);
        }
        for ordinal in count..count + 100 {
            planner.add("m", long('z', ordinal as usize % 2).as_bytes(), 0, 1, ordinal);
        }
        assert!(planner.prefix_bytes <= RANKED_BYTES);
        let plan = planner.finish().remove(0);
        let changes = plan
            .entries
            .windows(2)
            .filter(|pair| pair[0].rank != pair[1].rank && pair[1].rank >= HASHED)
            .count();
        assert!(changes <= 2, "{changes}");
        assert_eq!(plan.entries.len(), count as usize + 100);
    }

    #[test]
    fn a_planned_line_takes_16_bytes() {
        assert_eq!(size_of::<PlanEntry>(), 16);
    }
}
