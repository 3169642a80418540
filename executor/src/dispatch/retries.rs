//! The lines of one model that wait for another attempt. Pure.
//!
//! Lines that were refused for the rate come before those that failed: their turn had come already, and nothing was
//! wrong with them.

use std::{cmp::Reverse, collections::BinaryHeap};

use tokio::time::Instant;

use super::task::Task;

/// Lines that wait, each with the moment before which it does not go.
#[derive(Debug, Default)]
pub(super) struct Retries {
    refused: BinaryHeap<Reverse<Waiting>>,
    failed: BinaryHeap<Reverse<Waiting>>,
    /// How many have ever waited.
    number: u64,
}

/// A line that waits for another attempt.
#[derive(Debug)]
struct Waiting {
    due: Instant,
    /// Breaks ties: first come, first served.
    number: u64,
    task: Task,
}

impl Retries {
    pub(super) fn push(&mut self, task: Task, due: Instant) {
        self.number += 1;
        let queue = if task.refusals > 0 { &mut self.refused } else { &mut self.failed };
        queue.push(Reverse(Waiting { due, number: self.number, task }));
    }

    pub(super) fn len(&self) -> usize {
        self.refused.len() + self.failed.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.refused.is_empty() && self.failed.is_empty()
    }

    /// The line that goes next, if one may go now.
    pub(super) fn ready(&self, now: Instant) -> Option<&Task> {
        let first = |queue: &BinaryHeap<Reverse<Waiting>>| is_due(queue, now);
        let queue = if first(&self.refused) { &self.refused } else { &self.failed };
        queue.peek().filter(|_| first(queue)).map(|Reverse(waiting)| &waiting.task)
    }

    /// Takes the line that goes next, if one may go now.
    pub(super) fn take(&mut self, now: Instant) -> Option<Task> {
        let queue = if is_due(&self.refused, now) { &mut self.refused } else { &mut self.failed };
        if is_due(queue, now) { queue.pop().map(|Reverse(waiting)| waiting.task) } else { None }
    }

    /// When the first of them may go.
    pub(super) fn due(&self) -> Option<Instant> {
        let first = |queue: &BinaryHeap<Reverse<Waiting>>| queue.peek().map(|Reverse(waiting)| waiting.due);
        [first(&self.refused), first(&self.failed)].into_iter().flatten().min()
    }
}

fn is_due(queue: &BinaryHeap<Reverse<Waiting>>, now: Instant) -> bool {
    queue.peek().is_some_and(|Reverse(waiting)| waiting.due <= now)
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Weak, time::Duration};

    use penstock_batchfile::Ordinal;

    use super::*;

    fn task(ordinal: u32, refusals: u32) -> Task {
        Task {
            model: "m".into(),
            ordinal: Ordinal::new(ordinal),
            input_offset: 0,
            length: 1,
            spool: Weak::new(),
            tries: 0,
            refusals,
            history: Vec::new(),
        }
    }

    #[test]
    fn a_refused_line_goes_before_failed_ones_but_not_before_its_time() {
        let mut retries = Retries::default();
        let now = Instant::now();
        let later = now + Duration::from_secs(5);
        retries.push(task(1, 0), now);
        retries.push(task(2, 1), later);
        retries.push(task(3, 1), now);
        retries.push(task(4, 1), now);
        let mut at = |moment| {
            std::iter::from_fn(|| retries.take(moment)).map(|task| task.ordinal.get()).collect::<Vec<_>>()
        };
        assert_eq!(at(now), [3, 4, 1]);
        assert_eq!(at(later), [2]);
    }

    #[test]
    fn what_is_ready_is_what_is_taken() {
        let mut retries = Retries::default();
        let now = Instant::now();
        assert!(retries.ready(now).is_none() && retries.due().is_none() && retries.is_empty());
        let later = now + Duration::from_secs(5);
        retries.push(task(1, 1), later);
        retries.push(task(2, 0), now);
        assert_eq!(retries.due(), Some(now));
        let ready = retries.ready(now).unwrap().ordinal;
        assert_eq!(retries.take(now).unwrap().ordinal, ready);
        assert!(retries.ready(now).is_none() && retries.take(now).is_none());
        assert_eq!((retries.len(), retries.due()), (1, Some(later)));
    }
}
