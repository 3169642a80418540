//! How many files and connections this process may have open. Each request in flight over HTTP/1 takes one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What is left for everything that is no connection to a provider.
const OTHER_FILES: u64 = 256;

/// Lets this process open as many files as its administrator allows. Many systems begin with 1,024 of them, for the sake
/// of programs that count with them.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::debug!(%error, "the limit on open files stays as it is");
    }
}

/// Connections to a provider that may be open; `None` without a limit.
pub(crate) fn connections() -> Option<u64> {
    Some(getrlimit(Resource::Nofile).current?.saturating_sub(OTHER_FILES))
}
