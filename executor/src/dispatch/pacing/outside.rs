//! What the learners tell and hear outside of their own requests: other jobs on the key, earlier jobs, and the server's
//! word on its load.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use penstock_rate::{Dimension, Mode, Saturation, Shared};
use tokio::sync::watch;

use super::Pacing;
use crate::{
    provider::Load,
    shared_state::{ModelLimits, ModelRate},
};

impl Pacing {
    /// Whether the rate is found from answers, so that what others know helps.
    pub(crate) fn is_adaptive(&self) -> bool {
        self.mode == Mode::Adaptive
    }

    /// How many models requests have gone to; it changes with the first request to another one.
    pub(crate) fn model_count(&self) -> watch::Receiver<usize> {
        self.model_count.subscribe()
    }

    /// The models that requests go to.
    pub(crate) fn models(&self) -> Vec<Arc<str>> {
        self.learners().models.keys().map(Arc::clone).collect()
    }

    /// What is sent to each model, for the other jobs.
    pub(crate) fn rates(&self) -> Vec<ModelRate> {
        let learners = self.learners();
        let of_model = |(model, known): (&Arc<str>, &super::Model)| {
            Some(ModelRate { model: Arc::clone(model), rpm: known.learner.rate_rpm()? })
        };
        learners.models.iter().filter_map(of_model).collect()
    }

    /// What was found out about each model, for later jobs.
    pub(crate) fn found(&self) -> Vec<ModelLimits> {
        let learners = self.learners();
        let of_model = |(model, known): (&Arc<str>, &super::Model)| {
            let found = known.learner.found();
            (!found.is_empty()).then(|| ModelLimits { model: Arc::clone(model), found })
        };
        learners.models.iter().filter_map(of_model).collect()
    }

    /// What an earlier job has found out about a model. What this job itself has learned goes before it.
    pub(crate) fn recall(&self, model: &str, found: &BTreeMap<Dimension, f64>) {
        let now = self.began.elapsed();
        if let Some(model) = self.learners().models.get_mut(model)
            && !model.is_resumed
        {
            model.learner.remembered(now, found);
        }
    }

    /// What the jobs on this key send to a model.
    pub(crate) fn share(&self, model: &str, shared: Shared) {
        let now = self.began.elapsed();
        if let Some(model) = self.learners().models.get_mut(model) {
            model.learner.shared(now, shared);
        }
    }

    /// The servers tell their load, so they saturate instead of limiting. Learners of models to come begin with that.
    pub(crate) fn expect_saturation(&self) {
        self.tells_load.store(true, Relaxed);
    }

    /// What the server of a model works on.
    pub(crate) fn saturate(&self, model: &str, Load { running, waiting }: Load) {
        let now = self.began.elapsed();
        if let Some(model) = self.learners().models.get_mut(model) {
            model.learner.saturation(now, Saturation { running, waiting });
        }
    }
}
