//! Faults by rule: which requests fail, and how. Pure: what happens to a request depends on the seed, on what it
//! asks and on how often that was asked before, never on the order in which requests of different objects come.

mod pattern;
mod rule;

use std::collections::HashMap;

pub use self::{
    pattern::Pattern,
    rule::{Calls, Fault, FaultRule, InvalidFaultRule},
};
use crate::{draw::draw, operation::Operation};

/// The rules in force and what they have seen.
#[derive(Debug, Default)]
pub(crate) struct FaultPlan {
    rules: Vec<FaultRule>,
    seed: u64,
    /// How many requests each rule was asked about, of those that it names.
    by_rule: Vec<u64>,
    /// The same for each operation on each name.
    by_name: HashMap<(Operation, String), u64>,
}

impl FaultPlan {
    pub(crate) fn new(rules: Vec<FaultRule>, seed: u64) -> Result<Self, InvalidFaultRule> {
        rules.iter().try_for_each(FaultRule::check)?;
        let by_rule = vec![0; rules.len()];
        Ok(Self { rules, seed, by_rule, by_name: HashMap::new() })
    }

    /// The fault that a request meets: that of the first rule which has one for it.
    pub(crate) fn next(&mut self, operation: Operation, name: &str) -> Option<Fault> {
        if self.rules.is_empty() {
            return None;
        }
        let times = self.by_name.entry((operation, name.to_owned())).or_default();
        let before = *times;
        *times += 1;
        let mut fault = None;
        for (index, rule) in self.rules.iter().enumerate().filter(|(_, rule)| rule.names(operation, name)) {
            let count = &mut self.by_rule[index];
            *count += 1;
            let draw = draw(&[&self.seed.to_le_bytes(), &index.to_le_bytes(), name.as_bytes()], before);
            if fault.is_none() && rule.calls.holds(*count, draw) {
                fault = Some(rule.fault);
            }
        }
        fault
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(calls: Calls) -> FaultRule {
        FaultRule { calls, ..FaultRule::always(Fault::ErrorBefore { status: 503 }) }
    }

    fn met(plan: &mut FaultPlan, calls: &[(Operation, &str)]) -> Vec<bool> {
        calls.iter().map(|(operation, name)| plan.next(*operation, name).is_some()).collect()
    }

    #[test]
    fn a_rule_counts_only_the_requests_that_it_names() {
        let rule = FaultRule {
            operations: vec![Operation::Write],
            object: Some(Pattern::parse("a/*")),
            ..rule(Calls::Nth(vec![2]))
        };
        let mut plan = FaultPlan::new(vec![rule], 0).unwrap();
        let calls = [
            (Operation::Write, "a/1"),
            (Operation::Write, "b/1"),
            (Operation::Read, "a/1"),
            (Operation::Write, "a/2"),
            (Operation::Write, "a/3"),
        ];
        assert_eq!(met(&mut plan, &calls), [false, false, false, true, false]);
    }

    #[test]
    fn the_first_rule_that_holds_wins() {
        let second = FaultRule::always(Fault::StallBefore);
        let mut plan = FaultPlan::new(vec![rule(Calls::First(1)), second], 0).unwrap();
        let faults = [0, 1].map(|_| plan.next(Operation::Read, "a"));
        assert_eq!(faults, [Some(Fault::ErrorBefore { status: 503 }), Some(Fault::StallBefore)]);
    }

    #[test]
    fn a_share_does_not_depend_on_the_order_of_arrival() {
        let names: Vec<_> = (0..4000).map(|index| format!("o/{}", index % 2000)).collect();
        let run = |names: &mut dyn Iterator<Item = &String>, seed| {
            let mut plan = FaultPlan::new(vec![rule(Calls::Share(0.05))], seed).unwrap();
            let mut met: Vec<_> = names.filter(|name| plan.next(Operation::Get, name).is_some()).collect();
            met.sort();
            met.into_iter().cloned().collect::<Vec<_>>()
        };
        let forward = run(&mut names.iter(), 7);
        assert_eq!(forward, run(&mut names.iter().rev(), 7));
        assert_ne!(forward, run(&mut names.iter(), 8));
        assert!((150..=250).contains(&forward.len()), "{}", forward.len());
    }
}
