//! Which requests are in flight: the concurrency cap, and the guard against verdicts that belong to nothing.

use std::collections::HashMap;
use std::time::Duration;

use crate::event::{Cost, RequestId};
use crate::limits::Limits;

/// Requests that one learner lets be in flight at once, whatever the limits say, so that its memory is bounded
/// (40 to 80 bytes each). At 30,000 requests a minute it allows answers that take half a minute.
pub const MOST_IN_FLIGHT: u32 = 16_384;

/// The requests without a final verdict, at most [`MOST_IN_FLIGHT`].
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    requests: HashMap<RequestId, Flight>,
    cap: u32,
}

/// What was known of a request when it went out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flight {
    pub(crate) sent_at: Duration,
    pub(crate) cost: Cost,
}

impl InFlight {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { requests: HashMap::new(), cap: cap(limits) }
    }

    /// Another limit holds from now on; what is in flight stays.
    pub(crate) fn limit(&mut self, limits: Limits) {
        self.cap = cap(limits);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.cap
    }

    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.requests.len()).unwrap_or(MOST_IN_FLIGHT)
    }

    /// Takes a slot. A caller that overruns even the outermost cap is not followed: its verdict will be unknown.
    pub(crate) fn insert(&mut self, id: RequestId, flight: Flight) {
        if self.requests.len() < MOST_IN_FLIGHT as usize {
            self.requests.insert(id, flight);
        }
    }

    /// The request, if it is in flight.
    pub(crate) fn get(&self, id: RequestId) -> Option<Flight> {
        self.requests.get(&id).copied()
    }

    /// Frees the slot of the request, if it is in flight.
    pub(crate) fn remove(&mut self, id: RequestId) -> Option<Flight> {
        self.requests.remove(&id)
    }
}

/// How many requests the user, and memory, allow at once.
pub(crate) fn cap(limits: Limits) -> u32 {
    limits.max_in_flight.map_or(MOST_IN_FLIGHT, |cap| cap.get().min(MOST_IN_FLIGHT))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    const FLIGHT: Flight =
        Flight { sent_at: Duration::ZERO, cost: Cost { input_tokens: 1, output_tokens: 2 } };

    #[test]
    fn it_is_full_at_the_users_cap_and_never_holds_more_than_the_outermost() {
        let limits = Limits { max_in_flight: NonZeroU32::new(2), ..Limits::default() };
        let mut in_flight = InFlight::new(limits);
        in_flight.insert(RequestId(1), FLIGHT);
        assert!(!in_flight.is_full());
        in_flight.insert(RequestId(2), FLIGHT);
        assert!(in_flight.is_full());

        for id in 0..2 * u64::from(MOST_IN_FLIGHT) {
            in_flight.insert(RequestId(id), FLIGHT);
        }
        assert_eq!(in_flight.len(), MOST_IN_FLIGHT);
    }

    #[test]
    fn a_slot_is_freed_once() {
        let mut in_flight = InFlight::new(Limits::default());
        in_flight.insert(RequestId(7), FLIGHT);
        assert_eq!(in_flight.get(RequestId(7)), Some(FLIGHT));
        assert_eq!(in_flight.remove(RequestId(7)), Some(FLIGHT));
        assert_eq!(in_flight.remove(RequestId(7)), None);
        assert_eq!(in_flight.len(), 0);
    }
}
