//! The progress call: an executor posts its report with its pod's token and is answered with directives.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path, Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::post,
};
use kube::{ResourceExt, runtime::reflector::ObjectRef};
use penstock_crds::BatchJob;
use penstock_job::{Report, document, report::LONGEST_REPORT};
use tokio::{sync::mpsc, time::timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::{caller::Reviewer, directives::directives, listener::TlsListener, reports::Reports};
use crate::{caches::Caches, manifests::audience};

/// How long a report may take, from its head to its answer: longer than the one call to the API server in it.
const ANSWER: Duration = Duration::from_secs(15);

/// What the progress call needs.
#[derive(Debug, Clone)]
pub struct Progress {
    /// What is in the cluster.
    pub caches: Arc<Caches>,
    /// Who calls.
    pub reviewer: Arc<Reviewer>,
    /// What was said.
    pub reports: Arc<Reports>,
    /// Jobs that are to be looked at because of it.
    pub turned: mpsc::Sender<ObjectRef<BatchJob>>,
}

/// Where the executor of a BatchJob reports, below `base`.
pub fn report_url(base: &str, batch_job: &BatchJob) -> String {
    let (namespace, name) = (batch_job.namespace().unwrap_or_default(), batch_job.name_any());
    format!("{}/v1/namespaces/{namespace}/batch-jobs/{name}/report", base.trim_end_matches('/'))
}

/// Answers executors until `stop`.
pub async fn serve_progress(
    listener: tokio::net::TcpListener,
    acceptor: TlsAcceptor,
    progress: Progress,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let listener = TlsListener::new(listener, acceptor);
    axum::serve(listener, router(progress)).with_graceful_shutdown(stop.cancelled_owned()).await
}

fn router(progress: Progress) -> Router {
    Router::new()
        .route("/v1/namespaces/{namespace}/batch-jobs/{name}/report", post(report))
        .layer(DefaultBodyLimit::max(LONGEST_REPORT))
        .layer(middleware::from_fn(in_time))
        .with_state(progress)
}

/// A caller that sends its report too slowly is sent away.
async fn in_time(request: Request, next: Next) -> Response {
    match timeout(ANSWER, next.run(request)).await {
        Ok(answer) => answer,
        Err(_) => (StatusCode::REQUEST_TIMEOUT, "send the report at once").into_response(),
    }
}

async fn report(
    State(progress): State<Progress>,
    Path((namespace, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    let token = bearer(&headers).ok_or(Refusal::NoToken)?;
    let batch_job = progress.caches.batch_job(&namespace, &name).ok_or(Refusal::NoSuchJob)?;
    let uid = batch_job.uid().unwrap_or_default();
    let pod = progress.reviewer.pod(token, &audience(&uid)).await.map_err(|error| {
        tracing::warn!(%error, "a token could not be reviewed");
        Refusal::NotNow
    })?;
    if !pod.is_some_and(|pod| progress.caches.is_pod_of(&batch_job, &pod)) {
        return Err(Refusal::NotItsPod);
    }
    let report: Report = document::read(&body).map_err(|error| Refusal::NoReport(error.to_string()))?;
    progress.reports.hear(&uid, report, Instant::now());
    // A full channel is emptied by looking at every job in it; the next report comes in ten seconds.
    let _ = progress.turned.try_send(ObjectRef::from_obj(&*batch_job));
    let provider = progress.caches.provider_of(&batch_job);
    let answer = document::write(&directives(&batch_job, provider.as_deref()));
    Ok(([(header::CONTENT_TYPE, "application/json")], answer).into_response())
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

/// Why a report is not taken.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    NoToken,
    NoSuchJob,
    NotItsPod,
    NoReport(String),
    NotNow,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, text) = match self {
            Self::NoToken => (StatusCode::UNAUTHORIZED, "send the pod's token".to_owned()),
            Self::NoSuchJob => (StatusCode::NOT_FOUND, "there is no such BatchJob".to_owned()),
            Self::NotItsPod => {
                (StatusCode::FORBIDDEN, "the token is not that of a pod of this BatchJob".to_owned())
            }
            Self::NoReport(error) => (StatusCode::BAD_REQUEST, format!("failed to {error}")),
            Self::NotNow => {
                (StatusCode::SERVICE_UNAVAILABLE, "the API server does not answer; report again".to_owned())
            }
        };
        (status, text).into_response()
    }
}

#[cfg(test)]
mod tests;
