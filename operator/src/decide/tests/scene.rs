//! What is seen of a job, made for the table: each scene is a job at rest with changes.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use penstock_crds::{BatchJob, batch_job::ValidationSummary};
use penstock_job::{
    Epoch, Identity, Incarnation, LastWord, document,
    last_word::{LastWordFormat, ReceiptInBrief},
    receipt::ReceiptEnding,
    report::{self, Owner, RunRequests},
    state::{Outcomes, PartOutcomes, Requests},
    usage::Tokens,
};
use serde_json::json;

use super::super::*;
use crate::{
    intake::Word,
    observe::{IntakeSeen, Jobs},
    workload::{Farewell, LivePod, Stage, Workload},
};

pub(super) const NOW: &str = "2026-01-01T12:00:00Z";

pub(super) fn now() -> Timestamp {
    NOW.parse().unwrap()
}

pub(super) fn ago(seconds: u64) -> Time {
    Time(now().saturating_sub(Duration::from_secs(seconds)).unwrap())
}

/// A BatchJob that nobody has looked at.
pub(crate) fn batch_job() -> BatchJob {
    serde_json::from_value(json!({
        "apiVersion": "penstock.dev/v1alpha1",
        "kind": "BatchJob",
        "metadata": {"name": "nightly", "namespace": "team", "uid": "uid-1", "generation": 1},
        "spec": {
            "input": {"uri": "gs://bucket/in.jsonl"},
            "output": {"uri": "gs://bucket/out"},
            "providerRef": {"name": "openai"},
            "model": "gpt-5.4-mini",
        },
    }))
    .unwrap()
}

/// One in this state, of which what earlier passes found out is known.
pub(super) fn seen(state: Option<State>) -> Observed {
    let mut batch_job = batch_job();
    if let Some(state) = state {
        let status = batch_job.status.get_or_insert_default();
        status.state = Some(state);
        if !matches!(state, State::AwaitingUpload | State::Validating) {
            status.identity = Some(identity().to_string());
            status.validation = Some(ValidationSummary { lines: 10, ..ValidationSummary::default() });
        }
        if matches!(state, State::Running | State::Finalizing | State::Cancelling) {
            status.start_time = Some(ago(600));
        }
        if state.is_over() {
            status.completion_time = Some(ago(60));
        }
    }
    Observed {
        batch_job: Arc::new(batch_job),
        now: now(),
        problem: None,
        intake: IntakeSeen::None,
        jobs: Jobs::default(),
        heard: None,
        rival: None,
    }
}

impl Observed {
    pub(super) fn spec(mut self, change: impl FnOnce(&mut penstock_crds::BatchJobSpec)) -> Self {
        change(&mut Arc::make_mut(&mut self.batch_job).spec);
        self
    }

    pub(super) fn labelled(mut self) -> Self {
        let labels = Arc::make_mut(&mut self.batch_job).metadata.labels.get_or_insert_default();
        labels.insert(QUEUE_LABEL.to_owned(), "night".to_owned());
        self
    }

    pub(super) fn executor(mut self, executor: Workload) -> Self {
        self.jobs.executor = Some(executor);
        self
    }

    pub(super) fn finalizer(mut self, finalizer: Workload) -> Self {
        self.jobs.finalizer = Some(finalizer);
        self
    }

    pub(super) fn said(mut self, word: Word) -> Self {
        self.intake = IntakeSeen::Said { word, ago: Duration::ZERO, tries: 1 };
        self
    }

    pub(super) fn heard(mut self, stage: report::Stage, seconds: u64) -> Self {
        self.heard = Some(HeardSeen {
            report: Arc::new(report(stage)),
            ago: Duration::from_secs(seconds),
            per_minute: None,
        });
        self
    }

    pub(super) fn expired(mut self) -> Self {
        Arc::make_mut(&mut self.batch_job).status.get_or_insert_default().deadline = Some(ago(1));
        self
    }
}

pub(super) fn identity() -> Identity {
    serde_json::from_value("0123456789abcdef".repeat(4).into()).unwrap()
}

pub(super) fn validated() -> Validated {
    Validated { identity: identity(), generation: "7".to_owned(), lines: 10, rejected: 1 }
}

pub(super) fn receipt(ending: ReceiptEnding) -> ReceiptInBrief {
    ReceiptInBrief {
        ending,
        decision: "d".into(),
        lines: 10,
        outcomes: Outcomes { succeeded: 9, rejected: 1, ..Outcomes::default() },
        epochs: Epoch(1),
        requests: Requests::default(),
        tokens: Tokens::default(),
        cost: None,
        frozen_at_ms: 0,
    }
}

pub(super) fn over(ending: ReceiptEnding) -> Word {
    Word::Over(Box::new(Over { validated: validated(), receipt: receipt(ending) }))
}

pub(super) fn workload(stage: Stage) -> Workload {
    let runs = stage == Stage::Running;
    let pod = LivePod {
        name: "nightly-x".to_owned(),
        uid: "pod-1".to_owned(),
        is_running: runs,
        started_at: runs.then(|| ago(600)),
    };
    Workload {
        uid: "job-1".to_owned(),
        made_at: Some(ago(600)),
        is_deleting: false,
        suspended_by: None,
        lost: 0,
        before: Before::default(),
        pods: if runs { vec![pod] } else { Vec::new() },
        stage,
    }
}

pub(super) fn last_word_text(code: penstock_job::ExitCode, receipt: Option<ReceiptInBrief>) -> Farewell {
    farewell(code, None, receipt)
}

pub(super) fn farewell(
    code: penstock_job::ExitCode,
    reason: Option<Reason>,
    receipt: Option<ReceiptInBrief>,
) -> Farewell {
    let word = LastWord {
        format: LastWordFormat,
        job: Owner::default(),
        identity: Some(identity()),
        epoch: Epoch(1),
        incarnation: Incarnation::draw(),
        exit_code: code,
        stage: report::Stage::Publishing,
        reason,
        message: "told".into(),
        lines: 10,
        rejected: 1,
        outcomes: PartOutcomes::default(),
        requests: RunRequests::default(),
        tokens: Tokens::default(),
        cost: None,
        receipt,
    };
    let message = String::from_utf8(document::write(&word)).unwrap();
    Farewell { exit_code: Some(i32::from(code.code())), message: Some(message) }
}

pub(crate) fn report(stage: report::Stage) -> penstock_job::Report {
    penstock_job::Report {
        format: report::ReportFormat,
        job: Owner::default(),
        identity: identity(),
        epoch: Epoch(1),
        incarnation: Incarnation::draw(),
        sequence: 1,
        started_at_ms: 0,
        stage,
        lines: 10,
        rejected: 1,
        outcomes: PartOutcomes::default(),
        adopted: 0,
        requests: RunRequests::default(),
        tokens: Tokens::default(),
        cost: None,
        in_flight: 0,
        waiting_for_retry: 0,
        exposed: 0,
        checkpoint_age_ms: None,
        hindrance: None,
        rate: "as learned".into(),
        gauges: report::RateGauges::default(),
        last_word: None,
    }
}

pub(super) fn delete(child: Child) -> Action {
    Action::Delete { child, uid: "job-1".to_owned() }
}
