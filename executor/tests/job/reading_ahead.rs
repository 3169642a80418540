//! Parts that are read back while lines are still answered.

use std::sync::{Arc, Mutex};

use penstock_executor::{At, Job, Moment, Probe, Steps, Stop};
use penstock_job::Step;
use penstock_storage::{
    Action, FileStore,
    faults::{Call, FaultyStore},
};
use tokio::sync::watch;

use crate::scenario::{Scenario, run_within};

/// A part that every job of these tests has listed before its last lines are answered.
const FIRST: &str = "parts/00000001-00000001-r.jsonl";

/// Holds a job behind the listing of a part until the first part has been read, and does something before reconciliation.
struct HeldUntilRead {
    reads: watch::Receiver<Vec<String>>,
    before_reconciliation: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl std::fmt::Debug for HeldUntilRead {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("HeldUntilRead").finish_non_exhaustive()
    }
}

impl Probe for HeldUntilRead {
    fn at(&self, at: At<'_>) -> Option<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>> {
        match (at.step, at.moment) {
            (Step::List, Moment::After) => {
                let mut reads = self.reads.clone();
                Some(Box::pin(async move {
                    reads.wait_for(|reads| reads.iter().any(|read| read == FIRST)).await.unwrap();
                }))
            }
            (Step::Reconcile, Moment::Before) => {
                if let Some(act) = self.before_reconciliation.lock().unwrap().take() {
                    act();
                }
                None
            }
            _ => None,
        }
    }
}

/// Runs a job over a folder, with `act` between its last answer and its reconciliation. Returns what was read of parts.
async fn run_with(scenario: &mut Scenario, act: impl FnOnce() + Send + 'static) -> Vec<String> {
    let (read, reads) = watch::channel(Vec::new());
    let folder = FileStore::open(scenario.folder.path().join("out")).await.unwrap();
    let watched = FaultyStore::new(folder, move |call: &Call<'_>| {
        if call.action == Action::Read && call.object.starts_with("parts/") {
            read.send_modify(|reads| reads.push(call.object.to_owned()));
        }
        None
    });
    scenario.store = Arc::new(watched);
    scenario.validate().await;
    let held = HeldUntilRead { reads: reads.clone(), before_reconciliation: Mutex::new(Some(Box::new(act))) };
    let job = Job { steps: Steps::seen_by(Arc::new(held)), ..scenario.job().await };
    run_within(job, Stop::new()).await.unwrap();
    scenario.published().await.assert_completed();
    reads.borrow().clone()
}

#[tokio::test]
async fn a_part_that_was_read_ahead_is_not_read_again() {
    let mut scenario = Scenario::prompts(1_100).await;
    let reads = run_with(&mut scenario, || {}).await;
    let of_first = reads.iter().filter(|read| *read == FIRST).count();
    assert_eq!(of_first, 1, "{reads:?}");
}

#[tokio::test]
async fn a_part_that_is_lost_after_it_was_read_ahead_is_missed_before_the_freeze() {
    let mut scenario = Scenario::prompts(1_100).await;
    let part = scenario.folder.path().join("out").join(FIRST);
    run_with(&mut scenario, move || std::fs::remove_file(part).unwrap()).await;
    let again = scenario.requests().values().filter(|count| **count == 2).count();
    assert!(again > 0, "its lines are sent again");
}

#[tokio::test]
async fn a_part_that_is_replaced_after_it_was_read_ahead_is_not_published() {
    let mut scenario = Scenario::prompts(1_100).await;
    let part = scenario.folder.path().join("out").join(FIRST);
    let replace = move || {
        let mut records = std::fs::read(&part).unwrap();
        let middle = records.len() / 2;
        records[middle] ^= 1;
        std::fs::write(&part, records).unwrap();
    };
    run_with(&mut scenario, replace).await;
    let again = scenario.requests().values().filter(|count| **count == 2).count();
    assert!(again > 0, "its lines are sent again");
}
