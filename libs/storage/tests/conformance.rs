//! Every backend keeps every law of the trait.

use penstock_storage::faults::FaultyStore;
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
