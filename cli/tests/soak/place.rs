//! The job of a round in a folder or in a bucket, its provider double and witness, and the processes that are started in it, each with a deadline.

use std::{
    fs,
    net::Ipv4Addr,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use penstock_executor::injection::land;
use penstock_simulator::Server;
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    process::{Child, Command},
    time::Instant,
};

use crate::{
    plan::{Moment, Plan},
    provider,
    site::Site,
    witness::Witness,
};

/// A process that takes longer than this hangs.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);
/// The longest time until a moment comes.
const LONGEST: Duration = Duration::from_secs(4);
/// Time between two looks at whether a moment has come.
const LOOK: Duration = Duration::from_millis(1);

pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    pub(crate) site: Site,
    pub(crate) server: Server,
    pub(crate) witness: Witness,
    window_lines: usize,
    started: u32,
}

/// A process of the binary; what it says goes to a file.
pub(crate) struct Process {
    name: String,
    child: Child,
    said: PathBuf,
    /// Requests that the double had received when it started.
    pub(crate) began: u64,
    /// Whether this process may end by a signal.
    killed: bool,
}

/// What a process meets.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    pub(crate) rules: Option<String>,
    pub(crate) noise: Option<(u64, u64)>,
}

impl Place {
    pub(crate) async fn new(plan: &mut Plan, folder: PathBuf) -> Self {
        fs::create_dir(&folder).unwrap();
        let site = Site::new(plan.kind, folder.clone(), &plan.input.text).await;
        fs::write(folder.join("job.json"), plan.job.to_string()).unwrap();
        let mut settings = provider::calm(plan.seed);
        settings.log.file = Some(folder.join("requests.jsonl"));
        let server = Server::start(settings, (Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let witness = Witness::of(site.seen(), std::mem::take(&mut plan.input.lines));
        Self { folder, site, server, witness, window_lines: plan.window_lines, started: 0 }
    }

    /// Lets the writes land that were kept for later; their preconditions may not hold any more.
    pub(crate) async fn land(&self) {
        let kept = (1..=self.started).map(|number| self.kept(number));
        for folder in kept.filter(|folder| folder.join("write.json").exists()) {
            land(&folder, &*self.site.store().await).await;
            fs::remove_dir_all(folder).unwrap();
        }
    }

    /// Where a process keeps a write that is to land later.
    fn kept(&self, number: u32) -> PathBuf {
        self.folder.join(format!("kept-{number:02}"))
    }

    pub(crate) fn clock(&self) -> PathBuf {
        self.folder.join("clock")
    }

    /// `penstock run`.
    pub(crate) fn run(&mut self, conditions: &Conditions, more: &[&str]) -> Process {
        let url = self.server.base_url();
        let mut command = penstock("run");
        command.arg(self.site.input()).arg("--output").arg(self.site.output());
        command.arg("--job").arg(self.folder.join("job.json"));
        command.args(["--provider", "simulated", "--base-url", &url]).args(more);
        self.start("run", command, conditions)
    }

    /// `penstock cancel` or `penstock verify`.
    pub(crate) fn command(&mut self, name: &str, conditions: &Conditions) -> Process {
        let mut command = penstock(name);
        command.arg(self.site.output());
        self.start(name, command, conditions)
    }

    fn start(&mut self, name: &str, mut command: Command, conditions: &Conditions) -> Process {
        self.started += 1;
        let name = format!("{:02}-{name}", self.started);
        let said = self.folder.join(&name);
        self.site.lead(&mut command);
        command.env("PENSTOCK_INJECT_CLOCK", self.clock()).env("PENSTOCK_LOG", "info");
        command.env("PENSTOCK_INJECT_KEPT", self.kept(self.started));
        command.env("PENSTOCK_INJECT_WINDOW_LINES", self.window_lines.to_string());
        if let Some(rules) = &conditions.rules {
            command.env("PENSTOCK_INJECT", rules);
        }
        if let Some((seed, one_in)) = conditions.noise {
            command.env("PENSTOCK_INJECT_SEED", format!("{seed}/{one_in}"));
        }
        let output = fs::File::create(&said).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output).kill_on_drop(true);
        let killed = conditions.rules.as_ref().is_some_and(|rules| rules.contains("kill"));
        let began = self.server.requests().received;
        Process { name, child: command.spawn().unwrap(), said, began, killed }
    }

    /// Waits for a moment in the life of a process; whether it still lives then.
    pub(crate) async fn await_moment(&self, moment: Moment, process: &mut Process) -> bool {
        let began = Instant::now();
        let received = self.server.requests().received;
        let has_come = || match moment {
            Moment::Requests(more) => self.server.requests().received >= received + more,
            Moment::After(time) => began.elapsed() >= time,
        };
        while !has_come() && began.elapsed() < LONGEST {
            if process.ends_within(LOOK).await {
                return false;
            }
        }
        true
    }
}

fn penstock(name: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
    command.arg(name);
    command
}

impl Process {
    pub(crate) fn signal(&mut self, signal: Signal) {
        // One that has just begun does not listen for SIGTERM yet.
        self.killed |= [Signal::KILL, Signal::TERM].contains(&signal);
        // One that has been waited for has no id any more.
        if let Some(id) = self.child.id() {
            kill_process(Pid::from_raw(id.cast_signed()).unwrap(), signal).unwrap();
        }
    }

    /// Whether it ends in this time.
    pub(crate) async fn ends_within(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.child.wait()).await.is_ok()
    }

    /// Its exit code, which must be one of these; `None` when it was killed.
    pub(crate) async fn end(&mut self, allowed: &[i32]) -> Option<i32> {
        let status = self.status().await;
        let right = status.code().map_or(self.killed, |code| allowed.contains(&code));
        assert!(right, "{} ended with {status}, not with one of {allowed:?}: {}", self.name, self.said());
        status.code()
    }

    async fn status(&mut self) -> ExitStatus {
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        ended.unwrap_or_else(|_| panic!("{} hangs: {}", self.name, self.said())).unwrap()
    }

    /// The end of what it has said.
    fn said(&self) -> String {
        let said = String::from_utf8_lossy(&fs::read(&self.said).unwrap()).into_owned();
        let lines: Vec<&str> = said.lines().collect();
        let last = lines.len().saturating_sub(12);
        format!("{}:\n{}", self.said.display(), lines[last..].join("\n"))
    }
}

/// Milliseconds since the epoch, as the double's log counts them.
pub(crate) fn now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}
