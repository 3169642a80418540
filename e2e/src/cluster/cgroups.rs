//! The cgroup of a node in every hierarchy of the machine, in version 1 or 2.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use super::node::NodeError;
use crate::{
    files::{self, FileError},
    patience::until,
};

const ROOT: &str = "/sys/fs/cgroup";

/// A hierarchy of version 1 in which a cgroup has nothing that it may use until it is told.
const TOLD: [&str; 2] = ["cpuset.cpus", "cpuset.mems"];

/// Makes the cgroup of this name.
pub fn make(name: &str) -> Result<(), FileError> {
    if is_unified(Path::new(ROOT)) {
        delegate(Path::new(ROOT))?;
        let own = Path::new(ROOT).join(name);
        files::folder(&own)?;
        return delegate(&own);
    }
    for hierarchy in hierarchies()?.into_iter().filter(|hierarchy| !is_unified(hierarchy)) {
        let own = hierarchy.join(name);
        files::folder(&own)?;
        for file in TOLD.into_iter().filter(|file| own.join(file).is_file()) {
            files::write(&own.join(file), files::read(&hierarchy.join(file))?)?;
        }
    }
    Ok(())
}

/// Kills what is left in the cgroup of this name, and removes it.
pub async fn end(name: &str) -> Result<(), NodeError> {
    let own: Vec<_> = hierarchies()?.into_iter().map(|hierarchy| hierarchy.join(name)).collect();
    let all: Vec<_> = own.iter().filter(|folder| folder.is_dir()).flat_map(|folder| inside(folder)).collect();
    for folder in &all {
        for pid in processes(folder) {
            // It may leave at this moment.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    let empty = || async {
        let left = all.iter().map(|folder| processes(folder).len()).sum::<usize>();
        if left == 0 { Ok(()) } else { Err(format!("{left} processes are still there")) }
    };
    until(&format!("the cgroup {name} to be empty"), Duration::from_secs(20), empty).await?;
    Ok(all.iter().rev().try_for_each(|folder| files::remove_empty(folder))?)
}

/// The file that only version 2 has.
const CONTROLLERS: &str = "cgroup.controllers";

/// Lets the cgroups below one of version 2 be limited.
fn delegate(cgroup: &Path) -> Result<(), FileError> {
    let controllers = files::read(&cgroup.join(CONTROLLERS))?;
    let wanted: Vec<_> = controllers.split_whitespace().map(|name| format!("+{name}")).collect();
    files::write(&cgroup.join("cgroup.subtree_control"), wanted.join(" "))
}

/// Whether this is the root of a hierarchy of version 2.
fn is_unified(hierarchy: &Path) -> bool {
    hierarchy.join(CONTROLLERS).is_file()
}

/// The root cgroup of each hierarchy. Beside those of version 1 there may be one of version 2, in which runc makes cgroups
/// as well.
fn hierarchies() -> Result<Vec<PathBuf>, FileError> {
    let root = PathBuf::from(ROOT);
    if is_unified(&root) {
        return Ok(vec![root]);
    }
    // `cpu,cpuacct` and its like have links of each single name beside them.
    let real = |path: &PathBuf| path.is_dir() && !path.is_symlink();
    Ok(files::entries(&root)?.into_iter().filter(real).collect())
}

/// A cgroup and all below it, the upper ones first.
fn inside(cgroup: &Path) -> Vec<PathBuf> {
    let mut found = vec![cgroup.to_owned()];
    let mut next = 0;
    while let Some(folder) = found.get(next) {
        // A cgroup that vanishes while it is listed has nothing in it.
        let below = files::entries(folder).unwrap_or_default();
        found.extend(below.into_iter().filter(|path| path.is_dir()));
        next += 1;
    }
    found
}

fn processes(cgroup: &Path) -> Vec<Pid> {
    let listed = files::read(&cgroup.join("cgroup.procs")).unwrap_or_default();
    listed.lines().filter_map(|line| Pid::from_raw(line.trim().parse().ok()?)).collect()
}
