//! How soon a job asks its provider: after it was applied, and after its pod was lost. Measured, not judged: on a cluster
//! that does nothing else.

use std::{
    fmt::Write,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use penstock_e2e::patience::until;
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    batch_jobs::process,
    place::{Namespace, PATIENCE},
    shared::{Job, Shared},
};

/// How often each is measured.
const ROUNDS: usize = 5;
/// A request that comes sooner after its pod was killed was on its way already.
const ON_ITS_WAY: Duration = Duration::from_millis(500);

pub(crate) async fn measured(namespace: Namespace) -> String {
    let shared = Shared::start(namespace, json!({}), json!([])).await;
    let mut told = String::new();
    let mut row = |measure: &str, seconds: Vec<f64>| writeln!(told, "\n{measure}: {}", spread(seconds));
    let mut started = Vec::new();
    for round in 0..ROUNDS {
        started.push(from_apply(&shared, &format!("start-{round}")).await);
    }
    row("kubectl apply to the first request", started).unwrap();
    let mut lost = Vec::new();
    for round in 0..ROUNDS {
        lost.push(from_loss(&shared, &format!("loss-{round}")).await);
    }
    row("pod killed to the next request", lost).unwrap();
    told
}

/// Seconds from the start of `kubectl apply`.
async fn from_apply(shared: &Shared, name: &str) -> f64 {
    let job = Job { name, lines: 20 };
    shared.lay(job).await;
    let applied = now();
    shared.submit(name, json!({})).await;
    shared.succeeds(name).await;
    let first = shared.asked(name).await.first_after(applied).expect("it has asked");
    first.saturating_sub(applied).as_secs_f64()
}

/// Seconds from the end of the executor's process, the first that its job loses.
async fn from_loss(shared: &Shared, name: &str) -> f64 {
    // Some more than it may have been asked until its pod is killed.
    shared.begin(Job { name, lines: 1000 }, json!({})).await;
    shared.answered(name, 20).await;
    let pods = ["get", "pods", "--selector", &format!("job-name={name}"), "--output=json"];
    let pods: Value = serde_json::from_str(&shared.namespace.kubectl(pods).run().await.unwrap()).unwrap();
    let lost = now();
    kill_process(process(&pods["items"][0]), Signal::KILL).unwrap();
    let ask = || async {
        let next = shared.asked(name).await.first_after(lost + ON_ITS_WAY);
        next.ok_or("none has come")
    };
    let next = until("the next request", PATIENCE, ask).await.unwrap();
    shared.succeeds(name).await;
    next.saturating_sub(lost).as_secs_f64()
}

/// Since the epoch, by the clock of this machine, which its nodes share.
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

fn spread(mut seconds: Vec<f64>) -> String {
    seconds.sort_by(f64::total_cmp);
    let (least, median, most) = (seconds[0], seconds[seconds.len() / 2], seconds[seconds.len() - 1]);
    format!("{median:.1} s, the median of {} ({least:.1} to {most:.1})", seconds.len())
}
