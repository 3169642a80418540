//! The operator among many jobs: what a decision takes, how often it writes for a job and for none, and its memory.

mod pass;

use std::time::{Duration, Instant};

use futures_util::{TryStreamExt, pin_mut};
use k8s_openapi::{
    api::core::v1::{Namespace, Pod, ServiceAccount},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResourceExt, ResourceExt,
    api::PostParams,
    runtime::{
        WatchStreamExt,
        wait::{await_condition, conditions::is_crd_established},
        watcher,
    },
};
use penstock_crds::{BatchJob, Provider, state::State};
use serde_json::{Value, json};
use tokio::{
    runtime::Runtime,
    time::{sleep, timeout},
};

use crate::{
    bucket::{Bucket, NAME},
    cluster::{
        Cluster, JOBS, OWN, Operator, POD,
        audit::{Writes, since, writes},
        kubelet::{Kubelet, STAYS},
    },
    error::BenchError,
    process::Cores,
    row::{Bound, Row, Unit, grouped},
    spread::{Spread, number},
    workplace::Workplace,
};

/// Lines of each input.
pub(crate) const LINES: u64 = 3;
/// The beginning of the names of jobs that come to their end.
const ENDS: &str = "ends-";
/// The input of every job.
const INPUT: &str = "in.jsonl";
/// How long an idle cluster is watched.
const IDLE: Duration = Duration::from_mins(1);
/// How long running jobs report before memory is read.
const SETTLE: Duration = Duration::from_secs(30);
/// No phase takes longer on a busy machine.
const PATIENCE: Duration = Duration::from_mins(30);
const MEBIBYTE: f64 = 1_048_576.0;

pub(super) fn measure(place: &Workplace) -> Result<Vec<Row>, BenchError> {
    let mut rows = vec![pass::measure(place)];
    let runtime = Runtime::new()?;
    rows.extend(among_many(place, &runtime)?);
    Ok(rows)
}

fn among_many(place: &Workplace, runtime: &Runtime) -> Result<Vec<Row>, BenchError> {
    let (ending, staying) = (place.sizes.finished_jobs, place.sizes.running_jobs);
    let bucket = Bucket::start(&place.own, Cores::Both, 0, place.folder())?;
    let input = place.output(INPUT)?;
    let line = |id| format!("{{\"prompt_id\": {id}, \"prompt\": \"a\"}}\n");
    std::fs::write(&input, (0..LINES).map(line).collect::<String>())?;
    bucket.upload(&input, INPUT)?;
    let cluster = Cluster::start(place)?;
    let mut commands = cluster.commands.clone();
    let client = runtime.block_on(prepare(&cluster))?;

    let operator = cluster.operator(place, bucket.url())?;
    commands.push(operator.command.clone());
    let began = Instant::now();
    runtime.block_on(play(&client, &operator, ENDS, ending, State::Completed, Duration::ZERO))?;
    let took = began.elapsed();
    drop(operator);
    let for_jobs = writes(&cluster.audit())?;

    // The second one finds all of them when it begins: each is looked at.
    let operator = cluster.operator(place, bucket.url())?;
    runtime.block_on(async { sleep(IDLE).await });
    let for_none = since(&for_jobs, &writes(&cluster.audit())?);
    runtime.block_on(play(&client, &operator, STAYS, staying, State::Running, SETTLE))?;
    let peak = operator.process.peak_bytes()?;
    Ok(vec![
        writes_for_a_job(&for_jobs, ending, took, commands.clone()),
        writes_for_none(&for_none, ending, commands.clone()),
        memory(peak, ending, staying, commands),
    ])
}

fn writes_for_a_job(found: &Writes, jobs: u64, took: Duration, commands: Vec<String>) -> Row {
    let figure = Spread::of([number(found.values().sum()) / number(jobs)]);
    let mut details: Vec<_> = found
        .iter()
        .map(|(what, count)| format!("{what}: {:.2} a job", number(*count) / number(jobs)))
        .collect();
    details.push(format!(
        "{} jobs of {LINES} lines, each with three reports, in {:.0} s; the lease and the operator's own pod are among it",
        grouped(number(jobs)),
        took.as_secs_f64()
    ));
    Row {
        measure: "writes by the operator for a job, from apply to Completed".to_owned(),
        floor: Bound::AtMost(12.0),
        aim: Some(Bound::AtMost(8.0)),
        unit: Unit::Calls,
        figure,
        judged: figure.median,
        details,
        commands,
    }
}

fn writes_for_none(found: &Writes, jobs: u64, commands: Vec<String>) -> Row {
    let of_status = found.get("patch batchjobs/status").copied().unwrap_or_default();
    let figure = Spread::of([number(of_status)]);
    let all: Vec<_> = found.iter().map(|(what, count)| format!("{what}: {count}")).collect();
    Row {
        measure: "status writes while nothing happens".to_owned(),
        floor: Bound::AtMost(0.0),
        aim: None,
        unit: Unit::Calls,
        figure,
        judged: figure.median,
        details: vec![format!(
            "the first {} s of an operator that finds {} finished jobs; all writes: [{}]",
            IDLE.as_secs(),
            grouped(number(jobs)),
            all.join(", ")
        )],
        commands,
    }
}

fn memory(peak: u64, finished: u64, running: u64, commands: Vec<String>) -> Row {
    let figure = Spread::of([number(peak) / MEBIBYTE]);
    Row {
        measure: "peak resident memory of the operator among many jobs".to_owned(),
        floor: Bound::AtMost(128.0),
        aim: Some(Bound::AtMost(64.0)),
        unit: Unit::Mebibytes,
        figure,
        judged: figure.median,
        details: vec![format!(
            "{} finished and {} running jobs, each with its Job, pod and ConfigMap; running ones report every 10 s",
            grouped(number(finished)),
            grouped(number(running))
        )],
        commands,
    }
}

/// Installs what the operator and its jobs need.
async fn prepare(cluster: &Cluster) -> Result<Client, BenchError> {
    let client = cluster.client().await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in [BatchJob::crd(), Provider::crd()] {
        definitions.create(&PostParams::default(), &definition).await.map_err(Box::new)?;
        let name = definition.name_any();
        let established = await_condition(definitions.clone(), &name, is_crd_established());
        timeout(PATIENCE, established).await.map_err(late)?.map_err(std::io::Error::other)?;
    }
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for name in [OWN, JOBS] {
        create(&namespaces, json!({"metadata": {"name": name}})).await?;
    }
    let account = json!({"metadata": {"name": "default"}});
    create(&Api::<ServiceAccount>::namespaced(client.clone(), JOBS), account).await?;
    let own = json!({
        "metadata": {"name": POD},
        "spec": {"containers": [{"name": "operator", "image": "penstock"}]},
    });
    create(&Api::<Pod>::namespaced(client.clone(), OWN), own).await?;
    let provider = json!({
        "metadata": {"name": "gateway"},
        "spec": {"kind": "OpenAICompatible", "baseUrl": "http://gateway.invalid/v1"},
    });
    create(&Api::<Provider>::namespaced(client.clone(), JOBS), provider).await?;
    Ok(client)
}

async fn create<K>(api: &Api<K>, object: Value) -> Result<(), BenchError>
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + serde::Serialize + std::fmt::Debug,
{
    let object = serde_json::from_value(object).map_err(std::io::Error::other)?;
    api.create(&PostParams::default(), &object).await.map_err(Box::new)?;
    Ok(())
}

/// Applies so many jobs, plays their pods until all jobs have come to `state`, and for a while longer.
async fn play(
    client: &Client,
    operator: &Operator,
    prefix: &'static str,
    jobs: u64,
    state: State,
    longer: Duration,
) -> Result<(), BenchError> {
    let kubelet = begun(client, operator).await?;
    let batch_jobs: Api<BatchJob> = Api::namespaced(client.clone(), JOBS);
    let applied = async {
        for number in 0..jobs {
            let name = format!("{prefix}{number:04}");
            create(&batch_jobs, batch_job(&name)).await?;
        }
        come(&batch_jobs, prefix, jobs, state).await?;
        sleep(longer).await;
        Ok(())
    };
    tokio::select! {
        applied = timeout(PATIENCE, applied) => applied.map_err(late)?,
        ended = kubelet.run() => ended,
    }
}

/// The pods' side, once the operator serves.
async fn begun(client: &Client, operator: &Operator) -> Result<Kubelet, BenchError> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), OWN);
    let leads = |pod: Option<&Pod>| pod.is_some_and(|pod| pod.labels().contains_key("penstock.dev/leader"));
    timeout(PATIENCE, await_condition(pods, POD, leads))
        .await
        .map_err(late)?
        .map_err(std::io::Error::other)?;
    loop {
        // The authority is made a moment after the label.
        match Kubelet::new(client.clone(), &operator.progress).await {
            Err(BenchError::Kube(_)) => sleep(Duration::from_millis(100)).await,
            made => return made,
        }
    }
}

/// Completes when so many jobs have come to `state`.
async fn come(batch_jobs: &Api<BatchJob>, prefix: &str, jobs: u64, state: State) -> Result<(), BenchError> {
    let changes = watcher(batch_jobs.clone(), watcher::Config::default()).default_backoff().applied_objects();
    pin_mut!(changes);
    let mut there = std::collections::BTreeSet::new();
    while number(jobs) > number(there.len() as u64) {
        match changes.try_next().await {
            Ok(Some(job)) => {
                let is = job.status.as_ref().and_then(|status| status.state);
                if job.name_any().starts_with(prefix) && is == Some(state) {
                    there.insert(job.name_any());
                }
            }
            Ok(None) => break,
            Err(error) => tracing::warn!(%error, "the watch of jobs begins anew"),
        }
    }
    Ok(())
}

fn batch_job(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "input": {"uri": format!("gs://{NAME}/{INPUT}")},
            "output": {"uri": format!("gs://{NAME}/out/{name}")},
            "providerRef": {"name": "gateway"},
            "model": "m",
            "executor": {"serviceAccountName": "default"},
        },
    })
}

fn late(_: tokio::time::error::Elapsed) -> BenchError {
    BenchError::Patience { what: "the jobs where they are to come to" }
}
