//! What a folder is worth after its writers died, beside living ones in other processes, and after anybody has touched it.

#![expect(clippy::unwrap_used, reason = "what these tests are made of fails only where they do")]

mod contents;
mod cut_off;
mod folder;
mod processes;
mod records;

use penstock_storage::{FileStore, ObjectName, Store};

const LIMIT_BYTES: u64 = 1 << 20;

fn name() -> ObjectName {
    ObjectName::from_static("state.json")
}

async fn content(store: &FileStore) -> String {
    let (_, bytes) = store.get(&name(), LIMIT_BYTES).await.unwrap().unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

async fn generation(store: &FileStore) -> String {
    store.head(&name()).await.unwrap().unwrap().generation.to_string()
}
