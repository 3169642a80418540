//! An executor whose budget is used up, killed and started again. The provider's log is the bill.

use penstock_job::{Directives, Reason, Report};
use serde_json::json;

use crate::{
    KILLED,
    operator::{Answer, Operator},
    pod::{LINES, Pod, finish},
};

fn is_used_up(report: &Report) -> bool {
    report.hindrance.as_ref().is_some_and(|hindrance| hindrance.reason == Reason::CostCapReached)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_is_killed_at_its_budget_sends_nothing_more_until_the_budget_is_larger() {
    let pod = Pod::new().await;
    let operator = Operator::start(Answer::Directives(Directives::default())).await;
    let mut job = pod.job("model");
    job["report"] = operator.section(&pod.token_file());
    job["budget"] = json!({"tokens": 600});
    let price = json!({"input_per_million_tokens": "1", "output_per_million_tokens": "2.5"});
    job["prices"] = json!({"currency": "EUR", "models": {"model": price}});
    let mut asked = None;
    for epoch in 1..=3 {
        let mut executor = pod.start(&job);
        let report = operator.hears(|report| report.epoch.0 == epoch && is_used_up(report)).await;
        assert_eq!(*asked.get_or_insert(pod.asked()), pod.asked(), "epoch {epoch}");
        assert!(report.hindrance.unwrap().evidence.contains("of 600 tokens"));
        assert_eq!(report.cost.unwrap().currency.to_string(), "EUR");
        assert!(report.tokens.total() > 300, "earlier runs are counted: {:?}", report.tokens);
        executor.kill().unwrap();
        assert_eq!(finish(executor).await, KILLED);
    }
    assert!(pod.asked() < 30);
    job["budget"] = json!({"tokens": 1_000_000});
    assert_eq!(pod.execute_job(&job, &[], "").await, 0);
    assert_eq!(pod.asked() as u64, LINES, "each line is paid for once");
    let receipt = pod.last_word().receipt.unwrap();
    assert!(receipt.tokens.total() > 600 && receipt.cost.is_some(), "{receipt:?}");
    assert_eq!(pod.witness.finish().count("succeeded"), LINES);
}
