//! What happens in a round, drawn from the seed: the job, and one disturbed run after another. Pure.

use std::{fmt, time::Duration};

use fastrand::Rng;
use penstock_batchfile::Format;
use penstock_gcs_double::FaultRule;
use penstock_job::Step;
use penstock_simulator::ProviderSettings;
use serde_json::{Value, json};

use crate::{
    bucket,
    input::{self, Input},
    provider,
    site::Kind,
};

/// Seconds that one request may take.
pub(crate) const REQUEST_SECONDS: u64 = 2;
/// Seconds that answers are awaited after SIGTERM: longer than any request takes.
const DRAIN_SECONDS: u64 = 3;

/// One round.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Draws what is drawn while the round goes on.
    pub(crate) seed: u64,
    /// Where the job is.
    pub(crate) kind: Kind,
    pub(crate) format: Format,
    pub(crate) input: Input,
    pub(crate) in_flight: usize,
    /// Lines that a run reads at once: every job has several windows.
    pub(crate) window_lines: usize,
    /// The job file.
    pub(crate) job: Value,
    /// Whether the job has a completion window.
    pub(crate) may_expire: bool,
    /// Whether the wall clock steps forwards and backwards.
    pub(crate) clock_steps: bool,
    pub(crate) acts: Vec<Act>,
}

/// One disturbed run, or several at once.
#[derive(Debug)]
pub(crate) struct Act {
    pub(crate) provider: ProviderSettings,
    /// `--rate`. The learner begins with a few requests a minute, so only some runs have it.
    pub(crate) rate: &'static str,
    /// One storage call in so many goes wrong.
    pub(crate) storage_fault_in: Option<u64>,
    /// What requests to the bucket meet, where the job is in one.
    pub(crate) bucket_faults: Vec<FaultRule>,
    pub(crate) deed: Deed,
    pub(crate) aftermath: Aftermath,
}

/// What is done to a run.
#[derive(Debug)]
pub(crate) enum Deed {
    /// SIGKILL.
    Kill(Moment),
    /// The rules of `PENSTOCK_INJECT`; if it lives on, SIGKILL.
    Inject(String, Moment),
    /// SIGTERM.
    Terminate(Moment),
    /// SIGSTOP; a successor; SIGCONT.
    Pause { at: Moment, wake: Moment },
    /// So many runs that take the job from one another.
    Storm(Vec<Moment>),
    /// A second run that does not insist.
    Beside(Moment),
    /// `penstock cancel`.
    Cancel(Moment),
}

/// What happens to the folder when nobody runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aftermath {
    None,
    LoseScratch,
    DeletePart,
    DamagePart,
}

/// When something is done, counted from the start of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Moment {
    /// After so many further requests.
    Requests(u64),
    After(Duration),
}

impl Plan {
    /// The round of a seed; in the place that is asked for, else in one that is drawn.
    pub(crate) fn draw(seed: u64, round: u32, kind: Option<Kind>) -> Self {
        let mut random = Rng::with_seed(seed);
        for _ in 0..round {
            random = random.fork();
        }
        let format = random.choice([Format::Prompts, Format::OpenAi]).unwrap();
        let count = 20 << random.usize(0..8);
        let count = count + random.usize(0..count);
        let in_flight = random.usize(1..=8) * random.usize(1..=8);
        let may_expire = random.u8(0..6) == 0;
        let mut limits = json!({
            "max_in_flight": in_flight,
            "max_attempts": random.u8(2..9),
            "retry": { "base_ms": 10, "cap_ms": 200 },
            "request_timeout_seconds": REQUEST_SECONDS,
            "drain_seconds": DRAIN_SECONDS,
            "checkpoint_seconds": 1,
        });
        if may_expire {
            limits["deadline_seconds"] = json!(random.u64(2..20));
        }
        let job = json!({ "model": "soak", "keep_parts": random.bool(), "limits": limits });
        let input = input::draw(&mut random, format, count);
        let mut acts: Vec<Act> = (0..random.usize(2..9)).map(|_| Act::draw(&mut random, count)).collect();
        // Nothing happens to a job that was cancelled but that it is brought to its end.
        if random.u8(0..5) == 0 {
            let at = acts.len() - random.usize(1..=2);
            acts[at].deed = Deed::Cancel(Moment::draw(&mut random, count));
        }
        let (clock_steps, seed) = (random.bool(), random.u64(..));
        // Drawn last, so that a round of a folder stays what it was.
        let drawn = random.choice([Kind::Folder, Kind::Bucket]).unwrap();
        let kind = kind.unwrap_or(drawn);
        let window_lines = random.usize(count / 8..=count).max(1);
        if kind == Kind::Bucket {
            for act in &mut acts {
                act.bucket_faults = bucket::faults(&mut random);
            }
        }
        Self { seed, kind, format, input, in_flight, window_lines, job, may_expire, clock_steps, acts }
    }
}

impl Act {
    fn draw(random: &mut Rng, lines: usize) -> Self {
        let at = |random: &mut Rng| Moment::draw(random, lines);
        let deed = match random.u8(0..19) {
            0..4 => Deed::Kill(at(random)),
            4..10 => Deed::Inject(rules(random, lines), at(random)),
            10..13 => Deed::Terminate(at(random)),
            13..15 => Deed::Pause { at: at(random), wake: at(random) },
            15..17 => Deed::Storm((0..random.usize(2..5)).map(|_| at(random)).collect()),
            _ => Deed::Beside(at(random)),
        };
        let aftermath = match random.u8(0..16) {
            0..2 => Aftermath::LoseScratch,
            2 => Aftermath::DeletePart,
            3 => Aftermath::DamagePart,
            _ => Aftermath::None,
        };
        Self {
            provider: if random.u8(0..4) == 0 {
                provider::calm(random.u64(..))
            } else {
                provider::rough(random)
            },
            rate: if random.u8(0..8) == 0 { "aimd" } else { "fixed" },
            storage_fault_in: (random.u8(0..3) == 0).then(|| random.u64(4..100)),
            bucket_faults: Vec::new(),
            deed,
            aftermath,
        }
    }
}

impl Moment {
    fn draw(random: &mut Rng, lines: usize) -> Self {
        if random.u8(0..3) == 0 {
            Self::After(Duration::from_millis(random.u64(0..2_500)))
        } else {
            Self::Requests(random.u64(0..=lines as u64 / 4))
        }
    }
}

/// One to three rules at steps drawn from all of them. One write at most is late: only one is kept.
fn rules(random: &mut Rng, lines: usize) -> String {
    let rule = |random: &mut Rng, is_first: bool| {
        let step = random.choice(Step::ALL).unwrap();
        let act = if step.writes() && random.bool() {
            random.choice(["lose", "doubt", if is_first { "late" } else { "doubt" }]).unwrap()
        } else {
            random.choice(["kill", "kill-before"]).unwrap()
        };
        let most = if matches!(step, Step::Send | Step::Append) { lines as u64 / 4 } else { 3 };
        format!("{act}@{}:{}", step.name(), random.u64(1..=most))
    };
    let count = random.usize(1..4);
    (0..count).map(|number| rule(random, number == 0)).collect::<Vec<_>>().join(",")
}

impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} {} lines, {} in flight",
            self.input.lines.len(),
            self.format.as_str(),
            self.in_flight
        )?;
        let bucket = self.kind == Kind::Bucket;
        for (holds, word) in
            [(bucket, "in a bucket"), (self.may_expire, "deadline"), (self.clock_steps, "clock steps")]
        {
            if holds {
                write!(formatter, ", {word}")?;
            }
        }
        self.acts.iter().try_for_each(|act| write!(formatter, "; {act}"))
    }
}

impl fmt::Display for Act {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.deed {
            Deed::Kill(_) => formatter.write_str("kill"),
            Deed::Inject(rules, _) => formatter.write_str(rules),
            Deed::Terminate(_) => formatter.write_str("terminate"),
            Deed::Pause { .. } => formatter.write_str("pause"),
            Deed::Storm(runs) => write!(formatter, "storm of {}", runs.len()),
            Deed::Beside(_) => formatter.write_str("beside"),
            Deed::Cancel(_) => formatter.write_str("cancel"),
        }?;
        if self.rate != "fixed" {
            write!(formatter, " + {}", self.rate)?;
        }
        if let Some(one_in) = self.storage_fault_in {
            write!(formatter, " + storage 1/{one_in}")?;
        }
        if !self.bucket_faults.is_empty() {
            write!(formatter, " + {} bucket faults", self.bucket_faults.len())?;
        }
        match self.aftermath {
            Aftermath::None => Ok(()),
            Aftermath::LoseScratch => formatter.write_str(" + lose scratch"),
            Aftermath::DeletePart => formatter.write_str(" + delete a part"),
            Aftermath::DamagePart => formatter.write_str(" + damage a part"),
        }
    }
}
