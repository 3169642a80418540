//! Storage calls that fail before they are applied, after, or land late (S1 of the job protocol).

use std::sync::Arc;

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

#[tokio::test(start_paused = true)]
async fn each_single_write_may_fail_before_or_after_it_is_applied_or_land_late() {
    for number in 0..24 {
        for fault in [Fault::Before, Fault::After, Fault::Late { calls: 2 }, Fault::Late { calls: 1_000 }] {
            let scenario = conserved(move |call| {
                (call.number == number && call.action != Action::Read).then_some(fault)
            })
            .await;
            let most = scenario.requests().values().copied().max().unwrap();
            assert!(most <= 2, "call {number}, {fault:?}: a line was sent {most} times");
            scenario.server.shutdown().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_often_fails_slows_a_job_down_and_loses_nothing() {
    for seed in 0..20 {
        let scenario = conserved(seeded(seed, 4)).await;
        scenario.server.shutdown().await;
    }
}
