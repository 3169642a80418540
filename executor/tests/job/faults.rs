//! Storage calls that fail before they are applied, after, or land late (S1 of the job protocol).

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use futures_util::future::join_all;
use penstock_executor::{Finished, Stop};
use penstock_storage::{
    Action, MemoryStore,
    faults::{Call, Fault, FaultyStore, seeded},
};

use crate::scenario::{Scenario, run_within};

/// Runs a small job whose store goes wrong as `plan` says, then a last undisturbed one, and checks conservation.
async fn conserved(plan: impl Fn(&Call<'_>) -> Option<Fault> + Send + Sync + 'static) -> Scenario {
    let memory = MemoryStore::new();
    let mut scenario = Scenario::prompts(30).await;
    scenario.store = Arc::new(memory.clone());
    scenario.validate().await;
    let faulty = Arc::new(FaultyStore::new(memory, plan));
    let first = run_within(scenario.job_over(faulty.clone()).await, Stop::new()).await;
    faulty.land().await;
    let second = scenario.run().await.unwrap();
    assert!(matches!(second, Finished::Published { .. }), "{first:?}");
    scenario.published().await.assert_completed();
    scenario
}

#[tokio::test(flavor = "multi_thread")]
async fn each_single_write_may_fail_before_or_after_it_is_applied_or_land_late() {
    let faults = [Fault::Before, Fault::After, Fault::Late { calls: 2 }, Fault::Late { calls: 1_000 }];
    let jobs = faults.into_iter().flat_map(|fault| (0..24).map(move |number| (fault, number)));
    let jobs = jobs.map(|(fault, number)| async move {
        let fails = move |call: &Call<'_>| call.number == number && call.action != Action::Read;
        let scenario = conserved(move |call| fails(call).then_some(fault)).await;
        let most = scenario.requests().values().copied().max().unwrap();
        assert!(most <= 2, "call {number}, {fault:?}: a line was sent {most} times");
        scenario.server.shutdown().await;
    });
    join_all(jobs).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_often_fails_slows_a_job_down_and_loses_nothing() {
    join_all((0..20).map(|seed| async move {
        let scenario = conserved(seeded(seed, 4)).await;
        scenario.server.shutdown().await;
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_whose_names_change_seldom_is_asked_no_more_often_and_left_clean() {
    let memory = MemoryStore::changing_once_in(Duration::from_millis(500));
    let mut scenario = Scenario::prompts(30).await;
    scenario.store = Arc::new(memory.clone());
    scenario.validate().await;
    assert!(matches!(scenario.run().await.unwrap(), Finished::Published { .. }));
    scenario.published().await.assert_completed();
    // A part may be deleted too soon after it was written, and is then deleted again.
    let too_soon: Vec<_> = memory.too_soon().into_iter().filter(|name| !name.starts_with("parts/")).collect();
    assert_eq!(too_soon, Vec::<String>::new());
    let left = scenario.names().await;
    assert!(!left.iter().any(|name| name.starts_with("parts/")), "{left:?}");
    scenario.server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_refuses_writes_before_the_claim_ends_the_run_with_its_reason() {
    let memory = MemoryStore::new();
    let mut scenario = Scenario::prompts(3).await;
    scenario.store = Arc::new(memory.clone());
    scenario.validate().await;
    let full = FaultyStore::new(memory, |call| (call.action == Action::Create).then_some(Fault::Refused));
    let error = run_within(scenario.job_over(Arc::new(full)).await, Stop::new()).await.unwrap_err();
    assert_eq!(error.exit_code(), penstock_job::ExitCode::Configuration, "{error}");
    assert!(scenario.requests().is_empty());
    scenario.run().await.unwrap();
    scenario.published().await.assert_completed();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_refuses_parts_for_a_while_costs_no_answer() {
    let memory = MemoryStore::new();
    let mut scenario = Scenario::prompts(600).await;
    scenario.store = Arc::new(memory.clone());
    scenario.validate().await;
    // The first upload is refused; it is tried again ten seconds later.
    let refusals = AtomicU32::new(1);
    let full = FaultyStore::new(memory, move |call| {
        let refuse = call.object.starts_with("parts/")
            && call.action == Action::Create
            && refusals.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
        refuse.then_some(Fault::Refused)
    });
    run_within(scenario.job_over(Arc::new(full)).await, Stop::new()).await.unwrap();
    scenario.published().await.assert_completed();
    assert_eq!(
        scenario.requests().values().copied().max(),
        Some(1),
        "answers are kept while the store refuses"
    );
}
