//! The manifests of one job, as they are sent, and what must hold of every one.

use penstock_crds::resolve::{FileSource, MountedFile};
use penstock_job::state::EndingReason;
use serde_json::{Value, json};

use super::*;
use crate::{decide::Work, decide::tests::batch_job, settings::Settings, workload::Before};

fn settings() -> Settings {
    Settings {
        image: "penstock:1".to_owned(),
        requests: [("cpu".to_owned(), "250m".to_owned())].into(),
        limits: [("memory".to_owned(), "512Mi".to_owned())].into(),
        scratch_size: "4Gi".to_owned(),
        grace_period_seconds: 30,
        environment: [("STORAGE_EMULATOR_HOST".to_owned(), "http://storage:9000".to_owned())].into(),
        shared_state: Some("gs://ours/rates".to_owned()),
        ..Settings::default()
    }
}

fn made(batch_job: &BatchJob, work: Work) -> Value {
    let key = MountedFile {
        source: FileSource::Secret("openai-key".to_owned()),
        key: "api-key".to_owned(),
        path: "/var/run/secrets/provider/api-key".into(),
    };
    serde_json::to_value(job(batch_job, work, Before::default(), &[key], &settings())).unwrap()
}

#[test]
fn a_pod_may_do_nothing_and_is_given_what_it_needs() {
    let job = made(&batch_job(), Work::Execute);
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(pod["restartPolicy"], "Never");
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    let container = &pod["containers"][0];
    assert_eq!(
        container["securityContext"],
        json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true})
    );
    let volumes = pod["volumes"].as_array().unwrap();
    let token = &volumes[1]["projected"]["sources"][0]["serviceAccountToken"];
    assert_eq!(token["audience"], "penstock.dev/batch-jobs/uid-1");
    let mounts: Vec<_> =
        container["volumeMounts"].as_array().unwrap().iter().map(|mount| &mount["mountPath"]).collect();
    assert_eq!(
        mounts,
        ["/etc/penstock", "/var/run/secrets/penstock", "/scratch", "/var/run/secrets/provider"]
    );
    assert!(volumes.iter().all(|volume| {
        container["volumeMounts"].as_array().unwrap().iter().any(|mount| mount["name"] == volume["name"])
    }));
}

#[test]
fn what_a_pod_runs_follows_from_its_work() {
    let command =
        |work| made(&batch_job(), work)["spec"]["template"]["spec"]["containers"][0]["command"].clone();
    let common = [
        "--job",
        "/etc/penstock/job.json",
        "--scratch",
        "/scratch",
        "--termination-message",
        "/dev/termination-log",
    ];
    let with = |before: &[&str], after: &[&str]| json!([before, &common, after].concat());
    assert_eq!(command(Work::Validate), with(&["/penstock-operator", "intake"], &[]));
    assert_eq!(command(Work::Execute), with(&["/penstock-executor"], &["--shared-state", "gs://ours/rates"]));
    assert_eq!(
        command(Work::Finish(EndingReason::Expired)),
        with(&["/penstock-executor"], &["--ending", "expired"])
    );
}

#[test]
fn exit_codes_decide_whether_another_pod_is_tried() {
    let job = made(&batch_job(), Work::Execute);
    assert_eq!(job["spec"]["podReplacementPolicy"], "Failed");
    let rules = job["spec"]["podFailurePolicy"]["rules"].as_array().unwrap();
    let told: Vec<_> = rules.iter().map(|rule| (&rule["action"], &rule["onExitCodes"]["values"])).collect();
    assert_eq!(
        told,
        [
            (&json!("FailJob"), &json!([64, 65, 66, 70])),
            (&json!("Ignore"), &Value::Null),
            (&json!("Ignore"), &json!([75])),
        ]
    );
}

#[test]
fn a_queue_holds_the_executor_alone() {
    let mut batch_job = batch_job();
    batch_job.metadata.labels = Some([("kueue.x-k8s.io/queue-name".to_owned(), "night".to_owned())].into());
    let label = |work| made(&batch_job, work)["metadata"]["labels"]["kueue.x-k8s.io/queue-name"].clone();
    assert_eq!(label(Work::Execute), "night");
    assert_eq!(label(Work::Validate), Value::Null);
    assert_eq!(label(Work::Finish(EndingReason::Cancelled)), Value::Null);
}

#[test]
fn everything_that_is_made_belongs_to_its_batch_job() {
    let batch_job = batch_job();
    let file = serde_json::to_value(job_file(&batch_job, &penstock_job::JobSpec::default())).unwrap();
    let jobs = [Work::Validate, Work::Execute, Work::Finish(EndingReason::Expired)]
        .map(|work| made(&batch_job, work));
    for made in jobs.iter().chain([&file]) {
        let owner = &made["metadata"]["ownerReferences"][0];
        assert_eq!((&owner["uid"], &owner["controller"]), (&json!("uid-1"), &json!(true)));
        assert_eq!(
            owner["blockOwnerDeletion"], true,
            "it goes before the BatchJob that is deleted in the foreground"
        );
        assert_eq!(made["metadata"]["labels"]["penstock.dev/batch-job"], "nightly");
    }
    assert_eq!(file["immutable"], true);
}

#[test]
fn what_a_user_adds_does_not_replace_what_the_operator_knows_its_objects_by() {
    let mut batch_job = batch_job();
    batch_job.spec.executor.labels =
        [("team".to_owned(), "blue".to_owned()), (BATCH_JOB.to_owned(), "other".to_owned())].into();
    let job = made(&batch_job, Work::Execute);
    for labels in [&job["metadata"]["labels"], &job["spec"]["template"]["metadata"]["labels"]] {
        assert_eq!((&labels["team"], &labels[BATCH_JOB]), (&json!("blue"), &json!("nightly")));
    }
}
