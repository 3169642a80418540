//! The shape of this machine, as far as figures depend on it.

use std::{fmt, fs, thread};

use serde::Serialize;

/// What a reader needs to know to compare figures.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    processor: String,
    cores: usize,
    memory_mib: u64,
    kernel: String,
    /// Runnable tasks over the last minute when the measurement began: others that want the cores.
    load: String,
}

impl Machine {
    /// Looks at `/proc`; what is not there stays empty.
    pub(crate) fn look() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let memory: u64 = field(&read("/proc/meminfo"), "MemTotal")
            .and_then(|text| text.trim_end_matches("kB").trim().parse().ok())
            .unwrap_or_default();
        Self {
            processor: field(&read("/proc/cpuinfo"), "model name").unwrap_or_default(),
            cores: thread::available_parallelism().map_or(0, usize::from),
            memory_mib: memory / 1_024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load: read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned(),
        }
    }
}

fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().trim_start_matches(':').trim().to_owned())
}

impl fmt::Display for Machine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { processor, cores, memory_mib, kernel, load } = self;
        write!(
            formatter,
            "{processor}, {cores} cores, {memory_mib} MiB of memory, Linux {kernel}, load {load} at the start"
        )
    }
}
