//! What the board says of dispatch: what holds it back, and how much is under way.

use std::{sync::atomic::Ordering::Relaxed, time::Duration};

use penstock_job::Reason;
use tokio::time::Instant;

use super::{Mode, Running};
use crate::{dispatch::pacing::View, ledger::FENCE};

/// How often key files are read again while the provider refuses the key.
const KEY_CHECK: Duration = Duration::from_secs(5);

impl Running {
    /// Once a second: what the view shows, whether a better key is there, whether the fence holds.
    pub(super) async fn look_around(&mut self, mode: Mode) {
        let View { belief, gauges, reason: paced } = self.dispatch.pacing.view();
        self.dispatch.board.believes(belief.clone(), gauges);
        let held = mode == Mode::Go && !self.schedule.is_exhausted();
        let limits = [
            (Reason::Learning, held && paced == Some(Reason::Learning)),
            (Reason::RunningAtLimit, held && paced == Some(Reason::RunningAtLimit)),
            (Reason::AtOwnLimit, held && (paced == Some(Reason::AtOwnLimit) || self.schedule.is_full())),
        ];
        for (reason, holds) in limits {
            if holds {
                self.raise(reason, self.evidence(reason, &belief));
            } else {
                self.clear(reason);
            }
        }
        if self.failures == 0 {
            self.clear(Reason::ProviderUnavailable);
        }
        if self.dispatch.ledger.fence_holds() {
            self.clear(Reason::StorageSlow);
        } else {
            self.raise(Reason::StorageSlow, format!("no checkpoint succeeded for {} s", FENCE.as_secs()));
        }
        self.look_for_keys().await;
    }

    pub(super) fn raise(&mut self, reason: Reason, evidence: String) {
        self.raised.insert(reason);
        self.dispatch.board.raise(reason, evidence);
    }

    pub(super) fn clear(&mut self, reason: Reason) {
        if self.raised.remove(&reason) {
            self.dispatch.board.clear(reason);
        }
    }

    /// What held dispatch back no longer matters when it has ended.
    pub(super) fn clear_all(&self) {
        for reason in &self.raised {
            self.dispatch.board.clear(*reason);
        }
        self.dispatch.board.in_flight.store(0, Relaxed);
        self.dispatch.board.waiting_for_retry.store(0, Relaxed);
    }

    fn evidence(&self, reason: Reason, belief: &str) -> String {
        match reason {
            Reason::AtOwnLimit if self.schedule.is_full() => {
                format!("{} requests are in flight, as many as may be", self.schedule.in_flight())
            }
            _ => belief.to_owned(),
        }
    }

    async fn look_for_keys(&mut self) {
        let now = Instant::now();
        if !self.schedule.any_closed() || now < self.next_key_check {
            return;
        }
        self.next_key_check = now + KEY_CHECK;
        if self.dispatch.provider.refresh_keys().await {
            tracing::info!("a key file has changed; the provider is asked again");
            self.schedule.open_all();
        }
    }

    pub(super) fn show(&self) {
        let board = &self.dispatch.board;
        board.in_flight.store(u64::from(self.schedule.in_flight()), Relaxed);
        board.waiting_for_retry.store(self.schedule.waiting() as u64, Relaxed);
    }
}
