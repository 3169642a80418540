//! Clean (F6 of the job protocol): delete what the published files were made of. Only after a receipt was read; a
//! deletion that fails is logged, and whoever looks after the output repeats it. For the same reason no deletion need be
//! durable: a crash leaves garbage.

use futures_util::{StreamExt, stream};
use penstock_job::{Step, layout};

use crate::output::Output;

/// Calls under way at once.
const AT_ONCE: usize = 16;

/// Deletes intermediates and, unless they are to be kept, parts.
pub(super) async fn clean(output: &Output, keep_parts: bool) {
    delete_below(output, layout::COMPOSE).await;
    if !keep_parts {
        delete_below(output, layout::PARTS).await;
    }
}

async fn delete_below(output: &Output, prefix: &str) {
    let objects = match output.list(prefix, None).await {
        Ok(objects) => objects,
        Err(error) => return tracing::warn!(%error, "{prefix} is left behind"),
    };
    let objects: Vec<_> = objects.into_iter().map(|object| (object.name, object.generation)).collect();
    stream::iter(objects.chunks(output.deletes_at_once()))
        .for_each_concurrent(AT_ONCE, |some| async move {
            if let Err(error) = output.delete_all(Step::Clean, prefix, some).await {
                tracing::warn!(%error, "left behind");
            }
        })
        .await;
}
