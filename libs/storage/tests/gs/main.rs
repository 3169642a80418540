//! Google Cloud Storage as a store and as an input: against its double, or against the server that
//! `PENSTOCK_CONFORMANCE_GCS_REST`, `PENSTOCK_CONFORMANCE_GCS_GRPC` and `PENSTOCK_CONFORMANCE_BUCKET` name.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod bucket;
mod inputs;
mod lost_answers;
mod reads;

use std::env;

use penstock_gcs_double::StorageSettings;
use penstock_storage::conformance::{self, listing};
use penstock_storage::{GsBucket, GsSettings, GsStore, Store};

use crate::bucket::Bucket;

/// More objects than the service lists at once.
const SEVERAL_PAGES: usize = 1_100;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_keeps_every_law() {
    let Some((settings, name)) = named_server() else {
        let bucket = Bucket::start(StorageSettings::default()).await;
        return keeps_every_law(&bucket.store("a prefix/ü").await).await;
    };
    let bucket = GsBucket::connect(&settings, name).await.unwrap();
    let store =
        GsStore::open(bucket, &format!("penstock-conformance/{:016x}", fastrand::u64(..))).await.unwrap();
    keeps_every_law(&store).await;
    leave_nothing(&store).await;
}

async fn keeps_every_law(store: &GsStore) {
    conformance::run_all(store).await;
    listing::a_listing_of_many_pages_has_what_was_there_when_it_began(store, SEVERAL_PAGES).await;
}

/// The server and the bucket that the environment names. One without TLS is asked without credentials.
fn named_server() -> Option<(GsSettings, String)> {
    let endpoint = env::var("PENSTOCK_CONFORMANCE_GCS_REST").ok()?;
    let settings = GsSettings {
        anonymous: endpoint.starts_with("http://"),
        endpoint: Some(endpoint),
        grpc_endpoint: env::var("PENSTOCK_CONFORMANCE_GCS_GRPC").ok(),
        ..GsSettings::default()
    };
    let bucket = env::var("PENSTOCK_CONFORMANCE_BUCKET").expect("PENSTOCK_CONFORMANCE_BUCKET names a bucket");
    Some((settings, bucket))
}

async fn leave_nothing(store: &GsStore) {
    tokio::time::sleep(store.mutation_interval()).await;
    loop {
        let objects = store.list("", None).await.unwrap().objects;
        if objects.is_empty() {
            return;
        }
        let objects: Vec<_> = objects.into_iter().map(|meta| (meta.name, meta.generation)).collect();
        store.delete_all(&objects).await.unwrap();
    }
}
