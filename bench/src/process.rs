//! Other programs: on which cores they run, how a reader would type them, and what they used.

use std::{
    fmt,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use wait4::{ResUse, Wait4};

use crate::{error::BenchError, patience};

/// Bytes of a failed program's stderr that are shown.
const LAST_WORDS: usize = 600;

/// The cores that a process may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cores {
    /// Core 0: what is measured against.
    First,
    /// Core 1: what is measured.
    Second,
    /// Cores 0 and 1.
    Both,
}

impl Cores {
    const fn list(self) -> &'static str {
        match self {
            Self::First => "0",
            Self::Second => "1",
            Self::Both => "0,1",
        }
    }
}

/// A program with its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    cores: Cores,
    variables: Vec<(&'static str, String)>,
    program: PathBuf,
    arguments: Vec<String>,
}

impl Invocation {
    pub(crate) fn new<'a>(
        cores: Cores,
        program: &Path,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let arguments = arguments.into_iter().map(str::to_owned).collect();
        Self { cores, variables: Vec::new(), program: program.to_owned(), arguments }
    }

    /// With more arguments.
    pub(crate) fn with<'a>(mut self, arguments: impl IntoIterator<Item = &'a str>) -> Self {
        self.arguments.extend(arguments.into_iter().map(str::to_owned));
        self
    }

    /// With an environment variable.
    pub(crate) fn variable(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    /// The command, ready to be given its streams.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", self.cores.list()]).arg(&self.program).args(&self.arguments);
        command.envs(self.variables.iter().map(|(name, value)| (name, value))).stdin(Stdio::null());
        command
    }

    /// Starts it; what it says on stdout is dropped, and on stderr kept in the file `said`.
    pub(crate) fn start(&self, said: &Path) -> Result<Running, BenchError> {
        self.start_with(Stdio::null(), said)
    }

    /// Starts it with its stdout to be read.
    pub(crate) fn start_heard(&self, said: &Path) -> Result<(Running, ChildStdout), BenchError> {
        let mut running = self.start_with(Stdio::piped(), said)?;
        let stdout = running.child.as_mut().and_then(|child| child.stdout.take());
        Ok((running, stdout.expect("invariant: stdout was asked for")))
    }

    fn start_with(&self, stdout: Stdio, said: &Path) -> Result<Running, BenchError> {
        let file = File::create(said).map_err(|source| BenchError::File { path: said.to_owned(), source })?;
        let (begun, begun_at) = (Instant::now(), since_epoch());
        let child = self.command().stdout(stdout).stderr(file).spawn();
        let child = child.map_err(|source| BenchError::Start { command: self.to_string(), source })?;
        Ok(Running { child: Some(child), command: self.to_string(), said: said.to_owned(), begun, begun_at })
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, said: &Path) -> Result<Used, BenchError> {
        self.start(said)?.finish()
    }
}

/// As one would type it; paths below the working folder are shown from there.
impl fmt::Display for Invocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.variables {
            write!(formatter, "{name}={value} ")?;
        }
        let here = std::env::current_dir().unwrap_or_default();
        let program = self.program.strip_prefix(&here).unwrap_or(&self.program);
        write!(formatter, "taskset --cpu-list {} {}", self.cores.list(), program.display())?;
        for argument in &self.arguments {
            let path = Path::new(argument).strip_prefix(&here);
            write!(formatter, " {}", path.unwrap_or(Path::new(argument)).display())?;
        }
        Ok(())
    }
}

/// What a process used until its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used {
    /// From its start to its end.
    pub(crate) wall: Duration,
    /// On any core, in user and kernel.
    pub(crate) busy: Duration,
    /// The most resident memory at any moment, in bytes.
    pub(crate) peak_bytes: u64,
}

/// A started process; killed when dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Option<Child>,
    command: String,
    said: PathBuf,
    begun: Instant,
    /// When it was started, since the epoch.
    pub(crate) begun_at: Duration,
}

impl Running {
    /// Waits until `condition` holds; it must do so before the process ends.
    pub(crate) fn wait_for(
        &mut self,
        what: &'static str,
        mut condition: impl FnMut() -> Result<bool, BenchError>,
    ) -> Result<(), BenchError> {
        let mut holds = false;
        patience::wait_for(what, || {
            // In this order: the process may do what is awaited, and end, between the two looks.
            let is_over = self.stat()?.is_over;
            holds = condition()?;
            Ok(holds || is_over)
        })?;
        if holds {
            return Ok(());
        }
        let status = self.reap()?.status;
        Err(self.ended(status))
    }

    /// How long it has been on cores so far, all its threads together, in hundredths of a second.
    pub(crate) fn busy(&self) -> Result<Duration, BenchError> {
        Ok(self.stat()?.busy)
    }

    /// The most resident memory at any moment so far, in bytes.
    pub(crate) fn peak_bytes(&self) -> Result<u64, BenchError> {
        let id = self.child.as_ref().map_or(0, Child::id);
        let path = PathBuf::from(format!("/proc/{id}/status"));
        let text = fs::read_to_string(&path).map_err(|source| BenchError::File { path, source })?;
        peak(&text).ok_or_else(|| BenchError::Answer { command: self.command.clone(), said: text })
    }

    fn stat(&self) -> Result<Stat, BenchError> {
        let id = self.child.as_ref().map_or(0, Child::id);
        let path = PathBuf::from(format!("/proc/{id}/stat"));
        let text = fs::read_to_string(&path).map_err(|source| BenchError::File { path, source })?;
        Stat::read(&text).ok_or_else(|| BenchError::Answer { command: self.command.clone(), said: text })
    }

    /// Waits for its end, which must be a success.
    pub(crate) fn finish(mut self) -> Result<Used, BenchError> {
        let ended = self.reap()?;
        let (wall, used) = (self.begun.elapsed(), ended.rusage);
        if !ended.status.success() {
            return Err(self.ended(ended.status));
        }
        Ok(Used { wall, busy: used.utime + used.stime, peak_bytes: used.maxrss })
    }

    /// Ends it as `kill -9` does, and returns when it is gone.
    pub(crate) fn kill(mut self) -> Result<(), BenchError> {
        self.end().map_err(|source| BenchError::Start { command: self.command.clone(), source })
    }

    fn reap(&mut self) -> Result<ResUse, BenchError> {
        let child = self.child.take().expect("invariant: it is awaited once");
        child.wait4().map_err(|source| BenchError::Start { command: self.command.clone(), source })
    }

    fn ended(&self, status: ExitStatus) -> BenchError {
        BenchError::Ended {
            command: self.command.clone(),
            status: status.to_string(),
            words: last_words(&self.said),
        }
    }

    fn end(&mut self) -> std::io::Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It is gone already, or cannot be ended by anybody.
        let _ = self.end();
    }
}

/// What the system says of a process.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    is_over: bool,
    busy: Duration,
}

impl Stat {
    /// Reads `/proc/<pid>/stat` (`proc_pid_stat(5)`).
    fn read(text: &str) -> Option<Self> {
        // The name stands in brackets and may hold anything. Behind it come the state and, as the 12th and 13th field,
        // the time in user and kernel in ticks of 10 ms.
        let fields: Vec<_> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            is_over: *fields.first()? == "Z",
            busy: Duration::from_millis(10 * (ticks(11)? + ticks(12)?)),
        })
    }
}

/// Reads the peak of resident memory in `/proc/<pid>/status` (`proc_pid_status(5)`).
fn peak(text: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(1_024 * value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?)
}

fn last_words(said: &Path) -> String {
    let text = fs::read(said).unwrap_or_default();
    let start = text.len().saturating_sub(LAST_WORDS);
    String::from_utf8_lossy(&text[start..]).trim().to_owned()
}

/// The time of day, as every process of this machine sees it.
pub(crate) fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_move_the_fields() {
        let text = "7 (a) b (c)) R 1 7 7 0 -1 4194304 1 0 0 0 120 30 0 0 20 0 3 0 99 1000 10\n";
        let expected = Stat { is_over: false, busy: Duration::from_millis(1_500) };
        assert_eq!(Stat::read(text), Some(expected));
        assert!(Stat::read(&text.replace(" R ", " Z ")).is_some_and(|stat| stat.is_over));
    }

    #[test]
    fn the_peak_of_memory_is_told_in_kibibytes() {
        assert_eq!(peak("VmPeak:\t  900 kB\nVmHWM:\t  100 kB\nVmRSS:\t 90 kB\n"), Some(102_400));
    }

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let file = std::env::current_dir().unwrap().join("in.jsonl").display().to_string();
        let invocation = Invocation::new(Cores::Second, Path::new("penstock"), ["validate", &file]);
        let shown = invocation.variable("PENSTOCK_LOG", "off").to_string();
        assert_eq!(shown, "PENSTOCK_LOG=off taskset --cpu-list 1 penstock validate in.jsonl");
    }
}
