//! Where a run shares what it learns of its rate.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use penstock_executor::{
    Participation,
    shared_state::{self, LocationError},
};
use penstock_job::{
    JobSpec,
    spec::{ProviderKind, RateMode},
};

/// The place that the user names, else the one of this machine where there is something to share.
pub(super) async fn participation(
    named: Option<&str>,
    every: Duration,
    spec: &JobSpec,
    output: &Path,
) -> Result<Option<Participation>, LocationError> {
    let opened = match named {
        Some(uri) => shared_state::open(uri, output).await?,
        // A simulated provider is gone when its test is over.
        None if spec.rate() != RateMode::Adaptive || spec.provider.kind == ProviderKind::Simulated => None,
        None => match default_folder(|name| env::var_os(name)) {
            Some(folder) => opened_or_none(&folder, output).await?,
            None => None,
        },
    };
    Ok(opened.map(|state| Participation { state, every }))
}

/// A folder that nobody asked for ends no run.
async fn opened_or_none(
    folder: &Path,
    output: &Path,
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

/// `$XDG_STATE_HOME/penstock`, else `~/.local/state/penstock`
/// (<https://specifications.freedesktop.org/basedir-spec/latest/>); `None` for a user without a home.
fn default_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("penstock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_the_users_state_folder() {
        let folder = |state: Option<&str>, home: Option<&str>| {
            let folder = default_folder(|name| match name {
                "XDG_STATE_HOME" => state.map(Into::into),
                "HOME" => home.map(Into::into),
                _ => None,
            });
            folder.map(|folder| folder.display().to_string())
        };
        assert_eq!(folder(Some("/state"), Some("/home/a")).as_deref(), Some("/state/penstock"));
        for relative in [None, Some(""), Some("state")] {
            assert_eq!(folder(relative, Some("/home/a")).as_deref(), Some("/home/a/.local/state/penstock"));
        }
        assert_eq!(folder(None, None), None);
    }
}
