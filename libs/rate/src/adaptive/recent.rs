//! The fate of the last few requests, one by one: what slow lanes go by, where slots hold less than one each.

use std::collections::VecDeque;

/// How many requests are looked at.
const KEPT: usize = 12;

/// The last requests in order of sending.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent(VecDeque<Fate>);

#[derive(Clone, Copy, Debug)]
struct Fate {
    sent_at: f64,
    units: f64,
    refused: bool,
}

impl Recent {
    pub(super) fn sent(&mut self, sent_at: f64, units: f64) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(Fate { sent_at, units, refused: false });
    }

    pub(super) fn refused(&mut self, sent_at: f64) {
        let same = |fate: &&mut Fate| fate.sent_at.total_cmp(&sent_at).is_eq() && !fate.refused;
        if let Some(fate) = self.0.iter_mut().rev().find(same) {
            fate.refused = true;
        }
    }

    /// How many were refused in a row up to now. Those younger than `undecided` do not interrupt the row.
    pub(super) fn in_a_row(&self, undecided: f64) -> u32 {
        let mut row = 0;
        for fate in self.0.iter().rev() {
            match fate.refused {
                true => row += 1,
                false if fate.sent_at >= undecided => {}
                false => break,
            }
        }
        row
    }

    /// How many of all were refused.
    pub(super) fn refused_count(&self) -> usize {
        self.0.iter().filter(|fate| fate.refused).count()
    }

    /// Units a second that were admitted, if the row is full and took any time.
    pub(super) fn admitted_per_second(&self, now: f64) -> Option<f64> {
        let took = now - self.0.front()?.sent_at;
        let admitted: f64 = self.0.iter().filter(|fate| !fate.refused).map(|fate| fate.units).sum();
        (self.0.len() == KEPT && took > 0.0).then(|| admitted / took)
    }
}
