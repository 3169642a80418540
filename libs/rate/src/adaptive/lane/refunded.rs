//! A quantity of which a request is charged the most that it may use, and what it did not use comes back.
//!
//! So the limit binds what requests use in the end, but what is under way takes more. Each request waits until what it is
//! charged has been given by the limit or has come back: the faster answers come, the faster others go.

use super::super::amount::Charging;
use super::super::evidence::Told;
use super::super::shape::Explained;
use super::{Lane, Stage};

impl Lane {
    /// So much of what was charged before has come back.
    pub(in super::super) fn returned(&mut self, now: f64, units: f64) {
        if self.free_at > now {
            // Until now it was the lane that kept requests from going.
            self.held_at = now;
        }
        self.slots.returned(now, units);
        self.admitted -= units;
        self.free_at -= units / self.rate;
    }

    /// Refusals have told how the quantity is charged, of which a request takes `unit`: begins anew with what the limit
    /// gave.
    pub(in super::super) fn charge(&mut self, now: f64, told: Told, unit: f64) {
        let Told { charging, rate, charged } = told;
        self.slots = match charging {
            Charging::AtOnce | Charging::Refunded => charged.slots().clone(),
            Charging::AsProduced => self.slots.scaled(unit / self.unit),
        };
        self.refunded = charging == Charging::Refunded;
        self.charged = (charging == Charging::AsProduced).then_some(charged);
        self.unit = unit;
        self.window = None;
        self.explained = Explained::default();
        self.reopened = None;
        self.missed = 0.0;
        self.shut_before = None;
        self.stage = Stage::Riding;
        self.cut_at = now;
        self.clean_since = now;
        self.regime_since = now;
        self.ceiling = Some(rate);
        self.free_at = now;
        self.set_rate(now, rate);
    }
}
