//! Composing with the limit that the service really has: 32 sources of one object.

use std::collections::BTreeMap;

use futures_util::{StreamExt, TryStreamExt, stream};
use penstock_gcs_double::Operation;
use penstock_storage::{GsBucket, GsSettings, GsStore, ObjectName, Store};
use serde_json::{Value, json};

use crate::{outside::BUCKET, place::Place};

/// Lines of the job, each of which gets a part of its own: 63 intermediates, 2 of these, the published file.
const LINES: usize = 2_000;
const COMPOSED: usize = 63 + 2 + 1;

#[tokio::test(flavor = "multi_thread")]
async fn parts_by_the_thousand_are_composed_level_by_level_and_not_one_byte_is_downloaded() {
    let place = Place::new(LINES, 1.0).await;
    // The second run lists what the first one has made since its last checkpoint.
    for _ in 0..2 {
        let mut run = place.run();
        run.env("PENSTOCK_INJECT", "kill-before@freeze");
        place.say(run).await;
    }
    let settings =
        GsSettings { endpoint: Some(place.storage.url()), anonymous: true, ..GsSettings::default() };
    let bucket = GsBucket::connect(&settings, BUCKET).await.unwrap();
    split(&place, &GsStore::open(bucket, "out").await.unwrap()).await;

    let before = place.storage.log().len();
    place.say(place.run()).await.with(0);
    let log = place.storage.log();
    let composes =
        log[before..].iter().filter(|entry| entry.operation == Operation::Compose && entry.applied);
    assert_eq!(composes.count(), COMPOSED);
    let first = log.iter().position(|entry| entry.operation == Operation::Compose).unwrap();
    let contents = |name: &str| name.starts_with("out/parts/") || name.starts_with("out/compose/");
    let downloads =
        log[first..].iter().filter(|entry| entry.operation == Operation::Read && contents(&entry.object));
    assert_eq!(downloads.map(|entry| entry.sent_bytes).sum::<u64>(), 0);
    let left = place.names().await;
    assert!(!left.iter().any(|name| name.starts_with("parts/") || name.starts_with("compose/")), "{left:?}");
    assert_eq!(place.finish().await.count("succeeded"), LINES as u64);
}

/// Lists each record of the listed parts as a part by itself.
async fn split(place: &Place, store: &GsStore) {
    let name = ObjectName::from_static("state.json");
    let (meta, state) = store.get(&name, 1 << 20).await.unwrap().unwrap();
    let mut state: Value = serde_json::from_slice(&state).unwrap();
    let contents = place.contents();
    let mut records = BTreeMap::new();
    for part in state["parts"].as_array().unwrap() {
        let original = part[0].as_str().unwrap();
        place.witness.expect_damage(original);
        for record in contents.read(original).unwrap().split_inclusive(|byte| *byte == b'\n') {
            let sequence = 10_000 + records.len();
            let epoch = original.rsplit('/').next().unwrap().split('-').next().unwrap();
            records.insert(format!("parts/{epoch}-{sequence:08}-r.jsonl"), record.to_vec());
        }
    }
    assert_eq!(records.len(), LINES);
    let rows: Vec<Value> = stream::iter(records)
        .map(async |(name, record)| {
            let (size, checksum) = (record.len(), format!("{:08x}", crc32c::crc32c(&record)));
            let made = store.create(&ObjectName::parse(name.clone()).unwrap(), record.into()).await?;
            Ok::<_, penstock_storage::StorageError>(json!([
                name,
                made.generation.as_str(),
                1,
                size,
                checksum
            ]))
        })
        .buffered(32)
        .try_collect()
        .await
        .unwrap();
    state["parts"] = rows.into();
    state["write"] = Value::from(state["write"].as_u64().unwrap() + 1);
    place
        .when_it_may_change(async || store.replace(&name, state.to_string().into(), &meta.generation).await)
        .await;
}
