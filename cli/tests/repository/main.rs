//! Holds the repository to what its documents and manifests promise: the rooms and what they may import, one TLS
//! provider, licences and sources of dependencies, links, and the tables that scripts rely on.
//!
//! Reads `cargo metadata`, the manifests and the Markdown files; knows nothing of how the program behaves.

mod chart;
mod dependencies;
mod documents;
mod graph;
mod manifests;
mod markdown;
mod rooms;
mod steps;

use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the cli stands in a folder of the root").to_owned()
}

/// The text of a file, named from the root.
fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("failed to read {}: {error}", path.display()))
}
