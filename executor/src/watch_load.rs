//! The loop that looks at the load of servers which tell it, so that a saturating one is filled and not flooded.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::{dispatch::Pacing, provider::Provider};

/// Time between two looks.
const EVERY: Duration = Duration::from_secs(2);

/// Looks until `done`. A server that does not tell its load when it is first asked is not asked again.
pub(crate) async fn watch_load(provider: Provider, pacing: Arc<Pacing>, done: CancellationToken) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut models = pacing.model_count();
    let mut silent = BTreeSet::new();
    let mut telling = BTreeSet::new();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            // The count outlives this loop, so it cannot be closed.
            _ = models.changed() => {}
            () = done.cancelled() => return,
        }
        let look = async {
            for (server, models) in servers(&provider, &pacing) {
                if silent.contains(&server) {
                    continue;
                }
                let load = match models.first() {
                    Some(model) => provider.load(model).await,
                    None => None,
                };
                match load {
                    Some(load) => {
                        telling.insert(server);
                        for model in &models {
                            pacing.saturate(model, load);
                        }
                    }
                    // One that has told it may be too busy now.
                    None if telling.contains(&server) => {}
                    None => {
                        silent.insert(server);
                    }
                }
            }
        };
        tokio::select! {
            () = look => {}
            () = done.cancelled() => return,
        }
    }
}

/// The servers that requests go to, each with its models.
fn servers(provider: &Provider, pacing: &Pacing) -> BTreeMap<String, Vec<Arc<str>>> {
    let mut servers: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for model in pacing.models() {
        if let Some(server) = provider.server(&model) {
            servers.entry(server.to_owned()).or_default().push(model);
        }
    }
    servers
}
