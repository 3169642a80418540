//! Jobs with a budget: where they stop, what a restart sends, and how they go on. The provider's own log is the bill.

use std::sync::Arc;

use penstock_executor::{Board, EndingRequest, Job, RunError, Stop, run};
use penstock_job::{Reason, receipt::ReceiptEnding, spec::Budget, usage::Tokens};
use penstock_simulator::Distribution;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::scenario::{Scenario, quick, run_within};

const IN_FLIGHT: u32 = 8;
/// No answer of these tests is longer, in tokens.
const LONGEST_ANSWER: u64 = 40;

/// A job that is answered within `IN_FLIGHT` at a time, by answers of different lengths.
async fn bounded(mut scenario: Scenario) -> Scenario {
    let mut settings = quick();
    settings.output_length.tokens = Distribution::LogNormal { median: 20.0, sigma: 0.5 };
    settings.output_length.most_tokens = u32::try_from(LONGEST_ANSWER).unwrap();
    scenario.server.update(settings).unwrap();
    scenario.spec.limits.max_in_flight = IN_FLIGHT.try_into().ok();
    scenario.validate().await;
    scenario
}

fn tokens(most: u64) -> Budget {
    Budget { tokens: most.try_into().ok(), cost: None }
}

/// Tokens that the provider has counted.
fn bill(scenario: &Scenario) -> u64 {
    let answers = scenario.server.log().into_iter().filter_map(|entry| entry.answer);
    answers
        .filter(|answer| answer.status == Some(200))
        .map(|answer| u64::from(answer.input_tokens) + u64::from(answer.output_tokens))
        .sum()
}

/// A run as in a pod, which stays when its budget is used up.
async fn in_a_pod(
    scenario: &Scenario,
) -> (JoinHandle<Result<penstock_executor::Finished, RunError>>, Arc<Board>) {
    let board = Arc::new(Board::default());
    let job = Job { fail_fast: false, ..scenario.job().await };
    (tokio::spawn(run(job, Arc::clone(&board), Stop::new())), board)
}

/// What is told of a job whose budget is used up, once all that is known is stored.
async fn held(scenario: &Scenario, board: &Board) -> String {
    let held = async {
        loop {
            if let Some((Reason::CostCapReached, told)) = board.progress().reason
                && scenario.state().await.completed.len() == board.progress().outcomes.total()
            {
                return told;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), held).await.expect("the job is never held")
}

async fn killed<T>(running: JoinHandle<T>) {
    running.abort();
    let _ = running.await;
}

#[tokio::test]
async fn a_run_with_somebody_to_tell_ends_at_its_budget_and_goes_on_with_a_larger_one() {
    const MOST: u64 = 3_000;
    let mut scenario = bounded(Scenario::prompts(400).await).await;
    scenario.spec.budget = tokens(MOST);
    let RunError::BudgetReached { evidence } = scenario.run().await.unwrap_err() else {
        panic!("another error")
    };
    let used = bill(&scenario);
    assert!(evidence.contains("of 3,000 tokens"), "{evidence}");
    assert!(used <= MOST + u64::from(IN_FLIGHT) * LONGEST_ANSWER, "{used} tokens were used");
    assert!(used > MOST / 2, "it stopped far too early: {used}");
    let state = scenario.state().await;
    assert_eq!(state.usage.models.total().total(), used, "the checkpoint agrees with the bill");
    assert_eq!(state.usage.reached, Some(tokens(MOST)));

    let sent = scenario.server.log().len();
    for budget in [tokens(MOST), tokens(MOST - 1)] {
        scenario.spec.budget = budget;
        assert!(matches!(scenario.run().await.unwrap_err(), RunError::BudgetReached { .. }));
        assert_eq!(scenario.server.log().len(), sent, "nothing more is sent");
    }
    scenario.spec.budget = tokens(1_000_000);
    scenario.run().await.unwrap();
    let published = scenario.published().await;
    published.assert_completed();
    assert!(scenario.requests().values().all(|times| *times == 1), "no line is paid for twice");
    assert_eq!(published.receipt.usage.models.total().total(), bill(&scenario));
}

#[tokio::test]
async fn a_pod_stays_at_its_budget_sends_nothing_after_a_kill_and_publishes_when_cancelled() {
    const MOST: u64 = 1_500;
    let mut scenario = bounded(Scenario::openai(200).await).await;
    scenario.spec.budget = tokens(MOST);
    let (running, board) = in_a_pod(&scenario).await;
    let told = held(&scenario, &board).await;
    assert!(told.contains("of 1,500 tokens"), "{told}");
    let (used, sent) = (bill(&scenario), scenario.server.log().len());
    assert!(used <= MOST + u64::from(IN_FLIGHT) * LONGEST_ANSWER, "{used} tokens were used");
    killed(running).await;

    let (running, board) = in_a_pod(&scenario).await;
    assert_eq!(held(&scenario, &board).await, told);
    assert_eq!(board.progress().spent.tokens.total(), used, "what earlier runs took is known");
    assert_eq!(scenario.server.log().len(), sent, "nothing more is sent");
    killed(running).await;

    scenario.end(EndingRequest::cancelled()).await.unwrap();
    let published = scenario.published().await;
    assert_eq!(published.receipt.ending, ReceiptEnding::Cancelled);
    assert_eq!(published.receipt.usage.models.total().total(), used);
    assert_eq!(scenario.server.log().len(), sent);
}

#[tokio::test]
async fn the_deadline_ends_a_job_that_is_held_at_its_budget() {
    let mut scenario = bounded(Scenario::prompts(100).await).await;
    scenario.spec.budget = tokens(300);
    scenario.spec.limits.deadline_seconds = 2.try_into().ok();
    let (running, board) = in_a_pod(&scenario).await;
    held(&scenario, &board).await;
    tokio::time::timeout(std::time::Duration::from_secs(30), running)
        .await
        .expect("it is stuck")
        .unwrap()
        .unwrap();
    let published = scenario.published().await;
    assert_eq!(published.receipt.ending, ReceiptEnding::Expired);
    assert_eq!(board.progress().reason.map(|(reason, _)| reason), Some(Reason::CompletionWindowOver));
}

fn prices(models: &[&str]) -> Value {
    let price = json!({"input_per_million_tokens": "3", "output_per_million_tokens": "15.25"});
    let models: serde_json::Map<_, _> =
        models.iter().map(|model| ((*model).to_owned(), price.clone())).collect();
    json!({"currency": "EUR", "models": models})
}

#[tokio::test]
async fn under_a_budget_in_money_lines_of_a_model_without_a_price_wait_and_all_others_go() {
    let mut scenario = bounded(Scenario::openai(60).await).await;
    scenario.spec.model = None;
    scenario.spec.budget.cost = "1000".parse().ok();
    scenario.spec.prices = serde_json::from_value(prices(&["even"])).unwrap();
    scenario.validate().await;
    let RunError::BudgetReached { evidence } = scenario.run().await.unwrap_err() else {
        panic!("another error")
    };
    assert!(evidence.contains("`odd`"), "{evidence}");
    let asked = scenario.server.log();
    assert_eq!(asked.len(), 30, "every line of the other model is answered");
    assert!(asked.iter().all(|entry| entry.model.as_deref() == Some("even")));
    scenario.spec.prices = serde_json::from_value(prices(&["even", "odd"])).unwrap();
    scenario.run().await.unwrap();
    let receipt = scenario.published().await.receipt;
    let (mut input, mut output) = (0, 0);
    for answer in scenario.server.log().into_iter().filter_map(|entry| entry.answer) {
        input += u64::from(answer.input_tokens);
        output += u64::from(answer.output_tokens);
    }
    // 3 and 15.25 for a million, in millionths of a hundredth.
    let hundredths = input * 300 + output * 1_525;
    let cost = receipt.cost.unwrap();
    let expected = format!("{}.{:08}", hundredths / 100_000_000, hundredths % 100_000_000);
    assert_eq!(cost.amount, expected.parse().unwrap(), "the receipt agrees with the bill");
    assert_eq!(cost.currency.to_string(), "EUR");
}

#[tokio::test]
async fn a_budget_in_money_stops_the_job_within_what_is_in_flight() {
    let mut scenario = bounded(Scenario::prompts(400).await).await;
    scenario.spec.budget.cost = "0.02".parse().ok();
    scenario.spec.prices = serde_json::from_value(prices(&["model"])).unwrap();
    let RunError::BudgetReached { evidence } = scenario.run().await.unwrap_err() else {
        panic!("another error")
    };
    assert!(evidence.starts_with("used EUR 0.0") && evidence.contains("of 0.02"), "{evidence}");
    let usage = scenario.state().await.usage;
    assert_eq!(usage.models.total().total(), bill(&scenario));
    let most = "0.026".parse().unwrap();
    let amount = usage.cost().unwrap().amount;
    assert!(amount <= most && amount > "0.01".parse().unwrap(), "{amount}");
}

/// Tokens in published records, which are what was paid for whatever crashed in between.
async fn recorded(scenario: &Scenario) -> Tokens {
    let text = String::from_utf8(scenario.object("results_final.jsonl").await.unwrap()).unwrap();
    let mut total = Tokens::default();
    for record in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let usage = &record["response"]["body"]["usage"];
        let [input, output] =
            ["prompt_tokens", "completion_tokens"].map(|name| usage[name].as_u64().unwrap());
        total.add(Tokens { input, cached_input: 0, output });
    }
    total
}

#[tokio::test]
async fn answers_that_no_state_knows_are_counted_from_their_records() {
    for scratch_is_lost in [false, true] {
        let scenario = bounded(Scenario::openai(2_000).await).await;
        let running = tokio::spawn(run_within(scenario.job().await, Stop::new()));
        while !scenario.names().await.iter().any(|name| name.starts_with("parts/")) {
            tokio::task::yield_now().await;
        }
        killed(running).await;
        assert_eq!(
            scenario.state().await.usage.models.total(),
            Tokens::default(),
            "no checkpoint came in between"
        );
        if scratch_is_lost {
            std::fs::remove_dir_all(scenario.scratch()).unwrap();
        }
        scenario.run().await.unwrap();
        let receipt = scenario.published().await.receipt;
        assert_eq!(receipt.usage.models.total(), recorded(&scenario).await);
        let models: Vec<_> = receipt.usage.models.iter().map(|(model, _)| model.to_owned()).collect();
        assert_eq!(models, ["even", "odd"]);
    }
}
