//! Every backend keeps every law of the trait.

use penstock_storage::faults::{FaultyStore, seeded};
use penstock_storage::{FileStore, MemoryStore, conformance};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_keeps_every_law() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(root.path().join("made/by/the/first/write")).await.unwrap();
    conformance::run_all(&store).await;
}

#[tokio::test]
async fn memory_keeps_every_law() {
    conformance::run_all(&MemoryStore::new()).await;
}

#[tokio::test]
async fn a_store_whose_plan_has_no_faults_keeps_every_law() {
    conformance::run_all(&FaultyStore::new(MemoryStore::new(), |_| None)).await;
}

#[tokio::test]
async fn a_store_that_fails_keeps_the_laws_of_failed_writes() {
    for seed in 0..30 {
        let store = FaultyStore::new(MemoryStore::new(), seeded(seed, 4));
        conformance::ambiguity::a_failed_write_is_whole_or_absent(&store).await;
        conformance::ambiguity::a_failed_replace_leaves_one_of_two(&store).await;
    }
}
