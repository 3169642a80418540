//! Every backend keeps every law of the trait.
//!
//! The bucket of `s3://` is a double in this process. With `PENSTOCK_CONFORMANCE_S3` (a URL), `PENSTOCK_CONFORMANCE_BUCKET`
//! and credentials in the variables of AWS it is that bucket of that server, below a prefix of its own that stays empty
//! or is to be deleted by hand.

use std::env;

use penstock_s3_double::S3Double;
use penstock_storage::faults::{FaultyStore, seeded};
use penstock_storage::{FileStore, MemoryStore, S3Bucket, S3Key, S3Settings, S3Store, conformance};

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_of_s3_keeps_every_law() {
    let Ok(endpoint) = env::var("PENSTOCK_CONFORMANCE_S3") else {
        return keeps_every_law_in_the_double().await;
    };
    let bucket = env::var("PENSTOCK_CONFORMANCE_BUCKET").expect("PENSTOCK_CONFORMANCE_BUCKET names a bucket");
    let settings = S3Settings { endpoint: Some(endpoint), ..S3Settings::default() };
    let started = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
    let bucket = S3Bucket::connect(&settings, &bucket).unwrap();
    let store = S3Store::open(bucket, &format!("conformance/{started}")).await.unwrap();
    conformance::run_all(&store).await;
}

async fn keeps_every_law_in_the_double() {
    let double = S3Double::with_pages_of(50, &["bucket"]).await.expect("a port is free");
    let settings = S3Settings {
        endpoint: Some(double.endpoint()),
        region: Some("eu-west-1".to_owned()),
        key: Some(S3Key {
            id: double.access_key_id().to_owned(),
            secret: double.secret_access_key().to_owned(),
        }),
        deadline: None,
    };
    let bucket = S3Bucket::connect(&settings, "bucket").expect("the settings are taken");
    let store = S3Store::open(bucket, "out/of/a job").await.expect("the bucket is there");
    conformance::run_all(&store).await;
    assert_eq!(double.unfinished_uploads("bucket"), 0);
}
