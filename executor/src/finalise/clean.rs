//! Clean (F6 of the job protocol): delete what the published files were made of. Only after a receipt was read; a
//! deletion that fails is logged, and whoever looks after the output repeats it. For the same reason no deletion need be
//! durable: a crash leaves garbage.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use penstock_job::{Step, layout, state::Part};
use penstock_storage::{ErrorKind, Generation, ObjectName, StorageError};

use crate::output::{Output, jitter, object_name};

/// Calls under way at once.
const AT_ONCE: usize = 16;
/// How often a call is made: a bucket refuses to delete what was written less than a second ago.
const ATTEMPTS: u32 = 3;

/// Deletes intermediates and, unless they are to be kept, parts: first those that were listed, whose generations are
/// known, then what else there is.
pub(super) async fn clean(output: &Output, parts: &[Part], keep_parts: bool) {
    delete_below(output, layout::COMPOSE).await;
    if !keep_parts {
        let listed = parts.iter().map(|part| (object_name(&part.name), Generation::new(&*part.generation)));
        delete(output, layout::PARTS, listed.collect()).await;
        delete_below(output, layout::PARTS).await;
    }
}

async fn delete_below(output: &Output, prefix: &str) {
    match output.list(prefix, None).await {
        Ok(objects) => {
            let objects = objects.into_iter().map(|object| (object.name, object.generation));
            delete(output, prefix, objects.collect()).await;
        }
        Err(error) => tracing::warn!(%error, "{prefix} is left behind"),
    }
}

async fn delete(output: &Output, prefix: &str, objects: Vec<(ObjectName, Generation)>) {
    stream::iter(objects.chunks(output.deletes_at_once()))
        .for_each_concurrent(AT_ONCE, |some| async move {
            if let Err(error) = delete_some(output, prefix, some).await {
                tracing::warn!(%error, "left behind");
            }
        })
        .await;
}

/// What was deleted by an earlier attempt is no error.
async fn delete_some(
    output: &Output,
    prefix: &str,
    objects: &[(ObjectName, Generation)],
) -> Result<(), StorageError> {
    for attempt in 0..ATTEMPTS - 1 {
        match output.delete_all(Step::Clean, prefix, objects).await {
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                let pause = jitter(Duration::from_millis(200), Duration::from_secs(1), attempt);
                tokio::time::sleep(output.mutation_interval() + pause).await;
            }
            result => return result,
        }
    }
    output.delete_all(Step::Clean, prefix, objects).await
}
