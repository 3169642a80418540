//! A kubeconfig for each part of the cluster, and one for people.

use std::path::{Path, PathBuf};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::json;

use super::certificates;
use crate::{
    files::{self, FileError},
    layout::{API_PORT, CONTROL_PLANE, Layout},
};

/// The address of the API server.
pub fn server() -> String {
    format!("https://{CONTROL_PLANE}:{API_PORT}")
}

/// The kubeconfig of the holder of this certificate.
pub fn of(layout: &Layout, name: &str) -> PathBuf {
    layout.state(format!("kubeconfigs/{name}.json"))
}

/// Writes the kubeconfigs of these parts, and that of people. They hold everything: a file alone can be carried away.
pub fn write(layout: &Layout, names: &[&str]) -> Result<(), FileError> {
    for name in names {
        write_one(layout, name, &of(layout, name))?;
    }
    write_one(layout, "admin", &layout.kubeconfig())
}

fn write_one(layout: &Layout, name: &str, path: &Path) -> Result<(), FileError> {
    let data = |path: &Path| Ok::<_, FileError>(BASE64_STANDARD.encode(files::read(path)?));
    let certificate = certificates::certificate(layout, name);
    let content = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "penstock",
        "contexts": [{"name": "penstock", "context": {"cluster": "penstock", "user": name}}],
        "clusters": [{"name": "penstock", "cluster": {
            "server": server(),
            "certificate-authority-data": data(&certificates::authority(layout))?,
        }}],
        "users": [{"name": name, "user": {
            "client-certificate-data": data(&certificate.certificate)?,
            "client-key-data": data(&certificate.key)?,
        }}],
    });
    files::write(path, format!("{content:#}\n"))
}
