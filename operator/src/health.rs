//! What the kubelet asks: whether the process serves (`/healthz`), and whether it is of use (`/readyz`). Prometheus asks at
//! the same port (`/metrics`).
//!
//! The two differ on purpose: a replica that waits for its custom resource definitions is not ready, and restarting it
//! would not help.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Router,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::metrics::{CONTENT_TYPE, Metrics};

/// What this replica still waits for.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<Mutex<BTreeSet<&'static str>>>);

impl Readiness {
    /// Not ready before everything that was awaited has come.
    pub fn awaiting(what: impl IntoIterator<Item = &'static str>) -> Self {
        Self(Arc::new(Mutex::new(what.into_iter().collect())))
    }

    /// It has come.
    pub fn has(&self, what: &'static str) {
        self.awaited().remove(what);
    }

    fn answer(&self) -> (StatusCode, String) {
        let awaited = self.awaited();
        if awaited.is_empty() {
            return (StatusCode::OK, "ready\n".to_owned());
        }
        let awaited: Vec<_> = awaited.iter().copied().collect();
        (StatusCode::SERVICE_UNAVAILABLE, format!("waiting for {}\n", awaited.join(", ")))
    }

    fn awaited(&self) -> std::sync::MutexGuard<'_, BTreeSet<&'static str>> {
        // Nothing panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers the kubelet and Prometheus until `stop`.
pub async fn serve_health(
    listener: TcpListener,
    readiness: Readiness,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(async || "serving\n"))
        .route("/readyz", get(async move || readiness.answer()))
        .route("/metrics", get(async move || told(&metrics)));
    axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await
}

fn told(metrics: &Metrics) -> Response {
    match metrics.text() {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_is_ready_when_everything_that_it_waits_for_is_there() {
        let readiness = Readiness::awaiting(["BatchJob", "Provider"]);
        readiness.has("Provider");
        let (status, text) = readiness.answer();
        assert_eq!((status, text.as_str()), (StatusCode::SERVICE_UNAVAILABLE, "waiting for BatchJob\n"));
        readiness.has("BatchJob");
        assert_eq!(readiness.answer().0, StatusCode::OK);
    }
}
