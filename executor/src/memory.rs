//! The memory limit of this process's control group, as containers set it.

use std::fs;

/// Bytes; `None` without a limit or where control groups are not version 2.
pub(crate) fn limit() -> Option<u64> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    // The one line of version 2 is `0::<path>`.
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let limit =
        fs::read_to_string(format!("/sys/fs/cgroup{}/memory.max", path.trim_end_matches('/'))).ok()?;
    limit.trim().parse().ok()
}
