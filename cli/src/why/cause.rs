//! The first thing that is in the way of a job: a pure function of what is in the cluster.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use penstock_crds::{BatchJob, State, resolve::resolve};
use serde::Serialize;

use super::seen::{MissingSecret, Seen};

/// What is in the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Cause {
    /// What, in a sentence.
    pub(super) what: String,
    /// What shows it.
    pub(super) evidence: String,
    /// One command that helps, or that shows more.
    pub(super) command: String,
}

impl Cause {
    fn new(what: impl Into<String>, evidence: impl Into<String>, command: impl Into<String>) -> Self {
        Self { what: what.into(), evidence: evidence.into(), command: command.into() }
    }
}

/// Tells the first cause, in the order in which a job needs what there is.
pub(super) fn cause(seen: &Seen) -> Cause {
    let Seen { namespace, name, .. } = seen;
    if !seen.is_installed {
        let installed = "the API server does not know the kind BatchJob";
        return Cause::new(
            "Penstock is not installed in this cluster.",
            installed,
            "helm install penstock charts/penstock",
        );
    }
    let Some(batch_job) = &seen.batch_job else {
        let absent = format!("no BatchJob {name} in the namespace {namespace}");
        return Cause::new("There is no such job.", absent, "kubectl get batchjobs --all-namespaces");
    };
    let Some(state) = batch_job.status.as_ref().and_then(|status| status.state) else {
        return Cause::new(
            "No operator has looked at it.",
            "its status is empty",
            "kubectl get pods --all-namespaces --selector app.kubernetes.io/name=penstock",
        );
    };
    if state.is_over() {
        return over(seen, batch_job, state);
    }
    missing(seen, batch_job).or_else(|| pod(seen)).unwrap_or_else(|| told(seen, batch_job))
}

/// Something that the job refers to is not there.
fn missing(seen: &Seen, batch_job: &BatchJob) -> Option<Cause> {
    let (namespace, reference) = (&seen.namespace, &batch_job.spec.provider_ref.name);
    let Some(provider) = &seen.provider else {
        let absent = format!("no Provider {reference} in the namespace {namespace}");
        return Some(Cause::new(
            "Its Provider is missing.",
            absent,
            format!("kubectl get providers -n {namespace}"),
        ));
    };
    if let Err(error) = resolve(batch_job, provider) {
        let show = format!("kubectl get provider {reference} -n {namespace} -o yaml");
        return Some(Cause::new("It and its Provider do not fit together.", error.to_string(), show));
    }
    match seen.missing_secret.as_ref()? {
        MissingSecret { name, key: None } => Some(Cause::new(
            "The Secret with the provider's key is missing.",
            format!("no Secret {name} in the namespace {namespace}"),
            format!("kubectl create secret generic {name} -n {namespace} --from-literal=api-key=..."),
        )),
        MissingSecret { name, key: Some(key) } => Some(Cause::new(
            "The Secret of its Provider lacks a key.",
            format!("the Secret {name} has no key {key}"),
            format!(
                "kubectl patch secret {name} -n {namespace} -p '{{\"stringData\":{{\"{key}\":\"...\"}}}}'"
            ),
        )),
    }
}

/// Its pod does not start, or did not stay.
fn pod(seen: &Seen) -> Option<Cause> {
    let namespace = &seen.namespace;
    if seen.job.as_ref().and_then(|job| job.spec.as_ref()?.suspend).unwrap_or_default() {
        let show = format!("kubectl get job {} -n {namespace} -o yaml", seen.name);
        return Some(Cause::new(
            "Its Kubernetes Job is suspended, by spec.suspend or by a queue.",
            "spec.suspend of the Job is true",
            show,
        ));
    }
    let pod = seen.pod.as_ref()?;
    let describe = format!("kubectl describe pod {} -n {namespace}", pod.name_any());
    match pod.status.as_ref()?.phase.as_deref()? {
        "Pending" => {
            let evidence = unscheduled(pod).or_else(|| seen.warning.clone());
            let evidence = evidence.unwrap_or_else(|| format!("the pod {} is pending", pod.name_any()));
            Some(Cause::new("Its pod does not start.", evidence, describe))
        }
        "Failed" => {
            let ended = pod
                .status
                .as_ref()?
                .container_statuses
                .as_ref()?
                .first()?
                .state
                .as_ref()?
                .terminated
                .as_ref()?;
            let evidence = format!("the pod {} ended with exit code {}", pod.name_any(), ended.exit_code);
            let logs = format!("kubectl logs {} -n {namespace}", pod.name_any());
            Some(Cause::new("Its last pod was lost; another one takes its place.", evidence, logs))
        }
        _ => None,
    }
}

fn unscheduled(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let condition = conditions
        .iter()
        .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False")?;
    condition.message.clone()
}

/// Nothing outside is in the way: the operator knows what the executor says.
fn told(seen: &Seen, batch_job: &BatchJob) -> Cause {
    let status = batch_job.status.as_ref();
    let word = status.and_then(|status| status.reason.clone()).unwrap_or_default();
    let message = status.and_then(|status| status.message.clone()).unwrap_or_default();
    let watch = format!("kubectl get batchjob {} -n {} --watch", seen.name, seen.namespace);
    Cause::new(format!("{word}."), message, watch)
}

/// It has ended.
fn over(seen: &Seen, batch_job: &BatchJob, state: State) -> Cause {
    let status = batch_job.status.as_ref();
    let message = status.and_then(|status| status.message.clone()).unwrap_or_default();
    let output = batch_job.spec.output.uri.trim_end_matches('/');
    let has_receipt = status.is_some_and(|status| status.receipt_uri.is_some());
    let show = if has_receipt {
        format!("penstock verify {output}")
    } else {
        format!("kubectl describe batchjob {} -n {}", seen.name, seen.namespace)
    };
    let word = status.and_then(|status| status.reason.clone()).filter(|word| *word != state.to_string());
    let what =
        word.map_or_else(|| format!("It is over: {state}."), |word| format!("It is over: {state}, {word}."));
    Cause::new(what, message, show)
}

#[cfg(test)]
mod tests {
    use penstock_crds::Provider;
    use serde_json::{Value, json};

    use super::*;

    fn batch_job(status: &Value) -> BatchJob {
        serde_json::from_value(json!({
            "metadata": {"name": "nightly", "namespace": "team", "uid": "u"},
            "spec": {
                "input": {"uri": "gs://bucket/in.jsonl"}, "output": {"uri": "gs://bucket/out"},
                "providerRef": {"name": "openai"}, "model": "m",
            },
            "status": status,
        }))
        .unwrap()
    }

    fn provider() -> Provider {
        serde_json::from_value(json!({
            "metadata": {"name": "openai"}, "spec": {"kind": "OpenAI", "apiKeySecretRef": {"name": "key", "key": "api-key"}}
        }))
        .unwrap()
    }

    fn pod(status: &Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "nightly-x"}, "status": status})).unwrap()
    }

    fn seen() -> Seen {
        Seen {
            namespace: "team".to_owned(),
            name: "nightly".to_owned(),
            is_installed: true,
            batch_job: Some(batch_job(&json!({"state": "Running", "reason": "Learning", "message": "told"}))),
            provider: Some(provider()),
            ..Seen::default()
        }
    }

    #[test]
    fn the_first_thing_that_is_missing_is_told_with_a_command() {
        let ended = |code: i32| {
            pod(&json!({"phase": "Failed", "containerStatuses": [{
                "name": "penstock", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": {"terminated": {"exitCode": code}},
            }]}))
        };
        let pending = || {
            pod(&json!({"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available"}
            ]}))
        };
        let suspended = || {
            serde_json::from_value(
                json!({"metadata": {"name": "nightly"}, "spec": {"suspend": true, "template": {}}}),
            )
            .unwrap()
        };
        let table = vec![
            (Seen { is_installed: false, ..seen() }, "not installed", "helm install"),
            (Seen { batch_job: None, ..seen() }, "no such job", "kubectl get batchjobs"),
            (Seen { batch_job: Some(batch_job(&json!({}))), ..seen() }, "No operator", "kubectl get pods"),
            (Seen { provider: None, ..seen() }, "Provider is missing", "kubectl get providers -n team"),
            (
                Seen { missing_secret: Some(MissingSecret { name: "key".into(), key: None }), ..seen() },
                "Secret with the provider's key is missing",
                "kubectl create secret generic key -n team",
            ),
            (
                Seen {
                    missing_secret: Some(MissingSecret { name: "key".into(), key: Some("api-key".into()) }),
                    ..seen()
                },
                "lacks a key",
                "kubectl patch secret key -n team",
            ),
            (
                Seen { job: Some(suspended()), pod: Some(pending()), ..seen() },
                "suspended",
                "kubectl get job nightly",
            ),
            (Seen { pod: Some(pending()), ..seen() }, "does not start", "kubectl describe pod nightly-x"),
            (Seen { pod: Some(ended(137)), ..seen() }, "was lost", "kubectl logs nightly-x"),
            (seen(), "Learning", "kubectl get batchjob nightly -n team --watch"),
        ];
        for (seen, what, command) in table {
            let cause = cause(&seen);
            assert!(cause.what.contains(what) && cause.command.contains(command), "{cause:?}");
        }
    }

    #[test]
    fn the_documented_fields_are_those_of_the_program() {
        crate::documented::check_fields("why --json", &[serde_json::to_value(cause(&seen())).unwrap()]);
    }

    #[test]
    fn a_pod_that_waits_says_what_the_scheduler_or_the_kubelet_says() {
        let pending = pod(&json!({"phase": "Pending"}));
        let seen = Seen { pod: Some(pending), warning: Some("FailedMount: no secret".to_owned()), ..seen() };
        assert_eq!(cause(&seen).evidence, "FailedMount: no secret");
    }

    #[test]
    fn a_job_that_is_over_leads_to_its_receipt_whatever_has_become_of_its_provider() {
        let status = json!({"state": "Completed", "reason": "Completed", "receiptUri": "gs://bucket/out/receipt.json"});
        let seen = Seen { batch_job: Some(batch_job(&status)), provider: None, ..seen() };
        let told = cause(&seen);
        assert_eq!(
            (told.what.as_str(), told.command.as_str()),
            ("It is over: Completed.", "penstock verify gs://bucket/out")
        );
        let status = json!({"state": "Failed", "reason": "InvalidInput", "message": "none is valid"});
        let told = cause(&Seen { batch_job: Some(batch_job(&status)), ..seen });
        assert_eq!(
            (told.what.as_str(), told.evidence.as_str()),
            ("It is over: Failed, InvalidInput.", "none is valid")
        );
    }
}
