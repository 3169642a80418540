//! What the machine must have before a cluster can start.

use std::path::{Path, PathBuf};

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

/// What images, logs and buckets of a whole run of the suite may take, in bytes; a node that has less than 100 MiB left
/// takes no pods.
const ROOM: u64 = 2_000_000_000;

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
    /// The nodes would take no pods.
    #[error(
        "find room below {}: {} MB are free, and the pods of the suite need {} MB: delete what is not needed, such as \
         target/debug/incremental",
        folder.display(), free / 1_000_000, ROOM / 1_000_000
    )]
    Room {
        /// Where the cluster keeps what it writes while it runs.
        folder: PathBuf,
        /// Bytes.
        free: u64,
    },
    /// The file system does not tell.
    #[error("find how much room is below {}: {source}", folder.display())]
    Unknown {
        /// Where the cluster keeps what it writes while it runs.
        folder: PathBuf,
        /// What the system says.
        source: rustix::io::Errno,
    },
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

/// Whether the pods of the suite have room on the disk of this folder, which exists.
pub fn check_room(folder: &Path) -> Result<(), RequirementError> {
    let folder = folder.to_owned();
    match rustix::fs::statvfs(&folder) {
        Ok(disk) => enough(disk.f_bavail.saturating_mul(disk.f_frsize), folder),
        Err(source) => Err(RequirementError::Unknown { folder, source }),
    }
}

fn enough(free: u64, folder: PathBuf) -> Result<(), RequirementError> {
    if free >= ROOM { Ok(()) } else { Err(RequirementError::Room { folder, free }) }
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

    #[test]
    fn a_disk_that_is_nearly_full_is_named_before_pods_are_left_waiting() {
        assert!(enough(ROOM, "/state".into()).is_ok());
        let message = enough(1_900_000_000, "/state".into()).unwrap_err().to_string();
        assert!(
            message.contains("below /state: 1900 MB are free") && message.contains("delete"),
            "{message}"
        );
    }

    #[test]
    fn a_folder_without_a_disk_is_named() {
        let message = check_room(Path::new("/no/such/folder")).unwrap_err().to_string();
        assert!(message.contains("room is below /no/such/folder"), "{message}");
    }
}
