//! The last word of an executor, however it ends.

use std::fs;

use penstock_job::{ExitCode, Reason, receipt::ReceiptEnding};
use serde_json::json;

use crate::pod::{LINES, Pod};

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_cannot_begin_says_why() {
    let pod = Pod::new().await;
    let mut job = pod.job("model");
    job["report"] = json!({"url": "operator"});
    assert_eq!(pod.execute_job(&job, &[], "").await, 64);
    let word = pod.last_word();
    assert_eq!((word.exit_code, word.identity, word.epoch.0), (ExitCode::Configuration, None, 0));
    assert!(word.message.contains("`report.url`"), "{}", word.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_whose_output_belongs_to_another_job_says_so() {
    let pod = Pod::new().await;
    assert_eq!(pod.execute("another", &[], "").await, 65);
    let word = pod.last_word();
    assert_eq!((word.exit_code, word.reason), (ExitCode::OutputOccupied, Some(Reason::OutputOccupied)));
    assert!(word.message.contains("`model` differs"), "{}", word.message);
    assert!(word.identity.is_some() && word.receipt.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_finds_the_job_over_says_how_it_ended() {
    let pod = Pod::new().await;
    assert_eq!(pod.execute("model", &[], "").await, 0);
    assert_eq!(pod.execute("model", &[], "").await, 0);
    let word = pod.last_word();
    assert_eq!((word.exit_code, word.requests.sent), (ExitCode::Completed, 0));
    let receipt = word.receipt.unwrap();
    assert_eq!((receipt.lines, receipt.requests.sent), (LINES, LINES));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_key_and_input_an_ending_is_published_all_the_same() {
    for (why, ending, outcome) in [
        ("cancelled", ReceiptEnding::Cancelled, "cancelled"),
        ("expired", ReceiptEnding::Expired, "expired"),
        ("abandoned", ReceiptEnding::Failed, "abandoned"),
    ] {
        let pod = Pod::new().await;
        let mut job = pod.job("model");
        job["provider"]["api_key"] = json!({"file": pod.folder.path().join("gone")});
        fs::remove_file(pod.folder.path().join("input.jsonl")).unwrap();
        assert_eq!(pod.execute_job(&job, &["--ending", why], "").await, 0, "{why}");
        assert_eq!(pod.asked(), 0);
        assert_eq!(pod.last_word().receipt.unwrap().ending, ending);
        assert_eq!(pod.witness.finish().count(outcome), LINES);
    }
}
