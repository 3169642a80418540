//! What a cluster leaves on the machine when its processes are gone: shims, mounts, links to logs.

use std::path::{Path, PathBuf};

use rustix::{
    mount::{UnmountFlags, unmount},
    process::{Pid, Signal, kill_process},
};

use crate::{cluster::ClusterError, files, layout::Layout};

/// Where kubelets link the logs of containers, whatever they are told.
const LOG_LINKS: &str = "/var/log/containers";

/// Takes all of it away.
pub fn clear(layout: &Layout) -> Result<(), ClusterError> {
    let state = layout.state("");
    for pid in shims(&state)? {
        // It may leave at this moment.
        let _ = kill_process(pid, Signal::KILL);
    }
    let mounts = files::read(Path::new("/proc/self/mounts"))?;
    for mount in mounts_below(&state, &mounts).iter().rev() {
        // Another mount may have taken it along.
        let _ = unmount(mount, UnmountFlags::DETACH);
    }
    for link in files::entries(Path::new(LOG_LINKS))? {
        if std::fs::read_link(&link).is_ok_and(|target| target.starts_with(&state)) {
            files::remove(&link)?;
        }
    }
    Ok(())
}

/// The processes between a containerd that is gone and its containers: their command lines name its socket.
fn shims(state: &Path) -> Result<Vec<Pid>, files::FileError> {
    let ours = |path: &PathBuf| {
        let line = std::fs::read(path.join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        let mut words = line.split('\0');
        let shim = words.next().is_some_and(|program| program.contains("containerd-shim"));
        shim && words.any(|word| Path::new(word).starts_with(state))
    };
    let processes = files::entries(Path::new("/proc"))?;
    let pid = |path: PathBuf| Pid::from_raw(path.file_name()?.to_str()?.parse().ok()?);
    Ok(processes.into_iter().filter(ours).filter_map(pid).collect())
}

/// The mount points below a folder, in the order in which they were mounted.
fn mounts_below(folder: &Path, mounts: &str) -> Vec<PathBuf> {
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(1)).map(PathBuf::from);
    points.filter(|point| point.starts_with(folder)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mounts_of_the_cluster_are_found() {
        let mounts =
            "tmpfs /c/state/a tmpfs rw 0 0\nnsfs /c/state/b nsfs rw 0 0\n/dev/vda /c/stateful ext4 rw 0 0\n";
        assert_eq!(
            mounts_below(Path::new("/c/state/"), mounts),
            ["/c/state/a", "/c/state/b"].map(PathBuf::from)
        );
    }
}
