//! One round: carries its plan out, lets an undisturbed run bring the job to its receipt, and checks what is left.

use std::{fs, path::PathBuf, time::Duration};

use fastrand::Rng;
use rustix::process::Signal;
use serde_json::Value;

use crate::{
    bound::Bound,
    clock::{Clock, set_clock},
    place::{Conditions, PATIENCE, Place, Process, now_ms},
    plan::{Act, Aftermath, Deed, Moment, Plan},
    provider,
    report::Report,
    witness::{self, output},
};

/// How long a run that should leave is awaited before it is killed.
const LEAVING: Duration = Duration::from_secs(3);

/// Carries out a plan in a folder that is not there yet.
///
/// # Panics
/// If anything is not as it must be. The folder stays.
pub(crate) async fn run(mut plan: Plan, folder: PathBuf) -> Report {
    let place = Place::new(&mut plan, folder).await;
    set_clock(&place.clock(), 0);
    let acts = std::mem::take(&mut plan.acts);
    let mut round = Round {
        clock: plan.clock_steps.then(|| Clock::start(place.clock(), plan.seed)),
        random: Rng::with_seed(plan.seed),
        place,
        bound: Bound::default(),
        report: Report::default(),
        may_end: plan.may_expire,
        safe: Vec::new(),
        in_flight: plan.in_flight,
    };
    for act in acts {
        round.act(act).await;
        if round.receipt().is_some() {
            break;
        }
    }
    round.finish(plan.seed).await
}

struct Round {
    place: Place,
    random: Rng,
    clock: Option<Clock>,
    bound: Bound,
    report: Report,
    /// Whether the job may end before every line is answered.
    may_end: bool,
    /// What was safe whenever nobody ran, since a part was damaged last.
    safe: Vec<witness::Moment>,
    in_flight: usize,
}

impl Round {
    async fn act(&mut self, act: Act) {
        self.place.server.update(act.provider.clone()).unwrap();
        self.place.site.set_faults(act.bucket_faults.clone());
        match &act.deed {
            Deed::Kill(at) => {
                let mut run = self.start(&act, None, &[]);
                self.kill_at(*at, &mut run).await;
                self.ended(&act, run, &[]).await;
            }
            Deed::Inject(rules, at) => {
                let mut run = self.start(&act, Some(rules), &[]);
                self.kill_at(*at, &mut run).await;
                self.ended(&act, run, &[]).await;
            }
            Deed::Terminate(at) => {
                let mut run = self.start(&act, None, &[]);
                if self.place.await_moment(*at, &mut run).await {
                    let from = now_ms();
                    run.signal(Signal::TERM);
                    self.ended(&act, run, &[75]).await;
                    self.bound.drained(from, now_ms());
                    self.report.stopped += 1;
                } else {
                    self.ended(&act, run, &[]).await;
                }
            }
            Deed::Pause { at, wake } => self.pause(&act, *at, *wake).await,
            Deed::Storm(moments) => self.storm(&act, moments).await,
            Deed::Beside(at) => {
                let mut first = self.start(&act, None, &[]);
                self.place.await_moment(Moment::After(Duration::from_millis(100)), &mut first).await;
                let mut second = self.start(&act, None, &[]);
                self.kill_at(*at, &mut first).await;
                // It may have come when the first one was gone.
                self.kill_at(*at, &mut second).await;
                self.ended(&act, first, &[76]).await;
                self.ended(&act, second, &[76]).await;
            }
            Deed::Cancel(at) => self.cancel(&act, *at).await,
        }
        self.place.site.set_faults(Vec::new());
        self.look_back();
        self.aftermath(act.aftermath).await;
    }

    fn start(&mut self, act: &Act, rules: Option<&str>, more: &[&str]) -> Process {
        let conditions = self.conditions(act, rules);
        let arguments = [&["--rate", act.rate], more].concat();
        self.place.run(&conditions, &arguments)
    }

    fn conditions(&mut self, act: &Act, rules: Option<&str>) -> Conditions {
        let noise = act.storage_fault_in.map(|one_in| (self.random.u64(..), one_in));
        self.report.misled += u64::from(noise.is_some());
        Conditions { rules: rules.map(str::to_owned), noise }
    }

    async fn kill_at(&mut self, at: Moment, run: &mut Process) {
        let lives = self.place.await_moment(at, run).await;
        if self.random.bool() {
            self.place.land().await;
        }
        if lives {
            run.signal(Signal::KILL);
        }
    }

    /// Waits for the end of a process, which may have these codes beside those that every run may have.
    async fn ended(&mut self, act: &Act, mut process: Process, more: &[i32]) -> Option<i32> {
        let mut allowed = vec![0];
        allowed.extend(self.may_end.then_some(4));
        // Storage that does not answer for a claim, or while the folder is opened.
        let troubled = act.storage_fault_in.is_some() || !act.bucket_faults.is_empty();
        allowed.extend(troubled.then_some(69));
        allowed.extend(more);
        let code = process.end(&allowed).await;
        if code.is_none() {
            self.report.killed += 1;
        }
        // Whoever published or drained gave nothing up that the log does not tell of.
        if !matches!(code, Some(0 | 4 | 75)) {
            self.bound.died(self.in_flight);
        }
        code
    }

    /// SIGSTOP; a successor takes over; SIGCONT: the paused one must leave and change nothing.
    async fn pause(&mut self, act: &Act, at: Moment, wake: Moment) {
        let mut paused = self.start(act, None, &[]);
        if !self.place.await_moment(at, &mut paused).await {
            self.ended(act, paused, &[]).await;
            return;
        }
        paused.signal(Signal::STOP);
        self.report.paused += 1;
        let mut successor = self.start(act, None, &["--take-over"]);
        self.place.await_moment(wake, &mut successor).await;
        let woken = self.place.server.requests().received;
        paused.signal(Signal::CONT);
        // The successor may have found no storage; and whoever was paused before its claim claims now, and is the newcomer.
        let alone = tokio::select! {
            _ = paused.ends_within(PATIENCE) => false,
            _ = successor.ends_within(PATIENCE) => self.receipt().is_none(),
        };
        if alone {
            self.kill_at(at, &mut paused).await;
        }
        self.bound.died(self.in_flight);
        self.ended(act, paused, &[76]).await;
        self.bound.overtaken(self.place.server.requests().received - woken);
        successor.signal(Signal::KILL);
        // A paused process may hold the lock of the folder.
        self.ended(act, successor, &[69, 76]).await;
    }

    /// Runs take the job from one another, each at its moment.
    async fn storm(&mut self, act: &Act, moments: &[Moment]) {
        let mut runs: Vec<Process> = Vec::new();
        for at in moments {
            let mut run = self.start(act, None, &["--take-over"]);
            self.place.await_moment(*at, &mut run).await;
            runs.push(run);
        }
        if let Some(last) = runs.last_mut() {
            last.signal(Signal::KILL);
        }
        let began: Vec<u64> = runs.iter().map(|run| run.began).collect();
        for (place, mut run) in runs.into_iter().enumerate() {
            // One whose newcomer died before its claim goes on.
            if !run.ends_within(LEAVING).await {
                run.signal(Signal::KILL);
            }
            self.ended(act, run, &[76]).await;
            if let Some(newcomer) = began.get(place + 1) {
                self.bound.overtaken(self.place.server.requests().received - newcomer);
                self.report.overtaken += 1;
            }
        }
    }

    async fn cancel(&mut self, act: &Act, at: Moment) {
        let mut run = self.start(act, None, &[]);
        self.place.await_moment(at, &mut run).await;
        self.may_end = true;
        self.report.cancels += 1;
        let from = now_ms();
        let conditions = self.conditions(act, None);
        let cancel = self.place.command("cancel", &conditions);
        // 64: there is no job yet. 76: the run did not leave in time, or came to own the folder later.
        self.ended(act, cancel, &[64, 76]).await;
        if !run.ends_within(LEAVING).await {
            run.signal(Signal::KILL);
        }
        self.ended(act, run, &[75]).await;
        self.bound.drained(from, now_ms());
    }

    /// T5, while nobody runs: what was durable at any time before was not asked again.
    fn look_back(&mut self) {
        let log = self.place.server.log();
        for moment in &self.safe {
            let again = self.place.witness.requests(&log).asked_again_since(moment);
            assert!(again.is_empty(), "T5: durable, and asked again: {again:?}");
        }
        self.safe.push(self.place.witness.moment(&log));
    }

    async fn aftermath(&mut self, aftermath: Aftermath) {
        match aftermath {
            Aftermath::None => {}
            Aftermath::LoseScratch => {
                if self.place.site.lose_scratch() {
                    self.bound.scratch_lost();
                    self.report.scratch_lost += 1;
                }
            }
            Aftermath::DeletePart | Aftermath::DamagePart => self.lose_part(aftermath).await,
        }
    }

    /// Damages a part. What is decided can only be published as it is: then the parts are left alone.
    async fn lose_part(&mut self, how: Aftermath) {
        let contents = self.place.site.seen().now();
        let state = output::document(&*contents, "state.json");
        let running = state.as_ref().is_some_and(|state| state["phase"] == "running");
        let Some(part) = self.random.choice(contents.names("parts")).filter(|_| running) else { return };
        let name = format!("parts/{part}");
        let mut bytes = contents.read(&name).unwrap();
        self.place.witness.expect_damage(&name);
        self.safe.clear();
        self.bound.part_lost(bytes.split(|byte| *byte == b'\n').count() as u64);
        self.report.parts_lost += 1;
        if how == Aftermath::DeletePart {
            return self.place.site.delete(&name).await;
        }
        let at = self.random.usize(0..bytes.len());
        if state.is_some_and(|state| output::listed(&state).contains_key(&name)) {
            bytes[at] ^= 1;
        } else {
            // No checksum of it is recorded yet, so only what is not whole can be noticed.
            bytes.truncate(at);
        }
        self.place.site.overwrite(&name, &bytes).await;
    }

    fn receipt(&self) -> Option<Value> {
        self.place.site.seen().document("receipt.json")
    }

    /// An undisturbed run, and every check.
    async fn finish(mut self, seed: u64) -> Report {
        self.place.server.update(provider::calm(seed)).unwrap();
        if let Some(clock) = self.clock.take() {
            self.report.clock_steps = clock.stop().await;
        }
        let expected: &[i32] = if self.may_end { &[0, 4] } else { &[0] };
        let undisturbed = Conditions::default();
        self.place.land().await;
        let before = self.receipt().map(|_| self.place.server.requests().received);
        let code = self.place.run(&undisturbed, &[]).end(expected).await.unwrap();
        let received = self.place.server.requests().received;
        assert!(before.is_none_or(|before| before == received), "T12: asked after the receipt");
        let published = self.place.witness.published();
        // T12: the same command again finds everything done.
        self.place.run(&undisturbed, &[]).end(&[code]).await;
        assert_eq!(self.place.server.requests().received, received, "T12: asked after the receipt");
        self.place.command("verify", &undisturbed).end(&[0]).await;
        self.look_back();
        let log = self.place.server.log();
        self.report.lines = published.receipt["lines"].as_u64().unwrap();
        self.report.requests = received;
        let faults = log.iter().filter(|entry| entry.answer.is_some_and(|answer| answer.fault.is_some()));
        self.report.provider_faults = faults.count() as u64;
        self.report.repeats = self.place.witness.requests(&log).repeats() as u64;
        self.report.allowed = self.bound.lines(&log);
        let Report { repeats, allowed, .. } = self.report;
        assert!(repeats <= allowed, "{repeats} requests were sent again, {allowed} at most may be");
        let Place { witness, server, site, folder, .. } = self.place;
        assert_eq!(witness.finish(), published, "T1: what is published has changed");
        server.shutdown().await;
        site.close().await;
        fs::remove_dir_all(folder).unwrap();
        self.report
    }
}
