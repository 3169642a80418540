//! What jobs on one provider key leave for one another: the rates that they have found out, and what each sends now.
//!
//! It helps, and nothing depends on it: a job that cannot read or write it learns its rate alone. It lies beside the
//! jobs, never below the output of one, which belongs to that job and is proven by its receipt.

mod location;
mod stored;

use std::{collections::BTreeMap, fmt::Debug, sync::Arc, time::Duration};

use async_trait::async_trait;
use penstock_rate::{Dimension, Shared};
use penstock_storage::StorageError;
use thiserror::Error;

pub use self::{
    location::{LocationError, open, open_folder},
    stored::StoredState,
};
use crate::provider::Account;

/// A model's rate in requests a minute.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRate {
    /// The model.
    pub model: Arc<str>,
    /// Requests a minute.
    pub rpm: f64,
}

/// What was found out of a model's limits.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelLimits {
    /// The model.
    pub model: Arc<str>,
    /// Requests and tokens a minute, as far as they were limited.
    pub found: BTreeMap<Dimension, f64>,
}

/// The memory that jobs on one key have in common.
#[async_trait]
pub trait SharedState: Debug + Send + Sync {
    /// What earlier jobs have found out about a model, in requests and tokens a minute.
    async fn remembered(
        &self,
        account: &Account,
        model: &str,
    ) -> Result<BTreeMap<Dimension, f64>, SharedStateError>;

    /// Leaves what this job has found out to later ones.
    async fn remember(&self, account: &Account, found: &[ModelLimits]) -> Result<(), SharedStateError>;

    /// Tells what `job` sends, as it will again after `every`, and hears of the jobs at each of these models, in their
    /// order.
    async fn exchange(
        &self,
        account: &Account,
        job: &str,
        own: &[ModelRate],
        every: Duration,
    ) -> Result<Vec<Shared>, SharedStateError>;

    /// `job` sends no more.
    async fn leave(&self, account: &Account, job: &str) -> Result<(), SharedStateError>;
}

/// Why jobs cannot hear of one another now. Messages read after "failed to".
#[derive(Debug, Error)]
pub enum SharedStateError {
    /// The storage does not work.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// So many others write that this job's turn does not come.
    #[error(
        "write the shared `{0}`: other jobs were faster each time; a longer --share-every leaves them more room"
    )]
    Contended(String),
}
