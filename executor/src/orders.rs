//! What the operator wants of a run, as it was last heard: cancel, hold, bounds of the rate.

use penstock_job::{Directives, directives::RateBounds};
use tokio::sync::watch;

/// The directives that were heard last; none as long as nobody directs the run.
#[derive(Debug, Clone)]
pub(crate) struct Orders(watch::Sender<Directives>);

impl Default for Orders {
    fn default() -> Self {
        Self(watch::Sender::new(Directives::default()))
    }
}

impl Orders {
    /// Takes over what was heard. A cancel is not taken back.
    pub(crate) fn hear(&self, heard: &Directives) {
        self.0.send_if_modified(|known| {
            let heard = Directives { cancel: known.cancel || heard.cancel, ..heard.clone() };
            let is_new = *known != heard;
            *known = heard;
            is_new
        });
    }

    /// Whether the job is to end as cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.borrow().cancel
    }

    /// Completes when the job is to end as cancelled.
    pub(crate) async fn cancelled(&self) {
        self.until(|directives| directives.cancel).await;
    }

    /// Whether nothing is to be sent for the time being.
    pub(crate) fn is_held(&self) -> bool {
        self.0.borrow().hold
    }

    /// Completes when the run is held, or no longer held.
    pub(crate) async fn held(&self, held: bool) {
        self.until(|directives| directives.hold == held).await;
    }

    /// Bounds of the rate beside those of the job file.
    pub(crate) fn bounds(&self) -> RateBounds {
        self.0.borrow().rate
    }

    /// Tells of each change from now on. It stays open as long as `self` is there.
    pub(crate) fn changes(&self) -> watch::Receiver<Directives> {
        self.0.subscribe()
    }

    async fn until(&self, wanted: impl FnMut(&Directives) -> bool) {
        // The sender is `self`, so the channel stays open.
        let _ = self.0.subscribe().wait_for(wanted).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_cancel_stays_and_a_hold_is_lifted_again() {
        let orders = Orders::default();
        assert!(!orders.is_cancelled() && !orders.is_held());
        orders.hear(&Directives { cancel: true, hold: true, ..Directives::default() });
        orders.held(true).await;
        orders.hear(&Directives::default());
        orders.held(false).await;
        orders.cancelled().await;
        assert!(orders.is_cancelled());
    }

    #[test]
    fn who_listens_hears_of_what_is_new_alone() {
        let orders = Orders::default();
        let changes = orders.changes();
        orders.hear(&Directives::default());
        assert!(!changes.has_changed().unwrap());
        orders.hear(&Directives { hold: true, ..Directives::default() });
        assert!(changes.has_changed().unwrap());
    }
}
