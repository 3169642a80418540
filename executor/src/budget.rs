//! How many bytes of requests and answers may be in memory at once.
//!
//! Owns the counting and the waiting; the bytes themselves are held by whoever holds the [`Reservation`].
//!
//! # Why nobody waits for ever
//!
//! A request reserves its line and a small allowance before it is sent, and takes more as its answer arrives. Requests
//! that hold memory and wait for more could block one another, so there is a second way out: the *lane*, which has
//! one holder at a time and no bound but the largest line and the largest answer. Whoever needs more than is free waits
//! for memory or for the lane, whichever comes first. The holder of the lane never waits for memory again, so it ends
//! when its provider does, at the latest at its deadline; the lane then passes to the next in line. Those who have
//! reserved nothing yet hold nothing that others wait for. So in every state somebody can go on, and each wait is
//! bounded by the deadlines of those who came before.
//!
//! The argument needs one thing of the network: that an answer which is not read does not hold up the holder's. Over
//! HTTP/1 each answer has its own connection; over HTTP/2 the connection's window has room for all streams together.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What each request takes for its answer, beyond its own line, before it is sent.
pub const ANSWER_ALLOWANCE: usize = 8 * 1024;

/// The semaphore counts in units of this many bytes.
const UNIT: usize = 1024;

/// A line that would take more than this part of the budget goes through the lane instead.
const LARGEST_PART: u32 = 4;

/// A bound on the bytes in flight, shared by its clones.
#[derive(Debug, Clone)]
pub struct Budget {
    shared: Arc<Semaphore>,
    lane: Arc<Semaphore>,
    largest_share: u32,
}

impl Budget {
    /// A budget of `total_bytes`, beside which the one holder of the lane has what it needs.
    pub fn new(total_bytes: usize) -> Self {
        let units = u32::try_from(total_bytes / UNIT).unwrap_or(u32::MAX);
        Self {
            shared: Arc::new(Semaphore::new(units as usize)),
            lane: Arc::new(Semaphore::new(1)),
            largest_share: units / LARGEST_PART,
        }
    }

    /// Waits until a line of `line_bytes` may be held, and its answer begin to arrive.
    pub async fn reserve(&self, line_bytes: usize) -> Reservation {
        let units = units(line_bytes + ANSWER_ALLOWANCE);
        let permit = if units > self.largest_share {
            Permit::Lane(acquire(&self.lane, 1).await)
        } else {
            Permit::Shared(acquire(&self.shared, units).await)
        };
        self.reservation(line_bytes, permit)
    }

    /// Like [`Budget::reserve`], but gives `None` where that would wait.
    #[cfg(test)]
    fn try_reserve(&self, line_bytes: usize) -> Option<Reservation> {
        let units = units(line_bytes + ANSWER_ALLOWANCE);
        let permit = if units > self.largest_share {
            Permit::Lane(Arc::clone(&self.lane).try_acquire_owned().ok()?)
        } else {
            Permit::Shared(Arc::clone(&self.shared).try_acquire_many_owned(units).ok()?)
        };
        Some(self.reservation(line_bytes, permit))
    }

    fn reservation(&self, line_bytes: usize, permit: Permit) -> Reservation {
        Reservation { budget: self.clone(), used: line_bytes, permit }
    }
}

/// The right of one request to hold bytes. Dropping it gives them back.
#[derive(Debug)]
pub struct Reservation {
    budget: Budget,
    /// Bytes in use, of the line and of the answer.
    used: usize,
    permit: Permit,
}

#[derive(Debug)]
enum Permit {
    /// So many units of the shared budget.
    Shared(OwnedSemaphorePermit),
    /// Whatever is needed.
    Lane(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit),
}

impl Reservation {
    /// Takes `bytes` more, waiting where none are free. Whoever waits must not read on meanwhile.
    pub async fn grow(&mut self, bytes: usize) {
        self.used += bytes;
        let Permit::Shared(held) = &mut self.permit else {
            return;
        };
        let missing = units(self.used).saturating_sub(u32::try_from(held.num_permits()).unwrap_or(u32::MAX));
        if missing == 0 {
            return;
        }
        if let Ok(more) = Arc::clone(&self.budget.shared).try_acquire_many_owned(missing) {
            held.merge(more);
            return;
        }
        tokio::select! {
            biased;
            more = acquire(&self.budget.shared, missing) => held.merge(more),
            lane = acquire(&self.budget.lane, 1) => self.permit = Permit::Lane(lane),
        }
    }
}

async fn acquire(semaphore: &Arc<Semaphore>, units: u32) -> OwnedSemaphorePermit {
    Arc::clone(semaphore).acquire_many_owned(units).await.expect("invariant: a budget is never closed")
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::future::join_all;
    use tokio::time::{Instant, sleep, timeout};

    use super::*;

    const KIB: usize = 1024;

    #[tokio::test(start_paused = true)]
    async fn a_reservation_waits_until_another_is_dropped() {
        let budget = Budget::new(40 * KIB);
        let held: Vec<_> = (0..4).map(|_| budget.try_reserve(2 * KIB).expect("room for four")).collect();
        assert!(budget.try_reserve(1).is_none());
        assert!(timeout(Duration::from_secs(1), budget.reserve(1)).await.is_err());
        drop(held);
        assert!(timeout(Duration::from_secs(1), budget.reserve(1)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn one_large_line_at_a_time_goes_beside_the_budget() {
        let budget = Budget::new(40 * KIB);
        let large = budget.try_reserve(100 * KIB).expect("the lane is free");
        assert!(budget.try_reserve(100 * KIB).is_none());
        assert!(budget.try_reserve(KIB).is_some(), "small lines pass by");
        drop(large);
        assert!(budget.try_reserve(100 * KIB).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn growth_within_the_allowance_takes_nothing_and_beyond_it_what_is_missing() {
        let budget = Budget::new(40 * KIB);
        let mut reservation = budget.reserve(2 * KIB).await;
        reservation.grow(ANSWER_ALLOWANCE).await;
        assert_eq!(budget.shared.available_permits(), 30);
        reservation.grow(1).await;
        assert_eq!(budget.shared.available_permits(), 29);
        drop(reservation);
        assert_eq!(budget.shared.available_permits(), 40);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_for_the_lane_takes_memory_that_is_freed_first() {
        let budget = Budget::new(40 * KIB);
        let _lane = budget.reserve(100 * KIB).await;
        let mut growing = budget.reserve(2 * KIB).await;
        let others: Vec<_> = (0..3).map(|_| budget.try_reserve(2 * KIB).expect("room for four")).collect();
        let grown = tokio::spawn(async move {
            growing.grow(20 * KIB).await;
            growing
        });
        tokio::task::yield_now().await;
        assert!(!grown.is_finished());
        drop(others);
        let growing = timeout(Duration::from_secs(1), grown).await.expect("memory is free").unwrap();
        assert!(matches!(growing.permit, Permit::Shared(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_all_outgrow_a_full_budget_end_one_after_the_other() {
        let budget = Budget::new(64 * KIB);
        let begun = Instant::now();
        let requests =
            join_all((0..7).map(|_| budget.reserve(KIB))).await.into_iter().map(|mut reservation| {
                tokio::spawn(async move {
                    // Each answer alone is larger than the whole budget, and comes in pieces.
                    for _ in 0..10 {
                        reservation.grow(10 * KIB).await;
                        sleep(Duration::from_millis(100)).await;
                    }
                })
            });
        let requests: Vec<_> = requests.collect();
        let all = timeout(Duration::from_mins(1), join_all(requests)).await.expect("no deadlock");
        assert!(all.iter().all(Result::is_ok));
        assert!(begun.elapsed() <= Duration::from_secs(8), "{:?}", begun.elapsed());
        assert_eq!(budget.shared.available_permits(), 64);
        assert_eq!(budget.lane.available_permits(), 1);
    }
}
