//! The operator of a namespace, installed with Helm.

use std::path::{Path, PathBuf};

use penstock_e2e::layout::repository;

use crate::place::{Namespace, PATIENCE};

/// The release. Its name may be the same in every namespace.
pub(crate) const RELEASE: &str = "penstock";

/// What selects the pods of the operator.
pub(crate) const OPERATOR: &str = "--selector=app.kubernetes.io/component=operator";

/// The chart of this commit.
pub(crate) fn chart() -> PathBuf {
    repository().join("charts/penstock")
}

/// Installs a chart as the operator of a namespace, with further arguments, and returns when Helm calls it ready.
pub(crate) async fn install(namespace: &Namespace, chart: &Path, more: &[&str]) {
    release(namespace, "install", chart, more).await;
}

/// Brings the operator of a namespace to this chart.
pub(crate) async fn upgrade(namespace: &Namespace, chart: &Path, more: &[&str]) {
    release(namespace, "upgrade", chart, more).await;
}

async fn release(namespace: &Namespace, verb: &str, chart: &Path, more: &[&str]) {
    let image = format!("--set-json=image={}", namespace.cluster.image());
    let helm = namespace.helm([verb, RELEASE]).argument(chart);
    helm.arguments(["--values=-", &image, "--wait", "--timeout=110s"])
        .arguments(more)
        .input(namespace.manifest("operator.values.yaml"))
        .within(PATIENCE)
        .run()
        .await
        .unwrap();
}
