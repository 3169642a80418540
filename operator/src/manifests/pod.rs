//! The pod of a Job: what it runs, what it may do (nothing, in Kubernetes), and what it is given as files.

use std::{collections::BTreeMap, path::Path};

use k8s_openapi::{
    api::core::v1::{
        Capabilities, ConfigMapProjection, Container, EmptyDirVolumeSource, EnvVar, KeyToPath,
        PodSecurityContext, PodSpec, PodTemplateSpec, ProjectedVolumeSource, ResourceRequirements,
        SeccompProfile, SecretProjection, SecurityContext, ServiceAccountTokenProjection, Toleration, Volume,
        VolumeMount, VolumeProjection,
    },
    apimachinery::pkg::api::resource::Quantity,
};
use kube::{ResourceExt, api::ObjectMeta};
use penstock_crds::{
    BatchJob,
    batch_job::{Executor, Resources},
    names::Child,
    resolve::{FileSource, MountedFile},
};
use penstock_job::state::EndingReason;

use super::{JOB_FILE, JOB_FILE_FOLDER, TOKEN, TOKEN_FOLDER, audience, own_labels};
use crate::{decide::Work, settings::Settings, workload::CONTAINER};

/// Where answers wait until they are durable.
const SCRATCH: &str = "/scratch";
/// Where the kubelet finds the last word.
const LAST_WORD: &str = "/dev/termination-log";
/// A user and group that own nothing.
const NOBODY: i64 = 65_532;
/// How long a token is good for; the kubelet renews it in time.
const TOKEN_SECONDS: i64 = 3_600;

/// The keys and certificates that a pod is given.
pub(super) type Files = [MountedFile];

/// The template of the pods that do some work of a BatchJob.
pub(super) fn template(
    batch_job: &BatchJob,
    work: Work,
    files: &Files,
    settings: &Settings,
) -> PodTemplateSpec {
    let executor = &batch_job.spec.executor;
    let mut labels = executor.labels.clone();
    labels.extend(own_labels(batch_job));
    PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels),
            annotations: Some(executor.annotations.clone()).filter(|annotations| !annotations.is_empty()),
            ..ObjectMeta::default()
        }),
        spec: Some(pod(batch_job, work, files, settings)),
    }
}

fn pod(batch_job: &BatchJob, work: Work, files: &Files, settings: &Settings) -> PodSpec {
    let executor = &batch_job.spec.executor;
    let (mut volumes, mut mounts) =
        (vec![job_file(batch_job), token(batch_job), scratch(settings)], Vec::new());
    mounts.extend([
        mount("job-file", JOB_FILE_FOLDER, true),
        mount("token", TOKEN_FOLDER, true),
        mount("scratch", SCRATCH, false),
    ]);
    for (index, (folder, files)) in by_folder(files).into_iter().enumerate() {
        let name = format!("provider-{index}");
        mounts.push(mount(&name, &folder, true));
        volumes.push(projected(&name, files.into_iter().map(projection).collect()));
    }
    PodSpec {
        automount_service_account_token: Some(false),
        containers: vec![container(executor, work, mounts, settings)],
        enable_service_links: Some(false),
        node_selector: Some(executor.node_selector.clone()).filter(|labels| !labels.is_empty()),
        priority_class_name: settings.priority_class.clone(),
        restart_policy: Some("Never".to_owned()),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user: Some(NOBODY),
            run_as_group: Some(NOBODY),
            fs_group: Some(NOBODY),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                ..SeccompProfile::default()
            }),
            ..PodSecurityContext::default()
        }),
        service_account_name: executor.service_account_name.clone(),
        termination_grace_period_seconds: Some(settings.grace_period_seconds),
        tolerations: Some(executor.tolerations.iter().map(toleration).collect::<Vec<_>>())
            .filter(|tolerations| !tolerations.is_empty()),
        volumes: Some(volumes),
        ..PodSpec::default()
    }
}

fn container(executor: &Executor, work: Work, mounts: Vec<VolumeMount>, settings: &Settings) -> Container {
    let environment = settings.environment.iter().map(|(name, value)| EnvVar {
        name: name.clone(),
        value: Some(value.clone()),
        ..EnvVar::default()
    });
    Container {
        name: CONTAINER.to_owned(),
        image: Some(settings.image.clone()),
        image_pull_policy: settings.image_pull_policy.clone(),
        command: Some(command(work, settings)),
        env: Some(environment.collect::<Vec<_>>()).filter(|environment| !environment.is_empty()),
        resources: Some(resources(executor.resources.as_ref(), settings)),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            read_only_root_filesystem: Some(true),
            capabilities: Some(Capabilities {
                drop: Some(vec!["ALL".to_owned()]),
                ..Capabilities::default()
            }),
            ..SecurityContext::default()
        }),
        termination_message_path: Some(LAST_WORD.to_owned()),
        // A process that dies without a word leaves the end of its log.
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        volume_mounts: Some(mounts),
        ..Container::default()
    }
}

fn command(work: Work, settings: &Settings) -> Vec<String> {
    let job = format!("{JOB_FILE_FOLDER}/{JOB_FILE}");
    let program = match work {
        Work::Validate => ["/penstock-operator", "intake"].as_slice(),
        Work::Execute | Work::Finish(_) => &["/penstock-executor"],
    };
    let mut words = program.to_vec();
    words.extend(["--job", &job, "--scratch", SCRATCH, "--termination-message", LAST_WORD]);
    match (work, &settings.shared_state) {
        (Work::Execute, Some(shared_state)) => words.extend(["--shared-state", shared_state]),
        (Work::Finish(ending), _) => words.extend(["--ending", ending_word(ending)]),
        _ => {}
    }
    words.into_iter().map(str::to_owned).collect()
}

fn ending_word(ending: EndingReason) -> &'static str {
    match ending {
        EndingReason::Cancelled => "cancelled",
        EndingReason::Expired => "expired",
        EndingReason::Abandoned => "abandoned",
    }
}

fn resources(own: Option<&Resources>, settings: &Settings) -> ResourceRequirements {
    let quantities = |own: Option<BTreeMap<String, String>>, usual: &BTreeMap<String, String>| {
        let chosen = own.unwrap_or_else(|| usual.clone());
        Some(chosen.into_iter().map(|(name, amount)| (name, Quantity(amount))).collect::<BTreeMap<_, _>>())
            .filter(|chosen| !chosen.is_empty())
    };
    let texts = |own: &BTreeMap<String, penstock_crds::quantity::Quantity>| {
        own.iter().map(|(name, amount)| (name.clone(), amount.0.clone())).collect()
    };
    ResourceRequirements {
        requests: quantities(own.map(|own| texts(&own.requests)), &settings.requests),
        limits: quantities(own.map(|own| texts(&own.limits)), &settings.limits),
        ..ResourceRequirements::default()
    }
}

fn job_file(batch_job: &BatchJob) -> Volume {
    let projection = VolumeProjection {
        config_map: Some(ConfigMapProjection {
            name: Child::JobFile.name(&batch_job.name_any()),
            ..ConfigMapProjection::default()
        }),
        ..VolumeProjection::default()
    };
    projected("job-file", vec![projection])
}

fn token(batch_job: &BatchJob) -> Volume {
    let projection = VolumeProjection {
        service_account_token: Some(ServiceAccountTokenProjection {
            audience: Some(audience(&batch_job.uid().unwrap_or_default())),
            expiration_seconds: Some(TOKEN_SECONDS),
            path: TOKEN.to_owned(),
        }),
        ..VolumeProjection::default()
    };
    projected("token", vec![projection])
}

fn scratch(settings: &Settings) -> Volume {
    Volume {
        name: "scratch".to_owned(),
        empty_dir: Some(EmptyDirVolumeSource {
            size_limit: Some(Quantity(settings.scratch_size.clone())),
            ..EmptyDirVolumeSource::default()
        }),
        ..Volume::default()
    }
}

/// Files by the folder that they are in: each folder is one volume.
fn by_folder(files: &Files) -> BTreeMap<String, Vec<&MountedFile>> {
    let mut folders: BTreeMap<String, Vec<&MountedFile>> = BTreeMap::new();
    for file in files {
        let folder = file.path.parent().unwrap_or(Path::new("/")).display().to_string();
        folders.entry(folder).or_default().push(file);
    }
    folders
}

fn projection(file: &MountedFile) -> VolumeProjection {
    let path = file.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let items = Some(vec![KeyToPath { key: file.key.clone(), path, mode: None }]);
    match &file.source {
        FileSource::Secret(name) => VolumeProjection {
            secret: Some(SecretProjection { name: name.clone(), items, optional: None }),
            ..VolumeProjection::default()
        },
        FileSource::ConfigMap(name) => VolumeProjection {
            config_map: Some(ConfigMapProjection { name: name.clone(), items, optional: None }),
            ..VolumeProjection::default()
        },
    }
}

fn projected(name: &str, sources: Vec<VolumeProjection>) -> Volume {
    Volume {
        name: name.to_owned(),
        projected: Some(ProjectedVolumeSource { sources: Some(sources), ..ProjectedVolumeSource::default() }),
        ..Volume::default()
    }
}

fn mount(name: &str, path: &str, read_only: bool) -> VolumeMount {
    VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        read_only: Some(read_only),
        ..VolumeMount::default()
    }
}

fn toleration(toleration: &penstock_crds::batch_job::Toleration) -> Toleration {
    let word = |value: &dyn std::fmt::Debug| Some(format!("{value:?}"));
    Toleration {
        key: toleration.key.clone(),
        operator: word(&toleration.operator),
        value: toleration.value.clone(),
        effect: toleration.effect.as_ref().and_then(|effect| word(effect)),
        toleration_seconds: toleration.toleration_seconds,
    }
}
