//! What is seen of one BatchJob in one pass: everything that a decision rests on, in one struct.

use std::{sync::Arc, time::Duration};

use k8s_openapi::jiff::Timestamp;
use penstock_crds::BatchJob;
use penstock_job::Report;

use crate::{intake::Word, workload::Workload};

/// What is seen of one BatchJob.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The BatchJob.
    pub batch_job: Arc<BatchJob>,
    /// When.
    pub now: Timestamp,
    /// What stands in the way of starting a pod for it: its Provider or a Secret is missing, or does not fit.
    pub problem: Option<String>,
    /// The intake in this process.
    pub intake: IntakeSeen,
    /// Its Jobs.
    pub jobs: Jobs,
    /// What its executor has said last.
    pub heard: Option<HeardSeen>,
    /// Another live BatchJob that was there first and has the same output.
    pub rival: Option<String>,
}

/// The Jobs of a BatchJob.
#[derive(Debug, Clone, Default)]
pub struct Jobs {
    /// Whose pod runs it.
    pub executor: Option<Workload>,
    /// Whose pod validates its input.
    pub validation: Option<Workload>,
    /// Whose pod only publishes.
    pub finalizer: Option<Workload>,
    /// A Job that has the name of one of these and belongs to somebody else.
    pub foreign: Option<String>,
}

/// The intake in this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntakeSeen {
    /// It did not run.
    None,
    /// It runs.
    Running,
    /// It is done.
    Said {
        /// What it found.
        word: Word,
        /// How long ago.
        ago: Duration,
        /// How often in a row it found nothing that lasts.
        tries: u32,
    },
}

/// What an executor has said last.
#[derive(Debug, Clone)]
pub struct HeardSeen {
    /// What it said.
    pub report: Arc<Report>,
    /// How long ago.
    pub ago: Duration,
    /// Answers in the last minute.
    pub per_minute: Option<u64>,
}
