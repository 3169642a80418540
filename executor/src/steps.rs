//! Announces the steps of a job to whoever looks on, so that a test can end, pause or reorder a run at each of them.
//!
//! In production nobody looks on, and an announcement is a test of a pointer.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use penstock_job::Step;
use penstock_storage::{ObjectName, Store};

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At<'a> {
    /// The step.
    pub step: Step,
    /// Whether it is about to be done or has been done.
    pub moment: Moment,
    /// The object that it changes, if it changes one.
    pub object: Option<&'a ObjectName>,
}

/// Whether a step is about to be done or has been done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Moment {
    /// It is about to be done.
    Before,
    /// It has been done; of a write, its answer has come, whatever it says.
    After,
}

/// Looks on. The run goes on when the future that it gets, if any, is ready.
pub trait Probe: Send + Sync + fmt::Debug {
    /// A run is there.
    fn at(&self, at: At<'_>) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>>;
}

/// A run's announcements. The default is that nobody looks on.
#[derive(Debug, Clone, Default)]
pub struct Steps(Option<Arc<dyn Probe>>);

impl Steps {
    /// Lets `probe` look on.
    pub fn seen_by(probe: Arc<dyn Probe>) -> Self {
        Self(Some(probe))
    }

    /// A step that changes no object is about to be done.
    pub(crate) async fn before(&self, step: Step) {
        self.announce(At { step, moment: Moment::Before, object: None }).await;
    }

    /// A step that changes no object has been done.
    pub(crate) async fn after(&self, step: Step) {
        self.announce(At { step, moment: Moment::After, object: None }).await;
    }

    /// Makes a change to `object`, with an announcement on either side.
    pub(crate) async fn around<T>(
        &self,
        step: Step,
        object: &ObjectName,
        change: impl Future<Output = T>,
    ) -> T {
        self.around_all(step, &[object], change).await
    }

    /// Makes one change to several objects, with an announcement of each before it and after it.
    pub(crate) async fn around_all<T>(
        &self,
        step: Step,
        objects: &[&ObjectName],
        change: impl Future<Output = T>,
    ) -> T {
        for object in objects {
            self.announce(At { step, moment: Moment::Before, object: Some(object) }).await;
        }
        let answer = change.await;
        for object in objects {
            self.announce(At { step, moment: Moment::After, object: Some(object) }).await;
        }
        answer
    }

    async fn announce(&self, at: At<'_>) {
        if let Some(probe) = &self.0
            && let Some(wait) = probe.at(at)
        {
            wait.await;
        }
    }
}

/// A run's output and announcements as the binaries use them: with nobody looking on.
#[cfg(not(feature = "fault-injection"))]
pub fn watched(store: Arc<dyn Store>) -> (Arc<dyn Store>, Steps) {
    (store, Steps::default())
}

/// A run's output and announcements as the binaries use them: interrupted where the environment says.
#[cfg(feature = "fault-injection")]
pub fn watched(store: Arc<dyn Store>) -> (Arc<dyn Store>, Steps) {
    crate::injection::Injection::from_environment().watch(store)
}
