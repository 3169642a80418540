//! An executor that an operator directs: what it tells, and that it does what it is told. The provider's log is the witness.

use std::{fs, num::NonZeroU32, process::Child};

use penstock_job::{
    Directives, ExitCode, Reason, directives::RateBounds, receipt::ReceiptEnding, report::Stage,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    operator::{Answer, Operator},
    pod::{LINES, Pod, finish},
};

/// A pod, its operator, and the job file that names it.
struct Directed {
    pod: Pod,
    operator: Operator,
    job: Value,
}

impl Directed {
    /// A provider that takes a quarter of a second, for one line after the other.
    async fn new() -> Self {
        let pod = Pod::answered_after(250.0).await;
        let operator = Operator::start(Answer::Directives(Directives::default())).await;
        let mut job = pod.job("model");
        job["limits"] = json!({"max_in_flight": 1, "checkpoint_seconds": 1});
        job["metadata"] = json!({"uid": "u-1", "namespace": "team", "name": "nightly"});
        job["report"] = operator.section(&pod.token_file());
        let directed = Self { pod, operator, job };
        directed.renew_token("first");
        directed
    }

    fn renew_token(&self, token: &str) {
        fs::write(self.pod.token_file(), format!("{token}\n")).unwrap();
    }

    /// An executor that has some answers already.
    async fn begun(&self) -> Child {
        let executor = self.pod.start(&self.job);
        self.operator.hears(|report| report.outcomes.succeeded > 0).await;
        executor
    }

    fn hold(&self, hold: bool) {
        self.operator.direct(Directives { hold, ..Directives::default() });
    }

    /// Holds the executor until nothing is in flight; the number of requests then.
    async fn held(&self) -> usize {
        self.hold(true);
        let held = self.operator.hears(|report| report.stage == Stage::Held && report.exposed == 0).await;
        assert_eq!(held.hindrance.unwrap().reason, Reason::Suspended);
        self.pod.asked()
    }
}

fn terminate(executor: &Child) {
    let pid = Pid::from_raw(i32::try_from(executor.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_arrives_rises_and_ends_with_the_last_word() {
    let directed = Directed::new().await;
    let executor = directed.begun().await;
    directed.renew_token("second");
    assert_eq!(finish(executor).await, 0);
    let heard = directed.operator.heard();
    for (before, after) in heard.iter().zip(&heard[1..]) {
        let (before, after) = (&before.report, &after.report);
        assert_eq!((after.incarnation, after.started_at_ms), (before.incarnation, before.started_at_ms));
        assert!(after.sequence > before.sequence);
        assert!(after.outcomes.succeeded >= before.outcomes.succeeded);
        assert!(after.requests.sent >= before.requests.sent);
    }
    let last = &heard.last().unwrap().report;
    assert_eq!((&*last.job.uid, &*last.job.namespace, &*last.job.name), ("u-1", "team", "nightly"));
    assert_eq!((last.lines, last.outcomes.succeeded, last.requests.sent), (LINES, LINES, LINES));
    assert_eq!((last.epoch.0, last.stage), (1, Stage::Publishing));
    let tokens: Vec<_> = heard.iter().map(|heard| heard.authorization.as_deref().unwrap()).collect();
    assert_eq!((tokens[0], tokens[tokens.len() - 1]), ("Bearer first", "Bearer second"));
    let word = directed.pod.last_word();
    assert_eq!(last.last_word.as_ref(), Some(&word));
    assert_eq!((word.exit_code, word.incarnation), (ExitCode::Completed, last.incarnation));
    let receipt = word.receipt.unwrap();
    assert_eq!((receipt.ending, receipt.outcomes.succeeded), (ReceiptEnding::Completed, LINES));
    assert!(heard[..heard.len() - 1].iter().all(|heard| heard.report.last_word.is_none()));
    directed.pod.witness.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_publishes_what_was_answered_and_records_the_rest() {
    let directed = Directed::new().await;
    let executor = directed.begun().await;
    directed.operator.direct(Directives { cancel: true, ..Directives::default() });
    assert_eq!(finish(executor).await, 0);
    let (asked, word) = (directed.pod.asked() as u64, directed.pod.last_word());
    let published = directed.pod.witness.finish();
    let answered = published.count("succeeded");
    assert!(answered > 0 && answered < LINES);
    assert_eq!(answered, asked, "every answer that was asked for is published");
    assert_eq!(published.count("cancelled"), LINES - answered);
    let receipt = word.receipt.unwrap();
    assert_eq!((receipt.ending, receipt.outcomes.cancelled), (ReceiptEnding::Cancelled, LINES - answered));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_job_asks_for_nothing_keeps_its_claim_and_goes_on_where_it_was() {
    let directed = Directed::new().await;
    let executor = directed.begun().await;
    let asked = directed.held().await;
    let written = directed.pod.state().write;
    directed.operator.hears(|report| report.checkpoint_age_ms.is_some_and(|age| age < 1_000)).await;
    directed.operator.hears(|_| directed.pod.state().write > written + 1).await;
    assert_eq!(directed.pod.asked(), asked, "a held job asks for nothing");
    assert_eq!(directed.pod.state().outcomes.succeeded, asked as u64, "what was answered is stored");
    directed.hold(false);
    assert_eq!(finish(executor).await, 0);
    assert_eq!(directed.pod.asked() as u64, LINES, "nothing is asked twice");
    let published = directed.pod.witness.finish();
    assert_eq!(published.count("succeeded"), LINES);
    assert_eq!(published.receipt["epochs"], 1, "the claim was kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_job_stops_when_its_pod_is_to_go_and_is_cancelled_when_it_is_told_to() {
    let directed = Directed::new().await;
    let executor = directed.begun().await;
    let asked = directed.held().await;
    terminate(&executor);
    assert_eq!(finish(executor).await, 75);
    let word = directed.pod.last_word();
    assert_eq!((word.exit_code, word.receipt), (ExitCode::Stopped, None));
    assert_eq!(word.outcomes.succeeded, asked as u64);
    let executor = directed.pod.start(&directed.job);
    let asked = directed.held().await;
    directed.operator.direct(Directives { cancel: true, hold: true, ..Directives::default() });
    assert_eq!(finish(executor).await, 0);
    assert_eq!(directed.pod.asked(), asked);
    let published = directed.pod.witness.finish();
    assert_eq!(published.count("succeeded"), asked as u64);
    assert_eq!(published.count("cancelled"), LINES - asked as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_completion_window_ends_a_held_job_too() {
    let mut directed = Directed::new().await;
    directed.job["limits"]["deadline_seconds"] = 10.into();
    let executor = directed.begun().await;
    directed.hold(true);
    directed.operator.hears(|report| report.stage == Stage::Held).await;
    assert_eq!(finish(executor).await, 0);
    let asked = directed.pod.asked();
    let word = directed.pod.last_word();
    let published = directed.pod.witness.finish();
    assert_eq!(published.count("expired"), LINES - asked as u64);
    assert_eq!(word.receipt.unwrap().ending, ReceiptEnding::Expired);
    assert_eq!(word.reason, Some(Reason::CompletionWindowOver));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_of_the_rate_holds_as_long_as_it_is_set() {
    let directed = Directed::new().await;
    let executor = directed.begun().await;
    // One request in twenty seconds.
    let rate = RateBounds { rpm: NonZeroU32::new(3), ..RateBounds::default() };
    directed.operator.direct(Directives { rate, ..Directives::default() });
    let bounded = |rpm: Option<f64>| rpm.is_some_and(|rpm| rpm <= 3.0);
    directed.operator.hears(|report| bounded(report.gauges.effective_rpm)).await;
    let asked = directed.pod.asked();
    for _ in 0..4 {
        let report = directed.operator.hears(|_| true).await;
        assert!(bounded(report.gauges.effective_rpm));
    }
    assert!(directed.pod.asked() <= asked + 1, "four seconds are too short for two requests");
    directed.operator.direct(Directives::default());
    assert_eq!(finish(executor).await, 0);
    assert_eq!(directed.pod.witness.finish().count("succeeded"), LINES);
}
