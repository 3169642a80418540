//! The script that everybody writes first: a hundred workers, each of which backs off when it is refused.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    time::Duration,
};

use penstock_simulator::rate::{Answer, Controller, Outcome, Wish};

const WORKERS: u32 = 100;
const FIRST_BACK_OFF: Duration = Duration::from_secs(4);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(30);

/// Workers that wait until they may try, by time, with how often each was refused in a row.
#[derive(Debug)]
pub(crate) struct Script {
    waiting: BinaryHeap<Reverse<(Duration, u32)>>,
    in_flight: HashMap<u64, u32>,
}

impl Script {
    pub(crate) fn new() -> Self {
        Self { waiting: BinaryHeap::new(), in_flight: HashMap::new() }
    }

    fn wish(&self) -> Wish {
        Wish { send_at: self.waiting.peek().map(|Reverse((at, _))| *at), wake_at: None }
    }
}

/// Twice as long after each refusal in a row, from half of that to half as much again.
fn back_off(refused: u32, index: u64) -> Duration {
    let wait = (FIRST_BACK_OFF * 2_u32.saturating_pow(refused.min(16))).min(LONGEST_BACK_OFF);
    wait.mul_f64(0.5 + scattered(index))
}

/// A number from 0 to 1 that differs from index to index (the finaliser of `SplitMix64`).
#[expect(clippy::cast_precision_loss, reason = "any number will do")]
fn scattered(index: u64) -> f64 {
    let mut bits = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ (bits >> 31)) as f64 / u64::MAX as f64
}

impl Controller for Script {
    fn start(&mut self, now: Duration) -> Wish {
        self.waiting.extend((0..WORKERS).map(|_| Reverse((now, 0))));
        self.wish()
    }

    fn departed(&mut self, _now: Duration, index: u64, _input_tokens: u32, _max_tokens: u32) -> Wish {
        if let Some(Reverse((_, refused))) = self.waiting.pop() {
            self.in_flight.insert(index, refused);
        }
        self.wish()
    }

    fn answered(&mut self, now: Duration, answer: &Answer) -> Wish {
        if let Some(refused) = self.in_flight.remove(&answer.index) {
            self.waiting.push(Reverse(match answer.outcome {
                Outcome::Succeeded { .. } => (now, 0),
                Outcome::Refused { retry_after: Some(wait), .. } => (now + wait, refused + 1),
                _ => (now + back_off(refused, answer.index), refused + 1),
            }));
        }
        self.wish()
    }

    fn woken(&mut self, _now: Duration) -> Wish {
        self.wish()
    }
}
