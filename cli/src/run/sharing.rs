//! Where a run shares what it learns of its rate.

use std::{path::Path, time::Duration};

use penstock_executor::{
    Participation,
    shared_state::{self, LocationError},
    state_folder,
};
use penstock_job::{
    JobSpec,
    spec::{ProviderKind, RateMode},
};
use penstock_storage::Location;

/// The place that the user names, else the one of this machine where there is something to share.
pub(super) async fn participation(
    named: Option<&str>,
    every: Duration,
    spec: &JobSpec,
    output: &Location,
) -> Result<Option<Participation>, LocationError> {
    let opened = match named {
        Some(uri) => shared_state::open(uri, output).await?,
        // A simulated provider is gone when its test is over.
        None if spec.rate() != RateMode::Adaptive || spec.provider.kind == ProviderKind::Simulated => None,
        None => match state_folder() {
            Some(folder) => opened_or_none(&folder, output).await?,
            None => None,
        },
    };
    Ok(opened.map(|state| Participation { state, every }))
}

/// A folder that nobody asked for ends no run.
async fn opened_or_none(
    folder: &Path,
    output: &Location,
) -> Result<Option<std::sync::Arc<dyn shared_state::SharedState>>, LocationError> {
    match shared_state::open_folder(folder, output).await {
        Ok(state) => Ok(Some(state)),
        Err(error @ LocationError::InOutput(_)) => Err(error),
        Err(error) => {
            tracing::warn!("failed to {error}; the rate is learned without the other jobs on this key");
            Ok(None)
        }
    }
}
