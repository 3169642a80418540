//! The scenarios of the real cluster: `make e2e`. Each has a namespace and doubles of its own, and is judged by what the
//! doubles wrote down and by what was published.
//!
//! | module | owns |
//! |---|---|
//! | `place` | the cluster and the namespace of a scenario |
//! | `doubles` | provider and bucket of a scenario: started, filled, read |
//! | `witness` | what must hold after each of them, seen from outside |
//! | `aftermath` | what the cluster shows of one that failed |
//! | `shared` | several BatchJobs in one namespace, with one operator |
//! | `helm` | the operator of a namespace, installed with the chart |
//! | `chart` | the chart: what it renders, installed beside a long job, upgraded under one |
//! | `operator` | the operator and the API server in trouble: a frozen leader, one that is killed, no API server |
//! | `batch_jobs` | a BatchJob and the operator: applied again, cancelled, suspended, with either process killed |
//! | `inputs` | what a BatchJob is given: either format, no valid line, an output that is taken, the longest name |
//! | `endings` | cancelled in each state, and at the end of the completion window |
//! | `budget` | a BatchJob whose budget is used up: held, started again, cancelled |
//! | `refusals` | Providers, Secrets, inputs and outputs that are missing or wrong, and are mended |
//! | `definitions` | the kinds: manifests that the API server takes, and those that it refuses |
//! | `latency` | how soon a job asks its provider: measured on demand, not judged |
//! | `runs` | a job as a `batch/v1` Job, without an operator: whole, with its pod deleted, with its node drained |
//! | `network` | the bridge of our own cluster |
//! | `zombie` | a node whose kubelet is frozen while its pod goes on |
//!
//! With `KUBECONFIG` set they run in that cluster, with the image that `PENSTOCK_IMAGE` names; else in that of
//! `make cluster-up`. The namespace of a scenario that fails stays, so that it can be looked at. Without `--run` there is
//! nothing to do: `make test` starts no cluster.

#![expect(clippy::unwrap_used, reason = "a scenario fails by panicking")]

mod aftermath;
mod batch_jobs;
mod budget;
mod chart;
mod definitions;
mod doubles;
mod endings;
mod helm;
mod inputs;
mod latency;
mod network;
mod operator;
mod place;
mod refusals;
mod runs;
mod shared;
mod witness;
mod zombie;

use std::{future::Future, process::ExitCode, time::Instant};

use clap::Parser;
use tokio::task::{JoinError, JoinHandle};

use crate::place::{Cluster, Namespace};

/// The scenarios of the real cluster.
#[derive(Debug, Parser)]
struct Arguments {
    /// Run them: there is a cluster.
    #[arg(long)]
    run: bool,
    /// Measure instead how soon a job asks its provider (docs/benchmarks.md).
    #[arg(long, requires = "run")]
    measure: bool,
    /// Only those whose names contain one of these.
    wanted: Vec<String>,
}

/// A scenario under way.
struct Started {
    name: &'static str,
    /// What it has to tell, if it succeeds.
    told: JoinHandle<String>,
}

/// The scenarios that were asked for.
struct Suite {
    cluster: Cluster,
    wanted: Vec<String>,
    /// What is told of each that failed.
    failed: Vec<String>,
}

impl Suite {
    /// Starts a scenario in a namespace of its own, if it is wanted.
    fn start<F: Future<Output = String> + Send + 'static>(
        &self,
        name: &'static str,
        scenario: impl FnOnce(Namespace) -> F + Send + 'static,
    ) -> Option<Started> {
        if !self.wanted.is_empty() && !self.wanted.iter().any(|wanted| name.contains(wanted.as_str())) {
            return None;
        }
        let (cluster, since) = (self.cluster.clone(), Instant::now());
        let told = tokio::spawn(async move {
            let namespace = Namespace::make(&cluster, name).await;
            let told = scenario(namespace).await;
            Namespace::remove(&cluster, name).await;
            format!("{told} ({} s)", since.elapsed().as_secs())
        });
        Some(Started { name, told })
    }

    /// Waits for a scenario, and tells of it.
    async fn end(&mut self, started: Option<Started>) {
        let Some(Started { name, told }) = started else {
            return;
        };
        match told.await {
            Ok(told) => println!("{name}: {told}"),
            Err(error) => {
                let failure =
                    format!("{name}: FAILED; look at it in the namespace {name}: {}", reason(error));
                println!("{failure}");
                println!("{}", aftermath::of(&self.cluster, name).await);
                self.failed.push(failure);
            }
        }
    }

    /// Whether all went well. What did not is told once more: what follows it may be long.
    fn ended(&self) -> ExitCode {
        for failure in &self.failed {
            println!("{failure}");
        }
        if self.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Why a scenario ended early: what it panicked with.
fn reason(error: JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else { return "stopped from outside".to_owned() };
    match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => {
            panic.downcast::<&str>().map_or_else(|_| "no reason".to_owned(), |message| (*message).to_owned())
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    // Without the way there: of a run in CI the last lines are kept, and they are to be the scenarios'.
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    let Arguments { run, measure, wanted } = Arguments::parse();
    if !run {
        println!("the scenarios need a cluster: `make e2e` runs them");
        return ExitCode::SUCCESS;
    }
    let mut suite = Suite { cluster: Cluster::find().await, wanted, failed: Vec::new() };
    if measure {
        let measured = suite.start("how-soon-a-batchjob-asks", latency::measured);
        suite.end(measured).await;
        return suite.ended();
    }
    // What does not disturb a node goes at the same time; then one after the other.
    let together = [
        suite.start("a-job-runs-to-its-end", runs::whole),
        suite.start("a-deleted-pod-is-replaced", runs::pod_deleted),
        suite.start("a-batchjob-applied-twice-asks-once", batch_jobs::applied_twice),
        suite.start("a-batchjob-is-cancelled", batch_jobs::cancelled),
    ];
    for started in together {
        suite.end(started).await;
    }
    let together = [
        suite.start("a-batchjob-applied-again-in-mid-run-goes-on", batch_jobs::deleted_in_mid_run),
        suite.start("a-batchjob-is-suspended", batch_jobs::suspended),
        suite.start("an-operator-is-replaced", batch_jobs::operator_replaced),
    ];
    for started in together {
        suite.end(started).await;
    }
    let together = [
        suite.start("batchjobs-of-every-input", inputs::every_input),
        suite.start("batchjobs-end-early", endings::every_ending),
        suite.start("a-batchjob-reaches-its-budget", budget::reached),
        suite.start("manifests-are-taken-or-refused", definitions::manifests),
    ];
    for started in together {
        suite.end(started).await;
    }
    let together = [
        suite.start("batchjobs-outlast-their-providers", refusals::providers),
        suite.start("batchjobs-outlast-their-buckets", refusals::buckets),
    ];
    for started in together {
        suite.end(started).await;
    }
    let together = [
        suite.start("a-batchjob-is-deleted-in-the-foreground", batch_jobs::deleted_in_the_foreground),
        suite.start("a-queue-suspends-a-batchjob", batch_jobs::suspended_by_queue),
        suite.start("the-chart-is-taken", chart::sound),
        suite.start("a-batchjob-does-not-hold-up-helm", chart::beside_a_long_job),
    ];
    for started in together {
        suite.end(started).await;
    }
    let drained = suite.start("a-node-is-drained", runs::drained);
    suite.end(drained).await;
    if suite.cluster.is_ours() {
        let kept = suite.start("a-pod-that-goes-cuts-off-no-other", network::kept);
        suite.end(kept).await;
        let together = [
            suite.start("an-executor-is-killed-three-times", batch_jobs::executor_killed),
            suite.start("an-operator-is-killed-in-every-state", operator::killed_in_every_state),
        ];
        for started in together {
            suite.end(started).await;
        }
        let frozen = suite.start("a-leader-is-frozen", operator::leader_frozen);
        suite.end(frozen).await;
        let upgraded = suite.start("the-chart-is-upgraded-under-a-batchjob", chart::upgraded);
        suite.end(upgraded).await;
        let away = suite.start("the-api-server-is-away", operator::api_server_away);
        suite.end(away).await;
        let zombie = suite.start("a-zombie-publishes-nothing", zombie::frozen_kubelet);
        suite.end(zombie).await;
    } else {
        println!(
            "left out, since they need processes of this machine, or the definitions for themselves: \
             a-pod-that-goes-cuts-off-no-other, an-executor-is-killed-three-times, an-operator-is-killed-in-every-state, a-leader-is-frozen, \
             the-chart-is-upgraded-under-a-batchjob, the-api-server-is-away, a-zombie-publishes-nothing"
        );
    }
    suite.ended()
}
