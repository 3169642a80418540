//! Clean (F6 of the job protocol): delete what the published files were made of. Only after a receipt was read; a
//! deletion that fails is logged, and whoever looks after the output repeats it. For the same reason no deletion need be
//! durable: a crash leaves garbage.

use std::time::Duration;

use futures_util::{StreamExt, stream::FuturesOrdered};
use penstock_job::{Step, layout, state::Part};
use penstock_storage::{ErrorKind, Generation, ObjectName, StorageError};

use crate::output::{Output, jitter, object_name};

/// Calls under way at once: 18,875 parts in a bucket that answers in 20 ms were gone in 8.4 s (docs/benchmarks.md).
const AT_ONCE: usize = 64;
/// How often a call is made: a bucket refuses to delete what was written less than a second ago.
const ATTEMPTS: u32 = 3;

/// What could not be deleted.
#[derive(Debug, Default)]
struct Left {
    objects: usize,
    /// The first that was refused, or else the first that failed.
    because: Option<StorageError>,
}

/// Deletes intermediates and, unless they are to be kept, parts: first those that were listed, whose generations are
/// known, then what else there is. What is left is told once.
pub(super) async fn clean(output: &Output, parts: &[Part], keep_parts: bool) {
    let mut left = delete_below(output, layout::COMPOSE).await;
    if !keep_parts {
        let listed = parts.iter().map(|part| (object_name(&part.name), Generation::new(&*part.generation)));
        let of_listed = delete(output, layout::PARTS, listed.collect()).await;
        // What may not be deleted, or does not work, is not tried twice.
        let others = match &of_listed.because {
            None => delete_below(output, layout::PARTS).await,
            Some(_) => Left::default(),
        };
        left = left.and(of_listed).and(others);
    }
    if let Some(error) = left.because {
        tracing::warn!(
            "everything is published, but {} of the objects that it was made of are left: failed to {error}",
            left.objects
        );
    }
}

async fn delete_below(output: &Output, prefix: &str) -> Left {
    match output.list(prefix, None).await {
        Ok(objects) => {
            let objects = objects.into_iter().map(|object| (object.name, object.generation));
            delete(output, prefix, objects.collect()).await
        }
        Err(error) => Left { objects: 0, because: Some(error) },
    }
}

/// Deletes objects in their order. The first that the store refuses ends it: those behind it are younger, so that a bucket
/// which retains objects refuses them too.
async fn delete(output: &Output, prefix: &str, objects: Vec<(ObjectName, Generation)>) -> Left {
    let mut left = Left { objects: objects.len(), because: None };
    let mut chunks = objects.chunks(output.deletes_at_once());
    let mut calls = FuturesOrdered::new();
    loop {
        while calls.len() < AT_ONCE
            && let Some(some) = chunks.next()
        {
            calls.push_back(delete_some(output, prefix, some));
        }
        let Some(deleted) = calls.next().await else { break };
        match deleted {
            Ok(count) => left.objects -= count,
            Err(error) if error.kind() == ErrorKind::Refused => {
                left.because = Some(error);
                break;
            }
            Err(error) => left.because = left.because.or(Some(error)),
        }
    }
    left
}

/// How many were deleted. What was deleted by an earlier attempt is no error.
async fn delete_some(
    output: &Output,
    prefix: &str,
    objects: &[(ObjectName, Generation)],
) -> Result<usize, StorageError> {
    for attempt in 0..ATTEMPTS - 1 {
        match output.delete_all(Step::Clean, prefix, objects).await {
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                let pause = jitter(Duration::from_millis(200), Duration::from_secs(1), attempt);
                tokio::time::sleep(output.mutation_interval() + pause).await;
            }
            result => return result.map(|()| objects.len()),
        }
    }
    output.delete_all(Step::Clean, prefix, objects).await.map(|()| objects.len())
}

impl Left {
    fn and(self, other: Self) -> Self {
        Self { objects: self.objects + other.objects, because: self.because.or(other.because) }
    }
}
