//! A stand-in for kubelets and executors: every pod of a job starts at once, reports with its own token as an executor
//! does, and ends with a last word, or runs on, as the name of its job says.

use std::{sync::Arc, time::Duration};

use futures_util::{TryStreamExt, pin_mut};
use k8s_openapi::{
    api::{
        authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec},
        core::v1::{Pod, Secret, ServiceAccount},
    },
    jiff::Timestamp,
};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams, PostParams},
    runtime::{WatchStreamExt, watcher},
};
use penstock_crds::BatchJob;
use penstock_job::{
    Epoch, ExitCode, Identity, Incarnation, LastWord, Report, document,
    last_word::{LastWordFormat, ReceiptInBrief},
    receipt::ReceiptEnding,
    report::{Owner, RateGauges, ReportFormat, RunRequests, Stage},
    state::{Outcomes, PartOutcomes, Requests},
    usage::Tokens,
};
use serde_json::json;
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{interval, sleep},
};

use super::{JOBS, OWN};
use crate::{error::BenchError, rows::operator::LINES};

/// The beginning of the names of jobs whose pods run on.
pub(crate) const STAYS: &str = "stays-";

/// How often a pod that runs on reports.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// When a report that was refused is sent again.
const REPORT_AGAIN: Duration = Duration::from_secs(1);

/// Pods that are begun or ended at once.
const AT_ONCE: usize = 8;

/// A node without end.
#[derive(Clone)]
pub(crate) struct Kubelet {
    client: Client,
    http: reqwest::Client,
    progress: String,
    busy: Arc<Semaphore>,
}

/// An executor in a pod.
struct Executor<'a> {
    kubelet: &'a Kubelet,
    job: String,
    token: String,
    identity: Identity,
    incarnation: Incarnation,
    sequence: u64,
}

impl Kubelet {
    /// One whose pods report to the operator at `progress`.
    pub(crate) async fn new(client: Client, progress: &str) -> Result<Self, BenchError> {
        let secrets: Api<Secret> = Api::namespaced(client.clone(), OWN);
        let secret = secrets.get("penstock-progress-ca").await.map_err(Box::new)?;
        let certificate = secret.data.and_then(|mut data| data.remove("ca.crt")).unwrap_or_default();
        let http = reqwest::Client::builder()
            .tls_certs_only([reqwest::Certificate::from_pem(&certificate.0)?])
            .no_proxy()
            .build()?;
        Ok(Self { client, http, progress: progress.to_owned(), busy: Arc::new(Semaphore::new(AT_ONCE)) })
    }

    /// Runs every pod of a job that comes; never ends by itself but by a failure.
    pub(crate) async fn run(self) -> Result<(), BenchError> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), JOBS);
        let pods = watcher(pods, watcher::Config::default()).default_backoff().applied_objects();
        pin_mut!(pods);
        let mut running = JoinSet::new();
        loop {
            tokio::select! {
                pod = pods.try_next() => match pod {
                    Ok(Some(pod)) if is_new(&pod) => {
                        let kubelet = self.clone();
                        running.spawn(async move { kubelet.start(&pod).await });
                    }
                    Ok(Some(_)) => {}
                    Ok(None) => return Ok(()),
                    Err(error) => tracing::warn!(%error, "the watch of pods begins anew"),
                },
                Some(ended) = running.join_next() => ended.map_err(std::io::Error::other)??,
            }
        }
    }

    async fn start(self, pod: &Pod) -> Result<(), BenchError> {
        let permit = Arc::clone(&self.busy).acquire_owned().await.map_err(std::io::Error::other)?;
        let job = pod.labels().get("penstock.dev/batch-job").cloned().unwrap_or_default();
        let since = Timestamp::now();
        self.say(
            pod,
            json!({"phase": "Running", "containerStatuses": [
                container(&json!({"running": {"startedAt": since}}))
            ]}),
        )
        .await?;
        let mut executor = self.executor(pod, &job).await?;
        executor.report(Stage::Claiming, None).await?;
        executor.report(Stage::Running, None).await?;
        if job.starts_with(STAYS) {
            drop(permit);
            let mut moments = interval(REPORT_EVERY);
            loop {
                moments.tick().await;
                executor.report(Stage::Running, None).await?;
            }
        }
        let word = executor.last_word();
        executor.report(Stage::Publishing, Some(word.clone())).await?;
        let message = String::from_utf8(document::write(&word)).map_err(std::io::Error::other)?;
        let ended =
            json!({"exitCode": 0, "message": message, "startedAt": since, "finishedAt": Timestamp::now()});
        self.say(
            pod,
            json!({"phase": "Succeeded", "containerStatuses": [
                container(&json!({"terminated": ended}))
            ]}),
        )
        .await
    }

    async fn executor(&self, pod: &Pod, job: &str) -> Result<Executor<'_>, BenchError> {
        let batch_jobs: Api<BatchJob> = Api::namespaced(self.client.clone(), JOBS);
        let batch_job = batch_jobs.get(job).await.map_err(Box::new)?;
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), JOBS);
        let request = TokenRequest {
            spec: TokenRequestSpec {
                audiences: vec![format!("penstock.dev/batch-jobs/{}", batch_job.uid().unwrap_or_default())],
                bound_object_ref: Some(BoundObjectReference {
                    api_version: Some("v1".to_owned()),
                    kind: Some("Pod".to_owned()),
                    name: pod.metadata.name.clone(),
                    uid: pod.uid(),
                }),
                expiration_seconds: None,
            },
            ..TokenRequest::default()
        };
        let token = accounts.create_token_request("default", &PostParams::default(), &request).await;
        let token = token.map_err(Box::new)?.status.map(|status| status.token).unwrap_or_default();
        let identity = batch_job.status.and_then(|status| status.identity).unwrap_or_default();
        let identity = serde_json::from_value(identity.into()).map_err(std::io::Error::other)?;
        let incarnation = Incarnation::draw();
        Ok(Executor { kubelet: self, job: job.to_owned(), token, identity, incarnation, sequence: 0 })
    }

    async fn say(&self, pod: &Pod, status: serde_json::Value) -> Result<(), BenchError> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), JOBS);
        let patch = Patch::Merge(json!({"status": status}));
        pods.patch_status(&pod.name_any(), &PatchParams::default(), &patch).await.map_err(Box::new)?;
        Ok(())
    }
}

impl Executor<'_> {
    async fn report(&mut self, stage: Stage, last_word: Option<LastWord>) -> Result<(), BenchError> {
        self.sequence += 1;
        let done = if last_word.is_some() { LINES } else { 0 };
        let report = Report {
            format: ReportFormat,
            job: Owner::default(),
            identity: self.identity.clone(),
            epoch: Epoch(1),
            incarnation: self.incarnation,
            sequence: self.sequence,
            started_at_ms: 0,
            stage,
            lines: LINES,
            rejected: 0,
            outcomes: PartOutcomes { succeeded: done, ..PartOutcomes::default() },
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
            gauges: RateGauges::default(),
            last_word,
        };
        let url = format!("{}/v1/namespaces/{JOBS}/batch-jobs/{}/report", self.kubelet.progress, self.job);
        let body = document::write(&report);
        loop {
            let post = self.kubelet.http.post(&url).bearer_auth(&self.token).body(body.clone());
            // A pod that starts at once may report before the operator has seen it.
            if post.send().await?.status().is_success() {
                return Ok(());
            }
            sleep(REPORT_AGAIN).await;
        }
    }

    fn last_word(&self) -> LastWord {
        let receipt = ReceiptInBrief {
            ending: ReceiptEnding::Completed,
            decision: "d".into(),
            lines: LINES,
            outcomes: Outcomes { succeeded: LINES, ..Outcomes::default() },
            epochs: Epoch(1),
            requests: Requests::default(),
            tokens: Tokens::default(),
            cost: None,
            frozen_at_ms: 0,
        };
        LastWord {
            format: LastWordFormat,
            job: Owner::default(),
            identity: Some(self.identity.clone()),
            epoch: Epoch(1),
            incarnation: self.incarnation,
            exit_code: ExitCode::Completed,
            stage: Stage::Publishing,
            reason: None,
            message: "The job is done.".into(),
            lines: LINES,
            rejected: 0,
            outcomes: PartOutcomes { succeeded: LINES, ..PartOutcomes::default() },
            requests: RunRequests::default(),
            tokens: Tokens::default(),
            cost: None,
            receipt: Some(receipt),
        }
    }
}

fn is_new(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    phase.is_none_or(|phase| phase == "Pending") && pod.metadata.deletion_timestamp.is_none()
}

fn container(state: &serde_json::Value) -> serde_json::Value {
    json!({"name": "penstock", "image": "penstock", "imageID": "", "ready": false, "restartCount": 0, "state": state})
}
