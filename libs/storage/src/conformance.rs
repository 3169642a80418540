//! The laws of [`Store`], as functions that every backend's tests run.
//!
//! A law panics, saying what it saw, where a backend breaks it. Each works below a prefix of its own, in a store that
//! is empty when the first one starts, and paces itself by the backend's
//! [`mutation_interval`](Store::mutation_interval). Those of [`ambiguity`] hold for a store whose calls fail now and then,
//! too; the others want one that works.
#![expect(clippy::missing_panics_doc, reason = "each law panics where a backend breaks it, and only there")]

pub mod ambiguity;
pub mod composing;
pub mod large;
pub mod listing;
pub mod races;
pub mod reading;
pub mod writing;

use bytes::Bytes;
use futures_util::future::{BoxFuture, join_all};

use crate::generation::ObjectMeta;
use crate::name::ObjectName;
use crate::store::Store;

/// Runs every law, all at once: a backend that wants time between two writes of a name would need minutes otherwise.
pub async fn run_all(store: &dyn Store) {
    let laws: Vec<BoxFuture<'_, ()>> = vec![
        Box::pin(reading::absent_is_not_an_error(store)),
        Box::pin(reading::what_was_written_is_read_at_once(store)),
        Box::pin(reading::ranges_are_exact(store)),
        Box::pin(reading::ranges_are_exact_at_every_edge(store)),
        Box::pin(reading::an_empty_object_is_an_object(store)),
        Box::pin(reading::reads_are_pinned_to_a_generation(store)),
        Box::pin(reading::a_large_object_is_not_taken_for_a_small_one(store)),
        Box::pin(reading::odd_names_are_names(store)),
        Box::pin(writing::create_changes_nothing_that_exists(store)),
        Box::pin(writing::replace_needs_the_current_generation(store)),
        Box::pin(writing::a_generation_of_another_kind_fits_nothing(store)),
        Box::pin(writing::generations_never_repeat(store)),
        Box::pin(writing::delete_needs_the_current_generation(store)),
        Box::pin(writing::delete_all_deletes_each_that_it_can(store)),
        Box::pin(writing::upload_is_a_create(store)),
        Box::pin(writing::upload_refuses_a_source_of_another_size(store)),
        Box::pin(large::large_objects_are_whole(store)),
        Box::pin(races::of_many_creates_one_wins(store)),
        Box::pin(races::of_many_replaces_one_wins(store)),
        Box::pin(races::no_increment_by_replace_is_lost(store)),
        Box::pin(races::readers_see_only_whole_objects(store)),
        Box::pin(races::a_pinned_read_beside_a_replace_is_of_its_generation(store)),
        Box::pin(listing::lists_are_in_order_and_complete(store)),
        Box::pin(listing::a_listing_of_many_pages_has_what_was_there_when_it_began(store, 150)),
        Box::pin(composing::compose_concatenates_in_order(store)),
        Box::pin(composing::compose_is_a_create(store)),
        Box::pin(composing::announcements_change_no_content(store)),
        Box::pin(composing::compose_is_pinned_to_its_sources(store)),
        Box::pin(composing::compose_keeps_its_limit(store)),
        Box::pin(ambiguity::a_failed_write_is_whole_or_absent(store)),
        Box::pin(ambiguity::a_failed_replace_leaves_one_of_two(store)),
    ];
    join_all(laws).await;
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
