//! An executor whose operator is away, or lies: the job goes on without it.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::StatusCode;
use penstock_job::ExitCode;
use serde_json::json;

use crate::{
    operator::{Answer, Operator},
    pod::{LINES, Pod},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_job_completes_while_nobody_hears_of_it() {
    let pod = Pod::new().await;
    let mut job = pod.job("model");
    // Nobody listens there, and there is no token.
    job["report"] = json!({"url": "http://127.0.0.1:1/report", "every_seconds": 1});
    assert_eq!(pod.execute_job(&job, &[], "").await, 0);
    job["report"]["token_file"] = json!(pod.folder.path().join("gone"));
    assert_eq!(pod.execute_job(&job, &[], "").await, 0);
    assert_eq!(pod.last_word().exit_code, ExitCode::Completed);
    assert_eq!(pod.witness.finish().count("succeeded"), LINES);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_completes_whatever_it_is_answered() {
    for answer in [
        Answer::Status(StatusCode::INTERNAL_SERVER_ERROR),
        Answer::Status(StatusCode::NO_CONTENT),
        Answer::Bytes(Bytes::from_static(b"<html>sign in</html>")),
        Answer::Bytes(Bytes::from_static(br#"{"format":"penstock.directives/9","cancel":true}"#)),
        Answer::Bytes(Bytes::from_static(br#"{"cancel":true,"hold":true}"#)),
        Answer::Bytes(Bytes::from(vec![b'['; 10 << 20])),
        Answer::Never,
    ] {
        let pod = Pod::answered_after(50.0).await;
        let operator = Operator::start(answer.clone()).await;
        let mut job = pod.job("model");
        job["report"] = operator.section(&pod.token_file());
        let began = Instant::now();
        assert_eq!(pod.execute_job(&job, &[], "").await, 0);
        assert!(began.elapsed() < Duration::from_secs(20), "{answer:?}");
        assert!(!operator.heard().is_empty(), "{answer:?}");
        assert_eq!(pod.witness.finish().count("succeeded"), LINES, "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_authority_is_not_trusted() {
    let pod = Pod::new().await;
    let (operator, other) = (Operator::start(Answer::Never).await, Operator::start(Answer::Never).await);
    let mut job = pod.job("model");
    job["report"] = operator.section(&pod.token_file());
    job["report"]["ca"] = other.section(&pod.token_file())["ca"].clone();
    assert_eq!(pod.execute_job(&job, &[], "").await, 0);
    assert!(operator.heard().is_empty());
    assert_eq!(pod.witness.finish().count("succeeded"), LINES);
}
