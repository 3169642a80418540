//! A server that saturates: it never refuses for a rate, but works on so many requests at once, and lets the others
//! wait.

use std::{cmp::Reverse, collections::BinaryHeap, collections::VecDeque, time::Duration};

use serde::{Deserialize, Serialize};

/// The running batch of a self-hosted model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// How many requests are worked on at once.
    pub slots: u32,
    /// At so many requests in the batch, each of them advances at half the speed it has alone: continuous batching.
    /// `None`: a slot is as fast as if it were alone.
    #[serde(default)]
    pub half_speed_at: Option<f64>,
    /// How many may wait; one more is refused with 503. `None`: any number.
    #[serde(default)]
    pub queue: Option<u32>,
}

impl Batch {
    /// How fast each of so many requests advances, as a share of the speed it has alone.
    fn speed(self, running: f64) -> f64 {
        self.half_speed_at.map_or(1.0, |half| 1.0 / (1.0 + running / half))
    }

    /// The work that is done with all slots in use, in requests that each advance as fast as alone.
    pub(super) fn capacity(self) -> f64 {
        f64::from(self.slots) * self.speed(self.slots.into())
    }
}

/// A batch at work. Work is in seconds that a request takes when it is alone.
#[derive(Debug)]
pub(super) struct Running<T> {
    batch: Batch,
    /// By the progress at which each is finished.
    slots: BinaryHeap<Reverse<Slot<T>>>,
    waiting: VecDeque<(f64, T)>,
    /// How far a request has come that was there from the start.
    progress: f64,
    at: Duration,
    done: f64,
}

#[derive(Debug)]
struct Slot<T> {
    finished: f64,
    request: T,
}

impl<T> Running<T> {
    pub(super) fn new(batch: Batch) -> Self {
        let (slots, waiting) = (BinaryHeap::new(), VecDeque::new());
        Self { batch, slots, waiting, progress: 0.0, at: Duration::ZERO, done: 0.0 }
    }

    /// Takes a request that is worth so much work, or gives it back where the queue is full.
    pub(super) fn take(&mut self, now: Duration, work: f64, request: T) -> Result<(), T> {
        self.advance(now);
        if self.running() < self.batch.slots {
            self.slots.push(Reverse(Slot { finished: self.progress + work, request }));
        } else if self.batch.queue.is_none_or(|most| self.waiting() < most) {
            self.waiting.push_back((work, request));
        } else {
            return Err(request);
        }
        Ok(())
    }

    /// When the next request is finished, if no other comes before.
    pub(super) fn due(&self) -> Option<Duration> {
        let Reverse(next) = self.slots.peek()?;
        let left = (next.finished - self.progress).max(0.0) / self.speed();
        Some(self.at + Duration::from_secs_f64(left))
    }

    /// Takes out the request that is finished at `now`, which is when it was [`due`](Self::due).
    pub(super) fn finish(&mut self, now: Duration) -> Option<T> {
        self.advance(now);
        let Reverse(slot) = self.slots.pop()?;
        if let Some((work, request)) = self.waiting.pop_front() {
            self.slots.push(Reverse(Slot { finished: self.progress + work, request }));
        }
        Some(slot.request)
    }

    pub(super) fn running(&self) -> u32 {
        u32::try_from(self.slots.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn waiting(&self) -> u32 {
        u32::try_from(self.waiting.len()).unwrap_or(u32::MAX)
    }

    /// All work that was done by now.
    pub(super) fn done(&mut self, now: Duration) -> f64 {
        self.advance(now);
        self.done
    }

    fn speed(&self) -> f64 {
        self.batch.speed(self.running().into())
    }

    fn advance(&mut self, now: Duration) {
        let gained = now.saturating_sub(self.at).as_secs_f64() * self.speed();
        self.progress += gained;
        self.done += gained * f64::from(self.running());
        self.at = self.at.max(now);
    }
}

impl<T> PartialEq for Slot<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Slot<T> {}

impl<T> PartialOrd for Slot<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Slot<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.finished.total_cmp(&other.finished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::ZERO;

    #[test]
    fn requests_in_a_batch_slow_each_other_down() {
        let batch = Batch { slots: 2, half_speed_at: Some(2.0), queue: None };
        let mut running = Running::new(batch);
        running.take(START, 1.0, 'a').unwrap();
        assert_eq!(running.due(), Some(Duration::from_millis(1_500)));
        running.take(START, 3.0, 'b').unwrap();
        assert_eq!(running.due(), Some(Duration::from_secs(2)));
        assert_eq!(running.finish(Duration::from_secs(2)), Some('a'));
        // Two seconds of work are left, at two thirds of the speed.
        assert_eq!(running.due(), Some(Duration::from_secs(5)));
        assert!((running.done(Duration::from_secs(5)) - 4.0).abs() < 1e-6);
    }

    #[test]
    fn what_finds_no_slot_waits_and_what_finds_no_place_is_given_back() {
        let mut running = Running::new(Batch { slots: 1, half_speed_at: None, queue: Some(1) });
        running.take(START, 1.0, 'a').unwrap();
        running.take(START, 1.0, 'b').unwrap();
        assert_eq!(running.take(START, 1.0, 'c'), Err('c'));
        assert_eq!((running.running(), running.waiting()), (1, 1));
        assert_eq!(running.finish(Duration::from_secs(1)), Some('a'));
        assert_eq!(running.due(), Some(Duration::from_secs(2)));
    }
}
