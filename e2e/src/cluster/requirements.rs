//! What the machine must have before a cluster can start.

use std::path::Path;

use thiserror::Error;

/// A program or file of the machine, and the Debian package that brings it.
#[derive(Debug, PartialEq, Eq)]
struct Requirement {
    file: &'static str,
    package: &'static str,
}

const REQUIREMENTS: [Requirement; 9] = [
    Requirement { file: "containerd", package: "containerd" },
    Requirement { file: "runc", package: "runc" },
    Requirement { file: super::node::PLUGINS, package: "containernetworking-plugins" },
    Requirement { file: "buildah", package: "buildah" },
    Requirement { file: "etcd", package: "etcd-server" },
    Requirement { file: "iptables", package: "iptables" },
    Requirement { file: "conntrack", package: "conntrack" },
    Requirement { file: "ip", package: "iproute2" },
    Requirement { file: "cc", package: "build-essential" },
];

/// What is missing.
#[derive(Debug, Error)]
pub enum RequirementError {
    /// Mounts, interfaces and cgroups are made.
    #[error("start a cluster as this user: run it as root, or set KUBECONFIG to a cluster that is there")]
    NotRoot,
    /// Debian has it.
    #[error("find {}: run `apt-get install --no-install-recommends {}`", packages.join(", "), packages.join(" "))]
    Packages {
        /// Their names.
        packages: Vec<&'static str>,
    },
    /// Kubernetes is built here.
    #[error("find go: install Go 1.26 or newer (https://go.dev/dl), which builds Kubernetes here")]
    Go,
}

/// Whether a cluster can be started here; everything that is missing in one message.
pub fn check() -> Result<(), RequirementError> {
    if !rustix::process::geteuid().is_root() {
        return Err(RequirementError::NotRoot);
    }
    let missing = REQUIREMENTS.iter().filter(|requirement| !is_there(requirement.file));
    let packages: Vec<_> = missing.map(|requirement| requirement.package).collect();
    if !packages.is_empty() {
        return Err(RequirementError::Packages { packages });
    }
    if is_there("go") { Ok(()) } else { Err(RequirementError::Go) }
}

/// Whether a path exists, or a program is in a folder of `PATH`.
fn is_there(file: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(file).exists())
        || Path::new(file).is_absolute() && Path::new(file).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_looked_up_in_the_path_and_files_where_they_stand() {
        assert!(is_there("sh") && is_there("/proc/self/stat"));
        assert!(!is_there("no-such-program") && !is_there("/no/such/file"));
    }
}
