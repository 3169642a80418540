//! The laws of [`Store`], as functions that every backend's tests run.
//!
//! A law panics, saying what it saw, where a backend breaks it. Each works below a prefix of its own, in a store that
//! is empty when the first one starts, and paces itself by the backend's
//! [`mutation_interval`](Store::mutation_interval).
#![expect(clippy::missing_panics_doc, reason = "each law panics where a backend breaks it, and only there")]

pub mod composing;
pub mod listing;
pub mod races;
pub mod reading;
pub mod writing;

use bytes::Bytes;

use crate::generation::ObjectMeta;
use crate::name::ObjectName;
use crate::store::Store;

/// Runs every law, one after the other.
pub async fn run_all(store: &dyn Store) {
    reading::absent_is_not_an_error(store).await;
    reading::what_was_written_is_read_at_once(store).await;
    reading::ranges_are_exact(store).await;
    reading::reads_are_pinned_to_a_generation(store).await;
    reading::a_large_object_is_not_taken_for_a_small_one(store).await;
    reading::odd_names_are_names(store).await;
    writing::create_changes_nothing_that_exists(store).await;
    writing::replace_needs_the_current_generation(store).await;
    writing::generations_never_repeat(store).await;
    writing::delete_needs_the_current_generation(store).await;
    writing::delete_all_deletes_each_that_it_can(store).await;
    writing::upload_is_a_create(store).await;
    writing::upload_refuses_a_source_of_another_size(store).await;
    races::of_many_creates_one_wins(store).await;
    races::no_increment_by_replace_is_lost(store).await;
    races::readers_see_only_whole_objects(store).await;
    listing::lists_are_in_order_and_complete(store).await;
    composing::compose_concatenates_in_order(store).await;
    composing::compose_is_a_create(store).await;
    composing::announcements_change_no_content(store).await;
    composing::compose_is_pinned_to_its_sources(store).await;
    composing::compose_keeps_its_limit(store).await;
}

/// A cap that no object of these laws reaches.
const LIMIT_BYTES: u64 = 1 << 20;

fn name(name: &str) -> ObjectName {
    ObjectName::parse(name).expect("invariant: the laws use good names")
}

async fn create(store: &dyn Store, at: &ObjectName, content: impl Into<Bytes>) -> ObjectMeta {
    store.create(at, content.into()).await.expect("a new object is created")
}

async fn content(store: &dyn Store, at: &ObjectName) -> Option<Bytes> {
    store.get(at, LIMIT_BYTES).await.expect("an object or its absence is read").map(|(_, content)| content)
}

/// Waits until the object written last may be written again.
async fn pace(store: &dyn Store) {
    let interval = store.mutation_interval();
    if !interval.is_zero() {
        tokio::time::sleep(interval).await;
    }
}
