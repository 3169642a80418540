//! The executor's own binary, as a pod runs it: on a validated job, with a job file, and with an ending where no executor
//! was able to finish the job (T11). Checked from outside, by the witness of the crash tests.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../cli/tests/witness/mod.rs"]
#[expect(dead_code, reason = "the crash tests of `penstock` use the rest")]
mod witness;

mod budget;
mod directed;
mod last_word;
mod operator;
mod pod;
mod undirected;

use std::{collections::BTreeMap, fs};

use serde_json::json;
use witness::Contents;

use pod::{LINES, Pod};

/// SIGKILL.
const KILLED: i32 = -9;

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_before_any_executor_could_start_records_every_line() {
    let pod = Pod::new().await;
    assert_eq!(pod.execute("model", &["--ending", "cancelled"], "").await, 0);
    assert_eq!(pod.asked(), 0);
    let published = pod.witness.finish();
    assert_eq!(published.count("cancelled"), LINES);
    assert_eq!(published.receipt["ending"], "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expiry_after_the_executors_died_keeps_what_is_durable_and_asks_for_nothing() {
    let pod = Pod::new().await;
    assert_eq!(pod.execute("model", &[], "kill@send:12").await, KILLED);
    assert_eq!(pod.execute("model", &[], "kill@list").await, KILLED);
    // A new pod has an empty scratch folder.
    fs::remove_dir_all(pod.scratch()).unwrap();
    let (asked, held) = (pod.asked(), pod.witness.moment(&pod.server.log()).held.len() as u64);
    assert!(held > 0);
    for kill in ["kill@end", "kill@record-undone:3", "kill@upload", "kill@freeze", "kill@write-receipt"] {
        assert_eq!(pod.execute("model", &["--ending", "expired"], kill).await, KILLED, "{kill}");
    }
    assert_eq!(pod.execute("model", &["--ending", "expired"], "").await, 0);
    assert_eq!(pod.asked(), asked);
    let published = pod.witness.finish();
    assert_eq!((published.count("succeeded"), published.count("expired")), (held, LINES - held));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_input_is_lost_publishes_what_was_answered() {
    let pod = Pod::new().await;
    assert_eq!(pod.execute("model", &[], "kill@send:12").await, KILLED);
    fs::remove_file(pod.folder.path().join("input.jsonl")).unwrap();
    let asked = pod.asked();
    assert_eq!(pod.execute("model", &[], "").await, 0);
    assert_eq!(pod.asked(), asked);
    let published = pod.witness.finish();
    assert!(published.count("succeeded") > 0);
    assert_eq!(published.count("succeeded") + published.count("abandoned"), LINES);
    assert_eq!(published.receipt["ending"], "failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_job_over_the_same_output_is_refused_and_the_same_one_sends_nothing_twice() {
    let pod = Pod::new().await;
    assert_eq!(pod.execute("model", &[], "kill@send:12").await, KILLED);
    let files = || -> BTreeMap<String, Vec<u8>> {
        let named = |name: String| Some((name.clone(), fs::read(pod.output().join(name)).ok()?));
        pod.output().names("").into_iter().filter_map(named).collect()
    };
    let before = files();
    assert_eq!(pod.execute("another", &[], "").await, 65);
    assert_eq!(files(), before);
    assert_eq!(pod.execute("model", &[], "").await, 0);
    let (asked, published) = (pod.asked(), files());
    assert_eq!(pod.execute("model", &[], "").await, 0);
    assert_eq!(pod.execute("another", &[], "").await, 65);
    assert_eq!((pod.asked(), files()), (asked, published));
    assert_eq!(pod.witness.finish().count("succeeded"), LINES);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_gone_stops_a_job_that_asks_and_not_one_that_is_decided() {
    let pod = Pod::new().await;
    let mut keyless = pod.job("model");
    keyless["provider"]["api_key"] = json!({"file": pod.folder.path().join("gone")});
    assert_eq!(pod.execute("model", &[], "kill@send:12").await, KILLED);
    assert_eq!(pod.execute_job(&keyless, &[], "").await, 64);
    assert_eq!(pod.execute("model", &[], "kill@freeze").await, KILLED);
    assert_eq!(pod.execute_job(&keyless, &[], "kill@write-receipt").await, KILLED);
    assert_eq!(pod.execute_job(&keyless, &[], "").await, 0);
    assert_eq!(pod.witness.finish().count("succeeded"), LINES);
}
